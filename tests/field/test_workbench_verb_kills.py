"""Every verb of the workbench killed twenty times at random moments: the same command again comes to the same end.

Each run is forked from a process in which everything is imported, so that the moments fall into the work. Kills come in
chains of four, after which the command is let through. Equal means: every row of every table and every file that was
written, but for times, and for notes in the audit log of attempts that wrote a file again.
"""

import json
import random
import re
import shutil
import signal
import sqlite3
import sys
import time
import zlib

import msgspec
import pytest
from sqlalchemy import select, text

from postgres_server import postgres_serving, run_statement
from steelyard.annotation.answers import TaskAnswer
from steelyard.io.cases import write_cases
from steelyard.workbench.accounts.people import NewPerson, add_person
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.pipeline.reviewing import Verdict, decide
from steelyard.workbench.storage.audit_log import verify
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import StoredAnswer, StoredItem, StoredProject, StoredTask, WorkbenchTable
from task_kind_cases import cases_for, rules_for
from warm_process import called, command
from workbench_people import NO_GOLD, NOON, answer_all, cases, cases_with_reference
from workbench_site import copy_rows

pytestmark = [pytest.mark.field, pytest.mark.filterwarnings("ignore")]
CHAINS, STOPS = 5, 4
SEED = 16
SECONDS = 900
NUM_CASES = 120
ANNOTATORS, REVIEWER = (1, 2, 3), 4
OF_THE_CLOCK = {"at", "created_at", "changed_at", "erased_at", "assigned_at", "expires_at"}
OF_THE_CLOCK |= {"hash", "previous_hash", "sha256"}
ATTEMPTS = {"exported", "tasks exported", "answers imported"}
"""Events that each attempt writes: each has taken the data out, or stored its part."""
PEOPLE = "--person 1=person1 --person 2=person2"
VERBS = {
    "import": "import new.jsonl --project fresh --set seed=3",
    "import into a project": "import new.jsonl --project open --batch second",
    "qualification": "import reference.jsonl --project open --qualification",
    "answers": f"answers export.json --tasks given --project open {PEOPLE}",
    "erase": "erase person3 --yes",
    "release": "export --project done --what release --name 1.0 --freeze",
    "release again": "export --project done --what release --name 0.9 --out {}",
    "export": "export --project done --out {}.jsonl",
    "answers of a project": "export --project done --what answers --out {}.jsonl",
    "paper": "export --project done --what paper --out {}",
    "native": "export --project natives --what native --out {}.json",
    "tasks": "tasks --project open --format label_studio --out {}",
    "backup": "backup {}.db",
}
WITHOUT_DATABASE = {
    "tasks of cases": "tasks new.jsonl --format potato --people 3 --out {}",
    "answers to cases": "answers export-cases.json --tasks given-cases --cases open.jsonl --out {}.jsonl",
}
DONE_BEFORE = {
    "import": "has its settings",
    "import into a project": "is imported already",
    "erase": "has no account",
    "release": "has a release",
    "backup": "exists already",
}
"""What a verb says of which an attempt that was killed had stored everything."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a populated workbench, and all that the verbs read."""
    folder = tmp_path_factory.mktemp("kills")
    database = Database(f"sqlite:///{folder}/start.db")
    database.migrate()
    database.write(populate)
    with database.reading() as session:
        done = session.scalar(select(StoredProject.id).where(StoredProject.name == "done"))
    answer_all(database, done, ANNOTATORS)
    finish(database)
    database.close()
    write_cases(folder / "new.jsonl", cases(NUM_CASES, first=5000))
    write_cases(folder / "open.jsonl", cases(NUM_CASES))
    write_cases(folder / "reference.jsonl", cases_with_reference(40))
    at = f"--database sqlite:///{folder}/start.db"
    let_through(f"export --project done --what release --name 0.9 --freeze {at}", folder)
    let_through(f"tasks --project open --format label_studio --out given {at}", folder)
    let_through("tasks open.jsonl --format label_studio --out given-cases", folder)
    write_export(folder, "given", "export.json")
    write_export(folder, "given-cases", "export-cases.json")
    with sqlite3.connect(folder / "start.db") as start:
        start.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


