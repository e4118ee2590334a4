"""Kinds of tasks other than triples on the annotator's page in Chromium: by keys, by mouse, and on a phone."""

from pathlib import Path

import pytest

from browser import CHROMIUM
from steelyard.workbench.storage.tables import StoredProject
from steelyard.workbench.views.guidelines import NewGuideline, add_guideline
from workbench_annotator import STEP, SUBMIT, Annotator
from workbench_people import NOON

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.xdist_group("chromium"),
]
AXE = Path(__file__).parents[1] / "golden" / "axe" / "axe.min.js"
PAIR = ("First.", "Second.")


def test_a_pair_takes_two_keys_and_can_be_changed(served, browser):
    page = Annotator(served, browser, texts=PAIR)
    ids = page.shown()
    assert browser.value(STEP) == "Which is better, A or B?"
    assert browser.value(f"{SUBMIT}.disabled")
    page.press("g", "Enter")
    assert page.num_keys == 2
    (first,) = page.answers(1)
    assert first.ranking == ((ids["A"],), (ids["B"],))
    assert (first.scores, first.comparisons) == ({}, ())
    ids = page.shown()
    page.press("ArrowDown", "b", "Backspace")
    pressed = "document.querySelector('#choices [aria-pressed=true]').textContent"
    assert "ame" in browser.value(pressed)
    page.press("Backspace")
    assert browser.value(f"{SUBMIT}.disabled")
    page.press("ArrowRight", "Enter")
    *_, second = page.answers(2)
    assert second.ranking == ((ids["B"],), (ids["A"],))
    assert browser.complaints == []


def test_a_pair_by_mouse_with_a_mark_a_discard_and_a_draft(served, browser):
    page = Annotator(served, browser, texts=PAIR)
    ids = page.shown()
    page.press("m", "2")
    browser.wait("document.activeElement.matches('textarea.raw')")
    browser.value("document.activeElement.setSelectionRange(0, 3)")
    page.press("1")
    browser.wait("document.querySelector('[data-response=B] .marks li')")
    browser.click("#choices button:nth-child(3)")
    page.draft(lambda draft: draft.get("ranking") and draft.get("spans"))
    page.open()
    browser.wait(f"!{SUBMIT}.disabled")
    browser.click("#submit")
    (first,) = page.answers(1)
    assert first.ranking == ((ids["B"],), (ids["A"],))
    assert first.spans == {ids["B"]: ((0, 3, "factual error", None),)}
    ids = page.shown()
    page.press("d", "1")
    assert "leaves the item once everybody" in browser.value("document.querySelector('#dialog').innerText")
    page.press("2", "Enter")
    *_, second = page.answers(2)
    assert second.discarded == {ids["A"]: "wrong language"}
    page.press("x", "1", "Enter")
    assert [each.cannot_judge for each in page.answers(3)] == [None, None, "outside my field"]


def test_words_are_marked_by_keys_alone_and_the_text_stays_as_it_is(served, browser):
    page = open_kind(served, browser, "span_marking")
    page.press("m")
    browser.wait("document.activeElement.matches('textarea.raw')")
    page.press("z", "Delete", "Enter")
    # An input method writes in spite of the page.
    browser.type("あ")
    page.press("Home", "ArrowRight")
    page.press("ArrowRight", "ArrowRight", modifiers=8)
    field = "document.querySelector('textarea.raw')"
    assert browser.value(f"{field}.value.slice({field}.selectionStart, {field}.selectionEnd)") in ("ir", "ec")
    assert browser.value(f"{field}.value") in PAIR
    page.press("1", "Enter")
    (first,) = page.answers(1)
    ((mark,),) = first.spans.values()
    assert mark[:2] == (1, 3)
    assert browser.complaints == []


def test_a_number_out_of_the_range_does_not_leave_the_one_before(served, browser):
    page = open_kind(served, browser, "translation_quality")
    field = "document.querySelector('.question input')"
    browser.value(f"{field}.focus()")
    browser.type("90")
    page.press("Enter")
    browser.wait(f"!{SUBMIT}.disabled")
    browser.value(f"{field}.select(), {field}.focus()")
    browser.type("150")
    page.press("Enter")
    browser.wait(f"{SUBMIT}.disabled")
    assert browser.value(f"{field}.value") == ""
    browser.value(f"{field}.focus()")
    browser.type("٨٥")
    page.press("Enter", "Enter")
    (first,) = page.answers(1)
    assert list(first.scores.values()) == [85]


