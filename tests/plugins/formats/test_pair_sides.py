from collections import Counter

import pytest

from format_rows import read, write
from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.plugins.formats._ratings import sides_of
from steelyard.plugins.formats._rows import OTHER_SHAPE
from steelyard.plugins.formats.rewardbench import texts_field
from strategies import case


def row(**value):
    return Row(Place("f.jsonl", 3), value)


@pytest.mark.parametrize(
    ("responses", "ranking", "sizes"),
    [
        ("abc", (("b",), ("a", "c")), (1, 2)),
        ("abc", (("b", "a"), ("c",)), (2, 1)),
        ("abc", (("b",), ("a",), ("c",)), (0, 0)),
        ("abc", (("b",), ("a",)), (0, 0)),
        ("abc", None, (0, 0)),
    ],
)
def test_two_tiers_over_all_responses_are_sides(responses, ranking, sizes):
    dropped = Counter()
    sides = sides_of(case(responses=responses, ranking=ranking), dropped)
    assert (len(sides.better), len(sides.worse)) == sizes
    assert dropped[OTHER_SHAPE] == (sizes == (0, 0))


def test_sides_of_another_size_are_another_shape():
    one, dropped = case(responses="abc", ranking=(("b",), ("a", "c"))), Counter()
    assert [r.id for r in sides_of(one, dropped, num_better=1, num_worse=2).worse] == ["a", "c"]
    assert sides_of(one, dropped, num_better=2).better == ()
    assert dropped == {OTHER_SHAPE: 1}


@pytest.mark.parametrize("value", [[], ["x", 3], "x", None])
def test_lists_of_texts_are_one_text_or_more(value):
    with pytest.raises(RecordError, match=r"^f\.jsonl:3.*chosen"):
        texts_field(row(chosen=value), "chosen")


def test_written_ids_are_unique_within_a_subset():
    rows = [{"id": 3, "subset": "s", "num_correct": 1}, {"id": 3, "subset": "t"}, {"id": "3", "subset": "s"}]
    answers = {"prompt": "q", "chosen": ["a"], "rejected": ["b"], "models": []}
    cases = [one for row_value in rows for one in read("rewardbench2", answers | row_value)[0]]
    written, dropped = write("rewardbench2", *cases)
    assert [row["id"] for row in written] == [3, 3, "3~2"]
    assert dropped["repeated ids of a subset"] == 1


def test_absent_is_not_null():
    assert row(a=None).absent(("a", "b")) == ["b"]
