import pytest

from headline_fixtures import FIRST, MISSING_OTHERS, OVERALL, translation_runs
from steelyard.evaluation.comparison import compare_models
from steelyard.evaluation.evaluations import read_evaluations


def test_a_difference_of_headlines_turns_its_sign_with_the_order_of_the_models(tmp_path):
    folders = list(translation_runs(tmp_path).values())
    summaries = [compare_models(read_evaluations(runs), num_resamples=500, seed=0) for runs in (folders, folders[::-1])]
    first, second = (summary.comparisons[0].headline for summary in summaries)
    assert [summary.ranked_by for summary in summaries] == ["overall", "overall"]
    assert first.value == pytest.approx(OVERALL["narrow"] - OVERALL["broad"]) == pytest.approx(-second.value)
    assert (first.low, first.high) == pytest.approx((-second.high, -second.low))
    assert first.p == first.p_corrected == pytest.approx(second.p)


def test_without_a_headline_accuracy_ranks(tmp_path):
    summary = compare_models(
        read_evaluations(list(translation_runs(tmp_path, subsets=(FIRST,)).values())), num_resamples=50, seed=0
    )
    assert (summary.headline, summary.ranked_by, summary.missing) == (None, "accuracy", MISSING_OTHERS)
    assert summary.comparisons[0].headline is None
    assert summary.comparisons[0].ranked == summary.comparisons[0].accuracy
