"""One definition of an answer's text, length and markup, whoever counts."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from each_value import each
from steelyard.core.plugins import build
from steelyard.core.text import (
    HIDDEN_CHARACTERS,
    codes_of,
    hidden_spans,
    money_text,
    name_hidden,
    num_characters,
    num_markdown_marks,
    prompt_text,
    response_text,
)
from steelyard.core.types import Case, Message, Response
from steelyard.curation.debiasing import Config, survey_pairs
from steelyard.evaluation.bench_pairs import values_of
from steelyard.evaluation.columns import ScoreColumns, bench_columns, score_columns
from steelyard.evaluation.measure import ScoredBench
from steelyard.evaluation.measures.length import pair_lengths
from steelyard.ranking.annotation_features import TraitCollector
from steelyard.ranking.judgment_table import judgment_table
from strategies import case, judgment, prompt

TURNS = (Message(role="assistant", content="שלום"), Message(role="assistant", content="x"))
CODE = "```python\n# no heading\n- no item\n**x**\n```\nafter"


@each(
    ("text", "marks"),
    [
        ("", 0),
        ("plain words, 2 * 3 * 4 = 24, a_b_c, #hashtag, -5 degrees", 0),
        ("2 * 3, a-b, #1, f(x) $x_1$ \\frac{1}{2} 你好", 0),
        ("# Title\n\nwords", 1),
        ("## 标题\n- 甲\n- 乙\n", 3),
        ("1. one\n2) two\n3、三", 3),
        ("**bold** and __bold__ and `code`", 3),
        ("> quoted\n> again", 2),
        ("| a | b |\n| - | - |\n| 1 | 2 |", 3),
        ("[link](http://x.y) ![image](z.png)", 2),
        ('[link](http://x.y "title")', 1),
        ("---\n", 1),
        (CODE, 1),
        ("```\nnever closed\n- x", 1),
        ("`**x**`", 1),
        ("**שלום** and **مرحبا**", 2),
        ("2 ** 3 ** 4", 0),
        ("3.14 is pi\n1984 was a year", 0),
        ("# 标题\n\n- **粗体** and `code`\n1. one\n> quote\n| a | b |\n```py\nx = 1\n```\n[link](url) 2 * 3 * 4", 9),
    ],
)
def test_marks_outside_code_are_counted(text, marks):
    assert num_markdown_marks(Response(id="a", text=text)) == marks


def test_a_turn_that_leaves_code_open_hides_no_other_turn():
    turns = (Message(role="assistant", content="```\nopen"), Message(role="assistant", content="- a\n- b"))
    assert num_markdown_marks(Response(id="a", messages=turns)) == 3


def test_length_is_the_code_points_of_all_turns():
    assert num_characters(Response(id="a", text="杆秤👩‍👧")) == 5
    assert num_characters(Response(id="a", text="")) == 0
    assert num_characters(Response(id="a", messages=TURNS)) == 5


@settings(deadline=None)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=4))
def test_length_and_markup_of_turns_are_sums(texts):
    together = Response(id="a", messages=tuple(Message(role="assistant", content=text) for text in texts))
    apart = [Response(id="a", text=text) for text in texts]
    assert num_characters(together) == sum(len(text) for text in texts)
    assert num_markdown_marks(together) == sum(map(num_markdown_marks, apart))


def test_a_response_is_its_text_or_all_of_its_turns():
    assert response_text(Response(id="a", text="")) == ""
    assert response_text(Response(id="a", text="שלום 👋🏽")) == "שלום 👋🏽"
    assert response_text(Response(id="a", messages=TURNS)) == "שלום\nx"


def test_a_prompt_is_its_whole_conversation():
    messages = (Message(role="system", content="be kind"), Message(role="user", content="hi"))
    assert prompt_text(case()) == "What is it?"
    assert prompt_text(Case(prompt=prompt().__class__(id="p", messages=messages), responses=())) == "be kind\nhi"


def scores_by(kind, one):
    (line,) = build("models", kind).score([one])
    return line.scores


def test_everyone_counts_the_same_length():
    responses = (Response(id="a", messages=TURNS), Response(id="b", text="123456"))
    one = Case(prompt=prompt("p"), responses=responses, ranking=(("a",), ("b",)), judgments=(judgment("a>b"),))
    seen = TraitCollector()
    assert seen.traits(judgment_table([one], visit=seen.add)).length.tolist() == [5, 6]
    assert scores_by("longer", one) == {"a": 5.0, "b": 6.0}
    assert scores_by("shorter", one) == {"a": -5.0, "b": -6.0}
    assert survey_pairs([(one, None)], Config(), num_characters).is_longer.tolist() == [False]
    columns = bench_columns([one], None, "strict")
    longer = score_columns(build("models", "longer").score([one])).score
    scores = ScoreColumns(longer, {}, np.zeros(0, np.int64))
    pairs = pair_lengths(ScoredBench(columns, scores, values_of(columns, longer)))
    assert [pairs.better.tolist(), pairs.worse.tolist()] == [[5], [6]]


def test_debiasing_by_markdown_is_the_baseline_markup():
    responses = (Response(id="a", text=CODE), Response(id="b", text="- a\n- b"))
    one = Case(prompt=prompt("p"), responses=responses, ranking=(("a",), ("b",)))
    marks = scores_by("markup", one)
    assert marks == {"a": 1.0, "b": 2.0}
    assert survey_pairs([(one, None)], Config(by="markdown"), num_characters).side.tolist() == [
        np.sign(marks["a"] - marks["b"])
    ]


@pytest.mark.parametrize("unit", ["[", "**a ", "__a ", "`", "[a](", "| a ", "``", "[a]", "```\n", " ", "**a", "~~~ "])
def test_a_hostile_text_is_counted_in_linear_time(unit):
    text = unit * (200_000 // len(unit))
    start = time.thread_time()
    num_markdown_marks(Response(id="a", text=text))
    assert time.thread_time() - start < 10  # by far: where it grows as the square it takes many minutes


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0.00"), (1200, "1,200.00"), (0.1, "0.10"), (0.0999, "0.100"), (0.00128, "0.0013"), (-0.004, "-0.0040")],
)
def test_money_has_two_decimals_and_a_small_amount_two_digits(amount, text):
    assert money_text(amount) == text


@each(
    ("text", "codes"),
    [
        ("a\u202e00\u202cb", ["U+202E", "U+202C"]),
        ("a\u200bb 水\u200b面", ["U+200B", "U+200B"]),
        ("\ufeffstart", ["U+FEFF"]),
        ("pass\u200dword x\u200cy", ["U+200D", "U+200C"]),
        ("x\u2066y\u2069", ["U+2066", "U+2069"]),
        ("a" + "\u200b" * 9, ["U+200B U+200B U+200B U+200B U+200B U+200B … (9)"]),
        ("a\ufe01\ufe02\ufe03", ["U+FE01 U+FE02 U+FE03"]),
        # Persian, Hindi, Thai, families, flags and the marks of direction that keyboards have.
        ("می\u200cخواهم PDF\u200cها", []),
        ("क्\u200dष", []),
        ("กา\u200bแฟ", []),
        ("👨\u200d👩\u200d👧 ❤\ufe0f\u200d🔥 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", []),
        ("שלום\u200f! \u200eC++", []),
        ("a\tb\nc", []),
    ],
)
def test_characters_that_hide_or_reorder_others_are_known_and_those_of_a_script_are_not(text, codes):
    assert [codes_of(found["hidden"]) for found in HIDDEN_CHARACTERS.finditer(text) if found["hidden"]] == codes
    assert [codes_of(text[start:end]) for start, end in hidden_spans(text)] == codes
    named = name_hidden(text)
    assert named.count("⟨") == len(codes)
    assert all(f"⟨{each}⟩" in named for each in codes)
    assert codes or named == text
