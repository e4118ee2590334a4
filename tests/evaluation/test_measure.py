import numpy as np
import pytest

from evaluation_summaries import resampled_bench
from steelyard.core.types import Scores
from steelyard.evaluation.bench_pairs import PairValues
from steelyard.evaluation.measure import measures
from strategies import case, judgment

RANKING = (("a",), ("b",), ("c",))
CASES = [
    case("p", "abc", category=("code",), language="zh", ranking=RANKING),
    case("q", "abc", category=("chat",), language="he", ranking=RANKING),
    case("r", "abc", category=("chat",), ranking=None),
]


def lines(*scores):
    return [
        Scores(
            prompt=one.prompt.id,
            scores=dict(zip("abc", own, strict=True)),
            unscored={name: "too long" for name, score in zip("abc", own, strict=True) if score is None},
        )
        for one, own in zip(CASES, scores, strict=True)
    ]


def measured(*scores, cases=CASES, **fields):
    return all_measures(resampled_bench(cases, lines(*scores), **fields))


def all_measures(resampled):
    return {
        name: summary
        for name, measure in measures().items()
        if resampled.bench.meets(measure.needs) and (summary := measure.estimate(resampled)) is not None
    }


def test_by_hand():
    found = measured((3, 2, 1), (1, 2, 3), (0, 0, 0))
    assert {"rewards", "kendall_tau", "top_1", "regret", "length", "calibration"} <= set(found)
    assert found["kendall_tau"].macro.value == 0.0
    assert found["kendall_tau"].by_language["he"].value == -1.0
    assert (found["kendall_tau"].num_constant, found["kendall_tau"].num_without_order) == (0, 0)
    assert found["top_1"].half.micro.value == 0.5
    assert found["top_1"].chance.micro.value == pytest.approx(1 / 3)
    # of all three: 0 lost and 2 lost; of two: 0, and (1 + 1 + 2) / 3
    assert found["regret"].tiers.of_all.model.micro.value == pytest.approx(1.0)
    curve = found["regret"].tiers.curve
    assert [one.budget for one in curve] == [2, 3]
    assert curve[0].model.micro.value == pytest.approx(2 / 3)
    assert found["regret"].ratings == {}
    # every answer has as many letters: all pairs match, and there is no slope
    assert found["length"].matched.micro.n == 6
    assert found["length"].adjusted.value is None
    win = 1 / (1 + np.exp(-np.array([1.0, 1.0, 2.0])))
    brier = ((1 - win) ** 2).sum() + (win**2).sum()
    assert found["calibration"].brier.value == pytest.approx(brier / 6)
    assert found["rewards"].overall.mean.n == 6


def test_constant_scores_are_counted_and_not_passed_over_in_silence():
    found = measured((3, 2, 1), (1, 1, 1), (0, 0, 0))["kendall_tau"]
    assert found.micro.value == 1.0
    assert found.constant_as_zero.micro.value == 0.5
    assert found.num_constant == 1


def test_with_a_score_missing_only_the_rewards_are_told():
    found = measured((3, None, 1), (1, 2, 3), (0, 0, 0))
    assert set(found) == {"rewards"}
    assert found["rewards"].by_language["zh"].unscored == {"too long": 1}


def test_people_stand_beside_the_model_on_the_same_pairs():
    said = [judgment("a>b", judge=name) for name in ("ann", "bob")]
    cases = [case("p", "abc", said, ranking=RANKING), *CASES[1:]]
    found = measured((3, 2, 1), (1, 2, 3), (0, 0, 0), cases=cases)["human_ceiling"].resolved
    assert found.human.micro.value == found.model.micro.value == 1.0
    assert found.num_verdicts == 2


def test_verdicts_on_pairs_are_no_scores():
    values = PairValues(np.array([1.0, 1, 0, np.nan, 0, 1]), np.array([0.0, 0, 0, np.nan, 1, 0]))
    found = measured((3, 2, 1), (1, 2, 3), (0, 0, 0), values=values, has_scores=False, has_rewards=False)
    assert set(found) == {"length"}
    assert found["length"].better_not_longer.micro.value == pytest.approx(3 / 6)


def asked(cases, verdicts):
    """The ceiling of a judge; ``verdicts`` of the pairs of each case in order: 1 right, -1 wrong, 0 tie, None none."""
    flat = [one for own in verdicts for one in own]
    better, worse = (
        np.array([np.nan if one is None else float(sign * one > 0) for one in flat], np.float64) for sign in (1, -1)
    )
    own = [Scores(prompt=one.prompt.id, scores=dict.fromkeys("abc", 0.0)) for one in cases]
    resampled = resampled_bench(cases, own, values=PairValues(better, worse), has_scores=False, has_rewards=False)
    return all_measures(resampled)["human_ceiling"].resolved


def test_people_stand_beside_a_judge_on_the_pairs_that_it_was_asked_about():
    # Each annotator has two verdicts that the other's ranking orders.
    said = [judgment(short, judge=name) for name in ("ann", "bob") for short in ("a>b", "b>c")]
    plain = case("o", "abc", ranking=None)  # left out of the bench: positions are those of all cases
    cases = [plain, case("p", "abc", said, ranking=RANKING)]
    # a > b is right, a > c is not judged by people, b > c has no verdict and is wrong.
    found = asked(cases, [[], [1, 1, None]])
    assert (found.num_verdicts, found.num_left_out) == (4, 0)
    assert found.human.micro.value == 1.0
    assert found.model.micro.value == 0.5
    assert found.difference.micro.value == -0.5


def test_a_judge_is_held_against_the_others_ranking_and_not_the_benchs():
    # The bench has b above a and c; ann and bob say a > b. The judge says b: right on the bench, wrong by the others.
    said = [judgment("a>b", judge=name) for name in ("ann", "bob")]
    cases = [case("p", "abc", said, ranking=(("b",), ("a",), ("c",)))]
    assert asked(cases, [[1, 1, 1]]).model.micro.value == 0.0
    assert asked(cases, [[-1, 1, 1]]).model.micro.value == 1.0
    # A missing verdict is wrong whichever way the others have it, and a tie is counted.
    assert asked(cases, [[None, 1, 1]]).model.micro.value == 0.0
    assert asked(cases, [[0, 1, 1]]).num_model_ties == 2


def test_what_a_judge_was_not_asked_counts_for_neither():
    # The bench does not order b and c, so that the judge was never asked of them; people were.
    said = [judgment(short, judge=name) for name in ("ann", "bob") for short in ("a>b", "b>c")]
    found = asked([case("p", "abc", said, ranking=(("a",), ("b", "c")))], [[1, 1]])
    assert (found.num_verdicts, found.num_left_out) == (2, 2)
    assert found.human.micro.value == found.model.micro.value == 1.0
