"""Managing projects and people: settings as a form, guidelines in versions, lists by the page, first passwords."""

import getpass
import io
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from steelyard.annotation.pipeline import PipelineRules
from steelyard.annotation.task_kinds import TaskRules
from steelyard.core.errors import ConfigError, RecordError
from steelyard.workbench.accounts.people import LoginRefused, first_password, log_in
from steelyard.workbench.pipeline.listings import (
    EventSelection,
    ItemSelection,
    answer_page,
    event_page,
    item_page,
    people_page,
)
from steelyard.workbench.pipeline.projects import ProjectSettings, settings_of
from steelyard.workbench.storage.tables import StoredEvent, StoredGuideline, StoredPerson, StoredProject
from steelyard.workbench.views.guidelines import NewGuideline, add_guideline, categories_of, latest_guidelines
from steelyard.workbench.views.pages import words_of
from steelyard.workbench.views.settings_form import setting_fields, settings_from
from steelyard.workbench.views.uploads import read_upload, sweep_uploads
from workbench_people import NOON, answer_all, make_project
from workbench_site import case_lines


def test_the_form_of_settings_gives_back_what_it_shows():
    rules = PipelineRules(num_annotators=3, gate="pair of people", gold_share=0.25, lock_minutes=7.5)
    # A baseline may have a number for its id.
    tasks = TaskRules(kind="baseline", baseline="3", categories=("a/b", "代码"))
    settings = ProjectSettings(rules=rules, tasks=tasks, discard_reasons=("garbled", "含有广告"), seed=9)
    fields = setting_fields(settings)
    assert settings_from({field.name: field.value for field in fields}) == settings
    assert settings_from({}) == ProjectSettings()
    by_name = {field.name: field for field in fields}
    assert by_name["rules.gate"].choices == ("item", "batch", "pair of people")
    assert by_name["discard_reasons"].kind == "lines"
    assert by_name["rules.gold_share"].default == "0.1"
    assert all(field.meaning for field in fields)


@pytest.mark.parametrize(
    ("entered", "words"),
    [
        ({"rules.gold_share": "much"}, "gold_share"),
        ({"rules.gold_share": "0.6"}, "0 to 0.5"),
        ({"rules.num_annotators": "1.5"}, "num_annotators"),
        ({"rules.num_annotators": ""}, "num_annotators"),
        ({"rules.gate": "day"}, "gate"),
        ({"seed": '{"a": 1}'}, "seed"),
    ],
)
def test_a_setting_that_does_not_fit_is_named(entered, words):
    with pytest.raises(ConfigError, match=words):
        settings_from(entered)


@pytest.mark.parametrize(("number", "share"), [("３", "０．２５"), ("٣", "٠٫٢٥"), ("३", "०.२५")])
def test_numbers_may_have_the_digits_of_any_script(number, share):
    rules = settings_from({"rules.num_annotators": number, "rules.delivery_share": share}).rules
    assert (rules.num_annotators, rules.delivery_share) == (3, 0.25)


def test_other_settings_are_stored_and_logged_once(visit):
    admin, form = visit.browser("administrator"), {"rules.gold_share": "0.2", "csrf": visit.csrf("administrator")}
    for _ in range(2):
        assert admin.post("/manage/projects/1/settings", data=form).status_code == 303
    with visit.database.reading() as session:
        assert settings_of(session.get_one(StoredProject, 1)).rules.gold_share == 0.2
        changes = session.scalars(select(StoredEvent).where(StoredEvent.action == "settings changed")).all()
    assert [change.detail["now"]["rules"]["gold_share"] for change in changes] == [0.2]
    assert 'value="0.2"' in admin.get("/manage/projects/1").text


def make_administrators(visit, *, language):
    """Return the names of two administrators, the second of whom reads pages in a language."""

    def change(session):
        second = session.get_one(StoredPerson, visit.site.people["other"])
        second.role, second.language = "administrator", language

    visit.database.write(change)
    return "administrator", "other"


