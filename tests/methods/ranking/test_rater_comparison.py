import numpy as np
import pytest

from steelyard.methods.ranking.mean_ratings import Key
from steelyard.methods.ranking.rater_comparison import (
    ALGORITHM_1,
    EVERYONE,
    MODELS,
    compare_on_held_out,
    compare_with_key,
)
from steelyard.methods.ranking.raters import Pairs, Votes, by_majority, by_tiers

FIRST, SECOND, TIED = range(3)


def votes_of(rows):
    prompt, first, second, rater, label = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return Votes(Pairs(prompt, first, second), rater, label)


def test_by_hand():
    # Rater 2 is asked of four prompts, one pair each. The others: two agree with each other on 0 (first) and 1 (first),
    # they contradict each other on 2, nobody else judged 3. Rater 2 says first, second, first, first.
    rows = [(0, 0, 1, 0, FIRST), (0, 0, 1, 1, FIRST), (1, 0, 1, 0, FIRST), (1, 0, 1, 1, FIRST),
            (2, 0, 1, 0, FIRST), (2, 0, 1, 1, SECOND),
            (0, 0, 1, 2, FIRST), (1, 0, 1, 2, SECOND), (2, 0, 1, 2, FIRST), (3, 0, 1, 2, FIRST)]  # fmt: skip
    models = {ALGORITHM_1: by_tiers, "majority": by_majority}
    found = {(one.rater, one.model): one for one in compare_on_held_out(votes_of(rows), "abc", seed=0, models=models)}
    for model in models:
        one = found["c", model]
        assert (one.coverage, one.equal_coverage) == (0.5, 0.5)
        assert (one.accuracy.value, one.accuracy.n) == (0.5, 4)
    assert found["c", "majority"].gain.value == 0
    # Rater 0 says first of 0, 1 and 2. The others on 0: both first; on 1: one each; on 2: one each.
    assert found["a", ALGORITHM_1].coverage == pytest.approx(1 / 3)
    assert found["a", ALGORITHM_1].accuracy.value == 1.0
    assert {one for one, _ in found} == {"a", "b", "c", EVERYONE}


def test_equal_coverage_takes_the_surest_and_those_on_the_brink_in_part():
    # One held-out rater says first of five prompts. A model is sure of 0, less sure of 1 to 4 (wrong on 3 and 4).
    # The other, algorithm 1 here, takes a side on three of them only (0, 1, 3) and is right on two.
    rows = [(prompt, 0, 1, 0, FIRST) for prompt in range(5)]
    chance = np.array([0.9, 0.6, 0.6, 0.4, 0.4])
    sides = np.array([1.0, 1.0, 0.5, 0.0, 0.5])
    models = {
        ALGORITHM_1: lambda votes, asked: np.stack([sides, 1 - sides, sides * 0], axis=1)[asked.prompt],
        "unsure": lambda votes, asked: np.stack([chance, 1 - chance, chance * 0], axis=1)[asked.prompt],
    }
    found = {(one.rater, one.model): one for one in compare_on_held_out(votes_of(rows), ["a"], seed=0, models=models)}
    assert found["a", ALGORITHM_1].accuracy.value == pytest.approx(2 / 3)
    # Three are wanted: the first whole, and of the four that it is equally sure of, half of each: right 1 + 1 of 3.
    assert found["a", "unsure"].accuracy.value == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert found["a", "unsure"].coverage == 1.0
    assert found["a", "unsure"].equal_coverage == pytest.approx(0.6)
    assert found[EVERYONE, "unsure"].gain.value == pytest.approx(0.0)


def test_a_rater_without_strict_verdicts_is_passed_over():
    rows = [(0, 0, 1, 0, TIED), (0, 0, 1, 1, FIRST)]
    found = compare_on_held_out(votes_of(rows), ["tied", "strict"], seed=0)
    assert {one.rater for one in found} == {"strict", EVERYONE}
    assert {one.model for one in found} == set(MODELS)


def test_models_that_weigh_raters_foretell_a_good_rater_better_among_bad_ones():
    random = np.random.default_rng(0)
    rows = []
    for prompt in range(400):
        truth = int(random.integers(2))
        for rater, accuracy in enumerate([0.95, 0.95, 0.5, 0.5, 0.5]):
            rows.append((prompt, 0, 1, rater, truth if random.random() < accuracy else 1 - truth))
    found = {(one.rater, one.model): one for one in compare_on_held_out(votes_of(rows), "abcde", seed=0)}
    best = found["a", "dawid_skene"]
    assert best.accuracy.value > found["a", "majority"].accuracy.value
    assert best.accuracy.low < best.accuracy.value < best.accuracy.high


def test_agreement_with_a_key_on_equally_many_pairs():
    # Five pairs of which the first is better by the key. One model orders pairs 0 and 1 and is wrong on 1; the other
    # orders all and is surest of 3 and 4, on which it is right, then of 0, 1 and 2, on which it is wrong.
    votes = votes_of([(prompt, 0, 1, 0, FIRST) for prompt in range(5)])
    key = Key(votes.pairs, np.zeros(5, np.int64))
    few, all_of_them = np.array([1.0, 0.0, 0.5, 0.5, 0.5]), np.array([0.4, 0.4, 0.4, 0.9, 0.9])
    models = {
        "few": lambda votes, asked: np.stack([few, 1 - few, few * 0], axis=1)[asked.prompt],
        "all": lambda votes, asked: np.stack([all_of_them, 1 - all_of_them, few * 0], axis=1)[asked.prompt],
    }
    found = {one.model: one for one in compare_with_key(votes, key, seed=0, models=models, against="few")}
    assert {one.rater for one in found.values()} == {EVERYONE}
    assert (found["few"].coverage, found["all"].coverage) == (0.4, 1.0)
    assert [found[name].equal_coverage for name in models] == [pytest.approx(0.4)] * 2
    assert (found["few"].accuracy.value, found["all"].accuracy.value) == (0.5, 1.0)
    assert found["all"].accuracy_of_all.value == pytest.approx(2 / 5)
    assert found["all"].gain.value == 0.5
    assert found["all"].gain.low <= 0.5 <= found["all"].gain.high
    assert found["all"].accuracy.n == 5
