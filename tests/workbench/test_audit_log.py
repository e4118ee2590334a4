"""The audit log: nothing in it can be changed, and whoever changes it all the same is found out."""

import threading

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import DBAPIError

from steelyard.workbench.accounts.people import NewPerson, add_person
from steelyard.workbench.storage.audit_log import (
    BEGINNING,
    AuditEvent,
    CheckedEvent,
    check_log,
    last_checked_event,
    record,
    record_check,
    verify,
)
from steelyard.workbench.storage.tables import StoredAnswer, StoredEvent, StoredPerson
from workbench_people import NOON, answer, make_project, send, take

TRIGGERS = {
    "sqlite": ["DROP TRIGGER events_stay_UPDATE", "DROP TRIGGER events_stay_DELETE"],
    "postgresql": ["ALTER TABLE events DISABLE TRIGGER ALL"],
}


def log(database, *actions):
    for number, action in enumerate(actions, start=1):
        database.write(
            lambda session, action=action, number=number: record(
                session, AuditEvent(action, "item", number, None, {"why": "测试", "share": 0.1}), at=NOON + number / 3
            )
        )


def broken_at(database):
    with database.reading() as session:
        return verify(session)


def tamper(database, statement):
    with database.engine.begin() as connection:
        for each in [*TRIGGERS[database.engine.dialect.name], statement]:
            connection.execute(text(each))


def test_events_are_in_order_and_follow_from_each_other(database):
    log(database, "a", "b", "c")
    with database.reading() as session:
        rows = session.scalars(select(StoredEvent).order_by(StoredEvent.id)).all()
    assert [row.action for row in rows] == ["a", "b", "c"]
    assert [row.previous_hash for row in rows] == ["", rows[0].hash, rows[1].hash]
    assert broken_at(database) is None


@pytest.mark.parametrize("statement", ["UPDATE events SET action = 'x'", "DELETE FROM events"])
def test_the_tables_refuse_every_change(database, statement):
    log(database, "a")
    with pytest.raises(DBAPIError, match="append-only"), database.engine.begin() as connection:
        connection.execute(text(statement))
    assert broken_at(database) is None


@pytest.mark.parametrize(
    "change",
    [
        "action = 'z'", "at = at + 1", "subject = 'task'", "subject_id = 9", "previous_hash = ''",
        "detail = '{\"why\": \"\", \"share\": 0.1}'", "person_id = 1",
    ],
)  # fmt: skip
def test_a_row_that_was_changed_is_named(database, change):
    log(database, "a", "b", "c", "d")
    database.write(lambda session: add_person(session, NewPerson("Ada", "annotator"), by=None, at=NOON))
    tamper(database, f"UPDATE events SET {change} WHERE id = 3")
    assert broken_at(database) == 3


def test_a_row_that_is_missing_is_noticed_at_the_next(database):
    log(database, "a", "b", "c", "d")
    tamper(database, "DELETE FROM events WHERE id = 2")
    assert broken_at(database) == 3


