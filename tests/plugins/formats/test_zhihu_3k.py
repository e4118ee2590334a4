import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from steelyard.core.types import Rating
from strategies import case

ROW = {"prompt": "问", "chosen": "好", "rejected": "坏", "upvotes_chosen": 9, "upvotes_rejected": 2}


def test_upvotes_are_ratings_without_a_range():
    (one,), noted = read("zhihu_3k", ROW)
    better, worse = one.responses
    assert one.ratings == tuple(
        Rating(response=name, rater="zhihu", kind="human", dimension="upvotes", value=value)
        for name, value in ((better.id, 9), (worse.id, 2))
    )
    assert one.judgments == ()
    assert not noted


def test_numbers_of_a_table_are_texts_and_stay_so():
    row = {**ROW, "upvotes_chosen": "9.0", "upvotes_rejected": ""}
    (one,), _ = read("zhihu_3k", row)
    assert [rating.value for rating in one.ratings] == [9]
    assert write("zhihu_3k", one)[0] == [row]


def test_votes_against_the_order_are_counted():
    _, noted = read("zhihu_3k", {**ROW, "upvotes_rejected": 9})
    assert noted == {"pairs whose scores do not say their order": 1}


@pytest.mark.parametrize("value", ["many", "nan", True, [1]])
def test_upvotes_that_are_no_number_are_named(value):
    with pytest.raises(RecordError, match=r"^f\.jsonl:1 at upvotes_rejected: upvotes that are no number"):
        read("zhihu_3k", {**ROW, "upvotes_rejected": value})


def test_other_raters_and_ratings_are_counted():
    rated = Rating(response="a", rater="zhihu", kind="human", dimension="upvotes", value=5)
    other = Rating(response="a", rater="x", kind="llm", dimension="quality", value=5)
    (row,), lost = write("zhihu_3k", case(responses="ab", ranking=(("a",), ("b",)), ratings=(rated, other)))
    assert (row["upvotes_chosen"], row["upvotes_rejected"], lost["ratings"]) == (5, None, 1)
