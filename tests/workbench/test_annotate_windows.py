"""The annotator's page in several windows of one browser, and after Back and Forward: one answer for each task."""

import time

import pytest
from sqlalchemy import select, update

from browser import CHROMIUM
from browser_tab import Tab
from steelyard.workbench.storage.tables import StoredAssignment
from workbench_annotator import BANNER, CARD, PRESSED, PROMPT, Annotator
from workbench_server import Login

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.xdist_group("chromium"),
]
NO_LOCKS = "delete Navigator.prototype.locks"
DEAF = """; const listen = window.addEventListener;
window.addEventListener = (name, ...more) => name === "storage" ? undefined : listen.call(window, name, ...more);"""
KEYS = ("5", "3", "1", "Enter")


@pytest.fixture
def browser(tmp_path):
    """A browser of the test's own: other tests have one tab."""
    with Tab(tmp_path / "profile") as tab:
        yield tab


def wait_for_ahead(page):
    page.tab.wait("performance.getEntriesByType('resource').filter((e) => e.name.includes('/tasks')).length > 1")


def test_two_windows_have_different_tasks_and_every_answer_is_stored_once(served, browser):
    first = Annotator(served, browser, num_cases=8)
    wait_for_ahead(first)
    # All three tasks that the person may have are in the first window: it leaves one of them.
    second = first.beside()
    second.tab.wait(CARD)
    assert first.tab.value(PROMPT) != second.tab.value(PROMPT)
    first.press("2")
    first.draft(lambda draft: list(draft["scores"].values()) == [2])
    browser.disconnect(True)
    try:
        for page in (first, second):
            page.press(*KEYS)
            page.tab.wait(f"{BANNER}.textContent.includes('sent later')")
        first.tab.wait(f"{BANNER}.textContent.includes('sent later: 2')")
        first.tab.wait(f"JSON.stringify(Object.keys(localStorage)).match(/outbox-{first.owner}-/g).length === 2")
    finally:
        browser.disconnect(False)
    first.answers(2)
    # The other window, which sent nothing, hears of it.
    for page in (first, second):
        page.tab.wait(f"{BANNER}.hidden")
        page.tab.wait(CARD)
    assert first.tab.value(PROMPT) != second.tab.value(PROMPT)
    third = second.tab.value(PROMPT)
    second.press("4")
    second.draft(lambda draft: list(draft["scores"].values()) == [4])
    second.tab.close()
    # What the closed window had comes to the one that is left, with its draft.
    prompts = []
    for number in range(3, 9):
        first.tab.wait(CARD)
        prompts.append(first.tab.value(PROMPT))
        is_draft = prompts[-1] == third
        assert first.tab.value(PRESSED) == ("4" if is_draft else "")
        first.press(*(KEYS[1:] if is_draft else KEYS))
        first.answers(number)
    assert third in prompts
    assert len(set(prompts)) == 6
    first.all_stored_once()
    assert [each for each in browser.complaints if "DISCONNECTED" not in each] == []


def test_answers_of_two_windows_at_the_same_moment_are_all_there(served, browser):
    """Each window had read the list, and the one that wrote it later dropped what the other had added."""
    first = Annotator(served, browser)
    second = first.beside()
    put = """(async () => {
  const { makeOutbox } = await import("/static/annotate/outbox.js");
  const { makeStore } = await import("/static/annotate/store.js");
  const nothing = () => {}, send = async () => ({ status: 0 });
  const box = makeOutbox({ store: makeStore(localStorage), person: 0, send, later: nothing, onChange: nothing });
  const entry = (assignment) => ({ assignment, answer: {}, seconds: 1, guideline: null });
  const putAll = (start) => { for (let n = 0; n < 300; n += 1) box.put(entry(start + n)); window.isPut = true; };
  window.put = (start, begin) => setTimeout(() => putAll(start), begin - Date.now());
  window.number = () => box.size();
  return true;
})()"""
    for page in (first, second):
        page.tab.value(put)
    begin = 1000 * (time.time() + 0.5)
    for start, page in ((1, first), (1001, second)):
        page.tab.value(f"window.put({start}, {begin}); 1")
    for page in (first, second):
        page.tab.wait("window.isPut && window.number() === 600")


def test_more_windows_than_tasks_say_so(served, browser):
    page = Annotator(served, browser, num_cases=1)
    other = page.beside()
    other.tab.wait("document.querySelector('#empty').innerText.includes('open in another window')")
    page.tab.close()
    other.tab.wait(CARD)


@pytest.mark.parametrize("is_equal", [True, False])
def test_without_locks_the_same_task_in_two_windows_has_one_answer(served, browser, is_equal):
    """As over HTTP without encryption. The second window hears nothing of the first: both submit at the same moment."""
    made = Annotator(served, browser, num_cases=3)
    first, second = made.beside(script=NO_LOCKS), made.beside(script=NO_LOCKS + DEAF)
    made.tab.close()
    for page in (first, second):
        page.tab.wait(CARD)
    before = first.tab.value(PROMPT)
    assert second.tab.value(PROMPT) == before
    browser.disconnect(True)
    try:
        first.press(*KEYS)
        second.press("5", "3", "1" if is_equal else "2", "Enter")
    finally:
        browser.disconnect(False)
    first.answers(1)
    for page in (first, second):
        page.tab.wait(f"({CARD}) && {PROMPT} !== {before!r}")
    if not is_equal:
        second.tab.wait(f"{BANNER}.textContent.includes('answered differently in two windows')")
        # The connection is back, which the window may not know yet: until then the first button sends again.
        second.tab.wait(f"{BANNER}.querySelectorAll('button').length === 1")
        second.tab.click("#banner button")
    second.tab.wait(f"{BANNER}.hidden")
    first.all_stored_once()


