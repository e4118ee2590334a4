"""The annotator's page in Chromium: tasks by keys, by mouse and on a phone, and through a server that is killed."""

import time
from pathlib import Path

import pytest
from sqlalchemy import func, select

from browser import CHROMIUM
from steelyard.workbench.storage.tables import StoredAnswer, StoredAssignment, StoredTask
from workbench_annotator import CARD, STEP, SUBMIT, Annotator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.xdist_group("chromium"),
]
AXE = Path(__file__).parents[1] / "golden" / "axe" / "axe.min.js"
RANKING = "[...document.querySelectorAll('#ranking .tier')].map((t) => t.textContent).join('>')"
MOST_KEYS = 12


def test_a_triple_takes_four_keys_and_seven_with_equal_scores(served, browser):
    page = Annotator(served, browser)
    ids = page.shown()
    page.press("1", "5", "3", "Enter")
    assert page.num_keys == 4
    (first,) = page.answers(1)
    assert first.scores == {ids["A"]: 1, ids["B"]: 5, ids["C"]: 3}
    assert first.ranking == ((ids["B"],), (ids["C"],), (ids["A"],))
    ids = page.shown()
    page.num_keys = 0
    page.press("4", "4", "4")
    assert browser.value(STEP) == "A and B have the same score. Which is better?"
    page.press("g", "b", "s")
    # A over B, C over A, B as good as C: said at once, and nothing can be submitted.
    assert "contradict each other" in browser.value(STEP)
    assert browser.value(f"{SUBMIT}.disabled")
    page.press("Backspace", "b")
    assert browser.value(RANKING) == "C>A>B"
    page.press("Enter")
    assert page.num_keys <= MOST_KEYS
    *_, second = page.answers(2)
    assert second.ranking == ((ids["C"],), (ids["A"],), (ids["B"],))
    assert len(second.comparisons) == 3
    assert browser.complaints == []


ACTIVE = "[...document.querySelectorAll('.response.active')].map((each) => each.dataset.response).join('')"
PRESSED = "[...document.querySelectorAll('.score[aria-pressed=true]')].map((each) => each.textContent).join('')"


def test_keys_act_on_the_outlined_response_alone(served, browser):
    page = Annotator(served, browser)
    page.press("4", "4", "5")
    # Two responses are compared, and none is outlined: no key for one response changes any.
    assert (browser.value(ACTIVE), browser.value(PRESSED)) == ("", "445")
    page.press("3", "d", "m", "ArrowUp")
    assert browser.value(PRESSED) == "445"
    assert not browser.value("document.querySelector('#dialog').open")
    page.press("g", "ArrowDown", "ArrowDown")
    # The ranking by hand contradicts the scores: the outline shows which response the next digit changes.
    assert "but the ranking says" in browser.value(STEP)
    assert browser.value(ACTIVE) == "C"
    page.press("0")
    assert browser.value(PRESSED) == "440"


def test_a_complete_draft_takes_no_digits_before_a_response_is_chosen(served, browser):
    page = Annotator(served, browser)
    page.press("1", "3", "5")
    page.draft(lambda draft: len(draft.get("scores", {})) == 3)
    page.open()
    page.press("5", "3", "1")
    assert (browser.value(ACTIVE), browser.value(PRESSED)) == ("", "135")
    page.press("ArrowLeft", "0")
    assert (browser.value(ACTIVE), browser.value(PRESSED)) == ("C", "130")


def test_the_arrows_compare_too_and_a_ranking_by_keys_is_checked(served, browser):
    page = Annotator(served, browser)
    ids = page.shown()
    page.press("2", "2", "0", "ArrowDown")
    assert browser.value(RANKING) == "AB>C"
    page.press("ArrowUp")
    assert browser.value(STEP) == "A has 2 and C has 0, but the ranking says A = C. Change a score or the ranking."
    page.press("Enter")
    assert browser.value(f"{SUBMIT}.disabled")
    page.press("r")
    assert browser.value(RANKING) == "AB>C"
    page.press("Enter")
    (answer,) = page.answers(1)
    assert answer.ranking == ((ids["A"], ids["B"]), (ids["C"],))


