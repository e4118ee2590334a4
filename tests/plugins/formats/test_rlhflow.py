from collections import Counter

import pytest

from format_rows import read, write
from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import build
from steelyard.core.protocols import Row
from steelyard.core.types import Rating
from strategies import case


def turns(*pairs):
    return [{"role": role, "content": content} for role, content in pairs]


ROW = {
    "chosen": turns(("user", "问"), ("assistant", "好")),
    "rejected": turns(("user", "问"), ("assistant", "坏")),
    "chosen_score": 4.5,
    "rejected_score": 2,
}


def test_scores_are_ratings_without_a_scale():
    (one,), noted = read("rlhflow", ROW)
    said = [(rating.dimension, rating.value, rating.range, rating.rater) for rating in one.ratings]
    assert said == [("score", 4.5, None, "unknown"), ("score", 2, None, "unknown")]
    assert [rating.response for rating in one.ratings] == [response.id for response in one.responses]
    assert (one.judgments, noted) == ((), {})


def test_scores_that_do_not_say_the_order_are_counted_and_kept():
    (one,), noted = read("rlhflow", ROW | {"rejected_score": 4.5})
    assert noted == {"pairs whose scores do not say their order": 1}
    assert [len(tier) for tier in one.ranking] == [1, 1]
    assert one.ranking[0] == (one.responses[0].id,)


@pytest.mark.parametrize(
    "row", [ROW | {"chosen_score": None}, {key: value for key, value in ROW.items() if "score" not in key}]
)
def test_null_and_absent_scores_come_back_as_they_were(row):
    (one,), _ = read("rlhflow", row)
    assert len(one.ratings) == ("rejected_score" in row)
    assert write("rlhflow", one)[0] == [row]


def test_only_ratings_of_its_own_kind_are_written():
    ratings = (
        Rating(response="a", rater="Ann", kind="human", dimension="score", value=1.0, id="r1"),
        Rating(response="a", rater="Bob", kind="human", dimension="score", value=2.0),
        Rating(response="b", rater="unknown", kind="human", dimension="score", value=0.0, range=(0, 1)),
        Rating(response="b", rater="unknown", kind="human", dimension="overall", value=0.0),
    )
    (row,), lost = write("rlhflow", case(responses="ab", ranking=(("a",), ("b",)), ratings=ratings))
    assert (row["chosen_score"], row["rejected_score"]) == (1.0, None)
    assert (lost["ratings"], lost["raters"], lost["rating details"]) == (3, 1, 1)


def test_who_gave_the_scores_can_be_said():
    form = build("formats", "rlhflow", {"rater": "gpt-4", "rater_kind": "llm"})
    (one,) = form.read([Row(Place("f.jsonl", 1), ROW)], Counter())
    assert {(rating.rater, rating.kind) for rating in one.ratings} == {("gpt-4", "llm")}
    lost = Counter()
    assert list(form.write([one], lost)) == [ROW]
    assert not lost["raters"]


@pytest.mark.parametrize("change", [{"chosen_score": "4"}, {"rejected_score": True}])
def test_a_score_that_is_no_number_is_refused(change):
    (key,) = change
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1 at {key}: a score that is no number"):
        read("rlhflow", ROW | change)


def test_conversations_that_share_no_turn_are_refused():
    with pytest.raises(RecordError, match=r"^f\.jsonl:1: chosen and rejected share no turn"):
        read("rlhflow", ROW | {"chosen": turns(("user", "x"), ("assistant", "y"))})


def test_rows_without_scores_are_left_to_trl():
    recognises = build("formats", "rlhflow").recognises
    assert recognises(ROW)
    assert not recognises({key: ROW[key] for key in ("chosen", "rejected")})
    assert not recognises(ROW | {"chosen": "text"})