def test_without_locks_windows_with_the_same_task_follow_each_other(served, browser):
    made = Annotator(served, browser, num_cases=3)
    first, second = made.beside(script=NO_LOCKS), made.beside(script=NO_LOCKS)
    made.tab.close()
    for page in (first, second):
        page.tab.wait(CARD)
    before = second.tab.value(PROMPT)
    # What is entered in one window is seen in the other, which does not bring back what it had.
    first.press("5")
    second.tab.wait(f"{PRESSED} === '5'")
    second.press("3")
    first.tab.wait(f"{PRESSED} === '53'")
    first.press("1", "Enter")
    second.tab.wait("document.querySelector('#dialog').open")
    assert "answered this task in another window" in second.tab.value("document.querySelector('#dialog').innerText")
    second.tab.wait("document.activeElement.matches('#dialog .main')")
    second.press("Enter")
    second.tab.wait(f"({CARD}) && {PROMPT} !== {before!r}")
    assert second.tab.value(PRESSED) == ""
    first.answers(1)


def test_back_and_forward_show_no_task_again_and_keep_the_draft(served, browser):
    page = Annotator(served, browser, num_cases=4)
    wait_for_ahead(page)
    answered = browser.value(PROMPT)
    page.press(*KEYS)
    browser.wait(f"({CARD}) && {PROMPT} !== {answered!r}")
    present = browser.value(PROMPT)
    page.press("2", "4")
    # Away at once, before the draft is sent or the answer confirmed.
    browser.open(f"{page.server.origin}/account")
    browser.back()
    browser.wait(CARD)
    assert (browser.value(PROMPT), browser.value(PRESSED)) == (present, "24")
    browser.open(f"{page.server.origin}/account")
    browser.back()
    browser.forward()
    browser.back()
    browser.wait(CARD)
    browser.reload()
    browser.wait(f"({CARD}) && {PRESSED} === '24'")
    assert browser.value(PROMPT) == present
    page.press("1", "Enter")
    page.answers(2)
    page.all_stored_once()
    browser.wait(f"!({CARD}) || ![{answered!r}, {present!r}].includes({PROMPT})")


def test_an_older_draft_on_another_computer_does_not_come_back_over_a_newer_one(served, browser, tmp_path):
    page = Annotator(served, browser)
    page.press("2")
    page.draft(lambda draft: list(draft["scores"].values()) == [2])
    with Tab(tmp_path / "other computer") as tab:
        tab.set_cookie(page.server.origin, "steelyard_workbench", browser.cookie(page.server.origin))
        other = page.beside()
        other.tab.close()
        other.tab = tab
        tab.own_clock()
        other.open()
        assert tab.value(PRESSED) == "2"
        page.press("5")
        page.draft(lambda draft: list(draft["scores"].values()) == [2, 5])
        # Somebody reads on there: the time is reported, not what was entered. The clock of the server does not jump.
        earlier = update(StoredAssignment).values(assigned_at=0.0, active_at=None)
        page.database.write(lambda session: session.execute(earlier))
        for _ in range(3):
            tab.value("window.dispatchEvent(new Event('scroll'))")
            tab.run_for(20)
        mine = select(StoredAssignment.seconds).where(StoredAssignment.person_id == page.person)
        end = time.monotonic() + 30
        longest = 0
        while longest < 45 and time.monotonic() < end:
            time.sleep(0.1)
            with page.database.reading() as session:
                longest = max(session.scalars(mine))
        assert longest > 45
        page.draft(lambda draft: list(draft["scores"].values()) == [2, 5])


def test_who_logs_in_at_the_page_of_another_takes_none_of_its_answers(served, browser):
    page = Annotator(served, browser, num_cases=4)
    wait_for_ahead(page)
    other = Login(page.database, "another person at this browser")
    mine = browser.cookie(page.server.origin)
    browser.set_cookie(page.server.origin, "steelyard_workbench", other.cookie)
    page.press(*KEYS)
    browser.wait(f"{BANNER}.textContent.includes('The session is over')")
    page.press("4", "2", "0", "Enter")
    browser.wait(f"{BANNER}.textContent.includes('kept on this computer: 2')")
    with page.database.reading() as session:
        people = set(session.scalars(select(StoredAssignment.person_id).where(StoredAssignment.state == "answered")))
        assert not people & {page.person, other.person}
        others = select(StoredAssignment).where(StoredAssignment.person_id == other.person)
        assert session.scalars(others).all() == []
    browser.set_cookie(page.server.origin, "steelyard_workbench", mine)
    browser.value("window.dispatchEvent(new Event('online'))")
    page.answers(2)
    page.all_stored_once()
