"""A workbench with one person of each role, a project and open tasks, and browsers and programs that visit it."""

import re
import shutil
import threading
import time
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
from sqlalchemy import insert, select

from quick_client import QuickClient
from steelyard.workbench.accounts.api_tokens import issue_token, revoke_token
from steelyard.workbench.accounts.people import (
    ROLES,
    NewPerson,
    add_person,
    erase_person,
    log_in,
    make_key,
)
from steelyard.workbench.accounts.permissions import COOKIE
from steelyard.workbench.application import Options, application
from steelyard.workbench.figures.fit_keeper import THREAD_NAME
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.counters import count_what_is_stored
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.pipeline.queues import next_assignments
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredApiToken,
    StoredItem,
    StoredKey,
    StoredPerson,
    StoredTask,
    WorkbenchTable,
)
from workbench_people import NO_GOLD, answer, cases, cases_with_reference, membership_of, send

PASSWORD = "a long password"
ABSENT = 999
SECRETS = re.compile(r"Traceback|sqlalchemy|sqlite|site\.db|File \"|/site-packages/|\$argon2|argon2\.", re.IGNORECASE)
"""What no answer says of the inside."""


class Site(NamedTuple):
    """What is in the workbench: cookies, tokens, and numbers of rows by role; ``other`` belongs to somebody else."""

    cookies: dict[str, str]
    tokens: dict[str, str]
    token_numbers: dict[str, int]
    people: dict[str, int]
    revoked: str
    project: int
    assignment: int
    other_assignment: int
    other_token: int
    erased: int
    items: dict[tuple[str, bool], tuple[int, int]]
    """By role: an item in its review queue, or among those that wait to be settled, with a task of it."""
    other_item: int


def make_site(address):
    """Make the workbench in a database."""
    database = Database(address)
    database.migrate()
    application(database)
    now = time.time()

    def make(session):
        people = {
            role: add_person(session, NewPerson(role, role, PASSWORD), by=None, at=now)
            for role in (*ROLES, "other")
            if role != "other"
        }
        people["other"] = add_person(session, NewPerson("other", "annotator", PASSWORD), by=None, at=now)
        gone = add_person(session, NewPerson("gone", "annotator", PASSWORD), by=None, at=now)
        tokens = {name: issue_token(session, person, "t", at=now) for name, person in people.items()}
        revoked = issue_token(session, people["administrator"], "old", at=now)
        numbers = {}
        for row in session.scalars(select(StoredApiToken).order_by(StoredApiToken.id)):
            if row.name == "old":
                revoke_token(session, row, by=row.person_id, at=now)
            else:
                numbers[next(name for name, person in people.items() if person.id == row.person_id)] = row.id
        erase_person(session, gone, by=None, at=now)
        cookies = {name: log_in(session, name, PASSWORD, address="x", at=now) for name in people}
        project = add_project(session, "P", ProjectSettings(rules=NO_GOLD), by=None, at=now)
        import_cases(session, project, cases(6), batch="b1", by=None, at=now)
        session.flush()
        mine = next_assignments(session, membership_of(session, project.id, people["annotator"].id), number=1, at=now)
        theirs = next_assignments(session, membership_of(session, project.id, people["other"].id), number=2, at=now)
        session.flush()
        import_cases(session, project, cases(7, first=50), batch="b0", by=None, at=now)
        items = add_settled_items(session, project, people, now)
        return Site(
            cookies=cookies,
            tokens=tokens,
            token_numbers=numbers,
            people={name: person.id for name, person in people.items()},
            revoked=revoked,
            project=project.id,
            assignment=mine[0].id,
            other_assignment=theirs[0].id,
            other_token=numbers["other"],
            erased=gone.id,
            items=items,
            other_item=session.get_one(StoredTask, mine[0].task_id).item_id,
        ), (theirs[1].id, tuple(theirs[1].shown))

    site, (assignment, shown) = database.write(make)
    send(database, assignment, answer(shown), at=now)
    if database.engine.dialect.name == "sqlite":
        write_log_back(database)
    database.close()
    return site


def add_settled_items(session, project, people, at):
    """Put an item of the batch ``b0`` into each queue after annotation; returns it with its task by role.

    Two people have answered each: in opposite orders where they are to be settled.
    """
    places = {
        ("annotator", True): "aligning",
        ("delivery", True): "with delivery",
        ("operations", True): "with operations",
        ("researcher", True): "with developers",
        ("delivery", False): "delivery review",
        ("operations", False): "operations review",
        ("researcher", False): "validation",
    }
    rows = session.execute(
        select(StoredItem, StoredTask)
        .join(StoredTask, StoredTask.item_id == StoredItem.id)
        .where(StoredItem.project_id == project.id, StoredItem.batch == "b0")
        .order_by(StoredItem.id)
    ).all()
    items = {}
    for (key, state), (item, task) in zip(places.items(), rows, strict=True):
        for name in ("annotator", "other"):
            order = sorted(task.responses, reverse=key[1] and name == "other")
            content = msgspec.to_builtins(answer(task.responses, order))
            session.add(StoredAnswer(task_id=task.id, person_id=people[name].id, content=content, seconds=1.0, at=at))
        item.state, task.is_open, task.num_answered, task.num_reserved = state, False, 2, 2
        items[key] = (item.id, task.id)
    items["annotator", False] = items["annotator", True]
    items["administrator", False] = items["researcher", False]  # reads all items, and has no queue
    return items


