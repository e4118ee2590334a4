from collections import Counter

import pytest

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Judgment
from steelyard.plugins.formats._helpsteer import (
    Preferences,
    count_unsaid,
    preferences_in,
    said_of,
    said_row,
    without_said,
)
from strategies import case, judgment

NAMES = Preferences("overall", "why", "each", "score", "because")


def preferences(**value):
    return preferences_in(Row(Place("f", 4), value), NAMES, ("a", "b"))


def compared(*judgments):
    return case(responses="ab", judgments=judgments)


@pytest.mark.parametrize("number", range(-3, 4))
def test_every_number_comes_back(number):
    value = {"overall": number, "why": "因为", "each": [{"score": -number, "because": "כי"}, {"score": number}]}
    one = compared(*preferences(**value))
    assert said_row(one, said_of(one), NAMES) == value


def test_nothing_said_is_nothing_written():
    assert preferences() == preferences(overall=None, each=None) == ()
    assert said_row(compared(), said_of(compared()), NAMES) == {}


@pytest.mark.parametrize("item", [3, {}, {"score": 9}, {"score": "1"}, {"score": 1, "because": 2}])
def test_a_broken_preference_is_named(item):
    with pytest.raises(RecordError, match=r"^f:4 at each\[1\]: "):
        preferences(each=[{"score": 1}, item])


def test_a_number_that_does_not_say_the_verdict_is_not_written():
    wrong = Judgment(left="a", right="b", verdict="left", judge="j", kind="human", meta={"strength": 2})
    assert said_row(compared(wrong), said_of(compared(wrong)), NAMES) == {"overall": -1}


def test_a_strong_verdict_the_other_way_round_changes_its_sign():
    turned = Judgment(left="b", right="a", verdict="left", judge="j", kind="human", meta={"strength": -3})
    assert said_row(compared(turned), said_of(compared(turned)), NAMES) == {"overall": 3}


def test_what_has_no_place_is_counted():
    none, first, second = judgment("a?b"), judgment("a>b", reason="r", meta={"sure": True}), judgment("b>a")
    one = compared(none, first, second)
    said = said_of(one)
    assert said == (first, ())
    count_unsaid(one, said, NAMES._replace(overall_reason=""), lost := Counter())
    assert lost == {"judgments beyond those of a row": 2, "what judgments say besides": 1, "reasons": 1}


def test_what_the_row_says_is_taken_out_of_what_is_lost():
    own, other = judgment("a>b", batch="overall", reason="r"), judgment("b>a", batch="round 2", reason="s")
    left = without_said(compared(own, other), said_of(compared(own, other)))
    assert [(one.batch, one.reason) for one in left.judgments] == [(None, None), ("round 2", "s")]
