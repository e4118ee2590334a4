from collections import Counter

import pytest

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Rating
from steelyard.plugins.formats._pairs import PairScores
from steelyard.plugins.formats._rating_scales import RatingScale, rating_of, take_ratings
from steelyard.plugins.formats.rewardbench import texts_field
from strategies import case

SCALE = RatingScale("care", (1, 5), "Ann", "human")


def rating(response="a", value=3.0, **fields):
    said = {"rater": "Ann", "kind": "human", "dimension": "care", "range": (1.0, 5.0)}
    return Rating(response=response, value=value, **(said | fields))


@pytest.mark.parametrize(("value", "outside"), [(1, 0), (5, 0), (0.9, 1), (5.1, 1)])
def test_a_number_outside_the_scale_is_counted_and_kept(value, outside):
    warnings = Counter()
    assert rating_of("a", value, SCALE, warnings).value == value
    assert warnings["ratings outside their scale (care)"] == outside


def test_the_first_rating_of_each_response_is_taken_and_the_others_are_left():
    left = (
        rating(value=4.0),
        rating("b", dimension="other"),
        rating("b", range=(0, 5)),
    )
    one = case(responses="ab", ratings=(rating(), *left))
    dropped = Counter()
    numbers, rest = take_ratings(one, SCALE, dropped)
    assert numbers == {"a": 3.0}
    assert rest.ratings == left
    assert +dropped == {}


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"rater": "Bob"}, "raters"),
        ({"kind": "llm"}, "raters"),
        ({"id": "r"}, "rating details"),
        ({"spans": ((0, 1, "x", None),)}, "rating details"),
        ({"meta": {"why": 1}}, "rating details"),
    ],
)
def test_what_a_taken_rating_says_besides_is_counted(fields, name):
    dropped = Counter()
    take_ratings(case(responses="ab", ratings=(rating(**fields),)), SCALE, dropped)
    assert +dropped == {name: 1}


@pytest.mark.parametrize(
    ("scores", "num_ratings", "num_noted"), [((2, 1), 2, 0), ((1, 1), 2, 1), ((1, 2), 2, 1), ((None, 2), 1, 0)]
)
def test_a_pair_that_is_not_rated_as_it_is_ordered_is_counted(scores, num_ratings, num_noted):
    warnings, keys = Counter(), ("chosen_score", "rejected_score")
    row = Row(Place("f", 1), dict(zip(keys, scores, strict=True)))
    assert len(PairScores(keys, SCALE).read(row, case(responses="ab").responses, warnings)) == num_ratings
    assert warnings["pairs whose scores contradict their order"] == num_noted


def test_a_score_that_is_no_number_is_refused():
    assert Row(Place("f", 1), {}).number("score") is None
    # A CSV file has texts in every cell.
    assert [Row(Place("f", 1), {"score": text}).number("score") for text in ("4.5", "4,5", " ٣ ", "")] == [
        4.5,
        4.5,
        3,
        None,
    ]
    with pytest.raises(RecordError, match=r"^f:1 at score: 'good' is not a number"):
        Row(Place("f", 1), {"score": "good"}).number("score")


def row(**value):
    return Row(Place("f.jsonl", 3), value)


@pytest.mark.parametrize("value", [[], ["x", 3], "x", None])
def test_lists_of_texts_are_one_text_or_more(value):
    with pytest.raises(RecordError, match=r"^f\.jsonl:3.*chosen"):
        texts_field(row(chosen=value), "chosen")


def test_absent_is_not_null():
    assert row(a=None).absent(("a", "b")) == ["b"]
