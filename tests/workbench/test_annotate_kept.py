"""Answers and drafts in the browser: it is killed, its storage is full, switched off, damaged or old."""

import json
import time

import pytest
from sqlalchemy import select

from browser import CHROMIUM
from browser_tab import Tab
from steelyard.workbench.storage.tables import StoredAssignment
from workbench_annotator import BANNER, CARD, PRESSED, PROMPT, Annotator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.xdist_group("chromium"),
]
SAVING = "document.querySelector('#saving').textContent"
KEYS = ("5", "3", "1", "Enter")
DRAFTS_ON_DISK = """new Promise((done) => { const request = indexedDB.open("steelyard", 1);
  request.onsuccess = () => { const all = request.result.transaction("kept").objectStore("kept").getAll();
    all.onsuccess = () => done(all.result.map((each) => Object.values(each?.scores ?? {}))); }; })"""
FULL = """(() => { for (let size = 2 ** 20; size >= 1; size = Math.floor(size / 2)) {
  try { for (let n = 0; ; n += 1) localStorage.setItem(`junk ${size} ${n}`, "x".repeat(size)); } catch { /* full */ }
} return localStorage.length; })()"""
IS_ASKED = """(() => { const event = new Event("beforeunload", { cancelable: true });
  window.dispatchEvent(event); return event.defaultPrevented; })()"""
NO_JOURNAL = "IDBFactory.prototype.open = () => { throw new DOMException('no', 'SecurityError'); };"
NO_STORAGE = (
    "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } });"
)


@pytest.fixture
def browser(tmp_path):
    """A browser of the test's own, which may be killed."""
    with Tab(tmp_path / "profile") as tab:
        yield tab


@pytest.fixture
def page(served, browser):
    made = Annotator(served, browser, num_cases=6)
    browser.wait("performance.getEntriesByType('resource').filter((e) => e.name.includes('/tasks')).length > 1")
    return made


def test_a_browser_that_is_killed_has_the_answer_and_the_draft_when_it_is_opened_again(page, browser, tmp_path):
    cookie = browser.cookie(page.server.origin)
    browser.disconnect(True)
    page.press(*KEYS)
    browser.wait(f"{BANNER}.textContent.includes('sent later: 1')")
    page.press("2", "4")
    end = time.monotonic() + 60
    while [2, 4] not in browser.value(DRAFTS_ON_DISK):
        assert time.monotonic() < end
        time.sleep(0.02)
    prompt = browser.value(PROMPT)
    browser.kill()
    with Tab(tmp_path / "profile") as again:
        again.set_cookie(page.server.origin, "steelyard_workbench", cookie)
        page.tab = again
        page.open()
        page.answers(1)
        again.wait(f"{PROMPT} === {prompt!r}")
        assert again.value(PRESSED) == "24"
        page.draft(lambda draft: list(draft["scores"].values()) == [2, 4])
        page.all_stored_once()


def test_a_full_storage_leaves_answers_to_the_journal(page, browser):
    assert browser.value(FULL) > 1
    browser.disconnect(True)
    page.press(*KEYS)
    browser.wait(f"{BANNER}.textContent.includes('kept on this computer')")
    page.press("4", "2", "0", "Enter")
    browser.wait(f"{BANNER}.textContent.includes('sent later: 2')")
    assert browser.value("Object.keys(localStorage).filter((key) => key.includes('outbox')).length") == 0
    browser.open("about:blank")
    browser.disconnect(False)
    page.open()
    page.answers(2)
    page.all_stored_once()