_FORM_TOKENS: dict[str, str] = {}
"""By cookie: a token belongs to a session, and every copy of a site has its sessions."""


@cache
def _application(database):
    return application(database, Options(hosts=("testserver",)))


def begun(database):
    """Return the application over what is in a database now: the same one whenever the same object has another file.

    FastAPI describes each route at the first request that is compared with it, which takes longer than most tests.
    """
    app = _application(database)
    database.write(make_key)
    database.write(count_what_is_stored)
    return app


class Visit:
    """The workbench of a database with a copy of the site, as browsers and programs reach it."""

    def __init__(self, database, site):
        self.site = site
        self.database = database
        self.app = begun(self.database)

    def browser(self, name=None):
        """Return a client of somebody who is logged in, or of nobody; it follows no redirection."""
        client = QuickClient(self.app)
        if name is not None:
            client.cookies.set(COOKIE, self.site.cookies[name])
        return client

    def csrf(self, name):
        """Return the token that pages of this person's session have in their forms."""
        cookie = self.site.cookies[name]
        if cookie not in _FORM_TOKENS:
            text = self.browser(name).get("/account").text
            _FORM_TOKENS[cookie] = re.search(r'name="csrf-token" content="(\w+)"', text)[1]
        return _FORM_TOKENS[cookie]

    def program(self, token):
        """Return a client with a token."""
        return QuickClient(self.app, headers={"authorization": f"Bearer {token}"})

    def num_answers(self):
        """Return the number of answers stored."""
        with self.database.reading() as session:
            return len(session.scalars(select(StoredAnswer.id)).all())

    def person(self, number):
        """Return the account of a number."""
        with self.database.reading() as session:
            return session.get_one(StoredPerson, number)

    def close(self):
        """Close the database."""
        close_when_idle(self.database)


def close_when_idle(database):
    """Close a database that several tests have in turn, once no fit beside the requests uses it any more.

    A fit that goes on would open the file of this test again, and the next test, whose file has the same name, would
    find that connection in the pool: it would read and write two databases in turn.
    """
    for thread in threading.enumerate():
        if thread.name.startswith(THREAD_NAME):
            thread.join()
    database.close()


def copy_sqlite(template, place):
    """Put a copy of a SQLite file in the place of another, with which its log of changes goes."""
    for old in place.parent.glob(f"{place.name}*"):
        old.unlink()
    shutil.copy(template, place)


_MADE: dict[tuple, tuple[bytes, object]] = {}
"""By a function and its arguments: the SQLite file that it made, and what it returned."""


def made_once(database, make, **arguments):
    """Return ``make(database, **arguments)`` in a database without rows: a later call on SQLite copies the first file.

    What was returned is copied, too. Each test has its own, and all of them the same beginning.
    """
    if not database.is_sqlite:
        return make(database, **arguments)
    place = Path(database.engine.url.database)
    key = make, place, *sorted(arguments.items())
    if key in _MADE:
        # Nobody has asked this database yet: what was opened for the one before is closed.
        database.close()
        place.write_bytes(_MADE[key][0])
    else:
        returned = make(database, **arguments)
        write_log_back(database)
        close_when_idle(database)
        _MADE[key] = place.read_bytes(), returned
    return deepcopy(_MADE[key][1], {id(database): database})


def write_log_back(database):
    """Make a SQLite database one file again: what waits in the log beside it is written into it."""
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


def copy_rows(source, target):
    """Copy the rows of all tables but the key into a database without any, which may be of the other system."""
    with source.engine.connect() as reading, target.engine.begin() as writing:
        for table in WorkbenchTable.metadata.sorted_tables:
            rows = [dict(row) for row in reading.execute(select(table)).mappings()]
            if rows and table is not StoredKey.__table__:
                writing.execute(insert(table), rows)


def reference_lines(num_cases):
    """Return lines of a case file whose rankings are the reference of a qualification."""
    return b"".join(msgspec.json.encode(case) + b"\n" for case in cases_with_reference(num_cases, first=300))


def case_lines(num_cases, *, first=100):
    """Return lines of a case file with three responses each."""
    return b"".join(msgspec.json.encode(case) + b"\n" for case in cases(num_cases, first=first))
