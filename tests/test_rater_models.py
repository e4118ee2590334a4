import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rater_models import (
    ALGORITHM_1,
    EVERYONE,
    MODELS,
    AnswerKey,
    by_accuracy,
    by_majority,
    by_tiers,
    compare_on_held_out,
    compare_with_key,
)

from steelyard.core.numerics import generator
from steelyard.ranking.dawid_skene import Pairs, Votes, fit_dawid_skene

FIRST, SECOND, TIED = range(3)


def votes_of(*rows):
    """Each row: prompt, first, second, rater, label."""
    prompt, first, second, rater, label = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return Votes(Pairs(prompt, first, second), rater, label)


def pairs_of(*rows):
    return Pairs(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))


def simulated(num_prompts, accuracies, *, ties=0.1, seed=0):
    """Three responses in a known order (0 over 1 over 2); each rater judges all three pairs with own accuracy."""
    random = generator(seed, "raters")
    rows = []
    for prompt in range(num_prompts):
        order = random.permutation(3)
        for rater, accuracy in enumerate(accuracies):
            for first, second in ((0, 1), (0, 2), (1, 2)):
                truth = FIRST if order[first] < order[second] else SECOND
                label = truth if random.random() < accuracy else 1 - truth
                rows.append((prompt, first, second, rater, TIED if random.random() < ties else label, truth))
    truth = np.array([row[5] for row in rows])
    return votes_of(*(row[:5] for row in rows)), truth


def test_majority_is_the_share_of_each_label():
    votes = votes_of((0, 0, 1, 0, FIRST), (0, 0, 1, 1, FIRST), (0, 0, 1, 2, TIED), (1, 0, 1, 0, SECOND))
    found = by_majority(votes, pairs_of((0, 0, 1), (1, 0, 1), (0, 1, 2)))
    assert found[:2] == pytest.approx(np.array([[2 / 3, 0, 1 / 3], [0, 1, 0]]))
    assert np.isnan(found[2]).all()


def test_tiers_speak_of_pairs_that_nobody_judged():
    votes = votes_of((0, 0, 1, 0, FIRST), (0, 1, 2, 1, FIRST), (1, 0, 1, 0, FIRST), (1, 0, 1, 1, SECOND))
    found = by_tiers(votes, pairs_of((0, 0, 2), (1, 0, 1), (0, 0, 3)))
    assert found[:2].tolist() == [[1, 0, 0], [0, 0, 1]]
    assert np.isnan(found[2]).all()
    twice = votes_of((0, 0, 1, 0, FIRST), (0, 0, 1, 1, FIRST), (0, 0, 1, 2, SECOND))
    assert by_tiers(twice, pairs_of((0, 0, 1))).tolist() == [[0, 0, 1]]
    assert by_tiers(twice, pairs_of((0, 0, 1)), "majority").tolist() == [[1, 0, 0]]


def plain_dawid_skene(votes, num_items, shrinkage, steps):
    """The same model by loops, in Python numbers: items are prompts here."""
    rows = list(zip(votes.pairs.prompt.tolist(), votes.rater.tolist(), votes.label.tolist(), strict=True))
    swap = {0: 1, 1: 0, 2: 2}
    truth = [
        [sum(1 for item, _, label in rows if item == at and label == k) for k in range(3)] for at in range(num_items)
    ]
    truth = [[value / sum(row) for value in row] for row in truth]
    for _ in range(steps):
        share = [sum(row[k] for row in truth) / num_items for k in range(3)]
        share = [(share[k] + share[swap[k]]) / 2 for k in range(3)]
        counts = {}
        for item, rater, label in rows:
            for k in range(3):
                counts[rater, k, label] = counts.get((rater, k, label), 0.0) + truth[item][k]
                counts[rater, swap[k], swap[label]] = counts.get((rater, swap[k], swap[label]), 0.0) + truth[item][k]
        pooled = {(k, label): sum(counts.get((r, k, label), 0.0) for r in range(votes.num_raters))
                  for k in range(3) for label in range(3)}  # fmt: skip
        confusion = {}
        for r in range(votes.num_raters):
            for k in range(3):
                whole = sum(pooled[k, label] for label in range(3))
                row = [
                    counts.get((r, k, label), 0.0) + (2 * shrinkage * pooled[k, label] / whole if whole else 0.0)
                    for label in range(3)
                ]
                for label in range(3):
                    confusion[r, k, label] = row[label] / sum(row) if sum(row) else 1 / 3
        truth = []
        for at in range(num_items):
            odds = list(share)
            for item, rater, label in rows:
                if item == at:
                    odds = [odds[k] * confusion[rater, k, label] for k in range(3)]
            truth.append([value / sum(odds) for value in odds])
    return truth


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from([0.5, 1.0]))
def test_dawid_skene_is_the_plain_loop(seed, shrinkage):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, (6, 4))
    labels[:, 0] = random.integers(0, 2, 6)  # the first rater has no ties
    votes = votes_of(*((item, 0, 1, rater, labels[item, rater]) for item in range(6) for rater in range(4)))
    asked = pairs_of(*((item, 0, 1) for item in range(6)))
    found = fit_dawid_skene(votes, asked, shrinkage=shrinkage, most_steps=5)
    assert found.num_steps == 5
    assert found.answers == pytest.approx(np.array(plain_dawid_skene(votes, 6, shrinkage, 5)), abs=1e-9)


