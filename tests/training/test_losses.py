import math
from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import softplus

import training_examples
from steelyard.core.types import Case
from steelyard.ranking.pairs import IndexedPair, pairs_of, ties_of
from steelyard.training.config import Config, check_settings
from steelyard.training.losses import LOSSES as TABLE
from steelyard.training.losses import (
    Loss,
    PairBatch,
    TermWeights,
    bradley_terry_loss,
    centring_sum,
    choice_weights,
    davidson_losses,
    differences,
    plackett_luce_losses,
    rao_kupper_losses,
    reduced_sum,
    reduced_weight,
)
from steelyard.training.trainer import Trainer
from strategies import case, judgment


def pairs(*rows):
    """Rows of (better, worse, weight, margin, prompt)."""
    better, worse, weight, margin, prompt = zip(*rows, strict=True)
    return PairBatch(
        torch.tensor(better),
        torch.tensor(worse),
        torch.tensor(weight, dtype=torch.float64),
        torch.tensor(margin, dtype=torch.float64),
        torch.tensor(prompt),
    )


def log_loss(difference):
    return math.log1p(math.exp(-difference))


def test_equal_scores_cost_ln_2():
    loss = bradley_terry_loss(torch.zeros(3, dtype=torch.float64), pairs((0, 1, 1.0, 0.0, 0), (0, 2, 1.0, 0.0, 0)))
    assert loss.item() == pytest.approx(math.log(2), abs=1e-15)


def test_pair_and_prompt_reduction_by_hand():
    # Prompt 0 has the differences 1 and 3, prompt 1 has the difference -2.
    scores = torch.tensor([3.0, 2.0, 0.0, 1.0, 3.0], dtype=torch.float64)
    batch = pairs((0, 1, 1.0, 0.0, 0), (0, 2, 1.0, 0.0, 0), (3, 4, 1.0, 0.0, 1))
    first, second, third = log_loss(1), log_loss(3), log_loss(-2)
    assert bradley_terry_loss(scores, batch).item() == pytest.approx((first + second + third) / 3, abs=1e-15)
    by_prompt = bradley_terry_loss(scores, batch, "prompt").item()
    assert by_prompt == pytest.approx(((first + second) / 2 + third) / 2, abs=1e-15)


def test_weights_and_margins_by_hand():
    scores = torch.tensor([1.0, 0.0], dtype=torch.float64)
    batch = pairs((0, 1, 3.0, 0.5, 0), (1, 0, 1.0, 0.0, 1))
    expected = (3 * log_loss(0.5) + log_loss(-1)) / 4
    assert bradley_terry_loss(scores, batch).item() == pytest.approx(expected, abs=1e-15)
    by_prompt = bradley_terry_loss(scores, batch, "prompt").item()
    assert by_prompt == pytest.approx((log_loss(0.5) + log_loss(-1)) / 2, abs=1e-15)


def test_a_pair_of_weight_zero_counts_for_nothing():
    scores = torch.tensor([1.0, 0.0, 5.0], dtype=torch.float64)
    batch = pairs((0, 1, 1.0, 0.0, 0), (1, 2, 0.0, 0.0, 1))
    for reduction in ("pair", "prompt"):
        assert bradley_terry_loss(scores, batch, reduction).item() == pytest.approx(log_loss(1), abs=1e-15)


def test_extreme_differences_stay_finite():
    scores = torch.tensor([-1e4, 1e4], dtype=torch.float64)
    assert bradley_terry_loss(scores, pairs((0, 1, 1.0, 0.0, 0))).item() == pytest.approx(2e4)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=3, max_size=6), st.floats(-5, 5))
def test_only_differences_matter(values, shift):
    scores = torch.tensor(values, dtype=torch.float64)
    batch = pairs(*[(0, index, 1.0, 0.0, 0) for index in range(1, len(values))])
    moved = bradley_terry_loss(scores + shift, batch).item()
    assert moved == pytest.approx(bradley_terry_loss(scores, batch).item(), abs=1e-9)


def test_centring_by_hand():
    scores = torch.tensor([1.0, 2.0, -4.0], dtype=torch.float64)
    found = centring_sum(scores, pairs((0, 1, 2.0, 0.0, 0), (1, 2, 1.0, 0.0, 0)))
    assert found.item() == 2 * 9 + 4


@pytest.mark.parametrize("reduction", ["pair", "prompt"])
def test_no_pairs_sum_to_nothing(reduction):
    none, prompt = torch.zeros(0, dtype=torch.float64), torch.zeros(0, dtype=torch.long)
    assert reduced_sum(none, none, prompt, reduction) == reduced_weight(none, prompt, reduction) == 0


