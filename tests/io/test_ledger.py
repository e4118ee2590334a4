import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import textwrap

import pytest
from msgspec import structs

from steelyard.core.comparison import Alternative, Reply
from steelyard.core.errors import FileError, OutputError
from steelyard.io.ledger import open_ledger, read_ledger

FULL = Reply(
    request="r1",
    text="[[A]] 中文 שלום 👩‍👩‍👧",
    first_token=(Alternative(token="A", logprob=-0.25),),
    prompt_tokens=3,
    reply_tokens=2,
    model="m",
)


def test_what_is_kept_comes_back_after_reopening(tmp_path):
    with open_ledger(tmp_path / "l.sqlite") as ledger:
        ledger.add(FULL)
        assert (ledger.has("r1"), ledger.has("r2"), len(ledger)) == (True, False, 1)
    with open_ledger(tmp_path / "l.sqlite") as ledger:
        assert ledger.reply("r1") == FULL
        assert list(ledger.replies()) == [FULL]


@pytest.mark.parametrize("replies", [(), (FULL,)])
def test_a_ledger_that_a_users_error_ends_stays_if_it_holds_a_reply(tmp_path, replies):
    def use():
        with open_ledger(tmp_path / "l.sqlite") as ledger:
            ledger.add(Reply(request="r2", failure="failed", detail="timeout: 5 s"))
            for one in replies:
                ledger.add(one)
            raise FileError("broken later")

    with pytest.raises(FileError, match="later"):
        use()
    assert [path.name for path in tmp_path.iterdir()] == ["l.sqlite"] * len(replies)


def test_other_users_of_the_machine_cannot_read_a_ledger(tmp_path):
    before = os.umask(0o022)
    try:
        with open_ledger(tmp_path / "l.sqlite") as ledger:
            ledger.add(FULL)
            modes = {file.name: oct(file.stat().st_mode & 0o777) for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"l.sqlite": "0o600", "l.sqlite-wal": "0o600"}


def test_a_failure_is_no_reply_and_is_forgiven_by_one(tmp_path):
    with open_ledger(tmp_path / "l.sqlite") as ledger:
        ledger.add(Reply(request="r1", failure="failed", detail="http_500: busy"))
        ledger.add(Reply(request="r1", failure="failed", detail="timeout: 3 s"))
        ledger.add(Reply(request="r2", failure="failed", detail="timeout: 5 s"))
        assert (ledger.has("r1"), len(ledger), ledger.failures()) == (False, 0, {"timeout": 2})
        assert ledger.reply("r1") == Reply(request="r1", failure="failed", detail="timeout: 3 s")
        ledger.add(FULL)
        assert (ledger.has("r1"), ledger.failures()) == (True, {"timeout": 1})


def test_refusals_and_cut_replies_are_answers(tmp_path):
    with open_ledger(None) as ledger:
        ledger.add(Reply(request="r1", failure="refused"))
        ledger.add(Reply(request="r2", text="so far", failure="cut off"))
        assert len(ledger) == 2
        assert ledger.reply("r2").text == "so far"


def test_what_was_never_asked_has_failed():
    with open_ledger(None) as ledger:
        assert ledger.reply("r") == Reply(request="r", failure="failed", detail="not asked")


def test_there_is_one_writer(tmp_path):
    with open_ledger(tmp_path / "l.sqlite") as ledger:
        ledger.add(FULL)
        with pytest.raises(OutputError, match="another run"), open_ledger(tmp_path / "l.sqlite"):
            pass
    with open_ledger(tmp_path / "l.sqlite") as ledger:
        assert ledger.has("r1")


def test_another_file_is_no_ledger(tmp_path):
    (tmp_path / "l.sqlite").write_text("this is a text, and long enough to be looked at as a database of pages")
    with pytest.raises(FileError, match="not a ledger"), open_ledger(tmp_path / "l.sqlite"):
        pass


def test_what_was_kept_survives_a_kill(tmp_path):
    path = tmp_path / "l.sqlite"
    script = textwrap.dedent(f"""
        import sys
        from pathlib import Path
        from steelyard.core.comparison import Reply
        from steelyard.io.ledger import open_ledger, read_ledger
        with open_ledger(Path({str(path)!r})) as ledger:
            for number in range(5):
                ledger.add(Reply(request=str(number), text="x"))
            print("kept", flush=True)
            sys.stdin.read()
    """)
    words = [sys.executable, "-c", script]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"kept\n"
        os.kill(running.pid, signal.SIGKILL)
    with open_ledger(path) as ledger:
        assert [reply.request for reply in ledger.replies()] == list("01234")


