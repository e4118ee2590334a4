import numpy as np
import pytest

from evaluation_summaries import resampled_bench
from steelyard.core.types import Scores
from steelyard.evaluation.bench_pairs import Ranked
from steelyard.evaluation.measures import kendall_tau, regret, top_1
from steelyard.evaluation.measures.top_1 import first_choice
from strategies import case

RANKING = (("a",), ("b",), ("c",))


def flat(given):
    rows = [(index, tier, score) for index, own in enumerate(given) for tier, score in own]
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return Ranked(np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2], float))


def line(*scores):
    return Scores(
        prompt="p",
        scores=dict(zip("abc", scores, strict=False)),
        unscored={name: "cut" for name, own in zip("abc", scores, strict=False) if own is None},
    )


def test_the_first_choice_by_hand():
    found = first_choice(
        flat(
            [
                [(0, 3.0), (0, 1.0), (1, 2.0)],  # the best is in the first tier
                [(0, 1.0), (1, 2.0)],  # it is not
                [(0, 2.0), (1, 2.0), (1, 2.0), (1, 0.0)],  # one of three that share the highest score
                [(0, 2.0), (0, 1.0)],  # one tier: nothing to choose
                [(0, 2.0)],
            ]
        ),
        5,
    )
    for own, expected in zip(
        found,
        [(1, 0, 0), (1, 0, 1 / 3), (1, 0, 1), (2 / 3, 1 / 2, 1 / 4)],
        strict=True,
    ):
        assert own[:3].tolist() == pytest.approx(list(expected))
        assert np.isnan(own[3:]).all()


def test_all_that_is_chosen_from_a_ranking_is_null_without_an_order_or_a_score():
    cases = [
        case("p", "abc", ranking=RANKING),
        case("q", "abc", ranking=RANKING),
        case("r", "abc", ranking=(("a", "b", "c"),)),
        case("s", "abc", ranking=RANKING),
        case("t", "abc"),
    ]
    lines = [line(3, 2, 1), line(1, 2, 3), line(3, 2, 1), line(3, None, 1), line(3, 2, 1)]
    bench = resampled_bench(cases, lines).bench
    found = {**kendall_tau.columns(bench), **top_1.MEASURE.columns(bench), **regret.MEASURE.columns(bench)}
    assert found["kendall_tau"] == [1.0, -1.0, None, None, None]
    assert found["top_1"] == [1.0, 0.0, None, None, None]
    assert found["regret"] == [pytest.approx(0.0), pytest.approx(2.0), None, None, None]


def test_a_response_without_a_rank_is_no_choice():
    bench = resampled_bench([case("p", "abc", ranking=(("a",), ("b",)))], [line(1, 0, 5)]).bench
    assert top_1.choices_of(bench).half.tolist() == [1.0]
