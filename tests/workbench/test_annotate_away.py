"""The annotator's page on a computer that slept: its sleep is no work, and a task that is gone is said to be gone."""

import time

import pytest
from sqlalchemy import select

from browser import CHROMIUM
from browser_tab import Tab
from steelyard.workbench.pipeline.queues import next_assignments
from steelyard.workbench.routes.annotate import membership_of
from steelyard.workbench.storage.tables import StoredAnswer, StoredAssignment, StoredTask
from workbench_annotator import CARD, PRESSED, PROMPT, Annotator
from workbench_people import answer, send
from workbench_server import Login

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.xdist_group("chromium"),
]
DIALOG = "document.querySelector('#dialog')"
SLEEP = 3 * 3600


@pytest.fixture
def browser(tmp_path):
    """A browser of the test's own, whose clock is put forward."""
    with Tab(tmp_path / "profile") as tab:
        tab.own_clock()
        yield tab


def sleep(page, browser):
    """Let three hours pass, at the workbench and in the browser: all timers of the page are late."""

    def let_expire(session):
        for row in session.scalars(select(StoredAssignment).where(StoredAssignment.person_id == page.person)):
            row.expires_at = time.time() - SLEEP + 2700
            row.assigned_at -= SLEEP

    page.database.write(let_expire)
    browser.let_pass(SLEEP)


def others_take_everything(page, *, number):
    """Let two others answer whatever is free and in the hands of nobody."""
    for count in range(number):
        other = Login(page.database, f"other {count} of {page.name}")
        for _ in range(20):
            rows = page.database.write(lambda session, other=other: _next(session, other, page))
            if not rows:
                break
            for row in rows:
                send(page.database, row, answer(None, ["gpt-4-0", "gpt-4-1", "gpt-4-2"]))


def _next(session, other, page):
    membership = membership_of(session, other.person, page.project)
    return [each.id for each in next_assignments(session, membership, number=3, at=time.time())]


def wait_for_open(page, number):
    """Wait until the person has a number of tasks."""
    mine = select(StoredAssignment.id).where(
        StoredAssignment.person_id == page.person, StoredAssignment.state == "open"
    )
    end = time.monotonic() + 60
    while True:
        with page.database.reading() as session:
            if len(session.scalars(mine).all()) == number:
                return
        assert time.monotonic() < end
        time.sleep(0.05)


def seconds_of(page):
    with page.database.reading() as session:
        return session.scalars(select(StoredAnswer.seconds).where(StoredAnswer.person_id == page.person)).all()


@pytest.mark.parametrize("is_frozen", [False, True])
def test_the_time_of_a_sleep_is_no_work_and_the_task_is_still_there(served, browser, is_frozen):
    page = Annotator(served, browser)
    prompt = browser.value(PROMPT)
    page.press("5")
    page.draft(lambda draft: draft["scores"])
    if is_frozen:
        browser.protocol("Page.setWebLifecycleState", state="frozen")
        time.sleep(0.3)
        browser.protocol("Page.setWebLifecycleState", state="active")
    sleep(page, browser)
    assert (browser.value(PROMPT), browser.value(PRESSED)) == (prompt, "5")
    page.press("3", "1", "Enter")
    page.answers(1)
    assert seconds_of(page)[0] < 60
    page.all_stored_once()