def test_a_run_that_goes_on_after_a_kill_and_a_forecast_leaves_the_ledger_alone(tmp_path):
    killed = tmp_path / "killed"
    killed.mkdir()
    with open_ledger(tmp_path / "r.sqlite") as ledger:
        ledger.add(Reply(request="a", text="yes"))
        for file in tmp_path.glob("r.sqlite*"):  # what a kill leaves
            (killed / file.name).write_bytes(file.read_bytes())
    with read_ledger(killed / "r.sqlite") as forecast:
        assert forecast.has("a")
    assert (killed / "r.sqlite-shm").exists()
    with open_ledger(killed / "r.sqlite") as ledger:
        assert ledger.has("a")
    assert [file.name for file in killed.iterdir()] == ["r.sqlite"]


def test_a_ledger_that_cannot_be_begun_is_not_called_busy_and_leaves_nothing(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OutputError, match="cannot be written") as caught, open_ledger(tmp_path / "l.sqlite"):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "wait for it" not in str(caught.value)
    assert not list(tmp_path.iterdir())
    with pytest.raises(OutputError, match="unable to open"), open_ledger(tmp_path / "absent" / "l.sqlite"):
        pass


def test_a_ledger_that_was_removed_ends_the_asking_at_the_next_reply(tmp_path):
    path = tmp_path / "l.sqlite"

    def ask():
        with open_ledger(path) as ledger:
            ledger.add(FULL)
            path.unlink()
            ledger.add(FULL)

    with pytest.raises(OutputError, match="was removed"):
        ask()


@pytest.mark.parametrize("name", ["l.sqlite", None])
def test_ids_are_told_apart_and_each_set_is_its_own(tmp_path, name):
    with open_ledger(name and tmp_path / name) as ledger:
        assert list(ledger.unique("abcab")) == ["a", "b", "c"]
        is_new, is_new_too = ledger.new_ids(), ledger.new_ids()
        assert [is_new(id_) for id_ in "aab"] == [True, False, True]
        assert is_new_too("a")
        ledger.add(FULL)
        assert not is_new("a")
    if name:
        with open_ledger(tmp_path / name) as ledger:
            assert list(ledger.replies()) == [FULL]


def test_a_ledger_of_an_earlier_version_is_read_and_continued(tmp_path):
    """Replies once had no endpoint, seed, seconds, finish reason or cached tokens."""
    old = {"request": "r0", "text": "[[B]]", "prompt_tokens": 3, "reply_tokens": 2, "model": "m"}
    with sqlite3.connect(tmp_path / "l.sqlite") as connection:
        connection.execute("CREATE TABLE replies (request TEXT PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID")
        connection.execute("INSERT INTO replies VALUES ('r0', ?)", (json.dumps(old),))
    connection.close()
    new = structs.replace(FULL, endpoint="http://h/v1", seed=7, seconds=0.5, finish_reason="stop", cached_tokens=1)
    with open_ledger(tmp_path / "l.sqlite") as ledger:
        assert ledger.reply("r0") == Reply(request="r0", text="[[B]]", prompt_tokens=3, reply_tokens=2, model="m")
        ledger.add(new)
        assert ledger.reply("r1") == new
        assert len(ledger) == 2


def test_the_tokens_of_failed_replies_are_added_up_and_stay(tmp_path):
    counts = {"prompt_tokens": 100, "reply_tokens": 20, "cached_tokens": 60}
    for _ in range(2):
        with open_ledger(tmp_path / "l.sqlite") as ledger:
            ledger.add(Reply(request="r1", failure="failed", detail="empty: reasoning without a reply", **counts))
            ledger.add(Reply(request="r2", failure="failed", detail="timeout: 3 s"))
    with open_ledger(tmp_path / "l.sqlite") as ledger:
        ledger.add(FULL)
        failed = ledger.failed_tokens("r1")
        assert (failed.prompt_tokens, failed.reply_tokens, failed.cached_tokens) == (200, 40, 120)
        assert (failed.cache_write_tokens, ledger.failed_tokens("r2"), ledger.reply("r1")) == (0, None, FULL)


def test_tries_without_an_answer_add_up_over_all_runs(tmp_path):
    for reply in (Reply(request="r1", failure="failed", unanswered_tries=2), structs.replace(FULL, unanswered_tries=1)):
        with open_ledger(tmp_path / "l.sqlite") as ledger:
            ledger.add(reply)
    with open_ledger(tmp_path / "l.sqlite") as ledger:
        ledger.add(structs.replace(FULL, request="r2"))
        assert (ledger.unanswered_tries("r1"), ledger.unanswered_tries("r2")) == (3, 0)