def test_dawid_skene_finds_the_good_raters_and_turns_the_contrary_one_round():
    votes, truth = simulated(300, [0.95, 0.9, 0.55, 0.52, 0.1])
    found = fit_dawid_skene(votes, votes.pairs)
    right = found.confusion[:, FIRST, FIRST] / (found.confusion[:, FIRST, FIRST] + found.confusion[:, FIRST, SECOND])
    assert right == pytest.approx([0.95, 0.9, 0.55, 0.52, 0.1], abs=0.05)
    by_model = (found.answers[:, FIRST] > found.answers[:, SECOND]) == (truth == FIRST)
    counted = by_majority(votes, votes.pairs)
    by_count = (counted[:, FIRST] > counted[:, SECOND]) == (truth == FIRST)
    assert by_model.mean() > 0.93 > by_count.mean()


def test_accuracy_model_finds_the_accuracies():
    votes, truth = simulated(400, [0.95, 0.9, 0.7, 0.5], ties=0.0)
    found = by_accuracy(votes, votes.pairs)
    assert found.num_steps < 500
    assert found.accuracy[0] > found.accuracy[1] > found.accuracy[2] > found.accuracy[3]
    assert found.accuracy[3] == pytest.approx(0.5, abs=0.07)
    by_model = (found.answers[:, FIRST] > 0.5) == (truth == FIRST)
    assert by_model.mean() > 0.93


def test_accuracy_model_is_at_a_maximum():
    """No small step in any strength or accuracy makes the posterior larger."""
    votes, _ = simulated(3, [0.9, 0.8, 0.6], ties=0.3, seed=3)
    found = by_accuracy(votes, votes.pairs, most_steps=20_000)

    def posterior(strength, accuracy):
        total = -(strength**2).sum() / (2 * 2.0**2) + (3.0 * np.log(accuracy) + 1.0 * np.log(1 - accuracy)).sum()
        for prompt, first, second, rater, label in zip(*votes.pairs, votes.rater, votes.label, strict=True):
            for better, worse, weight in ((first, second, label != SECOND), (second, first, label != FIRST)):
                if weight:
                    likely = 1 / (1 + np.exp(strength[prompt, worse] - strength[prompt, better]))
                    a = accuracy[rater]
                    total += (0.5 if label == TIED else 1.0) * np.log(a * likely + (1 - a) * (1 - likely))
        return total

    best = posterior(found.strength, found.accuracy)
    for step in (1e-3, -1e-3):
        for at in np.ndindex(found.strength.shape):
            moved = found.strength.copy()
            moved[at] += step
            assert posterior(moved, found.accuracy) <= best
        for at in range(3):
            moved = found.accuracy.copy()
            moved[at] += step
            assert posterior(found.strength, moved) <= best


def test_which_response_stands_first_does_not_matter():
    votes, _ = simulated(40, [0.9, 0.7, 0.6])
    # The same prompts with their three responses in the reverse order.
    turned = Votes(
        Pairs(votes.pairs.prompt, 2 - votes.pairs.second, 2 - votes.pairs.first),
        votes.rater,
        np.array([SECOND, FIRST, TIED])[votes.label],
    )
    for model in (by_majority, lambda v, a: fit_dawid_skene(v, a).answers, lambda v, a: by_accuracy(v, a).answers):
        one, other = model(votes, votes.pairs), model(turned, turned.pairs)
        assert one[:, [SECOND, FIRST, TIED]] == pytest.approx(other, abs=1e-5)


