"""Names in the workbench: those that cannot be told apart or be shown are refused, others do not disturb their page."""

import unicodedata
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from html.parser import HTMLParser

import pytest
from sqlalchemy import select, update

from steelyard.core.errors import ConfigError
from steelyard.workbench.accounts.people import (
    LoginRefused,
    NewPerson,
    add_person,
    erase_person,
    log_in,
    make_key,
    record_failure,
)
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.storage.tables import StoredItem, StoredPerson, StoredProject
from steelyard.workbench.views.guidelines import NewGuideline, add_guideline
from workbench_people import NOON, cases

HOSTILE = ["\u202enimda", "admin\u200b", "ad\u2066min", "admin\ufeff", "\u3164", "a\x00b", "a\nb", "\ud800", "\u200d"]
PASSWORD = "a long password"


def add(database, name, display_name="", **more):
    new = NewPerson(name, "annotator", PASSWORD, display_name, **more)
    return database.write(lambda session: add_person(session, new, by=None, at=NOON).id)


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_names_that_are_not_seen_as_a_whole_are_refused(database, name):
    with pytest.raises(ConfigError, match="is not a name"):
        add(database, name)
    with pytest.raises(ConfigError, match="cannot be shown"):
        add(database, "ada", name)

    with pytest.raises(ConfigError, match="is not a name"):
        add(database, "ada", skills=("code", name))

    def make(session):
        with pytest.raises(ConfigError, match="is not a name of a project"):
            add_project(session, name, ProjectSettings(), by=None, at=NOON)
        project = add_project(session, "P", ProjectSettings(), by=None, at=NOON)
        with pytest.raises(ConfigError, match="is not a name of a batch"):
            import_cases(session, project, cases(1), batch=name, by=None, at=NOON)
        with pytest.raises(ConfigError, match="is not a name of a category"):
            add_guideline(session, project, NewGuideline(name, "en", "text"), by=None, at=NOON)
        return len(session.scalars(select(StoredItem.id)).all()), len(session.scalars(select(StoredPerson.id)).all())

    assert database.write(make) == (0, 0)


def test_of_names_that_look_the_same_and_come_at_once_one_is_taken(database):
    def make(name):
        with suppress(ConfigError):
            add(database, name)
        with suppress(ConfigError):
            database.write(lambda session: add_project(session, name, ProjectSettings(), by=None, at=NOON))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(make, [name for number in range(5) for name in (f"Ann {number}", f"ann {number}") * 2]))
    with database.reading() as session:
        for column in (StoredPerson.name, StoredProject.name):
            assert sorted(map(str.lower, session.scalars(select(column)))) == [f"ann {number}" for number in range(5)]


@pytest.mark.parametrize("other", ["JOSÉ  B", "Jose\u0301 B", "jose\u0301 b"])
def test_names_that_look_the_same_are_refused(database, other):
    add(database, "José B", "José")
    with pytest.raises(ConfigError, match="has an account already"):
        add(database, other, "another")
    with pytest.raises(ConfigError, match="has an account already") as refused:
        add(database, "another", other[:-1].strip())
    assert "tells the two apart" in (refused.value.do or "")

    def make(session):
        project = add_project(session, "José B", ProjectSettings(), by=None, at=NOON)
        with pytest.raises(ConfigError, match="there is a project 'José B' already"):
            add_project(session, other, ProjectSettings(), by=None, at=NOON)
        import_cases(session, project, cases(1), batch="José B", by=None, at=NOON)
        with pytest.raises(ConfigError, match="the batch 'José B' is imported already"):
            import_cases(session, project, cases(1, first=5), batch=other, by=None, at=NOON)
        # Another project may have a batch of that name.
        second = add_project(session, "second", ProjectSettings(), by=None, at=NOON)
        import_cases(session, second, cases(1), batch=other, by=None, at=NOON)

    database.write(make)


