import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.ranking.pairs import IndexedPair
from steelyard.training.batching import Slot, has_evidence, loss_inputs, pairs_in
from steelyard.training.checkpoints import restore, state_of, trained_weights
from steelyard.training.config import Config
from steelyard.training.losses import (
    LOSSES,
    LossInputs,
    Objective,
    PairBatch,
    StepWeights,
    step_loss,
    sums_of,
    weights_of,
)
from steelyard.training.optimiser import parameter_groups
from steelyard.training.trained_network import loss_parameter, put_loss_parameter
from training_examples import answers, example, network, trained

TIE = torch.tensor([-0.4], dtype=torch.float64)


def double(*values):
    return torch.tensor(values, dtype=torch.float64)


def terms_of(prompts):
    """LossInputs of prompts, each a list of (tier of every answer, pairs as (better, worse, weight, margin), ties)."""
    rows, tied, size = [], [], 0
    for number, (tier, pairs, ties) in enumerate(prompts):
        start = size
        rows += [(start + better, start + worse, weight, margin, number) for better, worse, weight, margin in pairs]
        rows += [(start + first, start + second, 1.0, 0.0, number) for first, second in ties]
        tied += [False] * len(pairs) + [True] * len(ties)
        size += len(tier)
    better, worse, weight, margin, prompt = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    batch = PairBatch(
        torch.tensor(better, dtype=torch.long),
        torch.tensor(worse, dtype=torch.long),
        double(*weight),
        double(*margin),
        torch.tensor(prompt, dtype=torch.long),
    )
    return LossInputs(batch, torch.tensor(tied, dtype=torch.bool), size)


@st.composite
def some_prompt(draw):
    size = draw(st.integers(2, 5))
    tier = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    ends = [(one, other) for one in range(size) for other in range(size)]
    pairs = [
        (one, other, draw(st.just(0.0) | st.floats(0.01, 3)), draw(st.floats(-1, 1)))
        for one, other in ends
        if tier[one] < tier[other] and draw(st.booleans())
    ]
    ties = [(one, other) for one, other in ends if one < other and tier[one] == tier[other] and draw(st.booleans())]
    return tier, pairs, ties