@pytest.mark.parametrize(
    ("language", "words"), [("en", "somebody else has it now"), ("zh", "此任务已超时并转给他人")], ids=["en", "zh"]
)
def test_a_task_that_somebody_took_meanwhile_is_said_before_anything_is_entered(served, browser, language, words):
    page = Annotator(served, browser, num_cases=4, language=language)
    browser.wait("document.querySelector('#own-progress').innerText")
    page.press("5")
    page.draft(lambda draft: draft["scores"])
    prompt = browser.value(PROMPT)
    browser.disconnect(True)
    sleep(page, browser)
    others_take_everything(page, number=2)
    browser.disconnect(False)
    browser.value("window.dispatchEvent(new Event('online'))")
    browser.wait(f"{DIALOG}.open && {DIALOG}.innerText.includes({words!r})")
    # A fast hand enters nothing into the next task.
    page.press("3", "1", "Enter")
    browser.wait("document.activeElement.matches('#dialog .main')")
    page.press("Enter")
    browser.wait(
        f"!{DIALOG}.open && (document.querySelector('#annotator').dataset.state === 'empty' || {PROMPT} !== {prompt!r})"
    )
    with page.database.reading() as session:
        drafts = session.scalars(select(StoredAssignment.draft).where(StoredAssignment.person_id == page.person)).all()
        tasks = session.scalars(select(StoredTask).where(StoredTask.project_id == page.project)).all()
        assert [task.num_answered for task in tasks] == [2] * 4
        assert page.person not in session.scalars(select(StoredAnswer.person_id)).all()
    # What was entered is kept.
    assert [list(draft["scores"].values()) for draft in drafts if draft and draft["scores"]] == [[5]]


def test_an_answer_that_was_given_without_a_connection_comes_too_late_and_is_said(served, browser):
    page = Annotator(served, browser, num_cases=4)
    browser.wait(CARD)
    browser.disconnect(True)
    page.press("5", "3", "1", "Enter")
    browser.wait("document.querySelector('#banner').textContent.includes('sent later: 1')")
    sleep(page, browser)
    others_take_everything(page, number=2)
    browser.disconnect(False)
    browser.value("window.dispatchEvent(new Event('online'))")
    browser.wait("document.querySelector('#banner').textContent.includes('came after its time was over')")
    page.all_stored_once()
    with page.database.reading() as session:
        tasks = session.scalars(select(StoredTask).where(StoredTask.project_id == page.project)).all()
        assert [task.num_answered for task in tasks] == [2] * 4


def test_a_page_without_a_task_soon_asks_again_while_the_workbench_is_away(served, browser):
    page = Annotator(served, browser, num_cases=1)
    browser.disconnect(True)
    page.press("5", "3", "1", "Enter")
    browser.wait("document.querySelector('#annotator').dataset.state === 'empty'")
    browser.value(
        "(() => { const before = window.fetch; window.asked = 0; window.fetch = (path, ...more) => {"
        " window.asked += path.startsWith('/annotate/tasks'); return before(path, ...more); }; })()"
    )
    browser.run_for(10)
    browser.wait("document.querySelector('#empty').innerText.includes('no connection')")
    # More often than tasks are asked for that others may give back.
    before = browser.value("window.asked")
    browser.run_for(2.1)
    assert browser.value("window.asked") > before
    browser.disconnect(False)
    browser.run_for(30)
    page.answers(1)


def test_tasks_that_were_loaded_before_the_sleep_and_are_gone_are_not_shown(served, browser):
    page = Annotator(served, browser, num_cases=6)
    page.press("5")
    page.draft(lambda draft: draft["scores"])
    present = browser.value(PROMPT)

    def hand_on(session):
        """Only what was loaded ahead is over and taken."""
        mine = select(StoredAssignment).where(StoredAssignment.person_id == page.person)
        rows = session.scalars(mine.order_by(StoredAssignment.id)).all()
        for row in rows:
            if not row.draft:
                row.state = "expired"
                session.get_one(StoredTask, row.task_id).num_wanted = 1
        return [row.id for row in rows if not row.draft]

    wait_for_open(page, 3)
    gone = page.database.write(hand_on)
    assert len(gone) == 2
    browser.let_pass(600)
    wait_for_open(page, 3)
    page.press("3", "1", "Enter")
    page.answers(1)
    browser.wait(f"({CARD}) && {PROMPT} !== {present!r}")
    page.press("5", "3", "1", "Enter")
    page.answers(2)
    page.all_stored_once()
    with page.database.reading() as session:
        assert not set(gone) & set(session.scalars(select(StoredAnswer.assignment_id)).all())
