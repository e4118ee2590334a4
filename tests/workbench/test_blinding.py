"""Masked texts: no name of a model is shown, and every span means the same words in both texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.annotation.answers import BucketComparison, TaskAnswer
from steelyard.core.errors import ConfigError
from steelyard.workbench.views.blinding import BlindText, blind_task

SENTENCES = (
    "I am ChatGPT, made by OpenAI. ",
    "我是通义千问，由阿里云开发。",
    "The sky is blue 😀. ",
    "天空是蓝色的。",
    "\n",
)
TEXTS = st.lists(st.sampled_from(SENTENCES), max_size=8).map("".join)


def test_a_mask_stands_for_the_whole_name():
    text = BlindText("I am ChatGPT, made by OpenAI.")
    assert text.shown == "I am [name], made by [name]."
    assert text.stored_span(0, 4) == (0, 4)
    assert text.stored_span(5, 11) == (5, 12)
    assert text.stored_span(7, 8) == (5, 12)
    assert text.stored_span(11, 28) == (12, 29)
    assert text.shown_span(6, 7) == (5, 11)
    assert text.shown_span(12, 29) == (11, 28)


@given(TEXTS, st.data())
def test_spans_mean_the_same_words_in_both_texts(text, data):
    blind = BlindText(text)
    if not blind.shown:
        return
    start = data.draw(st.integers(0, len(blind.shown) - 1))
    end = data.draw(st.integers(start + 1, len(blind.shown)))
    first, last = blind.stored_span(start, end)
    assert 0 <= first < last <= len(text)
    # Masking the stored words gives the shown ones, with the masks that the ends touch as a whole.
    low, high = blind.shown_span(first, last)
    assert low <= start < end <= high
    assert blind.stored_span(low, high) == (first, last)
    extra = blind.shown[low:start] + blind.shown[end:high]
    assert set(extra) <= set("[name]")


def test_ids_become_letters_in_the_order_shown_and_ids_again():
    task = blind_task({"gpt-4": "I am ChatGPT.", "qwen": "Hello.", "glm": "你好"})
    assert {letter: text.shown for letter, text in task.texts.items()} == {
        "A": "I am [name].",
        "B": "Hello.",
        "C": "你好",
    }
    answer = TaskAnswer(
        scores={"A": 3, "B": 3},
        comparisons=(BucketComparison(first="B", second="A", choice="better"),),
        ranking=(("B",), ("A",)),
        discarded={"C": "wrong language"},
        spans={"A": ((5, 11, "other", None),)},
        remark="so",
    )
    stored = task.stored(answer)
    assert stored == TaskAnswer(
        scores={"gpt-4": 3, "qwen": 3},
        comparisons=(BucketComparison(first="qwen", second="gpt-4", choice="better"),),
        ranking=(("qwen",), ("gpt-4",)),
        discarded={"glm": "wrong language"},
        spans={"gpt-4": ((5, 12, "other", None),)},
        remark="so",
    )
    assert task.shown(stored) == answer


@pytest.mark.parametrize(
    "answer",
    [
        TaskAnswer(scores={"D": 1}),
        TaskAnswer(ranking=(("gpt-4",),)),
        TaskAnswer(spans={"A": ((0, 13, "other", None),)}),
        TaskAnswer(spans={"A": ((2, 2, "other", None),)}),
        TaskAnswer(spans={"A": ((0, 1, "other", "x" * 2001),)}),
        TaskAnswer(spans={"A": ((0, 1, "other", None),) * 201}),
        TaskAnswer(cannot_judge="x" * 2001),
        TaskAnswer(comparisons=(BucketComparison(first="A", second="B", choice="same"),) * 101),
    ],
)
def test_what_the_page_never_sends_is_refused(answer):
    with pytest.raises(ConfigError):
        blind_task({"gpt-4": "I am ChatGPT.", "qwen": "b"}).stored(answer)
