import pytest

from headline_fixtures import FIRST, MISSING_OTHERS, OVERALL, translation_runs
from steelyard.evaluation.evaluations import headline_of, read_evaluations
from steelyard.statistics.bootstrap import Items, resample


def test_the_bench_that_was_evaluated_says_what_ranks(tmp_path):
    evaluations = read_evaluations(list(translation_runs(tmp_path).values()))
    headline = headline_of(evaluations)
    assert (headline.name, headline.n, headline.missing) == ("overall", 800, {})
    for own in evaluations.evaluated:
        totals = resample(Items(evaluations.layout, own.statistics, 0), seed=0)
        assert float(headline.formula(totals.point)) == pytest.approx(OVERALL[own.name])


def test_a_part_of_a_bench_says_what_is_missing(tmp_path):
    evaluations = read_evaluations(list(translation_runs(tmp_path, subsets=(FIRST,)).values()))
    assert headline_of(evaluations).missing == MISSING_OTHERS
