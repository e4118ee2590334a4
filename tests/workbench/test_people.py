"""People: logins that are throttled, sessions and tokens that end, accounts that are erased while judgments stay."""

import shutil

import pytest
from argon2 import extract_parameters
from argon2.profiles import RFC_9106_LOW_MEMORY
from sqlalchemy import select, text

from steelyard.core.errors import ConfigError
from steelyard.workbench.accounts import people
from steelyard.workbench.accounts.api_tokens import issue_token, revoke_token
from steelyard.workbench.accounts.people import (
    SESSION_SECONDS,
    LoginRefused,
    NewPerson,
    add_person,
    change_account,
    erase_person,
    log_in,
    log_out,
    make_key,
    record_failure,
    set_password,
    visitor_of_cookie,
    visitor_of_token,
)
from steelyard.workbench.pipeline.case_export import export_cases
from steelyard.workbench.pipeline.submissions import move
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredApiToken,
    StoredEvent,
    StoredItem,
    StoredLoginSession,
    StoredPerson,
    StoredProject,
)
from workbench_people import NOON, answer_all, make_project

PASSWORD = "correct horse"


@pytest.fixture
def ada(database):
    """A person with a password, in a database with its key."""
    database.write(make_key)
    new = NewPerson("Ada", "annotator", PASSWORD)
    return database.write(lambda session: add_person(session, new, by=None, at=NOON).id)


def enter(database, name="Ada", password=PASSWORD, *, address="1.2.3.4", at=NOON):
    """Log in as the route does: a failure is counted in a transaction of its own. Returns the cookie or the refusal."""
    try:
        return database.write(lambda session: log_in(session, name, password, address=address, at=at))
    except LoginRefused as refusal:
        if refusal.wait is None:
            database.write(lambda session: record_failure(session, name, address=address, at=at))
        return refusal


def who(database, cookie, at=NOON):
    with database.reading() as session:
        return visitor_of_cookie(session, cookie, at=at)


def change(database, person, work):
    return database.write(lambda session: work(session, session.get_one(StoredPerson, person)))


def test_a_cookie_is_its_persons_until_it_ends(database, ada):
    cookie = enter(database)
    assert who(database, cookie).person == ada
    assert who(database, cookie, NOON + SESSION_SECONDS + 1) is None
    # Not the last character: some of its bits carry nothing.
    assert who(database, cookie[:-5] + ("A" if cookie[-5] != "A" else "B") + cookie[-4:]) is None
    assert who(database, "") is None
    assert who(database, "é.ü") is None
    database.write(lambda session: log_out(session, cookie))
    assert who(database, cookie) is None


def test_a_changed_password_ends_every_session(database, ada):
    cookies = [enter(database), enter(database)]
    change(database, ada, lambda session, row: set_password(session, row, "another horse", by=ada, at=NOON))
    assert [who(database, cookie) for cookie in cookies] == [None, None]
    assert enter(database).wait is None
    assert who(database, enter(database, password="another horse")).person == ada


def test_a_closed_account_is_nobodys(database, ada):
    cookie = enter(database)
    token = change(database, ada, lambda session, row: issue_token(session, row, "t", at=NOON))
    change(
        database,
        ada,
        lambda session, row: change_account(
            session, row, role="annotator", is_active=False, skills=(), by=ada, at=NOON
        ),
    )
    assert who(database, cookie) is None
    with database.reading() as session:
        assert visitor_of_token(session, token, at=NOON) is None
    assert isinstance(enter(database), LoginRefused)


def test_a_revoked_token_is_nobodys(database, ada):
    token = change(database, ada, lambda session, row: issue_token(session, row, "t", at=NOON))
    with database.reading() as session:
        assert visitor_of_token(session, token, at=NOON).person == ada
        assert visitor_of_token(session, token + "x", at=NOON) is None
    database.write(
        lambda session: revoke_token(session, session.scalars(select(StoredApiToken)).one(), by=ada, at=NOON)
    )
    with database.reading() as session:
        assert visitor_of_token(session, token, at=NOON) is None


def test_the_ninth_try_of_a_name_waits_for_the_first_to_be_forgotten(database, ada):
    for second in range(8):
        assert enter(database, password="wrong", at=NOON + second).wait is None
    # Even the right password has to wait, from any address; another name has not.
    refusal = enter(database, address="5.6.7.8", at=NOON + 60)
    assert refusal.wait == pytest.approx(15 * 60 - 60)
    assert enter(database, "Bob", at=NOON + 60).wait is None
    assert isinstance(enter(database, at=NOON + 15 * 60 + 1), str)


def test_an_address_that_tries_many_names_waits(database, ada):
    for number in range(60):
        database.write(
            lambda session, number=number: record_failure(session, f"name {number}", address="1.2.3.4", at=NOON)
        )
    assert enter(database, at=NOON + 1).wait == pytest.approx(15 * 60 - 1)
    assert isinstance(enter(database, address="5.6.7.8", at=NOON + 1), str)


def test_passwords_are_hashed_at_a_cost_of_rfc_9106(quick_passwords):
    assert extract_parameters(quick_passwords) == RFC_9106_LOW_MEMORY