def version_in(client, page, action):
    """Return the version that a form of a page was made from."""
    form = client.get(page).text.partition(f'action="{action}"')[2].partition("</form>")[0]
    return re.search(r'name="version" value="(\w+)"', form)[1]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_settings_that_another_administrator_changed_meanwhile_are_not_overwritten(visit, language):
    names = make_administrators(visit, language=language)
    page, action = "/manage/projects/1", "/manage/projects/1/settings"
    first, second = map(visit.browser, names)
    with visit.database.reading() as session:
        shown = {each.name: each.value for each in setting_fields(settings_of(session.get_one(StoredProject, 1)))}
    versions = {name: version_in(visit.browser(name), page, action) for name in names}
    forms = {name: shown | {"csrf": visit.csrf(name), "version": versions[name]} for name in names}
    assert first.post(action, data=forms[names[0]] | {"rules.least_agreement": "0.8"}).status_code == 303
    refused = second.post(action, data=forms[names[1]] | {"rules.lock_minutes": "55"})
    assert refused.status_code == 409
    assert words_of(language)["form_outdated"] in refused.text
    assert 'name="rules.least_agreement" value="0.8"' in refused.text

    def rules():
        with visit.database.reading() as session:
            return settings_of(session.get_one(StoredProject, 1)).rules

    assert (rules().least_agreement, rules().lock_minutes) == (0.8, float(shown["rules.lock_minutes"]))
    # The page that refused has the present version.
    renewed = {"rules.least_agreement": "0.8", "rules.lock_minutes": "55"}
    renewed["version"] = re.search(r'name="version" value="(\w+)"', refused.text)[1]
    assert second.post(action, data=forms[names[1]] | renewed).status_code == 303
    assert (rules().least_agreement, rules().lock_minutes) == (0.8, 55)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_account_that_another_administrator_changed_meanwhile_is_not_overwritten(visit, language):
    names = make_administrators(visit, language=language)
    number = visit.site.people["annotator"]
    page, action = f"/manage/people?after={number - 1}", f"/manage/people/{number}"
    shown = {"role": "annotator", "is_active": "true"}
    forms = {
        name: shown | {"csrf": visit.csrf(name), "version": version_in(visit.browser(name), page, action)}
        for name in names
    }
    first, second = map(visit.browser, names)
    assert first.post(action, data=forms[names[0]] | {"role": "delivery"}).status_code == 303
    refused = second.post(action, data=forms[names[1]] | {"skills": "code"})
    assert refused.status_code == 409
    assert words_of(language)["form_outdated"] in refused.text
    assert '<option value="delivery" selected>' in refused.text
    assert (visit.person(number).role, visit.person(number).skills) == ("delivery", [])
    renewed = {"role": "delivery", "skills": "code", "version": version_in(second, page, action)}
    assert second.post(action, data=forms[names[1]] | renewed).status_code == 303
    assert (visit.person(number).role, visit.person(number).skills) == ("delivery", ["code"])


def test_a_guideline_has_versions_that_stay(database):
    project, (person,) = make_project(database, num_people=1)

    def write(category, language, text):
        new = NewGuideline(category, language, text)
        database.write(
            lambda session: add_guideline(session, session.get_one(StoredProject, project), new, by=person, at=NOON)
        )

    for new in (("", "en", "one"), ("", "en", "two"), ("", "zh", "一"), ("code", "en", "x")):
        write(*new)
    for text in ("two", " ", "x" * 200_001):
        with pytest.raises(ConfigError):
            write("", "en", text)
    with pytest.raises(ConfigError, match="en, zh"):
        write("", "fr", "un")
    with database.reading() as session:
        latest = {(row.category, row.language): row.text for row in latest_guidelines(session, project)}
        written = session.execute(
            select(StoredGuideline.text, StoredGuideline.version).order_by(StoredGuideline.id)
        ).all()
        assert categories_of(session, project) == []
    assert latest == {("", "en"): "two", ("", "zh"): "一", ("code", "en"): "x"}
    assert [tuple(row) for row in written] == [("one", 1), ("two", 2), ("一", 1), ("x", 1)]