rewards = st.lists(st.floats(-5, 5), min_size=2, max_size=4)


def batch(rows):
    """Pairs from (better, worse, weight, margin, prompt)."""
    better, worse, weight, margin, prompt = zip(*rows, strict=True) if rows else ((),) * 5
    numbers = [torch.tensor(column, dtype=torch.long) for column in (better, worse, prompt)]
    values = [torch.tensor(column, dtype=torch.float64) for column in (weight, margin)]
    return PairBatch(*numbers[:2], *values, numbers[2])


def across(tiers, prompts=None):
    """Every pair across tiers, within a prompt."""
    prompts = prompts or [0] * len(tiers)
    ends = [(one, other) for one in range(len(tiers)) for other in range(len(tiers))]
    rows = [(b, w, 1.0, 0.0, prompts[b]) for b, w in ends if tiers[b] < tiers[w] and prompts[b] == prompts[w]]
    return batch(rows)


def total(scores, pairs):
    losses = plackett_luce_losses(torch.tensor(scores, dtype=torch.float64), pairs)
    return (losses * choice_weights(pairs).weight).sum().item()


@settings(deadline=None)
@given(rewards)
def test_the_orders_of_some_answers_are_all_there_is(scores):
    chances = [math.exp(-total(scores, across(list(order)))) for order in permutations(range(len(scores)))]
    assert sum(chances) == pytest.approx(1, abs=1e-12)


@settings(deadline=None)
@given(st.floats(-9, 9), st.floats(-9, 9), st.floats(0.01, 5), st.floats(-3, 3), st.integers(1, 3))
def test_of_two_answers_it_is_the_weighted_bradley_terry_loss(better, worse, weight, margin, times):
    expected = times * weight * softplus(torch.tensor(worse + margin - better, dtype=torch.float64)).item()
    assert total([better, worse], batch([(0, 1, weight, margin, 0)] * times)) == pytest.approx(expected, abs=1e-12)


def test_tiers_by_hand():
    # Rewards log 1, log 2, log 3, log 4; the first two share the best tier, the others the last.
    scores = [math.log(value) for value in (1, 2, 3, 4)]
    assert total(scores, across([0, 0, 1, 1])) == pytest.approx(-math.log(1 / 8) - math.log(2 / 9))


def test_only_listed_pairs_are_alternatives():
    # 0 is chosen before 1, 1 before 2; the pair of 0 and 2 was left out, so that 2 is no alternative to 0.
    scores = [math.log(value) for value in (1, 2, 3)]
    listed = batch([(0, 1, 1.0, 0.0, 0), (1, 2, 1.0, 0.0, 0)])
    assert total(scores, listed) == pytest.approx(-math.log(1 / 3) - math.log(2 / 5))


def test_weights_by_hand():
    # Alternatives of weight 1 and 3 count as 1/2 and 3/2 of one, and the choice weighs their mean, 2.
    scores = [math.log(value) for value in (1, 2, 3)]
    weighed = batch([(0, 1, 1.0, 0.0, 0), (0, 2, 3.0, 0.0, 0)])
    assert total(scores, weighed) == pytest.approx(-2 * math.log(1 / (1 + 0.5 * 2 + 1.5 * 3)))
    doubled = weighed._replace(weight=2 * weighed.weight)
    assert total(scores, doubled) == pytest.approx(2 * total(scores, weighed))


def test_a_pair_of_weight_0_is_as_good_as_absent():
    scores, pairs = [1.0, 0.5, 2.0], [(0, 1, 2.0, 0.5, 0)]
    assert total(scores, batch([*pairs, (0, 2, 0.0, 0.0, 0), (1, 2, 0.0, 0.0, 0)])) == total(scores, batch(pairs))
    assert choice_weights(batch([(0, 1, 0.0, 0.0, 0)])).weight.tolist() == []


def test_prompts_do_not_meet():
    scores, tiers, prompts = [1.0, 0.5, 2.0, -1.0, 0.0], [0, 1, 1, 0, 2], [0, 0, 1, 1, 1]
    both = total(scores, across(tiers, prompts))
    assert both == pytest.approx(total(scores[:2], across(tiers[:2])) + total(scores[2:], across(tiers[2:])))
    assert choice_weights(across(tiers, prompts)).prompt.tolist() == [0, 1, 1]


def test_no_pair_is_no_choice_and_far_rewards_stay_finite():
    assert total([1.0, 2.0], across([0, 0])) == 0
    assert total([0.0, 1e4, -1e4], across([0, 1, 2])) == pytest.approx(1e4)


LOSSES = {"rao-kupper": rao_kupper_losses, "davidson": davidson_losses}