def populate(session):
    """Make the people and three projects: one that is open, one that will be done, one for native speakers."""
    for number in ANNOTATORS:
        add_person(session, NewPerson(f"person{number}", "annotator"), by=None, at=NOON)
    add_person(session, NewPerson("reviewer", "researcher"), by=None, at=NOON)
    rules = msgspec.structs.replace(NO_GOLD, delivery_share=0.0, operations_share=0.0)
    for name, made, settings in (
        ("open", cases(NUM_CASES), ProjectSettings(rules=rules)),
        ("done", cases(60, first=1000), ProjectSettings(rules=rules)),
        ("natives", cases_for("native_check", 40), ProjectSettings(rules=rules, tasks=rules_for("native_check"))),
    ):
        project = add_project(session, name, settings, by=None, at=NOON)
        import_cases(session, project, made, batch="first", by=None, at=NOON)


def finish(database):
    """Accept what waits for its last review, and answer and accept what is for native speakers."""

    def work(session):
        for item in session.scalars(select(StoredItem).where(StoredItem.state == "validation")).all():
            decide(session, item.id, Verdict(True, ""), layer="research", person=REVIEWER, at=NOON)
        natives = select(StoredProject.id).where(StoredProject.name == "natives").scalar_subquery()
        for item, task in session.execute(
            select(StoredItem, StoredTask).join(StoredTask).where(StoredItem.project_id == natives)
        ).all():
            content = TaskAnswer(ranking=(("r0",), ("r1",)), entries={"fluency": "native", "suited": "yes"})
            stored = StoredAnswer(task_id=task.id, person_id=1, seconds=1.0, at=NOON)
            stored.content, item.state = msgspec.to_builtins(content), "finished"
            session.add(stored)

    database.write(work)


