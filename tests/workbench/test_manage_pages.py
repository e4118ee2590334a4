"""The pages that manage projects, people, guidelines and the audit log, as a browser sends their forms."""

import html
import re

import pytest
from sqlalchemy import func, select

from steelyard.core.types import Case
from steelyard.io.cases import read_cases
from steelyard.workbench.pages import LANGUAGES, words_of
from steelyard.workbench.projects import ProjectSettings, settings_of
from steelyard.workbench.settings_form import setting_fields, settings_from
from steelyard.workbench.tables import StoredEvent, StoredGuideline, StoredItem, StoredPerson, StoredProject
from workbench_site import Visit, case_lines, make_site

PAGES = (
    "/manage",
    "/manage/projects/1",
    "/manage/projects/1/items",
    "/manage/projects/1/guidelines",
    "/manage/people",
    "/manage/audit?check=true",
    "/api",
)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("site") / "template.db"
    return path, make_site(path)


@pytest.fixture
def visit(template, tmp_path):
    path, site = template
    opened = Visit(path, tmp_path, site)
    yield opened
    opened.close()


@pytest.fixture
def browser(visit):
    return visit.browser("administrator")


@pytest.fixture
def post(visit, browser):
    def post(address, files=None, **form):
        return browser.post(address, data=form | {"csrf": visit.csrf("administrator")}, files=files)

    return post


def count(visit, table):
    with visit.database.reading() as session:
        return session.scalar(select(func.count()).select_from(table))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("address", PAGES)
def test_a_page_has_words_and_no_object_of_the_program(visit, browser, post, address, language):
    post("/account/language", language=language)
    answer = browser.get(address)
    assert answer.status_code == 200
    assert f'<html lang="{language}">' in answer.text
    assert " object at 0x" not in html.unescape(answer.text)
    assert "None" not in re.sub("<[^>]+>", " ", answer.text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_can_be_reached_and_every_setting_has_its_word(language):
    words = words_of(language)
    # `words.items` of a template would be the method, not the word.
    assert [key for key in words if hasattr(words, key)] == []
    labels = {f"setting {field.name.split('.')[-1]}" for field in setting_fields(ProjectSettings())}
    assert labels - set(words) == set()


def test_an_uploaded_case_file_becomes_a_batch(visit, post):
    answer = post("/manage/projects/1/import", files={"file": ("new.jsonl", case_lines(2))}, batch="b2")
    assert answer.status_code == 200
    with visit.database.reading() as session:
        prompts = session.scalars(select(StoredItem.prompt).where(StoredItem.batch == "b2")).all()
    assert prompts == ["q100", "q101"]


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("my cases.jsonl", case_lines(2) + b"{}\n", "my cases.jsonl:3"),
        (r"C:\data\x.jsonl", b"[1]\n", "x.jsonl:1"),
        ("x.jsonl", b'{"a": "\xff"}\n', "x.jsonl:1"),
        ("x.exe", case_lines(1), "x.exe: is not a case file by its ending"),
        ("x.parquet", case_lines(1), "x.parquet"),
        ("x.jsonl", case_lines(1) * 2, "q100"),
        ("x.jsonl", case_lines(1, first=0), "is in the project already"),
    ],
)
def test_a_wrong_upload_is_named_as_its_sender_knows_it_and_stores_nothing(visit, post, name, lines, message):
    before = count(visit, StoredItem), count(visit, StoredEvent)
    answer = post("/manage/projects/1/import", files={"file": (name, lines)}, batch="b2")
    assert answer.status_code == 400
    assert message in html.unescape(answer.text)
    assert "/tmp" not in answer.text
    assert (count(visit, StoredItem), count(visit, StoredEvent)) == before


def test_an_export_is_a_case_file_and_is_logged(visit, browser, tmp_path):
    def finish(session):
        session.scalars(select(StoredItem).where(StoredItem.prompt == "q3")).one().state = "finished"

    visit.database.write(finish)
    answer = browser.get("/manage/projects/1/export?evidence=aligned")
    path = tmp_path / "got.jsonl"
    path.write_bytes(answer.content)
    [case] = read_cases(path)
    assert isinstance(case, Case)
    assert case.prompt.id == "q3"
    with visit.database.reading() as session:
        event = session.scalars(select(StoredEvent).order_by(StoredEvent.id.desc()).limit(1)).one()
    assert (event.action, event.person_id, event.detail) == (
        "exported",
        visit.site.people["administrator"],
        {"evidence": "aligned"},
    )