def test_a_rater_with_one_judgment_and_a_pair_unknown_to_all():
    votes, _ = simulated(20, [0.9, 0.8])
    alone = votes_of((0, 0, 1, 2, FIRST))
    both = Votes(
        Pairs(*(np.concatenate(two) for two in zip(votes.pairs, alone.pairs, strict=True))),
        np.concatenate([votes.rater, alone.rater]),
        np.concatenate([votes.label, alone.label]),
    )
    asked = pairs_of((0, 0, 1), (99, 0, 1))
    for answers in (fit_dawid_skene(both, asked).answers, by_accuracy(both, asked).answers):
        assert np.isfinite(answers[0]).all()
        assert np.isnan(answers[1]).all()
    assert 0.5 < by_accuracy(both, asked).accuracy[2] < 0.95


def test_by_hand():
    # Rater 2 is asked of four prompts, one pair each. The others: two agree with each other on 0 (first) and 1 (first),
    # they contradict each other on 2, nobody else judged 3. Rater 2 says first, second, first, first.
    rows = [(0, 0, 1, 0, FIRST), (0, 0, 1, 1, FIRST), (1, 0, 1, 0, FIRST), (1, 0, 1, 1, FIRST),
            (2, 0, 1, 0, FIRST), (2, 0, 1, 1, SECOND),
            (0, 0, 1, 2, FIRST), (1, 0, 1, 2, SECOND), (2, 0, 1, 2, FIRST), (3, 0, 1, 2, FIRST)]  # fmt: skip
    models = {ALGORITHM_1: by_tiers, "majority": by_majority}
    found = {(one.rater, one.model): one for one in compare_on_held_out(votes_of(*rows), "abc", seed=0, models=models)}
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
    found = {(one.rater, one.model): one for one in compare_on_held_out(votes_of(*rows), ["a"], seed=0, models=models)}
    assert found["a", ALGORITHM_1].accuracy.value == pytest.approx(2 / 3)
    # Three are wanted: the first whole, and of the four that it is equally sure of, half of each: right 1 + 1 of 3.
    assert found["a", "unsure"].accuracy.value == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert found["a", "unsure"].coverage == 1.0
    assert found["a", "unsure"].equal_coverage == pytest.approx(0.6)
    assert found[EVERYONE, "unsure"].gain.value == pytest.approx(0.0)


def test_a_rater_without_strict_verdicts_is_passed_over():
    rows = [(0, 0, 1, 0, TIED), (0, 0, 1, 1, FIRST)]
    found = compare_on_held_out(votes_of(*rows), ["tied", "strict"], seed=0)
    assert {one.rater for one in found} == {"strict", EVERYONE}
    assert {one.model for one in found} == set(MODELS)


def test_models_that_weigh_raters_foretell_a_good_rater_better_among_bad_ones():
    random = np.random.default_rng(0)
    rows = []
    for prompt in range(400):
        truth = int(random.integers(2))
        for rater, accuracy in enumerate([0.95, 0.95, 0.5, 0.5, 0.5]):
            rows.append((prompt, 0, 1, rater, truth if random.random() < accuracy else 1 - truth))
    found = {(one.rater, one.model): one for one in compare_on_held_out(votes_of(*rows), "abcde", seed=0)}
    best = found["a", "dawid_skene"]
    assert best.accuracy.value > found["a", "majority"].accuracy.value
    assert best.accuracy.low < best.accuracy.value < best.accuracy.high


def test_agreement_with_a_key_on_equally_many_pairs():
    # Five pairs of which the first is better by the key. One model orders pairs 0 and 1 and is wrong on 1; the other
    # orders all and is surest of 3 and 4, on which it is right, then of 0, 1 and 2, on which it is wrong.
    votes = votes_of(*((prompt, 0, 1, 0, FIRST) for prompt in range(5)))
    key = AnswerKey(votes.pairs, np.zeros(5, np.int64))
    few, all_of_them = np.array([1.0, 0.0, 0.5, 0.5, 0.5]), np.array([0.4, 0.4, 0.4, 0.9, 0.9])
    models = {
        "few": lambda votes, asked: np.stack([few, 1 - few, few * 0], axis=1)[asked.prompt],
        "all": lambda votes, asked: np.stack([all_of_them, 1 - all_of_them, few * 0], axis=1)[asked.prompt],
    }
    found = {one.model: one for one in compare_with_key(votes, key, seed=0, models=models, baseline="few")}
    assert {one.rater for one in found.values()} == {EVERYONE}
    assert (found["few"].coverage, found["all"].coverage) == (0.4, 1.0)
    assert [found[name].equal_coverage for name in models] == [pytest.approx(0.4)] * 2
    assert (found["few"].accuracy.value, found["all"].accuracy.value) == (0.5, 1.0)
    assert found["all"].accuracy_of_all.value == pytest.approx(2 / 5)
    assert found["all"].gain.value == 0.5
    assert found["all"].gain.low <= 0.5 <= found["all"].gain.high
    assert found["all"].accuracy.n == 5