def write_export(folder, tasks, name):
    """Write what two people answered at Label Studio: every task of a folder, by its places on the page."""
    tasks = json.loads((folder / tasks / "triples_by_2" / "tasks.json").read_text(encoding="utf-8"))
    exported = []
    for number, task in enumerate(tasks, start=1):
        annotations = []
        for person in (1, 2):
            values = {
                **{f"place_{letter}": str(place) for place, letter in enumerate("abc", start=1)},
                **{f"score_{letter}": str(5 - 2 * place) for place, letter in enumerate("abc")},
            }
            result = [
                {
                    "id": name,
                    "from_name": name,
                    "to_name": f"response_{name[-1]}",
                    "type": "choices",
                    "value": {"choices": [value]},
                }
                for name, value in values.items()
            ]
            annotations.append(
                {
                    "id": 2 * number + person,
                    "completed_by": person,
                    "result": result,
                    "was_cancelled": False,
                    "lead_time": 40.0,
                    "created_at": "2026-11-23T09:30:00.000000Z",
                    "updated_at": "2026-11-23T09:30:00.000000Z",
                }
            )
        exported.append({"id": number, "annotations": annotations, "data": task["data"]})
    (folder / name).write_text(json.dumps(exported), encoding="utf-8")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database_of(request, place):
    """Gives the address of a new copy of the populated workbench, on each of the two systems."""
    if request.param == "sqlite":

        def copy(name):
            for old in place.glob(f"{name}.db*"):
                old.unlink()
            shutil.copy(place / "start.db", place / f"{name}.db")
            return f"sqlite:///{place / name}.db"

        yield copy
        return
    with postgres_serving() as server:
        run_statement(server.format(name="postgres"), "CREATE DATABASE start")
        source, target = Database(f"sqlite:///{place}/start.db"), Database(server.format(name="start"))
        target.migrate()
        copy_rows(source, target)
        with target.engine.begin() as connection:
            for table in WorkbenchTable.metadata.sorted_tables:
                sequence = f"pg_get_serial_sequence('{table.name}', 'id')"
                connection.execute(text(f"SELECT setval({sequence}, COALESCE(MAX(id), 1)) FROM {table.name}"))
        source.close()
        target.close()

        def copy_there(name):
            run_statement(server.format(name="postgres"), f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            run_statement(server.format(name="postgres"), f"CREATE DATABASE {name} TEMPLATE start")
            return server.format(name=name)

        yield copy_there


def let_through(words, folder, *, done_before=None):
    """Run a verb to its end. It may say that an attempt that was killed had done all of it."""
    ended = called(f"workbench {words}", folder, seconds=SECONDS)
    is_done = done_before is not None and ended.returncode == 2 and done_before in ended.stderr
    assert ended.returncode == 0 or is_done, (words, ended)
    assert "Traceback" not in ended.stderr
    return ended.stdout


def stop(words, folder, draw, seconds, *, done_before):
    """Start a verb and kill it at a random moment. Returns whether it had not ended before."""
    process = command(f"workbench {words}", folder)
    is_struck = not process.ends_within(draw.uniform(0, seconds))
    if is_struck:
        process.kill(signal.SIGKILL)
    ended = process.wait(SECONDS)
    is_done = done_before is not None and ended.returncode == 2 and done_before in ended.stderr
    assert ended.returncode in (0, -signal.SIGKILL) or is_done, (words, ended)
    return is_struck


def rows_of(address):
    """Every row but for the clock, and for the notes of attempts; checks that the audit log is whole.

    Numbers of rows are places in their order: a transaction that was killed has taken numbers from PostgreSQL.
    """
    database = Database(address)
    found, places = {}, {}
    with database.reading() as session:
        assert verify(session) is None
        for table in WorkbenchTable.metadata.sorted_tables:
            numbers = session.scalars(select(table.c.id).order_by(table.c.id))
            places[table.name] = {number: place for place, number in enumerate(numbers)}
        for table in WorkbenchTable.metadata.sorted_tables:
            rows = [dict(row) for row in session.execute(select(table)).mappings()]
            kept = (row for row in rows if row.get("action") not in ATTEMPTS)
            found[table.name] = sorted(json.dumps(plain_row(table, row, places), sort_keys=True) for row in kept)
    database.close()
    return found


def plain_row(table, row, places):
    """A row without the clock, with the places of rows for their numbers."""
    plain = {name: without_clock(value) for name, value in row.items() if name not in OF_THE_CLOCK}
    plain["id"] = None if table.name == "events" else places[table.name][row["id"]]
    for column in table.columns:
        for key in column.foreign_keys:
            number = row[column.name]
            plain[column.name] = None if number is None else places[key.column.table.name][number]
    if table.name == "events":
        rows_of_subject = places.get({"person": "people"}.get(row["subject"], f"{row['subject']}s"), {})
        plain["subject_id"] = rows_of_subject.get(row["subject_id"], row["subject_id"])
    if table.name == "release_parts":
        # Cards and manifests have their date.
        plain["content"] = zlib.decompress(row["content"]).decode() if row["path"] == "cases.jsonl" else ""
    return plain


def without_clock(value):
    """A value of JSON without times and hashes of what holds times."""
    if isinstance(value, dict):
        return {
            key: without_clock(each) for key, each in value.items() if key not in ("exported_at", "sha256", "files")
        }
    return [without_clock(each) for each in value] if isinstance(value, list) else value


def files_of(folder, name):
    """Every file that a verb wrote under a name, by its content; databases by their rows."""
    found = {}
    for path in sorted(each for top in folder.glob(f"{name}*") for each in (top, *top.rglob("*")) if each.is_file()):
        key = path.relative_to(folder).as_posix()
        content = rows_of(f"sqlite:///{path}") if path.suffix == ".db" else path.read_bytes()
        found[key] = re.sub(rb'"at": [0-9.]+', b"", content) if path.name == "figures.json" else content
    return found


def remove(folder, name):
    for path in folder.glob(f"{name}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def check_kills(name, words, folder, database_of):
    """Compare what a verb leaves after four kills and a run, five times, with what one run leaves."""
    at = f" --database {database_of('whole')}" if database_of else ""
    remove(folder, "out")
    started = time.monotonic()
    let_through(words.format("out") + at, folder)
    seconds = time.monotonic() - started
    expected = rows_of(at.rsplit(maxsplit=1)[-1]) if at else None, files_of(folder, "out")
    draw = random.Random(f"{SEED}{name}")
    num_struck, done_before = 0, DONE_BEFORE.get(name)
    for chain in range(CHAINS):
        remove(folder, "out")
        at = f" --database {database_of('killed')}" if database_of else ""
        line = words.format("out") + at
        num_struck += sum(stop(line, folder, draw, seconds, done_before=done_before) for _ in range(STOPS))
        let_through(line, folder, done_before=done_before)
        left = rows_of(at.split()[-1]) if at else None, files_of(folder, "out")
        assert left == expected, chain
        # Nothing half-written stays, under a name of its own or hidden.
        assert [path.name for path in folder.glob("*") if "unfinished" in path.name or path.name[0] == "."] == []
    remove(folder, "out")
    sys.stdout.write(f"{name}: {num_struck} of {CHAINS * STOPS} kills before the end of {seconds:.1f} s\n")


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_was_killed_comes_to_the_same_end(verb, place, database_of):
    if verb == "backup" and database_of("whole").startswith("postgresql"):
        pytest.skip("PostgreSQL is copied by pg_dump")
    check_kills(verb, VERBS[verb], place, database_of)


@pytest.mark.parametrize("verb", WITHOUT_DATABASE)
def test_a_verb_on_files_that_was_killed_comes_to_the_same_end(verb, place):
    check_kills(verb, WITHOUT_DATABASE[verb], place, None)