def test_a_whole_task_by_mouse_with_a_drag(served, browser):
    page = Annotator(served, browser)
    ids = page.shown()
    for letter, score in (("A", 4), ("B", 4), ("C", 2)):
        browser.click(f"[data-response={letter}] .score:nth-child({score + 1})")
    browser.click("#choices button:nth-child(1)")
    assert browser.value(RANKING) == "A>B>C"
    browser.drag("[data-chip=B]", "[data-chip=A]")
    browser.wait("document.querySelector('#step').textContent.startsWith('You compared')")
    assert browser.value(STEP) == "You compared A > B, but the ranking says A = B. Change one of them."
    assert browser.value(f"{SUBMIT}.disabled")
    browser.click("#reset")
    browser.wait(f"!{SUBMIT}.disabled")
    browser.click("#submit")
    (answer,) = page.answers(1)
    assert answer.ranking == ((ids["A"],), (ids["B"],), (ids["C"],))
    # After clicks the keys belong to the next card.
    page.press("3", "2", "1", "Enter")
    page.answers(2)


def test_discarding_not_judging_and_undoing(served, browser):
    page = Annotator(served, browser)
    ids = page.shown()
    page.press("d", "2", "5", "3", "Enter")
    (first,) = page.answers(1)
    assert first.discarded == {ids["A"]: "wrong language"}
    assert first.ranking == ((ids["B"],), (ids["C"],))
    page.press("5", "x", "1")
    assert browser.value(STEP) == "Marked as not to be judged. Submit, or undo."
    page.press("z", modifiers=2)
    assert browser.value(STEP) == "Score B from 0 to 5."
    page.press("Backspace")
    assert browser.value(STEP) == "Score A from 0 to 5."
    page.press("x", "1", "Enter")
    *_, second = page.answers(2)
    assert (second.cannot_judge, second.scores) == ("outside my field", {})


def test_a_problem_is_marked_in_the_stored_text(served, browser):
    text = "😀 I am ChatGPT.\nIt is green."
    page = Annotator(served, browser, texts=(text, text, text))
    ids = page.shown()
    page.press("m")
    browser.wait("document.activeElement.matches('textarea.raw')")
    assert browser.value("document.activeElement.value") == "😀 I am [name].\nIt is green."
    browser.value("document.activeElement.setSelectionRange(9, 12)")
    # At once after the kind of problem comes a score, as a fast hand types.
    page.press("1", "5")
    browser.wait("document.querySelector('[data-response=A] .marks li')")
    assert browser.value("document.querySelector('[data-response=A] .marks q').textContent") == "nam"
    page.press("3", "1", "Enter")
    (answer,) = page.answers(1)
    ((start, end, kind, remark),) = answer.spans[ids["A"]]
    assert (text[start:end], kind, remark) == ("ChatGPT", "factual error", None)


def test_drafts_come_back_after_a_reload(served, browser):
    page = Annotator(served, browser)
    page.press("2", "4")
    page.draft(lambda draft: len(draft.get("scores", {})) == 2)
    page.open()
    assert browser.value(STEP) == "Score C from 0 to 5."
    pressed = "[...document.querySelectorAll('[aria-pressed=true]')].map((b) => b.textContent).join('')"
    assert browser.value(pressed) == "24"


