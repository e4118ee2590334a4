import pytest

from steelyard.core.comparison import Comparison, Reply
from steelyard.core.plugins import build
from steelyard.core.types import Response
from steelyard.judging.verdicts import shares_won
from strategies import prompt


def judged(*texts, number=4, **settings):
    shown = tuple(Response(id=name, text=f"answer {name}") for name in "wxyz"[:number])
    judge = build("judges", "best", settings)
    return judge.read(
        Comparison(prompt=prompt(), responses=shown, mark="0"), [Reply(request="r", text=text) for text in texts]
    )


def said(answer):
    return {f"{one.left}{one.right}": one.outcome for one in answer.verdicts}


def test_the_best_is_better_than_each_other():
    # Reversed, z stands first: x is the third of four.
    answer = judged("[[B]]", "[[C]]")
    assert said(answer) == {"wx": "right", "xy": "left", "xz": "left"}
    assert shares_won("wxyz", answer.verdicts).shares == {"w": 0, "x": 1, "y": 0, "z": 0}


def test_two_different_ones_share_the_first_place():
    # w in one order, z in the other
    answer = judged("[[A]]", "[[A]]")
    assert said(answer) == {"wx": "left", "wy": "left", "wz": "tie", "xz": "right", "yz": "right"}
    shares = shares_won("wxyz", answer.verdicts).shares
    assert shares["w"] == shares["z"] == pytest.approx(5 / 6)
    assert (shares["x"], shares["y"]) == (0, 0)


def test_one_reply_that_cannot_be_read_leaves_nothing():
    answer = judged("[[A]]", "[[A]] or [[B]]")
    assert set(said(answer).values()) == {"unparsed"}
    assert len(answer.verdicts) == 6
    assert all(value is None for value in shares_won("wxyz", answer.verdicts).shares.values())


def test_a_label_that_was_not_shown_is_no_choice():
    assert set(said(judged("[[D]]", "[[A]]", number=3)).values()) == {"unparsed"}


def test_one_order():
    assert said(judged("[[C]]", number=3, orders="one")) == {"wy": "right", "xy": "right"}