@pytest.mark.parametrize(
    ("script", "language", "words"),
    [(NO_JOURNAL, "en", "This browser stores nothing"), (NO_JOURNAL + NO_STORAGE, "zh", "请勿关闭此页面")],
    ids=["full", "switched-off"],
)
def test_where_nothing_can_be_stored_the_page_says_so_and_asks_before_it_is_left(
    served, browser, script, language, words
):
    made = Annotator(served, browser, num_cases=6, language=language)
    made.tab.open("about:blank")
    page = made.beside(script=script)
    page.tab.wait(CARD)
    if NO_STORAGE not in script:
        page.tab.value(FULL)
    assert not page.tab.value(IS_ASKED)
    browser.disconnect(True)
    page.press(*KEYS)
    page.tab.wait(f"{BANNER}.textContent.includes({words!r})")
    page.tab.wait(CARD)
    page.press("4")
    page.tab.wait(f"{SAVING}.includes({'leave the page open' if language == 'en' else '请勿关闭页面'!r})")
    assert page.tab.value(IS_ASKED)
    browser.disconnect(False)
    page.tab.value("window.dispatchEvent(new Event('online'))")
    page.answers(1)
    page.tab.wait(f"{BANNER}.hidden")
    page.draft(lambda draft: list(draft["scores"].values()) == [4])
    page.tab.wait(f"!({IS_ASKED})")


def test_answers_of_an_earlier_version_are_sent_and_damaged_ones_are_said(page, browser):
    browser.disconnect(True)
    page.press(*KEYS)
    browser.wait(f"{BANNER}.textContent.includes('sent later: 1')")
    page.press("4", "2", "0", "Enter")
    browser.wait(f"{BANNER}.textContent.includes('sent later: 2')")
    prefix = f"steelyard-outbox-{page.owner}-"
    # Read before the page is left: it may still send an answer while it is taken down.
    entries = [
        json.loads(each)
        for each in browser.value(
            f"Object.keys(localStorage).filter((k) => k.startsWith('{prefix}')).map((k) => localStorage.getItem(k))"
        )
    ]
    assert len(entries) == 2
    browser.open("about:blank")
    browser.disconnect(False)
    # A page of this workbench without the script.
    browser.open(f"{page.server.origin}/account")
    browser.forget(page.server.origin)
    old = json.dumps([{key: each[key] for key in ("assignment", "guideline", "answer", "seconds")} for each in entries])
    browser.value(f"localStorage.setItem('steelyard-outbox-{page.person}', {json.dumps(old)})")
    browser.value(f"localStorage.setItem('steelyard-done-{page.person}', '[1]')")
    browser.value(f"localStorage.setItem('{prefix}999999', '{{\"assignment\": 99')")
    with page.database.reading() as session:
        mine = select(StoredAssignment.id).where(StoredAssignment.person_id == page.person)
        present = max(session.scalars(mine))
    draft = json.dumps({"scores": {"A": 2, "C": 4}})
    # Of any task that may be the next one.
    for number in range(present - 5, present + 20):
        browser.value(f"localStorage.setItem('steelyard-draft-{page.person}-{number}', {json.dumps(draft)})")
    # Of another workbench that was served at this address, with the same numbers.
    other = json.dumps({**entries[0], "assignment": present})
    browser.value(f"localStorage.setItem('steelyard-outbox-0123456789ab-{page.person}-{present}', {json.dumps(other)})")
    page.open()
    page.answers(2)
    browser.wait(f"{BANNER}.textContent.includes('cannot be read any more')")
    page.all_stored_once()
    left = browser.value(
        "Object.keys(localStorage).filter((key) => key.startsWith('steelyard-') && !/done-\\d+-/.test(key))"
    )
    # What could not be read is put aside as it was.
    assert f"steelyard-unreadable-{page.owner}-999999" in left
    assert [key for key in left if "outbox" in key or key.endswith(f"done-{page.person}")] == [
        f"steelyard-outbox-0123456789ab-{page.person}-{present}"
    ]
    page.draft(lambda stored: sorted(stored["scores"].values()) == [2, 4])
    assert browser.value(PRESSED) == "24"


def test_a_restored_backup_shows_its_tasks_although_the_browser_has_answered_them(page, browser):
    """Answers after the backup are gone, and the numbers of their tasks are given again."""
    answered = browser.value(PROMPT)
    page.press(*KEYS)
    page.answers(1)
    page.forget_answers()
    page.open()
    assert browser.value(PROMPT) == answered
