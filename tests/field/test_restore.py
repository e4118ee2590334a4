"""Backup and restore by the commands of the how-to, as they stand there: every row, the audit log, work."""

import http.client
import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from sqlalchemy import func, select

from postgres_server import postgres_serving, programs, run_statement
from steelyard.workbench.accounts.api_tokens import issue_token, revoke_token
from steelyard.workbench.accounts.people import NewPerson, add_person, log_in, make_key
from steelyard.workbench.accounts.permissions import COOKIE
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.queues import next_assignments
from steelyard.workbench.storage.audit_log import verify
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import StoredAnswer, StoredApiToken, StoredPerson, StoredProject, WorkbenchTable
from workbench_people import NOON, answer_all, cases_with_reference, make_project, membership_of
from workbench_server import PASSWORD

pytestmark = pytest.mark.field
FOLDER = Path(__file__).parents[2] / "docs" / "howto"
SECTIONS = {"workbench.md": "## Backup and restore", "workbench.zh.md": "## 备份与恢复"}
WRITTEN = "postgresql://USER:PASSWORD@localhost/"


def commands(page):
    """The commands of the section, by block: for SQLite and for PostgreSQL."""
    section = (FOLDER / page).read_text(encoding="utf-8").partition(SECTIONS[page])[2].partition("\n## ")[0]
    return [block.splitlines() for block in re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)]


def test_both_pages_have_the_same_commands():
    assert commands("workbench.md") == commands("workbench.zh.md")
    assert [len(block) for block in commands("workbench.md")] == [2, 4]


@pytest.fixture(params=["sqlite", "postgresql"])
def workbench(request, tmp_path):
    """The folder, the environment, the address by name of a database, and the block of commands of a system."""
    scripts = [str(Path(sys.executable).parent)]
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parents[1] / "src"), "NO_COLOR": "1"}
    sqlite, postgresql = commands("workbench.md")
    if request.param == "sqlite":
        environment["PATH"] = os.pathsep.join([*scripts, os.environ["PATH"]])
        yield tmp_path, environment, (lambda name: f"sqlite:///{tmp_path}/{name}.db"), sqlite, ("workbench", "monday")
        return
    with postgres_serving() as server:
        run_statement(server.format(name="postgres"), "CREATE DATABASE workbench")
        host = urlsplit(server).query.removeprefix("host=")
        environment |= {
            "PATH": os.pathsep.join([*scripts, str(programs()), os.environ["PATH"]]),
            "PGHOST": host,
            "PGUSER": "postgres",
        }
        block = [re.sub(rf"{re.escape(WRITTEN)}(\w+)", lambda name: f"'{server.format(name=name[1])}'", line)
                 for line in postgresql]  # fmt: skip
        assert all(WRITTEN not in line for line in block)
        yield tmp_path, environment, (lambda name: server.format(name=name)), block, ("workbench", "restored")


def populate(database):
    """People with passwords, answered and open items, a draft, a token that is revoked; returns the number of Ada."""
    project, people = make_project(database, 6, 5, num_people=3)
    answer_all(database, project, people[:2])

    def more(session):
        make_key(session)
        ada = add_person(session, NewPerson("ada", "annotator", PASSWORD), by=None, at=NOON)
        add_person(session, NewPerson("root", "administrator", PASSWORD, "根 عمر"), by=None, at=NOON)
        cookie = log_in(session, "ada", PASSWORD, address="x", at=NOON)
        issue_token(session, ada, "kept", at=NOON)
        issue_token(session, ada, "revoked", at=NOON)
        session.flush()
        token = session.scalars(select(StoredApiToken).where(StoredApiToken.name == "revoked")).one()
        revoke_token(session, token, by=ada.id, at=NOON)
        return cookie

    database.write(more)

    def open_items(session):
        row = session.get_one(StoredProject, project)
        import_cases(session, row, cases_with_reference(3), batch="second", by=None, at=NOON)
        session.flush()
        next_assignments(session, membership_of(session, project, people[2]), number=2, at=NOON)

    database.write(open_items)


def rows_of(database):
    with database.reading() as session:
        assert verify(session) is None
        return {
            table.name: session.execute(select(table).order_by(table.c.id)).all()
            for table in WorkbenchTable.metadata.sorted_tables
        }


def run(line, folder, environment):
    done = subprocess.run(
        ["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, (line, done.stderr)
    assert "Traceback" not in done.stderr


@contextmanager
def serving(line, folder, environment):
    """Run the command that serves, at a free port; yields its address."""
    with subprocess.Popen(
        ["sh", "-c", f"exec {line} --port 0"],
        cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as server:  # fmt: skip
        try:
            first = server.stdout.readline()
            assert "http://" in first, first
            yield urlsplit(first.split()[-1]).netloc
        finally:
            server.kill()


class Visitor:
    """A browser that logs in at a served workbench."""

    def __init__(self, host, name):
        self.host, self.headers = host, {}
        status, headers, _ = self.send("POST", "/login", {"name": name, "password": PASSWORD})
        assert status == 303
        self.headers["cookie"] = headers["set-cookie"].partition(";")[0]
        assert self.headers["cookie"].startswith(f"{COOKIE}=")
        page = self.send("GET", "/account")[2]
        self.headers["x-csrf-token"] = re.search(r'name="csrf-token" content="(\w+)"', page)[1]

    def send(self, method, path, body=None):
        """Send a form, or JSON for a list or record of it; returns status, headers and text."""
        kind = {"content-type": "application/x-www-form-urlencoded"}
        data = urlencode(body) if isinstance(body, dict) else body
        if isinstance(body, bytes):
            kind = {"content-type": "application/json"}
        connection = http.client.HTTPConnection(self.host, timeout=120)
        connection.request(method, path, data, {**self.headers, **(kind if body is not None else {})})
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return reply.status, reply.headers, text


def test_a_restored_copy_is_the_workbench_and_work_goes_on(workbench):
    folder, environment, address, (*before, serve), (original, restored) = workbench
    database = Database(address(original))
    database.migrate()
    populate(database)
    expected = rows_of(database)
    assert all(expected[name] for name in ("people", "items", "answers", "events", "assignments", "api_tokens"))
    for line in before:
        run(line, folder, environment)
    copy = Database(address(restored))
    assert rows_of(copy) == expected
    with serving(serve, folder, environment) as host:
        ada = Visitor(host, "ada")
        tasks = json.loads(ada.send("GET", "/annotate/tasks?project=1&number=1")[2])["tasks"]
        letters = [each["id"] for each in tasks[0]["responses"]]
        content = {
            "scores": {letter: 5 - place for place, letter in enumerate(letters)},
            "ranking": [[letter] for letter in letters],
        }
        path = f"/annotate/{tasks[0]['assignment']}/answer?seconds=3"
        status, _, text = ada.send("POST", path, json.dumps(content).encode())
        assert (status, json.loads(text)["outcome"]) == (200, "stored")
        status, _, text = Visitor(host, "root").send("POST", "/manage/audit/check", {"whole": "true"})
        assert status == 200
        assert 'role="alert"' not in text
        assert re.search(r'role="status" class="good"', text)
    with copy.reading() as session:
        author = session.scalar(select(StoredPerson.id).where(StoredPerson.name == "ada"))
        newest = session.scalars(select(StoredAnswer).order_by(StoredAnswer.id.desc()).limit(1)).one()
        assert newest.person_id == author
        assert session.scalar(select(func.count()).select_from(StoredAnswer)) == len(expected["answers"]) + 1
        assert verify(session) is None
    copy.close()
    # The workbench that was copied has nothing of that.
    assert rows_of(database) == expected
    database.close()
