import pytest

from format_rows import read
from steelyard.core.errors import RecordError


def row(translation, a, b, source="你好", **fields):
    scores = {"score_annotator_a": a, "score_annotator_b": b, "score": (a + b) / 2}
    return {**scores, "system": f"s{translation}", "source": source, "translation": translation, **fields}


def test_consecutive_rows_of_one_source_are_a_case_with_two_raters():
    cases, warnings = read("maple", row("x", 5.5, 4), row("y", 2, 3), row("z", 1, 1, source="再见"), row("x", 1, 6))
    assert [len(one.responses) for one in cases] == [2, 1, 1]
    first = cases[0]
    assert [(r.rater, r.dimension, r.value, r.range) for r in first.ratings] == [
        ("annotator_a", "score", 5.5, (1, 6)),
        ("annotator_b", "score", 4, (1, 6)),
        ("annotator_a", "score", 2, (1, 6)),
        ("annotator_b", "score", 3, (1, 6)),
    ]
    assert [response.author for response in first.responses] == ["sx", "sy"]
    assert (first.judgments, first.ranking) == ((), None)
    assert not warnings


def test_scores_outside_the_scale_are_counted():
    _, warnings = read("maple", row("x", 7, 0.5))
    assert warnings == {"ratings outside their scale (score)": 2}


@pytest.mark.parametrize("change", [{"score_annotator_b": "good"}, {"translation": None}, {"source": 3}])
def test_a_broken_row_is_named(change):
    (key,) = change
    with pytest.raises(RecordError, match=rf"^f\.jsonl:2.*({key}|no number)"):
        read("maple", row("x", 1, 2), {**row("y", 1, 2), **change})
