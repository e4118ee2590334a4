"""The pages that manage projects, people, guidelines and the audit log, as a browser sends their forms."""

import html
import json
import re

import pytest
from sqlalchemy import func, select

from steelyard.core.types import Case
from steelyard.io.cases import read_cases
from steelyard.workbench.pipeline.projects import ProjectSettings
from steelyard.workbench.storage.tables import StoredEvent, StoredGuideline, StoredItem
from steelyard.workbench.views.pages import LANGUAGES, words_of
from steelyard.workbench.views.settings_form import setting_fields
from workbench_site import case_lines

PAGES = (
    "/manage",
    "/manage/projects/1",
    "/manage/projects/1/items",
    "/manage/projects/1/guidelines",
    "/manage/people",
    "/manage/audit",
    "/api",
)


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
    names = [field.name for field in setting_fields(ProjectSettings())]
    # Two settings with one last name have words by their whole names.
    labels = {name: {f"setting {name}", f"setting {name.split('.')[-1]}"} & set(words) for name in names}
    assert [name for name, known in labels.items() if not known] == []
    shown = [min(known, key=len) if len(known) == 1 else f"setting {name}" for name, known in labels.items()]
    assert len(set(shown)) == len(names)


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
        ("x.exe", case_lines(1), "x.exe is not a case file by its ending"),
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


def case_line(prompt="new", *, language="en", category="c", num_responses=3):
    """Return a line of a case file."""
    responses = [{"id": f"r{place}", "text": f"{place}"} for place in range(num_responses)]
    about = {"id": prompt, "language": language, "category": [category], "messages": [{"role": "user", "content": "?"}]}
    return json.dumps({"prompt": about, "responses": responses}).encode() + b"\n"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("line", "field", "name"),
    [
        (case_line("q0", language=""), "prompt.id", "q0"),
        (case_line("x" * 501), "prompt.id", "x" * 50),
        (case_line("a\0\u202eb"), "prompt.id", "a⟨U+0000⟩⟨U+202E⟩b"),
        (case_line(language="e" * 41), "prompt.language", "new"),
        (case_line(category="c" * 201), "prompt.category[0]", "new"),
        (case_line(num_responses=1), "responses", "new"),
    ],
)
def test_a_case_that_the_project_does_not_take_is_named_with_file_line_and_field(
    visit, post, line, field, name, language
):
    post("/account/language", language=language)
    sent = case_line("first") + b"\n" + line
    answer = post("/manage/projects/1/import", files={"file": ("my.jsonl", sent)}, batch="b2")
    assert answer.status_code == 400
    said = html.unescape(answer.text)
    places = {
        "en": f"Line 3 of my.jsonl, at {field}: Prompt {name} ",
        "zh": f"文件 my.jsonl 第 3 行（{field}）：提示词 {name} ",
    }
    assert places[language] in said
    assert "\u202e" not in said


def test_a_program_hears_the_line_and_the_field(visit):
    program = visit.program(visit.site.tokens["administrator"])
    sent = case_line("first") + case_line("x" * 501)
    answer = program.post("/api/v1/projects/1/import?batch=b2", content=sent)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("body.jsonl:2 at prompt.id: prompt 'xxx")


def test_an_id_that_turns_the_direction_of_writing_is_marked(post, browser):
    sent = case_line("invoice\u202efdp.exe", language="\u2066en") + case_line("")
    assert post("/manage/projects/1/import", files={"file": ("my.jsonl", sent)}, batch="b2").status_code == 200
    listed = browser.get("/manage/projects/1/items?batch=b2").text
    assert ">invoice⟨U+202E⟩fdp.exe</a>" in listed
    assert ">⟨U+2066⟩en</td>" in listed
    # An id of no character has a link to click on.
    assert ">without a name</a>" in listed


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


def test_erasing_takes_the_name(visit, post):
    number = visit.site.people["other"]
    assert post(f"/manage/people/{number}/erase", confirmation="othr").status_code == 400
    assert visit.person(number).erased_at is None
    assert post(f"/manage/people/{number}/erase", confirmation="other").is_redirect
    assert visit.person(number).name.startswith("erased ")


def test_a_preview_runs_no_script_and_saves_nothing(visit, post):
    address = "/manage/projects/1/guidelines"
    text = "# Rule\r\n<script>alert(1)</script> **Read** [all](javascript:x)"
    preview = post(address, text=text, category="maths", step="preview")
    assert "<strong>Read</strong>" in preview.text
    assert "<script>alert" not in preview.text
    assert 'href="javascript' not in preview.text
    assert count(visit, StoredGuideline) == 0


def test_the_audit_log_is_filtered(browser):
    text = browser.get("/manage/audit?action=person+erased").text
    rows = text.partition("<tbody>")[2]
    assert rows.count("<tr>") == 1
    assert "person erased" in rows
    assert browser.get("/manage/audit?number=x").status_code == 400


def test_categories_have_the_names_of_the_reader_and_are_stored_as_items_have_them(visit, post, browser):
    def give(session):
        for prompt, category in (("q0", "mathematics"), ("q1", "数学")):
            session.scalars(select(StoredItem).where(StoredItem.prompt == prompt)).one().category = category

    visit.database.write(give)
    post("/account/language", language="zh")
    address, number = "/manage/projects/1/items", visit.site.people["other"]
    rows = {name: browser.get(f"{address}?category={name}").text.partition("<tbody>")[2] for name in ("数学", "code")}
    assert (rows["数学"].count("<tr>"), "mathematics" in rows["数学"]) == (2, False)
    assert words_of("zh")["nothing_listed"] in rows["code"]
    # A name that items have themselves stays; one of another category becomes its key.
    post(f"/manage/people/{number}", role="annotator", skills="数学、代码，自己的类别", is_active="true")
    assert visit.person(number).skills == ["mathematics", "code", "自己的类别"]
    listed = browser.get(f"/manage/people?after={number - 1}").text
    assert "数学、代码、自己的类别" in listed
    # Also before the row is opened: who has which language.
    assert " · <bdi>数学</bdi>、<bdi>代码</bdi>" in listed
    post("/manage/projects/1/guidelines", text="# 规范", category="代码", language="zh")
    with visit.database.reading() as session:
        assert session.scalars(select(StoredGuideline.category)).all() == ["code"]
