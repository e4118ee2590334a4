"""Replies of judges in free wording in 16 languages: none is misread, and most verdicts are read."""

import time
import tomllib
from pathlib import Path

import pytest

from each_value import each
from steelyard.core.comparison import Comparison, Reply
from steelyard.core.plugins import build
from steelyard.core.types import Response
from steelyard.judging.reply_parsing import ParsedReply, read_choice, read_ranking, read_rating
from steelyard.judging.verdict_lines import is_tie, label_of_line
from strategies import prompt

REPLIES = tomllib.loads(Path(__file__).with_name("free_replies.toml").read_text(encoding="utf-8"))
VERDICTS = {"A": "A", "B": "B", "tie": "C", "none": None}
REASONS = "The response explains each step. It is right, and its numbers match what the user asked for. "


def parse(text, verdict):
    """Return the verdict of a reply: a label, a ranking, or null."""
    if ">" in verdict:
        reading = read_ranking(text, ("A", "B", "C"))
        return None if isinstance(reading, ParsedReply) else ">".join("=".join(tier) for tier in reading)
    labels = ("A", "B", "C") if verdict == "tie" else ("A", "B")
    return read_choice(text, "letter", labels, tie="C" if verdict == "tie" else None).value


@each("language", REPLIES)
def test_no_reply_in_free_wording_is_misread_and_most_verdicts_are_read(language):
    misread, num_read, num_verdicts = [], 0, 0
    for half in REPLIES[language].values():
        for verdict, texts in half.items():
            expected = VERDICTS.get(verdict, verdict)
            for text in texts:
                value = parse(text, verdict)
                misread += [] if value in (None, expected) else [(text, value)]
                num_verdicts += expected is not None
                num_read += value is not None and value == expected
    assert misread == []
    assert num_verdicts == 27
    assert num_read / num_verdicts >= 0.6, "fewer verdicts in free wording are read than before"


@each("line", [f"{REASONS * 60}Therefore, answer B is better.", f"{'多' * 5000}。因此，回答B更好。"])
def test_a_verdict_at_the_end_of_a_very_long_line_is_read(line):
    assert label_of_line(line) == "B"


@each(
    "line",
    [
        f"Answer A is better. {REASONS * 60}Therefore, answer B is better.",
        f'{REASONS * 60}It ends with "Answer B is better."',
        f"{REASONS * 60}I would not say so: answer B is better?",
        f"{REASONS * 60}The response says. that answer B is better",
    ],
)
def test_a_very_long_line_without_one_own_verdict_has_none(line):
    assert label_of_line(line) is None


@each(
    ("line", "ties"),
    [
        ("Both give the same number. It's a tie.", True),
        ("The reasons are the same; both are equal", True),
        ("A is better in style. It's a tie.", False),
        ("The response says so. It is not. A tie.", False),
    ],
)
def test_a_tie_behind_reasons_that_name_no_answer_is_one(line, ties):
    assert is_tie(line) is ties


@each(
    ("line", "tiers"),
    [
        ("First place: C. Second place: A. Third place: B.", (("C",), ("A",), ("B",))),
        ("1位：C。2位：A。3位：B。", (("C",), ("A",), ("B",))),
        ("Response 1: C. Response 2: A. Response 3: B.", None),
        ("Not first: C. Second: A. Third: B.", None),
        ("Second place: C. First place: A. Third place: B.", None),
        ("First place: C. Second place: C. Third place: B.", None),
    ],
)
def test_named_places_of_all_answers_in_order_are_a_ranking(line, tiers):
    reading = read_ranking(line, ("A", "B", "C"))
    assert (None if isinstance(reading, ParsedReply) else reading) == tiers


@pytest.mark.slow
@each("text", [REASONS, "no end of it ", "но A лучше, ", "这个回答解释了每一步，数字也是正确的。"])
def test_a_line_of_a_million_characters_takes_seconds(text):
    long = text * (1_000_000 // len(text))
    for read in (
        lambda reply: read_choice(reply, "letter", ("A", "B")),
        lambda reply: read_choice(f"{reply} [[A]]", "brackets", ("A", "B")),
        lambda reply: read_ranking(reply, ("A", "B", "C")),
        read_rating,
    ):
        start = time.thread_time()
        read(long)
        assert time.thread_time() - start < 5


def test_a_ranking_of_five_answers_is_a_verdict_on_each_of_ten_pairs():
    shown = tuple(Response(id=name, text=f"answer {name}") for name in "vwxyz")
    judge = build("judges", "ranking", {})
    # Reversed, v is shown as E and z as A: both orders say w > v = x > z > y.
    replies = [Reply(request="r", text=text) for text in ("[[B > A = C > E > D]]", "[[D > E = C > A > B]]")]
    verdicts = judge.read(Comparison(prompt=prompt(), responses=shown, mark="0"), replies).verdicts
    assert {f"{one.left}{one.right}": one.outcome for one in verdicts} == {
        **dict.fromkeys(("vy", "vz", "wx", "wy", "wz", "xy", "xz"), "left"),
        **dict.fromkeys(("vw", "yz"), "right"),
        "vx": "tie",
    }