def test_a_name_is_that_of_its_owner_in_whichever_way_it_is_typed(database):
    database.write(make_key)
    person = add(database, "Jose\u0301")
    with database.reading() as session:
        assert session.get_one(StoredPerson, person).name == "José"
    for typed in ("José", " Jose\u0301 "):
        assert database.write(lambda session, typed=typed: log_in(session, typed, PASSWORD, address="a", at=NOON))
    # Both ways count as the same name.
    for number in range(8):
        name = ("José", "Jose\u0301")[number % 2]
        database.write(lambda session, name=name: record_failure(session, name, address=f"{name}", at=NOON))
    with pytest.raises(LoginRefused, match="too many"):
        database.write(lambda session: log_in(session, "José", PASSWORD, address="b", at=NOON))


def test_an_account_of_an_earlier_version_keeps_its_name(database):
    database.write(make_key)
    person, name = add(database, "x"), "Jose\u0301"
    database.write(lambda session: session.execute(update(StoredPerson).values(name=name)))
    assert not unicodedata.is_normalized("NFC", name)
    assert database.write(lambda session: log_in(session, name, PASSWORD, address="a", at=NOON))
    # Where there are both, each opens its own.
    with pytest.raises(ConfigError, match="has an account already"):
        add(database, "José")
    assert person


def test_nobody_takes_the_name_that_an_erased_account_will_have(database):
    person = add(database, "Ada")
    with database.reading() as session:
        pseudonym = session.get_one(StoredPerson, person).pseudonym
    with pytest.raises(ConfigError, match="is not a name"):
        add(database, f"erased {pseudonym}")
    database.write(lambda session: erase_person(session, session.get_one(StoredPerson, person), by=None, at=NOON))
    assert add(database, "Ada")


class Isolation(HTMLParser):
    """Finds texts with a mark that no element isolates: the nearest block has other words, too."""

    INLINE = ("a", "b", "span", "code", "strong", "i", "em", "q", "small")

    def __init__(self, mark):
        super().__init__()
        self.mark, self.open, self.exposed, self.num_seen = mark, [], [], 0

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "link", "input", "br", "img", "hr"):
            self.open.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if self.mark not in data:
            return
        self.num_seen += 1
        tags = [tag for tag, _ in self.open]
        if {"title", "option", "textarea", "script", "text", "desc"} & set(tags):
            return  # texts of their own, without other words in the same line
        for tag, attributes in reversed(self.open):
            if tag == "bdi" or "dir" in attributes:
                return
            if tag not in self.INLINE:
                break
        self.exposed.append(data)


MARK = "\u05d0\u202emark"
MANAGE = "/manage/projects/1"
PAGES = {
    "administrator": [
        *("/manage", "/manage/people", "/manage/audit", "/progress/1"),
        *(MANAGE, *(f"{MANAGE}/{part}" for part in ("items", "guidelines", "qualification", "releases"))),
    ],
    "researcher": ["/review", "/progress/1", "/progress/1/agreement", "/progress/1/people", "/progress/1/disagreement"],
    "annotator": ["/annotate", "/align", "/account"],
    "delivery": ["/review"],
}


@pytest.mark.parametrize("role", PAGES)
def test_texts_that_turn_the_direction_stay_within_their_place(visit, role):
    def spoil(session):
        # What earlier versions let in, and what data have.
        session.execute(update(StoredPerson).values(display_name=MARK))
        session.execute(update(StoredProject).values(name=MARK))
        session.execute(update(StoredItem).values(batch=MARK, category=MARK))
        for item in session.scalars(select(StoredItem)):
            item.prompt = f"{MARK}{item.id}"

    visit.database.write(spoil)
    item = visit.site.items[role, role == "annotator"][0] if (role, role == "annotator") in visit.site.items else 1
    pages = [*PAGES[role], *([f"/review/{item}"] if role in ("delivery", "researcher") else [])]
    pages += [f"/align/{item}"] if role == "annotator" else []
    num_seen = 0
    for path in pages:
        answer = visit.browser(role).get(path)
        assert answer.status_code == 200, path
        found = Isolation(MARK)
        found.feed(answer.text)
        assert found.exposed == [], path
        num_seen += found.num_seen
    assert num_seen > 3
