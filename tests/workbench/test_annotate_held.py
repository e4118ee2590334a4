"""Keys that are held and double clicks in Chromium: what comes up under them is not answered by them."""

import time

import pytest
from sqlalchemy import select

from browser import CHROMIUM
from steelyard.annotation.qualification import QualificationRules
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.qualification.material import import_qualification
from steelyard.workbench.storage.tables import StoredAnswer
from workbench_annotator import CARD, PROMPT, STEP, SUBMIT, Annotator
from workbench_people import NO_GOLD, NOON, cases, cases_with_reference
from workbench_server import Login

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.xdist_group("chromium"),
]
DIALOG = "document.querySelector('#dialog')"
SETTLED = 1.0


def num_answers(page):
    """Return how many answers the workbench has once none can be on its way any more."""
    time.sleep(SETTLED)
    with page.database.reading() as session:
        return len(session.scalars(select(StoredAnswer.id).where(StoredAnswer.person_id == page.person)).all())


@pytest.fixture
def marking(served, browser):
    """A person who marks problems: a task is complete without any entry."""
    page = Annotator(served, browser, num_cases=5, texts=("First.",), kind="span_marking")
    browser.wait(f"!{SUBMIT}.disabled")
    return page


def test_a_held_enter_submits_one_task(marking, browser):
    browser.hold("Enter")
    assert num_answers(marking) == 1


def test_a_held_enter_on_the_button_submits_one_task(marking, browser):
    browser.value(f"{SUBMIT}.focus()")
    browser.hold("Enter")
    assert num_answers(marking) == 1


def test_a_double_click_submits_one_task(marking, browser):
    browser.double_click("#submit")
    assert num_answers(marking) == 1


def test_a_key_that_bounces_submits_one_task(marking, browser):
    marking.press("Enter", "Enter")
    assert num_answers(marking) == 1
    # The next task takes the key once it can have been seen.
    assert not marking.tab.value(f"{SUBMIT}.disabled")
    marking.press("Enter")
    assert num_answers(marking) == 2


def test_a_double_click_settles_one_comparison(served, browser):
    page = Annotator(served, browser)
    page.press("3", "3", "3")
    browser.wait("document.querySelectorAll('#choices button').length === 3")
    before = browser.value(STEP)
    browser.double_click("#choices button")
    assert browser.value(STEP) != before
    page.draft(lambda draft: draft["comparisons"])
    time.sleep(SETTLED)
    page.draft(lambda draft: len(draft["comparisons"]) == 1)


def mark_translation(served, browser):
    page = Annotator(served, browser, texts=("First.",), kind="translation_quality")
    page.press("m")
    browser.wait("document.activeElement.matches('textarea.raw')")
    browser.value("document.activeElement.setSelectionRange(0, 3)")
    return page


def test_a_held_digit_chooses_the_kind_of_an_error_and_not_its_severity(served, browser):
    page = mark_translation(served, browser)
    browser.hold("1")
    assert browser.value(f"{DIALOG}.open && {DIALOG}.innerText.includes('evere')")
    page.press("2")
    page.draft(lambda draft: draft["spans"])


def test_a_double_click_chooses_the_kind_of_an_error_and_not_its_severity(served, browser):
    mark_translation(served, browser)
    browser.double_click("#dialog .choices button")
    assert browser.value(f"{DIALOG}.open && {DIALOG}.innerText.includes('evere')")


def test_a_held_enter_opens_a_list_and_takes_nothing_of_it(served, browser):
    page = Annotator(served, browser, kind="prompt_review")
    page.press("k")
    browser.wait(f"{STEP}.includes('category')")
    browser.hold("Enter")
    assert browser.value(f"{DIALOG}.open && {DIALOG}.querySelector('[role=combobox]') !== null")


def test_a_held_enter_leaves_what_was_right_on_the_screen(served, browser):
    database, server = served

    def make(session):
        settings = ProjectSettings(rules=NO_GOLD, qualification=QualificationRules(num_tasks=2, least_accuracy=0.0))
        project = add_project(session, "held school", settings, by=None, at=NOON)
        import_cases(session, project, cases(2), batch="b", by=None, at=NOON)
        import_qualification(session, project, cases_with_reference(2), by=None, at=NOON)
        return project.id

    project = database.write(make)
    login = Login(database, "held learner")
    browser.open("about:blank")
    browser.forget(server.origin)
    browser.set_cookie(server.origin, "steelyard_workbench", login.cookie)
    browser.open(f"{server.origin}/annotate?project={project}")
    browser.wait(CARD)
    prompt = browser.value(PROMPT)
    for key in ("5", "3", "1"):
        browser.press(key)
    browser.hold("Enter", repeats=60)
    assert browser.value(f"{DIALOG}.open")
    assert browser.value(PROMPT) == prompt
