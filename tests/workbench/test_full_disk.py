"""A disk without room under a workbench: nothing half-stored, nothing lost, and everybody hears what to do.

A limit on the size of files stands for the full disk of SQLite; PostgreSQL raises its own error for one.
"""

import resource
from contextlib import contextmanager, nullcontext

import msgspec
import pytest
from sqlalchemy import select, text

from steelyard.annotation.answers import TaskAnswer
from steelyard.cli.main import main
from steelyard.core.errors import OutputError
from steelyard.workbench.accounts.people import NewPerson, add_person
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.database_errors import NoRoomError, UnavailableError
from steelyard.workbench.storage.tables import StoredPerson
from workbench_people import NOON

pytestmark = pytest.mark.slow

ROOM = 100
ANSWER = msgspec.json.encode(TaskAnswer(scores={"A": 5, "B": 3, "C": 1}, ranking=(("A",), ("B",), ("C",))))


@contextmanager
def no_room():
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def add(name):
    return lambda session: add_person(session, NewPerson(name, "annotator"), by=None, at=NOON)


def names(database):
    with database.reading() as session:
        return sorted(session.scalars(select(StoredPerson.name)))


def fill_disk_of_postgres(session):
    session.execute(text("DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$"))


def test_a_write_without_room_keeps_what_was_stored_and_works_again_with_room(database):
    database.write(add("Ada"))
    refused, disk = (add("Bo"), no_room()) if database.is_sqlite else (fill_disk_of_postgres, nullcontext())
    with disk, pytest.raises(NoRoomError, match="what was stored before is intact") as caught:
        database.write(refused)
    assert "free some space" in (caught.value.do or "")
    assert names(database) == ["Ada"]
    database.write(add("Bo"))
    assert names(database) == ["Ada", "Bo"]


@pytest.mark.parametrize(
    ("language", "sentence"), [("en", "The disk of the workbench is full"), ("zh", "标注台的磁盘已满")]
)
def test_a_form_without_room_gets_a_page_that_says_so(visit, language, sentence, capsys):
    browser = visit.browser("annotator")
    choice = {"language": language, "csrf": visit.csrf("annotator")}
    assert browser.post("/account/language", data=choice).status_code == 303
    path = f"/annotate/{visit.site.assignment}/answer?seconds=1"
    headers = {
        "x-csrf-token": visit.csrf("annotator"),
        "content-type": "application/json",
        "accept": "application/json",
    }
    sent = {"content": ANSWER, "headers": headers}
    before = visit.num_answers()
    with no_room():
        reply = browser.post(path, **sent)
        page = browser.post("/account/language", data=choice | {"language": "zh" if language == "en" else "en"})
    assert reply.status_code == 507, reply.text
    assert sentence.casefold() in reply.text.casefold()
    assert str(visit.database.engine.url.database) not in reply.text
    assert "free some space" in capsys.readouterr().err
    assert visit.num_answers() == before
    assert page.status_code == 507
    assert sentence in page.text
    assert browser.post(path, **sent).status_code == 200
    assert visit.num_answers() == before + 1


def code_of(words, patch):
    patch.setattr("sys.argv", ["steelyard", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code or 0


def test_a_command_without_room_names_the_database_and_what_to_do(new_sqlite, tmp_path, monkeypatch, capsys):
    database = new_sqlite()
    address = database.shown_address
    for words in (
        ["add-person", "ada", "--database", address],
        ["add-person", "ada", "--database", f"sqlite:///{tmp_path / 'new.db'}"],
        ["backup", str(tmp_path / "copy.db"), "--database", address],
    ):
        with no_room():
            assert code_of(["workbench", *words], monkeypatch) == 2
        error = capsys.readouterr().err
        assert words[1] in error or words[-1] in error
        assert "do: free some space" in error
    assert not (tmp_path / "copy.db").exists()
    assert code_of(["workbench", "add-person", "ada", "--database", address], monkeypatch) == 0
    assert names(database) == ["ada"]


def test_a_new_workbench_without_room_is_made_with_room(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'new.db'}")
    with no_room(), pytest.raises(OutputError, match="nothing more can be stored"):
        database.migrate()
    database.migrate()
    database.write(add("Ada"))
    assert names(database) == ["Ada"]
    database.close()


@pytest.mark.parametrize(
    ("language", "sentence"),
    [("en", "The database of the workbench does not answer: nothing was stored."), ("zh", "标注台的数据库没有响应")],
)
def test_a_database_that_does_not_answer_is_told_on_a_page_and_to_programs(visit, language, sentence, monkeypatch):
    def fail(*_):
        raise UnavailableError("the database cannot be used", where="postgresql://***@secret/w")

    browser = visit.browser("annotator")
    for name in ("reading", "looking_up", "write"):
        monkeypatch.setattr(type(visit.database), name, fail)
    reply = browser.get("/", headers={"accept-language": language})
    assert reply.status_code == 503
    assert sentence in reply.text
    assert "secret" not in reply.text
    program = browser.get("/api/v1/projects")
    assert (program.status_code, "nothing was stored" in program.json()["error"]) == (503, True)