def test_a_pair_in_arabic_fits_a_phone_and_speaks_chinese(served, browser):
    browser.resize(390, 844, is_phone=True)
    try:
        page = Annotator(served, browser, language="zh", texts=("الجواب الأول " * 20, "x" * 300), prompt="لماذا؟")
        assert browser.value(STEP) == "A 与 B 哪个更好？"
        assert browser.value("document.documentElement.scrollWidth") <= 390
        assert "undefined" not in browser.value("document.querySelector('#annotator').innerText")
        browser.click("#choices button:nth-child(2)")
        browser.click("#submit")
        (answer,) = page.answers(1)
        assert len(answer.ranking) == 1
    finally:
        browser.resize(1280, 900)


def open_kind(served, browser, kind, **settings):
    return Annotator(served, browser, texts=PAIR, kind=kind, **settings)


def test_a_prompt_is_revised_and_categorised_by_keys(served, browser):
    page = open_kind(served, browser, "prompt_review", categories=("code", "mathematics/algebra"))
    assert browser.value(STEP) == "Is the prompt kept, revised, or dropped?"
    assert "Why is it dropped?" not in browser.value("document.querySelector('.questions').innerText")
    page.press("i")
    panel = browser.value("document.querySelector('#guideline').innerText")
    assert "Is the prompt kept, revised, or dropped?" in panel
    assert "mathematics / algebra" in panel.lower()
    assert "Severe errors" not in panel
    page.press("i", "r", "Enter")
    browser.wait("document.activeElement.matches('textarea')")
    # The text begins as the prompt.
    browser.wait("document.activeElement.value.startsWith('Why?')")
    page.press("!", "Escape")
    page.press("2", "1", "3", "Enter")
    (first,) = page.answers(1)
    assert first.entries.pop("revised_text").startswith("Why?")
    assert first.entries == {
        "decision": "revise", "category": "mathematics/algebra", "difficulty": "easy", "scenario": "study"
    }  # fmt: skip
    page.press("d", "3", "Enter")
    *_, second = page.answers(2)
    assert second.entries == {"decision": "drop", "drop_reason": "unsafe"}
    # Undoing brings back the question that the key went to.
    page.press("k", "ArrowUp", "d", "Backspace", "ArrowDown", "1")
    assert browser.value(STEP) == "How difficult is it?"
    assert browser.complaints == []


def test_formulas_of_a_guideline_are_set(served, browser):
    page = Annotator(served, browser)
    text = "A result alone, such as $x^2 = 3$, gets at most 4."
    page.database.write(
        lambda session: add_guideline(
            session, session.get_one(StoredProject, page.project), NewGuideline("", "en", text), by=None, at=NOON
        )
    )
    page.open()
    page.press("i")
    browser.wait("document.querySelector('#guideline .katex')")
    assert "$" not in browser.value("document.querySelector('#guideline .text').innerText")
    page.press("i")
    assert browser.complaints == []


def test_a_long_list_of_categories_is_narrowed_by_letters(served, browser):
    page = open_kind(served, browser, "prompt_review")
    page.press("k", "Enter")
    browser.wait("document.activeElement.matches('[role=combobox]')")
    lit = "document.querySelector('[role=option][aria-selected=true]').textContent"
    first = browser.value(lit)
    page.press("ArrowDown")
    assert browser.value(lit) != first
    # Going through the list enters nothing.
    assert browser.value(STEP) == "Which category is it?"
    browser.type("alg")
    browser.wait("document.querySelectorAll('[role=option]').length === 1")
    page.press("Enter")
    browser.wait("document.querySelector('#step').textContent === 'How difficult is it?'")
    browser.click(".question [aria-haspopup]")
    browser.wait("document.activeElement.matches('[role=combobox]')")
    assert browser.value(lit) == "Mathematics / Algebra and functions"
    browser.click("[role=option]:last-child")
    page.press("Backspace")
    page.press("3", "2", "Enter")
    (answer,) = page.answers(1)
    assert answer.entries == {
        "decision": "keep", "category": "mathematics/algebra", "difficulty": "hard", "scenario": "work"
    }  # fmt: skip


