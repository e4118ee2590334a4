"""A real PostgreSQL from Debian's package in a folder of its own, reached by a Unix socket alone.

PostgreSQL refuses to run as root: a test that runs as root starts it as ``postgres``, the user that the package makes.
The server ends, and its folder is removed, when its input ends: no test, however it ends, leaves one behind.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from memory_folder import new_folder

_SERVE = """
run=$1 folder=$2
"$run" -D "$folder/data" -o "-k $folder" -l "$folder/log" -w -t 600 start >/dev/null && echo ready
read -r _
"$run" -D "$folder/data" -m fast -w stop >/dev/null
rm -rf "$folder"
"""
# What a power cut would lose matters to nobody here; what a killed client leaves is the same without it.
_SETTINGS = "listen_addresses=''\nmax_connections=200\nfsync=off\nsynchronous_commit=on\nfull_page_writes=off\n"


@contextmanager
def postgres_serving(*, on_disk=False):
    """Start a server; yields the address of a database without its name. Skips where PostgreSQL is not installed.

    Its files are in memory, unless they have to be ``on_disk``.
    """
    installed = programs()
    if installed is None:
        pytest.skip("PostgreSQL is not installed: initdb is neither in PATH nor in /usr/lib/postgresql")
    account = _account()
    # The path of a socket has at most 107 bytes, which folders of tests can exceed, and another user must reach it.
    folder = Path(tempfile.mkdtemp(prefix="pg-")) if on_disk else new_folder("pg-")
    if account:
        os.chown(folder, pwd.getpwnam(account["user"]).pw_uid, -1)
    made = subprocess.run(
        [installed / "initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
        check=False, capture_output=True, text=True, cwd=folder, **account,
    )  # fmt: skip
    if made.returncode:
        shutil.rmtree(folder)
        pytest.skip(f"initdb cannot make a database here: {made.stderr.strip().splitlines()[-1:]}")
    with (folder / "data" / "postgresql.conf").open("a") as settings:
        settings.write(_SETTINGS)
    with subprocess.Popen(
        ["sh", "-c", _SERVE, "sh", installed / "pg_ctl", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd="/",
        # Ctrl-C reaches the tests, which then end the server.
        start_new_session=True,
        **account,
    ) as server:
        try:
            assert server.stdout.readline() == b"ready\n", (folder / "log").read_text()
            yield f"postgresql://postgres@/{{name}}?host={folder}"
        finally:
            server.stdin.close()


def run_statement(address, statement):
    """Run one statement, which may be one that no transaction can hold, such as CREATE DATABASE."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(statement)


def programs():
    """Return the folder of PostgreSQL's programs; null where it is not installed."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(os.path.realpath(on_path)).parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return versions[-1].parent if versions else None


def _account():
    """The settings of a process that root starts as ``postgres``; none for anybody else."""
    if os.geteuid() != 0:
        return {}
    try:
        person = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    return {"user": "postgres", "group": person.pw_gid, "extra_groups": []}