def test_the_form_of_settings_sends_back_what_it_shows(visit, browser, post):
    text = browser.get("/manage/projects/1").text
    names = {field.name for field in setting_fields(ProjectSettings())}
    assert all(f'name="{name}"' in text for name in names)
    with visit.database.reading() as session:
        settings = settings_of(session.get_one(StoredProject, 1))
    shown = {field.name: field.value for field in setting_fields(settings)}
    assert settings_from(shown) == settings
    assert post(
        "/manage/projects/1/settings", **(shown | {"seed": "5", "discard_reasons": "rude\r\n\r\ndull"})
    ).is_redirect
    with visit.database.reading() as session:
        changed = settings_of(session.get_one(StoredProject, 1))
    assert (changed.seed, changed.discard_reasons, changed.rules) == (5, ("rude", "dull"), settings.rules)
    for name, value in (("rules.least_agreement", "2"), ("rules.gate", "day"), ("seed", "x"), ("seed", "[1]")):
        refused = post("/manage/projects/1/settings", **(shown | {name: value}))
        assert refused.status_code == 400
        assert name.rpartition(".")[2] in refused.text


def test_a_first_password_is_shown_once_and_opens_the_account(visit, browser, post):
    answer = post("/manage/people", name="grace", role="researcher", skills="maths, code，law")
    password = re.search(r'class="secret">([^<]+)<', answer.text)[1]
    assert password not in browser.get("/manage/people").text
    assert visit.browser().post("/login", data={"name": "grace", "password": password}).headers["location"] == "/"
    with visit.database.reading() as session:
        person = session.scalars(select(StoredPerson).where(StoredPerson.name == "grace")).one()
    assert (person.role, person.skills) == ("researcher", ["maths", "code", "law"])
    again = re.search(r'class="secret">([^<]+)<', post(f"/manage/people/{person.id}/password").text)[1]
    assert visit.browser().post("/login", data={"name": "grace", "password": password}).status_code == 401
    assert visit.browser().post("/login", data={"name": "grace", "password": again}).status_code == 303


def test_erasing_takes_the_name(visit, post):
    number = visit.site.people["other"]
    assert post(f"/manage/people/{number}/erase", confirmation="othr").status_code == 400
    assert visit.person(number).erased_at is None
    assert post(f"/manage/people/{number}/erase", confirmation="other").is_redirect
    assert visit.person(number).name.startswith("erased ")


def test_a_guideline_has_versions_and_a_preview_that_saves_nothing(visit, browser, post):
    address = "/manage/projects/1/guidelines"
    text = "# Rule\r\n<script>alert(1)</script> **Read** [all](javascript:x)"
    preview = post(address, text=text, category="maths", step="preview")
    assert "<strong>Read</strong>" in preview.text
    assert "<script>alert" not in preview.text
    assert 'href="javascript' not in preview.text
    assert count(visit, StoredGuideline) == 0
    for version in (text, text + " twice"):
        assert post(address, text=version, category="maths").is_redirect
    assert post(address, text=text + " twice", category="maths").status_code == 400
    with visit.database.reading() as session:
        rows = session.scalars(select(StoredGuideline).order_by(StoredGuideline.id)).all()
    assert [(row.category, row.version) for row in rows] == [("maths", 1), ("maths", 2)]
    shown = html.unescape(browser.get(f"{address}?version={rows[0].id}").text)
    assert "twice" not in shown.partition("<textarea")[2].partition("</textarea>")[0]


def test_pages_of_a_list_have_every_item_once(visit, browser, post):
    lines = case_lines(130, first=1000)
    post("/manage/projects/1/import", files={"file": ("new.jsonl", lines)}, batch="big")
    seen, address = [], "/manage/projects/1/items?batch=big"
    while address:
        text = browser.get(address).text
        seen += re.findall(r"\bq1\d\d\d\b", text)
        following = re.search(r'rel="next" href="([^"]+)"', text)
        address = following and html.unescape(following[1])
    assert list(dict.fromkeys(seen)) == [f"q{number}" for number in range(1000, 1130)]


def test_the_audit_log_is_filtered(browser):
    text = browser.get("/manage/audit?action=person+erased").text
    rows = text.partition("<tbody>")[2]
    assert rows.count("<tr>") == 1
    assert "person erased" in rows
    assert browser.get("/manage/audit?number=x").status_code == 400