def test_a_preview_is_not_saved_and_a_guideline_of_another_project_is_not_shown(visit):
    admin, csrf = visit.browser("administrator"), visit.csrf("administrator")
    path = f"/manage/projects/{visit.site.project}/guidelines"
    shown = admin.post(path, data={"text": "**exact**", "step": "preview", "csrf": csrf})
    assert "<strong>exact</strong>" in shown.text
    assert admin.get(f"{path}?version=1").status_code == 404
    assert admin.post(path, data={"text": "**exact**", "csrf": csrf}).status_code == 303
    assert "**exact**" in admin.get(f"{path}?version=1").text
    assert admin.post("/manage/projects", data={"name": "Q", "csrf": csrf}).status_code == 303
    assert admin.get("/manage/projects/2/guidelines?version=1").status_code == 404


def numbers_of(page_after):
    """The numbers of all rows, page by page, and the sizes of the pages."""
    numbers, sizes, after = [], [], None
    while True:
        listed = page_after(after)
        numbers += [row.id for row in listed.rows]
        sizes.append(len(listed.rows))
        after = listed.following
        if after is None:
            return numbers, sizes


@pytest.mark.parametrize("size", [1, 3, 7, 8])
def test_lists_have_every_row_once_whatever_the_size_of_a_page(database, size):
    project, people = make_project(database, 7)
    answer_all(database, project, people)
    every = ItemSelection()
    with database.reading() as session:
        items, sizes = numbers_of(lambda after: item_page(session, project, every, after=after or 0, size=size))
        answers, _ = numbers_of(lambda after: answer_page(session, project, after=after or 0, size=size))
        accounts, _ = numbers_of(lambda after: people_page(session, after=after or 0, size=size))
        events, _ = numbers_of(lambda before: event_page(session, EventSelection(), before=before, size=size))
        answered = event_page(session, EventSelection(action="answered", person=people[0]), size=1000)
        all_events = session.scalars(select(StoredEvent.id).order_by(StoredEvent.id.desc())).all()
        assert item_page(session, project + 1, every).rows == []
    assert items == sorted(set(items))
    assert sum(sizes) == len(items) == 7
    assert answers == sorted(set(answers))
    assert len(answers) == 14
    assert accounts == people
    assert events == list(all_events)
    assert [row.person for row in answered.rows] == [people[0]] * 7


def test_pages_of_a_list_lead_to_the_next_with_the_same_filter(visit):
    admin, csrf = visit.browser("administrator"), visit.csrf("administrator")
    path = f"/manage/projects/{visit.site.project}"
    file = {"file": ("案例.jsonl", case_lines(60))}
    assert admin.post(f"{path}/import", data={"batch": "b&2", "csrf": csrf}, files=file).status_code == 200
    first = admin.get(f"{path}/items", params={"batch": "b&2"}).text
    link = re.search(r'rel="next" href="([^"]+)"', first)[1].replace("&amp;", "&")
    second = admin.get(link).text
    prompts = [re.findall(r'<td dir="auto"><a [^>]*>(q\d+)</a>', text) for text in (first, second)]
    assert [len(listed) for listed in prompts] == [50, 10]
    assert sorted(prompts[0] + prompts[1]) == [f"q{number}" for number in range(100, 160)]
    assert 'rel="next"' not in second


def test_a_first_password_is_shown_once_and_works(visit):
    admin, csrf = visit.browser("administrator"), visit.csrf("administrator")
    shown = admin.post(
        "/manage/people", data={"name": "ada", "role": "delivery", "skills": "code, 数学，code", "csrf": csrf}
    )
    password = re.search(r'class="secret">([^<]+)<', shown.text)[1]
    assert password not in admin.get("/manage/people").text
    with visit.database.reading() as session:
        person = session.scalar(select(StoredPerson).where(StoredPerson.name == "ada"))
        assert (person.role, person.skills) == ("delivery", ["code", "mathematics"])
        assert password not in "".join(map(str, session.scalars(select(StoredEvent.detail))))
    browser = visit.browser()
    assert browser.post("/login", data={"name": "ada", "password": password}).status_code == 303
    renewed = admin.post(f"/manage/people/{person.id}/password", data={"csrf": csrf})
    second = re.search(r'class="secret">([^<]+)<', renewed.text)[1]
    assert second != password
    assert browser.get("/account").status_code == 303

    def login(session):
        log_in(session, "ada", password, address="y", at=NOON)

    with pytest.raises(LoginRefused):
        visit.database.write(login)