def test_events_of_transactions_in_parallel_form_one_chain(database):
    threads = [threading.Thread(target=log, args=(database, *"abcdef")) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.reading() as session:
        assert len(session.scalars(select(StoredEvent)).all()) == 48
    assert broken_at(database) is None


def test_what_is_undone_is_not_in_the_log(database):
    def work(session):
        record(session, AuditEvent("a", "item", 1, None, {}), at=NOON)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        database.write(work)
    log(database, "b")
    with database.reading() as session:
        assert list(session.scalars(select(StoredEvent.action))) == ["b"]
    assert broken_at(database) is None


def checked(database):
    """Check the log from where the last check ended, and note it where it is whole."""
    with database.reading() as session:
        check = check_log(session, last_checked_event(session))
    if check.broken is None:
        person = database.write(
            lambda session: (
                session.scalar(select(StoredPerson.id))
                or add_person(session, NewPerson("Ada", "administrator"), by=None, at=NOON).id
            )
        )
        database.write(lambda session: record_check(session, check, by=person, at=NOON))
    return check


def test_a_check_reads_what_was_added_since_the_one_before(database):
    log(database, "a", "b", "c")
    first = checked(database)
    assert (first.broken, first.since, first.through.event) == (None, BEGINNING, 3)
    log(database, "d")
    second = checked(database)
    # The account of who checks, the first check, and "d".
    assert (second.broken, second.since.event, second.through.event) == (None, 3, 6)
    assert second.since.hash == first.through.hash


@pytest.mark.parametrize(
    ("number", "since_then"),
    # Before the last event that was checked, at it, at the note of it, and after it.
    [(2, None), (4, 4), (6, 6), (7, 7)],
)
def test_what_was_changed_before_the_last_check_is_found_from_the_beginning(database, number, since_then):
    log(database, "a", "b", "c", "d")
    checked(database)
    log(database, "e")
    tamper(database, f"UPDATE events SET at = at + 1, hash = 'other' WHERE id = {number}")
    with database.reading() as session:
        since = last_checked_event(session)
        assert check_log(session, since).broken == since_then
        assert check_log(session).broken == number


@pytest.fixture
def answered(database):
    """Two answers, one after the other, each with its event."""
    project, people = make_project(database, 2, 3)
    for person in people:
        ((number, shown),) = take(database, project, person)
        send(database, number, answer(shown))
    with database.reading() as session:
        return session.scalars(select(StoredAnswer.id).order_by(StoredAnswer.id)).all()


def checks(database, since=BEGINNING):
    with database.reading() as session:
        return check_log(session, since)


def run(database, statement):
    with database.engine.begin() as connection:
        connection.execute(text(statement))


def test_an_answer_that_was_changed_in_the_database_is_named(database, answered):
    assert checks(database).is_whole
    run(database, f'UPDATE answers SET content = \'{{"remark": "better"}}\' WHERE id = {answered[1]}')
    found = checks(database)
    assert (found.broken, found.answer, found.is_whole) == (None, answered[1], False)


def test_an_answer_whose_event_was_cut_off_is_named(database, answered):
    assert checked(database).is_whole
    with database.reading() as session:
        *_, last = session.scalars(select(StoredEvent.id).where(StoredEvent.action == "answered")).all()
    tamper(database, f"DELETE FROM events WHERE id >= {last}")
    found = checks(database)
    assert (found.broken, found.answer) == (None, answered[1])


def test_an_answer_that_was_removed_is_named(database, answered):
    run(database, f"DELETE FROM answers WHERE id = {answered[0]}")
    assert checks(database).answer == answered[0]


def test_an_answer_since_the_last_check_is_compared(database, answered):
    with database.reading() as session:
        since = check_log(session).through
    assert checks(database, since).is_whole
    middle = database.write(
        lambda session: session.scalars(select(StoredEvent).where(StoredEvent.action == "answered")).first()
    )
    since = CheckedEvent(middle.id, middle.hash)
    run(database, f"UPDATE answers SET content = '{{}}' WHERE id = {answered[1]}")
    assert checks(database, since).answer == answered[1]


def test_an_event_is_not_replaced(database):
    log(database, "a", "b")
    with database.reading() as session:
        row = session.scalars(select(StoredEvent)).first()
    columns = "(id, at, action, subject, detail, previous_hash, hash)"
    values = f"({row.id}, 1, 'x', 'item', '{{}}', '', 'other')"
    statement = {
        "sqlite": f"INSERT OR REPLACE INTO events {columns} VALUES {values}",
        "postgresql": f"INSERT INTO events {columns} VALUES {values} ON CONFLICT (id) DO UPDATE SET action = 'x'",
    }[database.engine.dialect.name]
    with pytest.raises(DBAPIError, match="append-only"):
        run(database, statement)
    assert broken_at(database) is None
