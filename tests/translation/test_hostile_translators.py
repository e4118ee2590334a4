"""Whatever a translator does to marks, no piece is lost, doubled or changed without a fault."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostile_translators import JOINS, PIECES, PROSE, TRANSLATORS, generated_text, tokens_of
from steelyard.translation.blocks import blocks, outline
from steelyard.translation.marks import BRACKETS, WORDS, ProtectedText, restore
from steelyard.translation.protection import protect, source_of

STYLES = (BRACKETS, WORDS)
fragments = st.one_of(st.sampled_from(PROSE), st.sampled_from(PIECES), st.sampled_from(JOINS), st.text(max_size=6))
texts = st.lists(fragments, max_size=14).map("".join)


@pytest.mark.parametrize("style", STYLES)
@given(text=texts)
def test_a_text_that_is_not_translated_is_restored_as_it_was(style, text):
    protected = protect(text, style=style)
    assert restore(protected, protected.text) == text


@given(text=texts)
def test_the_blocks_of_a_text_joined_are_the_text(text):
    assert "".join(block.text for block in blocks(text)) == text


@given(text=texts)
def test_blocks_of_a_protected_text_restore_it(text):
    protected = protect(text, style=WORDS)
    assert restore(protected, "".join(block.text for block in blocks(protected.text))) == text


@given(texts=st.lists(texts, min_size=2, max_size=3))
def test_all_texts_of_a_request_have_marks_of_their_own(texts):
    marks: list[str] = []
    for text in texts:
        protected = protect(text, first=len(marks) + 1, avoid="\n".join(texts))
        marks += (piece.mark for piece in protected.pieces)
        assert not any(piece.mark in other for piece in protected.pieces for other in texts)
    numbers = [mark.strip("⟦⟧BCDFGHJLMNPRTVW") for mark in marks]
    assert len(set(numbers)) == len(marks)


def fences(text: str) -> list[str]:
    return [
        text[start:end].strip() for start, end, kind in outline(text).spans if kind == "code" and text[start] in "`~"
    ]


def outcome(protected: ProtectedText, name: str, drawn: random.Random) -> str:
    """Translate with a hostile translator: ``fault``, ``order`` alone, or ``restored``; fails on a silent change."""
    tokens = TRANSLATORS[name](tokens_of(protected), drawn)
    restored = restore(protected, "".join(text for text, _ in tokens))
    if isinstance(restored, tuple):
        assert restored, "no text and no fault"
        return "order" if {fault.kind for fault in restored} <= {"crossed", "moved"} else "fault"
    numbers = Counter(number for _, number in tokens if number is not None)
    assert numbers == Counter(range(len(protected.pieces))), "a piece is lost or doubled"
    expected = "".join(text if number is None else protected.pieces[number].text for text, number in tokens)
    # Words have blanks around them that the text may not have.
    shown = (
        (restored, expected) if not protected.style.is_word else (restored.replace(" ", ""), expected.replace(" ", ""))
    )
    assert shown[0] == shown[1], "a piece or the prose beside it is changed"
    for text, number in Counter(piece.text for piece in protected.pieces).items():
        assert restored.count(text) >= number
    assert fences(restored) == fences(source_of(protected)), "the blocks of code are others"
    return "restored"


def outcomes(num_texts: int) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for seed in range(num_texts):
        text = generated_text(seed)
        for style in STYLES:
            protected = protect(text, style=style)
            assert restore(protected, protected.text) == text
            for name in TRANSLATORS:
                counts[name, outcome(protected, name, random.Random(seed))] += 1
    return counts


def test_hostile_translators_change_nothing_silently():
    counts = outcomes(150)
    assert len(TRANSLATORS) == 14
    for name in ("reorders marks", "quotes marks", "joins lines"):
        assert counts[name, "fault"] == 0, "another order, quotation marks and fewer lines are right"
        assert counts[name, "restored"] > counts[name, "order"] > 0
    for name in ("drops marks", "doubles marks", "spaces marks out", "translates marks", "formats marks as code",
                 "merges marks", "adds a fence", "escapes HTML", "punctuates marks"):  # fmt: skip
        assert counts[name, "fault"] > 50, f"a translator that {name} is not noticed"
    assert counts["adds a fence", "restored"] == 0


@pytest.mark.slow
def test_a_hundred_thousand_translations_have_no_silent_change():
    counts = outcomes(4_000)
    assert counts.total() == 4_000 * len(STYLES) * len(TRANSLATORS) > 100_000
    assert counts["reorders marks", "fault"] == 0