def test_work_goes_on_while_the_server_is_killed_and_nothing_is_lost_or_doubled(served, browser):
    page = Annotator(served, browser, num_cases=6)
    browser.wait("performance.getEntriesByType('resource').some((e) => e.name.includes('/tasks'))")
    page.press("5", "3", "1", "Enter")
    page.answers(1)
    # Both tasks that are loaded ahead are answered without the server.
    browser.wait(CARD)
    page.server.kill()
    page.press("4", "2", "0", "Enter")
    browser.wait("document.querySelector('#banner').textContent.includes('sent later: 1')")
    page.press("3")
    page.server.start()
    browser.value("window.dispatchEvent(new Event('online'))")
    page.answers(2)
    browser.wait("document.querySelector('#banner').hidden")
    if browser.value(f"Boolean({CARD})"):
        page.open()
    browser.wait(CARD)
    with page.database.reading() as session:
        wrong = session.scalar(
            select(func.count()).where(
                StoredTask.project_id == page.project, StoredTask.num_answered > StoredTask.num_reserved
            )
        )
        answered = session.scalars(
            select(StoredAnswer.assignment_id).where(StoredAnswer.person_id == page.person)
        ).all()
    assert wrong == 0
    assert len(answered) == len(set(answered)) == 2


def test_a_banner_that_says_the_same_keeps_its_button(served, browser):
    """Between press and release of the mouse the page may hear of another window, and draws the banner again."""
    page = Annotator(served, browser)
    browser.disconnect(True)
    try:
        page.press("5", "3", "1", "Enter")
        browser.wait("document.querySelector('#banner').textContent.includes('sent later: 1')")
        assert browser.value("""(() => {
          const button = document.querySelector('#banner button');
          window.dispatchEvent(new StorageEvent('storage', {key: 'another', newValue: null}));
          return button.isConnected && button === document.querySelector('#banner button');
        })()""")
    finally:
        browser.disconnect(False)
    browser.click("#banner button")
    page.answers(1)
    browser.wait("document.querySelector('#banner').hidden")


def test_an_answer_survives_a_reload_without_a_connection(served, browser):
    page = Annotator(served, browser)
    browser.disconnect(True)
    try:
        page.press("5", "3", "1", "Enter")
        browser.wait("document.querySelector('#banner').textContent.includes('sent later: 1')")
        browser.open("about:blank")
    finally:
        browser.disconnect(False)
    page.open()
    page.answers(1)


def test_it_fits_a_phone(served, browser):
    browser.resize(390, 844, is_phone=True)
    try:
        page = Annotator(
            served, browser, texts=("A" * 300, "| a | b |\n|---|---|\n| 1 | 2 |", "```\n" + "x" * 200 + "\n```")
        )
        assert browser.value("document.documentElement.scrollWidth") <= 390
        for letter, score in (("A", 4), ("B", 4), ("C", 2)):
            browser.click(f"[data-response={letter}] .score:nth-child({score + 1})")
        browser.click("#choices button:nth-child(2)")
        assert browser.value("document.documentElement.scrollWidth") <= 390
        browser.click("#submit")
        (answer,) = page.answers(1)
        assert [len(tier) for tier in answer.ranking] == [2, 1]
    finally:
        browser.resize(1280, 900)


def test_chinese_people_get_a_chinese_page(served, browser):
    page = Annotator(served, browser, language="zh", texts=("一", "二", "三"), prompt="为什么")
    assert browser.value(STEP) == "给 A 评分（0–5 分）。"
    page.press("3", "3", "1")
    assert browser.value(STEP) == "A 与 B 分数相同，哪个更好？"
    text = browser.value("document.querySelector('#annotator').innerText")
    for word in ("undefined", "Score", "submit", "Guideline", "Fair"):
        assert word not in text
    page.press("s", "Enter")
    page.answers(1)