def test_a_translation_gets_an_error_with_its_severity_and_points(served, browser):
    page = open_kind(served, browser, "translation_quality")
    # The language of the case is that of the translation.
    facts = "document.querySelector('{} .fact:last-of-type')?.textContent"
    assert browser.value(facts.format(".prompt")) == "Open questions"
    assert browser.value(facts.format("[data-response=A]")) == "English"
    ids = page.shown()
    page.press("m")
    browser.wait("document.activeElement.matches('textarea.raw')")
    browser.value("document.activeElement.setSelectionRange(1, 4)")
    page.press("2")
    browser.wait("document.querySelector('#dialog').innerText.includes('How severe')")
    page.press("1")
    browser.wait("document.querySelector('[data-response=A] .marks li')")
    page.press("8", "5", "Enter")
    (answer,) = page.answers(1)
    assert answer.scores == {ids["A"]: 85}
    assert answer.spans == {ids["A"]: ((1, 4, "Accuracy/Omission", "major"),)}
    page.press("1", "0", "0", "Backspace", "Enter")
    *_, second = page.answers(2)
    assert list(second.scores.values()) == [10]


def test_a_response_is_compared_with_the_baseline_that_is_always_second(served, browser):
    page = open_kind(served, browser, "baseline", baseline="gpt-4-0")
    assert page.shown() == {"A": "gpt-4-1", "B": "gpt-4-0"}
    assert browser.value(STEP) == "Is A better than the baseline B, the same, or worse?"
    page.press("b", "Enter")
    (answer,) = page.answers(1)
    assert answer.ranking == (("gpt-4-0",), ("gpt-4-1",))


def test_a_mark_shows_the_characters_that_hide_or_reorder_others(served, browser):
    page = Annotator(served, browser, texts=("run \u202etxt.exe\u200b now",), kind="span_marking")
    page.press("m")
    browser.wait("document.activeElement.matches('textarea.raw')")
    assert browser.value("document.activeElement.value") == "run \ufffdtxt.exe\ufffd now"
    assert "U+202E U+200B" in browser.value("document.querySelector('#dialog').innerText")
    browser.value("document.activeElement.setSelectionRange(4, 13)")
    page.press("1")
    browser.wait("document.querySelector('.marks q')")
    assert browser.value("document.querySelector('.marks q').textContent") == "⟨U+202E⟩txt.exe⟨U+200B⟩"
    page.press("Enter")
    (answer,) = page.answers(1)
    ((start, end, *_),) = answer.spans["gpt-4-0"]
    assert (start, end) == (4, 13)


def test_nothing_to_mark_is_one_key(served, browser):
    page = open_kind(served, browser, "span_marking")
    assert "Nothing is marked" in browser.value(STEP)
    browser.wait(f"!{SUBMIT}.disabled")
    page.press("Enter")
    (answer,) = page.answers(1)
    assert answer.spans == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_anybody_out_of_questions(served, browser, scheme):
    browser.prefer(scheme)
    for kind in ("prompt_review", "translation_quality", "pairwise"):
        page = open_kind(served, browser, kind)
        page.press({"prompt_review": "r", "translation_quality": "5", "pairwise": "g"}[kind])
        browser.value(AXE.read_text(encoding="utf-8") + "; 1")
        browser.value("Promise.allSettled(document.getAnimations().map((each) => each.finished)).then(() => 1)")
        look = (
            "axe.run(document).then((r) => r.violations.filter((v) => ['serious', 'critical'].includes(v.impact))"
            ".map((v) => v.id + ': ' + v.nodes.map((n) => n.html).slice(0, 3).join(' ')))"
        )
        assert browser.value(look) == []
    browser.prefer("light")


def test_enter_submits_after_a_list_that_was_opened_by_mouse(served, browser):
    page = Annotator(served, browser, texts=PAIR)
    browser.click("[data-response=B] .tools button:last-child")
    browser.wait("document.querySelector('#dialog').open")
    page.press("Escape")
    browser.wait("!document.querySelector('#dialog').open")
    page.press("g", "Enter")
    assert len(page.answers(1)) == 1