@settings(deadline=None, max_examples=60)
@given(
    st.lists(some_prompt(), min_size=1, max_size=8),
    st.sampled_from(sorted(LOSSES)),
    st.sampled_from(["pair", "prompt"]),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_a_step_is_the_sum_of_its_parts_however_it_is_cut(prompts, loss, reduction, number, random):
    """One process of 8, two of 4, two of 2 twice: the loss and its gradient are those of the whole step."""
    smoothing = 0.0 if loss == "plackett-luce" else 0.1
    objective = Objective(loss, reduction, smoothing, centring=0.3, regulariser=0.1)
    whole = terms_of(prompts)
    weights = weights_of(whole, objective)
    if weights.loss == 0:
        return
    scores = double(*(random.uniform(-3, 3) for _ in range(whole.num_responses))).requires_grad_()
    expected = step_loss(sums_of(scores, whole, objective, TIE), weights, objective)
    expected.backward()
    own = torch.zeros_like(scores)
    total, added, start = 0.0, StepWeights(0, 0, 0), 0
    for first in range(0, len(prompts), number):
        part = terms_of(prompts[first : first + number])
        added = StepWeights(*map(sum, zip(added, weights_of(part, objective), strict=True)))
        there = scores.detach()[start : start + part.num_responses].clone().requires_grad_()
        share = step_loss(sums_of(there, part, objective, TIE), weights, objective)
        share.backward()
        own[start : start + part.num_responses] = there.grad
        total, start = total + share.item(), start + part.num_responses
    assert tuple(added) == pytest.approx(tuple(weights), rel=1e-12)
    assert total == pytest.approx(expected.item(), abs=1e-12)
    assert (own - scores.grad).abs().max() < 1e-12


def test_every_part_of_the_loss_by_hand():
    # Two answers, rewards 2 and 1, weight 3: the loss is that of one pair, the centring (2 + 1)^2, the squares 5 / 2.
    terms = terms_of([([0, 1], [(0, 1, 3.0, 0.0)], [])])
    objective = Objective("bradley-terry", "pair", centring=0.5, regulariser=0.1)
    weights = weights_of(terms, objective)
    assert weights == (3.0, 3.0, 2.0)
    found = step_loss(sums_of(double(2, 1), terms, objective), weights, objective).item()
    assert found == pytest.approx(math.log1p(math.exp(-1)) + 0.5 * 9 + 0.1 * 2.5)


@pytest.mark.parametrize(("loss", "expected"), [("rao-kupper", math.log(3)), ("davidson", math.log(3))])
def test_a_tie_at_equal_scores_costs_what_its_chance_says(loss, expected):
    terms = terms_of([([0, 0], [], [(0, 1)])])
    objective = Objective(loss)
    sums = sums_of(double(1, 1), terms, objective, double(LOSSES[loss].parameter.start))
    assert step_loss(sums, weights_of(terms, objective), objective).item() == pytest.approx(expected)


def test_plackett_luce_weighs_choices_and_bradley_terry_pairs():
    terms = terms_of([([0, 1, 2], [(0, 1, 1.0, 0.0), (0, 2, 1.0, 0.0), (1, 2, 1.0, 0.0)], [])])
    assert weights_of(terms, Objective("plackett-luce")).loss == 2
    assert weights_of(terms, Objective("bradley-terry")).loss == 3
    assert weights_of(terms, Objective("plackett-luce", "prompt")).loss == 1
    equal = sums_of(double(0, 0, 0), terms, Objective("plackett-luce"))
    assert equal.loss.item() == pytest.approx(math.log(3) + math.log(2))


def test_smoothing_is_that_share_of_the_other_way_round():
    terms = terms_of([([0, 1], [(0, 1, 1.0, 0.5)], [])])
    found = sums_of(double(2, 1), terms, Objective(smoothing=0.1)).loss.item()
    assert found == pytest.approx(0.9 * math.log1p(math.exp(-0.5)) + 0.1 * math.log1p(math.exp(0.5)))


EXAMPLES = (
    example(2, 2, 2, pairs=[(0, 2, 2.0, 0.5)])._replace(ties=(IndexedPair(0, 1),)),
    example(2, 2, pairs=[(1, 0)]),
)


def test_positions_are_those_among_the_slots():
    slots = (Slot(1, 0), Slot(1, 1), Slot(0, 0), Slot(0, 1), Slot(0, 2))
    terms = loss_inputs(slots, EXAMPLES)
    assert terms.pairs.better.tolist() == [1, 2, 2]
    assert terms.pairs.worse.tolist() == [0, 4, 3]
    assert terms.pairs.weight.tolist() == [1.0, 2.0, 1.0]
    assert terms.pairs.margin.tolist() == [0.0, 0.5, 0.0]
    assert terms.tied.tolist() == [False, False, True]
    assert terms.num_responses == 5
    assert pairs_in(slots, EXAMPLES).better.tolist() == [1, 2]


def test_a_tie_is_evidence_and_no_pair():
    slots = (Slot(0, 0), Slot(0, 1))
    assert has_evidence(slots, EXAMPLES)
    assert pairs_in(slots, EXAMPLES) is None
    assert not has_evidence((Slot(0, 0), Slot(1, 1)), EXAMPLES)
    assert not has_evidence((Slot(0, 0), Slot(0, 1)), (example(2, 2, pairs=[(0, 1, 0.0, 0.0)]),))


# Three prompts with a better answer and two more that were judged equal.
TIED_EXAMPLES = tuple(
    answers((7, 8), (20 + index,), (30, index + 40), (60, 61), pairs=[(0, 1), (0, 2)])._replace(
        ties=(IndexedPair(1, 2),)
    )
    for index in range(3)
)


@pytest.mark.parametrize("loss", ["rao-kupper", "davidson"])
def test_ties_are_learned_with_the_weights_and_kept_in_checkpoints(loss):
    config = Config(loss=loss, epochs=40, learning_rate=3e-3, batch_size=3, tie_learning_rate=0.05)
    model = network()
    put_loss_parameter(model, config)
    curve = trained(model, TIED_EXAMPLES, config).curve
    assert curve[0]["num_pairs"] == 9
    assert curve[-1]["pair_loss"] < 0.5 * curve[0]["pair_loss"]
    (value,) = loss_parameter(model, config).values()
    assert value != pytest.approx(dict(zip(("rao-kupper", "davidson"), (-0.366512, 0.0), strict=True))[loss], abs=0.1)
    assert "tie" in trained_weights(model)
    groups = parameter_groups(model, config)
    optimiser = torch.optim.AdamW(groups)
    state = state_of(model, optimiser, 1)
    kept = {name: weight.clone() for name, weight in state.weights.items()}
    model.tie.data.fill_(7.0)
    restore(state._replace(weights=kept), model, optimiser)
    assert model.tie.item() == pytest.approx(value)


def test_only_losses_of_ties_have_the_parameter_and_it_is_in_no_saved_file(tmp_path):
    model = network()
    put_loss_parameter(model, Config())
    assert model.tie is None
    assert loss_parameter(model, Config()) == {}
    assert len(parameter_groups(model, Config(learning_rate=5e-6))) == 1
    put_loss_parameter(model, Config(loss="davidson"))
    assert [group["peak"] for group in parameter_groups(model, Config(loss="davidson", learning_rate=5e-6))] == [
        5e-6,
        0.01,
    ]
    assert "tie" not in model.classifier.state_dict()
