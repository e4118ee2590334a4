import pytest

from headline_fixtures import FIRST, MISSING_OTHERS, OVERALL, translation_runs
from steelyard.evaluation.evaluations import read_beside
from steelyard.stages.compare.headline import compare_headlines


def test_differences_turn_their_sign_with_the_pair(tmp_path):
    beside = read_beside(list(translation_runs(tmp_path).values()))
    found = compare_headlines(beside, [(0, 1), (1, 0)], num_resamples=500, seed=0)
    one, other = found.differences or ()
    assert found.name == "overall"
    assert one["value"] == pytest.approx(OVERALL["narrow"] - OVERALL["broad"]) == pytest.approx(-other["value"])
    assert (one["low"], one["high"]) == pytest.approx((-other["high"], -other["low"]))
    # Two comparisons: Holm doubles the smaller p-value, and the other is at least as large.
    assert min(one["p_corrected"], other["p_corrected"]) == pytest.approx(min(1, 2 * min(one["p"], other["p"])))


def test_without_a_headline_accuracy_ranks(tmp_path):
    beside = read_beside(list(translation_runs(tmp_path, subsets=(FIRST,)).values()))
    found = compare_headlines(beside, [(0, 1)], num_resamples=50, seed=0)
    assert (found.name, found.differences) == ("accuracy", None)
    assert found.record == {"headline": None, "missing": MISSING_OTHERS}