def test_first_passwords_differ_and_are_long_enough():
    passwords = {first_password() for _ in range(200)}
    assert len(passwords) == 200
    assert all(len(password) >= 12 for password in passwords)


def test_a_check_begins_where_the_last_one_ended_and_the_whole_log_is_read_on_request(visit):
    admin = visit.browser("administrator")

    def check(**form):
        sent = {"csrf": visit.csrf("administrator"), **form}
        return admin.post("/manage/audit/check", data=sent).text

    with visit.database.reading() as session:
        last = session.scalar(select(func.max(StoredEvent.id)))
    assert f"The chain is whole from event 1 to {last}." in check()
    assert f"Whole up to event {last} when it was last checked" in admin.get("/manage/audit").text
    # The check is an event itself.
    assert f"whole from event {last + 1} to {last + 1}." in check()
    with visit.database.engine.connect() as connection:
        # Who holds the file can take the triggers away.
        for trigger in (
            connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'").scalars().all()
        ):
            connection.exec_driver_sql(f"DROP TRIGGER {trigger}")
        connection.exec_driver_sql("UPDATE events SET action = 'nothing' WHERE id = 3")
        connection.commit()
    assert f"whole from event {last + 2} to {last + 2}." in check()
    assert "broken at event 3" in check(whole="true")
    # A log that is broken is not noted as checked.
    assert f"whole from event {last + 3} to {last + 3}." in check()


def test_an_upload_leaves_nothing_and_a_server_removes_what_one_that_was_killed_left(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / f".steelyard-upload-{getpass.getuser()}.x1.part"
    left.mkdir()
    (left / "cases.jsonl").write_text("half")
    sweep_uploads()
    assert len(read_upload(io.BytesIO(case_lines(2)), "cases.jsonl").cases) == 2
    with pytest.raises(RecordError, match=r"cases\.jsonl:1"):
        read_upload(io.BytesIO(b"half"), "cases.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_uploads_at_the_same_moment_are_all_read(tmp_path, monkeypatch):
    """A server that starts took the folder of an upload to another one for that of a server that was killed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def read_beside_a_start(_):
        sweep_uploads()
        return len(read_upload(io.BytesIO(case_lines(2)), "cases.jsonl").cases)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(read_beside_a_start, range(200))) == [2] * 200


CONVERTED = ("upload the case file that steelyard convert makes of it", "请上传由 steelyard convert 转换得到的案例文件")
AS_UTF8 = ("save the file as UTF-8", "请将文件另存为 UTF-8 编码后重新上传")
UPLOADS = {
    "array.jsonl": (b'[{"prompt": {"id": "p"}, "responses": []}]', *CONVERTED),
    "rows.jsonl": (b'{"prompt": "p", "chosen": "a", "rejected": "b"}', *CONVERTED),
    "table.csv": (b"prompt,chosen\n", *CONVERTED),
    "chinese.jsonl": ('{"prompt": "数据标注的问题"}'.encode("gb18030"), *AS_UTF8),
    "cut.jsonl": ('{"prompt": "好"}\n'.encode("utf-16")[:-1], *AS_UTF8),
    "broken.jsonl": (("好" * 99).encode()[:-1], *AS_UTF8),
    "twice.jsonl": (case_lines(1) * 2, "give each case its own id, and upload the file again", "请改正该行后重新上传"),
}
"""Files that are refused, by name, with what to do about them in English and Chinese."""


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", UPLOADS)
def test_what_a_page_says_of_a_refused_upload_can_be_done_by_whoever_sent_it(visit, name, language):
    """No option of the command line, no command of a shell: people may have nothing but the page."""
    who = make_administrators(visit, language=language)[1]
    content, *remedies = UPLOADS[name]
    form, file = {"batch": "b", "csrf": visit.csrf(who)}, {"file": (name, content)}
    answer = visit.browser(who).post("/manage/projects/1/import", data=form, files=file)
    assert answer.status_code == 400
    assert remedies[language == "zh"].casefold() in answer.text.casefold()
    assert not re.search("to_kind|name the encoding|iconv|steelyard (?!convert)|steelyard convert [A-Z/]", answer.text)