def test_nothing_in_the_database_opens_an_account(database, ada):
    cookie = enter(database)
    token = change(database, ada, lambda session, row: issue_token(session, row, "t", at=NOON))
    with database.engine.connect() as connection:
        stored = " ".join(
            str(list(connection.execute(text(f"SELECT * FROM {table}"))))
            for table in ("people", "login_sessions", "api_tokens", "events")
        )
    assert "argon2id" in stored
    for secret in (PASSWORD, token, token.removeprefix("sty_"), cookie, cookie.rpartition(".")[0]):
        assert secret not in stored


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (NewPerson("Ada", "annotator"), "has an account already"),
        (NewPerson("  ", "annotator"), "is not a name"),
        (NewPerson("a\nb", "annotator"), "is not a name"),
        (NewPerson("x" * 201, "annotator"), "is not a name"),
        (NewPerson("Bob", "boss"), "is not a role"),
        (NewPerson("Bob", "annotator", "short"), "a password of 5 characters"),
    ],
)
def test_an_account_that_cannot_be_made_is_an_error_and_leaves_nothing(database, ada, new, message):
    with pytest.raises(ConfigError, match=message):
        database.write(lambda session: add_person(session, new, by=None, at=NOON))
    with database.reading() as session:
        assert session.scalars(select(StoredPerson.name)).all() == ["Ada"]


def test_the_last_administrator_stays(database, ada):
    boss = database.write(lambda session: add_person(session, NewPerson("Eve", "administrator"), by=None, at=NOON).id)
    with pytest.raises(ConfigError, match="nobody else is an administrator"):
        change(database, boss, lambda session, row: erase_person(session, row, by=boss, at=NOON))
    database.write(lambda session: add_person(session, NewPerson("Max", "administrator"), by=None, at=NOON))
    change(database, boss, lambda session, row: erase_person(session, row, by=boss, at=NOON))
    with database.reading() as session:
        assert session.get_one(StoredPerson, boss).erased_at == NOON


def test_an_erased_person_is_gone_and_the_judgments_stay_under_the_pseudonym(database):
    project, people = make_project(database)
    database.write(make_key)
    answer_all(database, project, people)
    pseudonyms = {}

    def finish(session):
        item = session.scalars(select(StoredItem)).one()
        while item.state != "finished":
            move(session, item, "accepted", person=None, at=NOON)
        person = session.get_one(StoredPerson, people[0])
        set_password(session, person, PASSWORD, by=None, at=NOON)
        issue_token(session, person, "my secret laptop", at=NOON)
        log_in(session, "person 0", PASSWORD, address="", at=NOON)

    database.write(finish)

    def exported():
        with database.reading() as session:
            pseudonyms.update(session.execute(select(StoredPerson.id, StoredPerson.pseudonym)).all())
            return list(export_cases(session, session.get_one(StoredProject, project), evidence="both"))

    before = exported()
    change(database, people[0], lambda session, row: erase_person(session, row, by=None, at=NOON + 1))
    assert exported() == before
    assert {each.judge for each in before[0].judgments} == {pseudonyms[person] for person in people}
    assert isinstance(enter(database, "person 0"), LoginRefused)
    with database.reading() as session:
        assert len(session.scalars(select(StoredAnswer)).all()) == 2
        assert session.scalars(select(StoredLoginSession)).all() == []
        details = str([(row.action, row.detail) for row in session.scalars(select(StoredEvent))])
    with database.engine.connect() as connection:
        rows = str(list(connection.execute(text("SELECT * FROM people"))))
        rows += str(list(connection.execute(text("SELECT * FROM api_tokens"))))
    assert "person 0" not in rows + details
    assert "secret laptop" not in rows + details
    assert "person 1" in rows


def test_a_person_is_erased_from_a_workbench_that_was_never_served(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'new.db'}")
    database.migrate()
    person = database.write(lambda session: add_person(session, NewPerson("ada", "annotator"), by=None, at=NOON).id)
    database.write(lambda session: erase_person(session, session.get_one(StoredPerson, person), by=None, at=NOON))
    with database.reading() as session:
        assert session.get_one(StoredPerson, person).erased_at == NOON
    database.close()


def test_the_name_of_an_erased_person_is_nowhere_in_the_files_of_sqlite(sqlite_template, tmp_path):
    database = Database(f"sqlite:///{shutil.copy(sqlite_template, tmp_path)}")
    names = [f"somebody {17**8 * number} of all" for number in range(1, 120)]

    def add(session):
        for name in names:
            person = add_person(session, NewPerson(name, "annotator"), by=None, at=NOON)
            session.flush()
            # A row that grows is written elsewhere, and leaves what it was before.
            set_password(session, person, PASSWORD, by=None, at=NOON)

    database.write(add)
    erased = names[::20]
    for name in erased:
        named = select(StoredPerson).where(StoredPerson.name == name)
        database.write(lambda session, named=named: erase_person(session, session.scalar(named), by=None, at=NOON))
    database.forget_traces()
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert all(name.encode() in content for name in names if name not in erased)
    assert [name for name in erased if name.encode() in content] == []
    database.close()


def test_each_workbench_has_a_public_name_of_its_own_that_stays(new_sqlite, tmp_path):
    """Browsers keep answers under it: those of another workbench at the same address are not sent to this one."""
    other = Database(f"sqlite:///{tmp_path}/other.db")
    other.migrate()
    other.write(people.make_key)
    first, again, second = (each.write(people.public_name) for each in (new_sqlite(), new_sqlite(), other))
    other.close()
    assert first == again
    assert first != second
