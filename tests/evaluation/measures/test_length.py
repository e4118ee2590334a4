from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy.optimize import minimize

from evaluation_summaries import around, estimate, means
from steelyard.evaluation.measures.length import (
    MEASURE,
    PairLengths,
    WhyNot,
    fit_logistic,
    length_summary,
    num_misplaced,
    rows,
    why_not,
)
from steelyard.evaluation.tables import DASH, word
from steelyard.statistics.bootstrap import draw_blocks
from steelyard.statistics.groups import Cell, Label


def blocks_of(number, num_resamples=300):
    return draw_blocks(
        [Label(f"p{index}", Cell("code")) for index in range(number)], num_resamples=num_resamples, seed=0
    )


def report(blocks, pairs, ratio=1.1):
    return length_summary(blocks, pairs, ratio, means(0.5))


def outcomes(rows):
    prompt, is_right, better, worse = (np.array(column) for column in zip(*rows, strict=True))
    return PairLengths(prompt, is_right.astype(bool), better, worse)


def simulated(number, intercept, slope, seed=0):
    """Pairs of known regression."""
    random = np.random.default_rng(seed)
    better, worse = random.integers(10, 400, (2, number))
    share = 1 / (1 + np.exp(-(intercept + slope * np.log((better + 1) / (worse + 1)))))
    return PairLengths(np.arange(number), random.random(number) < share, better, worse)


def test_by_hand():
    # 110 matches 100, 111 does not; equal lengths count as "not longer"
    found = report(
        blocks_of(5),
        outcomes([(0, 1, 110, 100), (1, 0, 100, 110), (2, 1, 111, 100), (3, 1, 50, 100), (4, 0, 100, 100)]),
    )
    parts = {name: getattr(found, name).micro for name in ("matched", "better_not_longer", "better_longer")}
    values = {name: (part.value, part.n) for name, part in parts.items()}
    assert values == {
        "matched": (pytest.approx(1 / 3), 3),
        "better_not_longer": (pytest.approx(1 / 3), 3),
        "better_longer": (1.0, 2),
    }
    assert found.matched_ratio == 1.1


def test_the_regression_is_scipys():
    given = simulated(400, 0.4, 0.8)
    ratio, sign = given.log_ratio, np.where(given.is_right, 1.0, -1.0)

    def loss(beta):
        return np.logaddexp(0, -sign * (beta[0] + beta[1] * ratio)).sum() + 0.0005 * (beta @ beta)

    expected = minimize(loss, np.zeros(2), tol=1e-12).x
    assert tuple(fit_logistic(ratio, given.is_right)) == pytest.approx(tuple(expected), abs=1e-5)


def test_a_model_that_prefers_the_longer_one_is_at_chance_where_no_answer_is_longer():
    given = simulated(4000, 0.0, 3.0)
    found = report(blocks_of(4000), given)
    assert found.adjusted.low < 0.5 < found.adjusted.high
    assert found.slope.low < 3.0 < found.slope.high
    assert found.better_not_longer.micro.value < 0.3
    assert found.better_longer.micro.value > 0.7


def test_the_interval_is_that_of_fitting_each_resample_anew():
    given = simulated(300, 0.5, 1.0, seed=2)
    found = report(blocks_of(300, 1000), given).adjusted
    random = np.random.default_rng(5)
    drawn = []
    for _ in range(400):
        rows = random.integers(300, size=300)
        drawn.append(1 / (1 + np.exp(-fit_logistic(given.log_ratio[rows], given.is_right[rows]).intercept)))
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])), abs=0.015)


@pytest.mark.parametrize("is_right", [True, False])
def test_pairs_that_are_all_right_or_all_wrong_leave_no_regression(is_right):
    given = simulated(50, 0.0, 0.0)._replace(is_right=np.full(50, is_right))
    found = report(blocks_of(50), given)
    why = "all right" if is_right else "all wrong"
    assert found.adjusted == found.slope == estimate(n=50, why=why)
    assert found.better_longer.micro.value == float(is_right)


def test_a_perfect_split_by_length_stays_finite():
    given = simulated(50, 0.0, 0.0)
    given = given._replace(is_right=given.better > given.worse)
    fit = fit_logistic(given.log_ratio, given.is_right)
    assert np.isfinite(fit).all()
    assert fit.slope > 10


def test_equal_lengths_everywhere_leave_no_regression():
    given = PairLengths(np.arange(3), np.array([True, False, True]), np.full(3, 7), np.full(3, 7))
    found = report(blocks_of(3), given)
    assert found.adjusted.value is None
    assert found.adjusted.why == "one length ratio"
    assert found.matched.micro.value == pytest.approx(2 / 3)


def length_alone(number, num_against=0, *, turned=False):
    """A model that takes the longer answer (``turned``: the shorter), but for so many pairs chosen at random."""
    found = simulated(number, 0.0, 0.0)
    is_right = (found.better > found.worse) ^ turned
    against = np.random.default_rng(1).choice(number, num_against, replace=False)
    is_right[against] ^= True
    return found._replace(is_right=is_right)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("num_against", [0, 2])
def test_of_a_model_that_is_length_alone_nothing_is_told_where_no_answer_is_longer(turned, num_against):
    found = report(blocks_of(400), length_alone(400, num_against, turned=turned))
    nothing = estimate(n=400, why="length alone")
    assert found.adjusted == found.slope == nothing
    assert found.better_longer.micro.value == pytest.approx(0 if turned else 1, abs=0.02)


def test_a_model_that_merely_leans_on_length_has_its_number():
    assert why_not(*ratio_and_right(length_alone(400, 60))) is None
    assert why_not(*ratio_and_right(length_alone(30_000, 60))) is None
    # Five wrong pairs of 200, anywhere: few, but no cut of the length ratio has them on one side.
    few = simulated(200, 0.0, 0.0)
    is_right = np.ones(200, bool)
    is_right[[3, 50, 90, 120, 170]] = False
    assert why_not(few.log_ratio, is_right) is None


def ratio_and_right(found):
    return found.log_ratio, found.is_right


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=12))
def test_the_best_cut_is_that_of_a_plain_search(rows):
    ratio, is_right = (np.array(column) for column in zip(*rows, strict=True))
    cuts = [end for one in set(ratio.tolist()) for end in (one - 0.5, one, one + 0.5)]
    fewest = len(rows)
    for cut in cuts:
        for above in (True, False):
            wrong = sum(own != cut and is_one != ((own > cut) == above) for own, is_one in rows)
            fewest = min(fewest, wrong)
    assert num_misplaced(ratio.astype(np.float64), is_right) == fewest


def test_another_ratio_of_like_lengths():
    found = report(blocks_of(3), outcomes([(0, 1, 110, 100), (1, 0, 150, 100), (2, 1, 151, 100)]), 1.5)
    assert (found.matched_ratio, found.matched.micro.value, found.matched.micro.n) == (1.5, 0.5, 2)


def test_every_reason_of_the_regression_has_its_words():
    for why in get_args(WhyNot):
        assert set(MEASURE.text[f"why_{why.replace(' ', '_')}"]) == {"en", "zh"}


def test_the_rows_of_the_table():
    found = replace(report(blocks_of(3), outcomes([(0, 1, 110, 100), (1, 0, 90, 100)])), adjusted=around(0.62))
    shown = list(rows(found))
    assert [row.title for row in shown][1:3] == [f"{word('matched_accuracy')} (1:1.1)", word("adjusted_accuracy")]
    assert shown[2].form.cells(shown[2].micro) == ("62.0%", "52.0–72.0%")
    assert shown[2].form.cells(shown[2].macro) == (DASH, DASH)
