"""Kinds of tasks other than triples on the annotator's page in Chromium: by keys, by mouse, and on a phone."""

import pytest

from browser import CHROMIUM
from workbench_annotator import STEP, SUBMIT, Annotator

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.xdist_group("chromium"),
]
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
    page.press("d", "1", "2", "Enter")
    *_, second = page.answers(2)
    assert second.discarded == {ids["A"]: "wrong language"}
    page.press("x", "1", "Enter")
    assert [each.cannot_judge for each in page.answers(3)] == [None, None, "outside my field"]


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