def chances(loss, difference, parameter):
    """The probabilities of better, worse and tied, by the losses."""
    ahead = torch.tensor([difference, -difference, difference], dtype=torch.float64)
    tied = torch.tensor([False, False, True])
    return (-LOSSES[loss](ahead, tied, torch.tensor([parameter], dtype=torch.float64))).exp().tolist()


@pytest.mark.parametrize("loss", LOSSES)
@given(st.floats(-6, 6), st.floats(-3, 2))
def test_better_worse_and_tied_are_all_there_is(loss, difference, parameter):
    found = chances(loss, difference, parameter)
    assert sum(found) == pytest.approx(1, abs=1e-12)
    assert all(0 <= chance <= 1 for chance in found)


def test_rao_and_kupper_by_their_formula():
    # theta = e^t = 2, strengths 3 and 1: 3 / (3 + 2), 1 / (1 + 6), and (theta^2 - 1) 3 / ((3 + 2)(1 + 6)).
    better, worse, tied = chances("rao-kupper", math.log(3), math.log(math.log(2)))
    assert (better, worse, tied) == pytest.approx((3 / 5, 1 / 7, 9 / 35))


def test_davidson_by_his_formula():
    # Strengths 4 and 1, v = 1/2: the square root of their product is 2, so all is over 4 + 1 + 1.
    assert chances("davidson", math.log(4), math.log(0.5)) == pytest.approx([4 / 6, 1 / 6, 1 / 6])


@pytest.mark.parametrize("loss", LOSSES)
def test_at_the_start_equal_scores_are_as_likely_tied_as_not(loss):
    assert chances(loss, 0.0, TABLE[loss].parameter.start) == pytest.approx([1 / 3, 1 / 3, 1 / 3])


@pytest.mark.parametrize("loss", LOSSES)
@given(st.floats(-6, 6))
def test_without_ties_both_are_bradley_terry(loss, difference):
    assert chances(loss, difference, -30.0)[0] == pytest.approx(1 / (1 + math.exp(-difference)), abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_extreme_values_stay_finite_with_their_gradients(loss):
    ahead = torch.tensor([1e3, -1e3, 1e3, 0.0], requires_grad=True)
    parameter = torch.tensor([4.0], requires_grad=True)
    found = LOSSES[loss](ahead, torch.tensor([False, False, True, True]), parameter).sum()
    found.backward()
    assert all(torch.isfinite(value).all() for value in (found, ahead.grad, parameter.grad))


def judged(*judgments, ranking=None):
    made = case(id="p")
    texts = [response.id for response in made.responses]
    assert texts[:3] == ["a", "b", "c"]
    return Case(prompt=made.prompt, responses=made.responses, judgments=judgments, ranking=ranking)


def test_ties_are_pairs_judged_equal_and_never_otherwise():
    one = judged(
        judgment("a=b"),
        judgment("b=a"),
        judgment("a=c"),
        judgment("c>a"),
        judgment("b?c"),
    )
    assert ties_of(one, ()) == (IndexedPair(0, 1),)
    assert ties_of(one, (IndexedPair(1, 0),)) == ()


def test_ties_stand_in_one_tier_and_one_tier_is_no_tie():
    told = (judgment("a=b"), judgment("b=c"))
    one = judged(*told, ranking=(("a", "b"), ("c",)))
    assert ties_of(one, pairs_of(one)) == (IndexedPair(0, 1),)
    # Nobody compared the two of this tier, or somebody preferred one of them: they are not ordered, and not equal.
    alone = judged(judgment("a>c"), ranking=(("a", "b"), ("c",)))
    assert ties_of(alone, pairs_of(alone)) == ()
    cycle = judged(judgment("a>b"), judgment("a<b"), ranking=(("a", "b", "c"),))
    assert ties_of(cycle, pairs_of(cycle)) == ()


def test_a_loss_is_an_entry_of_the_table_alone(monkeypatch):
    """A hinge loss, which is not part of the package, is trained by its name."""
    hinge = Loss(
        lambda scores, inputs, _, __: (1 - differences(scores, inputs.pairs)).clamp(min=0),
        lambda inputs: TermWeights(inputs.pairs.weight, inputs.pairs.prompt),
        has_smoothing=False,
    )
    monkeypatch.setitem(TABLE, "hinge", hinge)
    config = Config(loss="hinge", epochs=20, batch_size=1, learning_rate=1e-2)
    check_settings(config)
    example = training_examples.example(4, 5, pairs=[(0, 1, 1.0, 0.0)])
    losses = [line["pair_loss"] for line in Trainer(training_examples.network(), [example], config).run()]
    assert losses[-1] < 0.5 * losses[0]