def test_who_has_no_task_hears_why(served, browser):
    page = Annotator(served, browser, num_cases=1)
    page.press("5", "3", "1", "Enter")
    page.answers(1)
    browser.wait("document.querySelector('#empty').innerText.includes('You have answered all tasks that are open')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_anybody_out(served, browser, scheme):
    browser.prefer(scheme)
    page = Annotator(served, browser)
    page.press("i", "3", "3", "1")
    browser.value(AXE.read_text(encoding="utf-8") + "; 1")
    # Colours are looked at when the moves between them are over.
    browser.value("Promise.allSettled(document.getAnimations().map((each) => each.finished)).then(() => 1)")
    look = (
        "axe.run(document).then((r) => r.violations.filter((v) => ['serious', 'critical'].includes(v.impact))"
        ".map((v) => v.id + ': ' + v.nodes.map((n) => n.html).slice(0, 3).join(' ')))"
    )
    assert browser.value(look) == []
    page.press("g", "m")
    browser.wait("document.querySelector('#dialog').open")
    assert browser.value(look) == []
    page.press("Escape")
    browser.prefer("light")


def test_a_formula_wider_than_its_card_scrolls_inside_it(served, browser):
    formula = "$$f'(x) = 2x \\ln x + x^2 \\cdot \\frac{1}{x} = 2x \\ln x + x = x(2 \\ln x + 1) = x \\ln x^2 + x.$$"
    for width in (1280, 390):
        browser.resize(width, 844, is_phone=width < 600)
        Annotator(served, browser, texts=(f"First:\n\n{formula}", "Second.", "Third."))
        browser.wait("document.querySelector('.katex-display')")
        assert browser.value("document.documentElement.scrollWidth") <= width
        assert browser.value(
            "(() => { const f = document.querySelector('.katex-display');"
            " return f.getBoundingClientRect().right <= f.closest('.response').getBoundingClientRect().right; })()"
        )
    browser.resize(1280, 900)


def test_a_page_that_is_closed_gives_back_what_it_had_loaded_ahead(served, browser):
    person = Annotator(served, browser, num_cases=5)
    browser.wait("performance.getEntriesByType('resource').filter((each) => each.name.includes('/tasks')).length > 1")
    person.press("4")
    browser.wait("performance.getEntriesByType('resource').some((each) => each.name.includes('/draft'))")
    browser.open(f"{person.server.origin}/account")

    def open_drafts():
        with person.database.reading() as session:
            mine = select(StoredAssignment).where(
                StoredAssignment.person_id == person.person, StoredAssignment.state == "open"
            )
            return [each.draft is not None for each in session.scalars(mine)]

    end = time.monotonic() + 60
    while open_drafts() != [True] and time.monotonic() < end:
        time.sleep(0.05)
    assert open_drafts() == [True]


def test_the_ranking_is_said_and_an_empty_response_is_named(served, browser):
    page = Annotator(served, browser, texts=("One.", " ", "Three."))
    said = "document.querySelector('#ranking-said').textContent"
    assert browser.value("document.querySelectorAll('.empty-response').length") == 1
    tool = "document.querySelector('[data-response=B] .tools button').getAttribute('aria-label')"
    assert browser.value(tool) == "mark a problem, Response B"
    page.press("5", "3", "1")
    assert browser.value(said) == "Ranking: A > B > C"
    page.press("ArrowUp")
    assert browser.value(said) == "Ranking: A > B = C"
    page.press("x", "1")
    assert browser.value(said) == ""


def test_the_scores_of_a_long_response_stay_in_sight(served, browser):
    Annotator(served, browser, texts=("Long. " * 2000, "Short.", "Three."))
    below = "document.querySelector('[data-response=A] .scores').getBoundingClientRect().bottom"
    browser.wait(f"{below} <= document.querySelector('#bar').getBoundingClientRect().top")


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 700)])
def test_the_scores_cover_the_letter_of_no_response(served, browser, width, height):
    browser.resize(width, height, is_phone=width < 600)
    try:
        Annotator(served, browser, texts=("Long enough. " * 90,) * 3)
        covered = """(async () => {
          const covered = [];
          for (let place = 0; place < document.body.scrollHeight; place += 40) {
            window.scrollTo(0, place);
            await new Promise(requestAnimationFrame);
            for (const response of document.querySelectorAll('.response')) {
              const bottom = response.querySelector('header').getBoundingClientRect().bottom;
              const top = response.querySelector('.verdict').getBoundingClientRect().top;
              if (top < bottom - 1 && top > 60) covered.push(`${response.dataset.response} at ${place}`);
            }
          }
          return covered;
        })()"""
        assert browser.value(covered) == []
    finally:
        browser.resize(1280, 900)
