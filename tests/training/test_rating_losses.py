"""Losses of ratings: hand arithmetic, parity with torch and transformers, invariance to chunks, and planted scores."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.networks.ratings import IndexedRating
from steelyard.networks.settings import TargetScale
from steelyard.training.batching import Slot, first_step, has_evidence, loss_inputs
from steelyard.training.config import Config
from steelyard.training.diagnostics import check_ratings_head
from steelyard.training.gradient_accumulation import objective_of
from steelyard.training.held_out import measure
from steelyard.training.losses import (
    LossInputs,
    Objective,
    PairBatch,
    RatingBatch,
    StepWeights,
    step_loss,
    sums_of,
    weights_of,
)
from steelyard.training.trained_network import loss_parameter, put_loss_parameter
from steelyard.training.trainer import Trainer, scorer_of
from training_examples import accumulated, answers, network

LOSSES_OF_RATINGS = ("mean-squared-error", "binary-cross-entropy")
NO_PAIRS = PairBatch(
    torch.zeros(0).long(),
    torch.zeros(0).long(),
    torch.zeros(0).double(),
    torch.zeros(0).double(),
    torch.zeros(0).long(),
)


def double(*values):
    return torch.tensor(values, dtype=torch.float64)


def inputs_of(rows, size, pairs=NO_PAIRS):
    """Rows of (response, target, weight, prompt)."""
    response, target, weight, prompt = zip(*rows, strict=True)
    ratings = RatingBatch(torch.tensor(response), double(*target), double(*weight), torch.tensor(prompt))
    return LossInputs(pairs, torch.zeros(len(pairs.better), dtype=torch.bool), size, ratings)


def loss_of(scores, inputs, objective, parameter=None):
    return step_loss(sums_of(scores, inputs, objective, parameter), weights_of(inputs, objective), objective)


ROWS = [(0, 1.0, 2.0, 0), (1, -0.5, 1.0, 0), (3, 0.0, 3.0, 1)]
SCORES = (0.5, 1.0, 9.0, -1.0)


def test_the_squared_error_and_its_gradient_by_hand():
    scores = double(*SCORES).requires_grad_()
    loss = loss_of(scores, inputs_of(ROWS, 4), Objective("mean-squared-error"))
    # 2 * 0.25 + 1 * 2.25 + 3 * 1 = 5.75, over the weight 6; the unrated response has no part.
    assert loss.item() == pytest.approx(5.75 / 6, abs=1e-15)
    loss.backward()
    assert scores.grad.tolist() == pytest.approx([2 * 2 * -0.5 / 6, 2 * 1.5 / 6, 0, 2 * 3 * -1 / 6], abs=1e-15)


def test_the_mean_over_prompts_by_hand():
    loss = loss_of(double(*SCORES), inputs_of(ROWS, 4), Objective("mean-squared-error", "prompt"))
    assert loss.item() == pytest.approx(((2 * 0.25 + 2.25) / 3 + 1) / 2, abs=1e-15)


def test_the_cross_entropy_and_its_gradient_by_hand():
    rows = [(0, 1.0, 2.0, 0), (1, 0.25, 1.0, 0), (3, 0.0, 3.0, 1)]
    scores = double(*SCORES).requires_grad_()
    loss = loss_of(scores, inputs_of(rows, 4), Objective("binary-cross-entropy"))
    chance = [1 / (1 + math.exp(-score)) for score in SCORES]
    terms = [
        -math.log(chance[0]),
        -0.25 * math.log(chance[1]) - 0.75 * math.log(1 - chance[1]),
        -math.log(1 - chance[3]),
    ]
    assert loss.item() == pytest.approx((2 * terms[0] + terms[1] + 3 * terms[2]) / 6, abs=1e-14)
    loss.backward()
    expected = [2 * (chance[0] - 1) / 6, (chance[1] - 0.25) / 6, 0, 3 * chance[3] / 6]
    assert scores.grad.tolist() == pytest.approx(expected, abs=1e-14)


def test_extreme_rewards_stay_finite():
    rows = [(0, 1.0, 1.0, 0), (1, 0.0, 1.0, 0)]
    assert loss_of(double(-1e4, 1e4), inputs_of(rows, 2), Objective("binary-cross-entropy")).item() == 1e4


def test_smoothing_reverses_that_share_of_a_label():
    rows = [(0, 1.0, 1.0, 0)]
    found = loss_of(double(2.0), inputs_of(rows, 1), Objective("binary-cross-entropy", smoothing=0.1)).item()
    assert found == pytest.approx(0.9 * math.log1p(math.exp(-2)) + 0.1 * math.log1p(math.exp(2)))


def test_pairs_beside_ratings_share_the_reward_with_a_learned_factor():
    pairs = PairBatch(torch.tensor([0]), torch.tensor([1]), double(0.5), double(0.25), torch.tensor([0]))
    inputs = inputs_of(ROWS, 4, pairs)
    parameter = double(math.log(2)).requires_grad_()
    scores = double(*SCORES)
    loss = loss_of(scores, inputs, Objective("mean-squared-error"), parameter)
    # The pair's difference is 0.5 - 1 - 0.25 = -0.75 in the unit of ratings, -1.5 in that of pairs.
    assert loss.item() == pytest.approx((5.75 + 0.5 * math.log1p(math.exp(1.5))) / 6.5, abs=1e-14)
    loss.backward()
    # d softplus(-f d)/d log f = -sigmoid(-f d) f d
    assert parameter.grad.item() == pytest.approx(0.5 * 1.5 / (1 + math.exp(-1.5)) / 6.5, abs=1e-14)


def test_the_losses_are_those_of_torch_and_of_sequence_classifiers():
    """The same scores in transformers' own loss of a regression, and in torch's of one label among many."""
    from transformers import Qwen2ForSequenceClassification

    import tiny

    with torch.random.fork_rng():
        torch.manual_seed(3)
        classifier = Qwen2ForSequenceClassification(
            tiny.config(num_labels=1, pad_token_id=0, problem_type="regression")
        ).double()
    ids = torch.arange(5, 29).reshape(4, 6)
    target = double(0.3, -1.2, 0.0, 2.0)
    output = classifier(input_ids=ids, labels=target)
    rows = [(place, value, 1.0, place) for place, value in enumerate(target.tolist())]
    found = loss_of(output.logits[:, 0], inputs_of(rows, 4), Objective("mean-squared-error"))
    assert found.item() == pytest.approx(output.loss.item(), rel=1e-14)
    classifier.config.problem_type = "multi_label_classification"
    shares = double(0, 1, 0.5, 1)
    output = classifier(input_ids=ids, labels=shares[:, None])
    rows = [(place, value, 1.0, place) for place, value in enumerate(shares.tolist())]
    found = loss_of(output.logits[:, 0], inputs_of(rows, 4), Objective("binary-cross-entropy"))
    assert found.item() == pytest.approx(output.loss.item(), rel=1e-14)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3)), min_size=1, max_size=4), min_size=1, max_size=6),
    st.sampled_from(LOSSES_OF_RATINGS),
    st.sampled_from(["pair", "prompt"]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_a_step_is_the_sum_of_its_prompts(prompts, loss, reduction, has_pairs, random):
    def inputs(chosen):
        rows, pairs, size = [(0, 0.0, 0.0, 0)][:0], [], 0
        for number, prompt in enumerate(chosen):
            rows += [(size + place, target, float(weight), number) for place, (target, weight) in enumerate(prompt)]
            pairs += [(size, size + 1, 0.5, 0.1, number)] if has_pairs and len(prompt) > 1 else []
            size += len(prompt)
        better, worse, weight, margin, owner = zip(*pairs, strict=True) if pairs else ((), (), (), (), ())
        batch = PairBatch(
            torch.tensor(better).long(), torch.tensor(worse).long(), double(*weight), double(*margin),
            torch.tensor(owner).long(),
        )  # fmt: skip
        return inputs_of(rows, size, batch)

    objective = Objective(loss, reduction, regulariser=0.1)
    parameter = double(0.3) if has_pairs else None
    whole = inputs(prompts)
    weights = weights_of(whole, objective)
    if weights.loss == 0:
        return
    scores = double(*(random.uniform(-3, 3) for _ in range(whole.num_responses))).requires_grad_()
    expected = step_loss(sums_of(scores, whole, objective, parameter), weights, objective)
    expected.backward()
    total, added, start, gradient = 0.0, StepWeights(0, 0, 0), 0, []
    for prompt in prompts:
        part = inputs([prompt])
        added = StepWeights(*map(sum, zip(added, weights_of(part, objective), strict=True)))
        there = scores.detach()[start : start + len(prompt)].clone().requires_grad_()
        share = step_loss(sums_of(there, part, objective, parameter), weights, objective)
        share.backward()
        gradient += there.grad.tolist()
        total, start = total + share.item(), start + len(prompt)
    assert tuple(added) == pytest.approx(tuple(weights), rel=1e-12)
    assert total == pytest.approx(expected.item(), abs=1e-12)
    assert gradient == pytest.approx(scores.grad.tolist(), abs=1e-12)


def rated_example(number, *targets):
    tails = [(20 + number, 40 + place) for place in range(len(targets))]
    ratings = tuple(IndexedRating(place, target, 1.0 + place) for place, target in enumerate(targets))
    return answers((7, 8, number + 9), *tails, pairs=[])._replace(ratings=ratings)


EXAMPLES = tuple(rated_example(number, 0.5 * number - 0.7, 1.0 - number, 0.2) for number in range(4))


def test_ratings_alone_are_evidence_at_the_places_of_their_responses():
    slots = (Slot(1, 2), Slot(0, 0), Slot(1, 1))
    inputs = loss_inputs(slots, EXAMPLES)
    assert inputs.ratings.response.tolist() == [2, 0, 1]
    assert inputs.ratings.target.tolist() == pytest.approx([0.0, 0.2, -0.7])
    assert inputs.ratings.weight.tolist() == [2, 3, 1]
    assert inputs.ratings.prompt.tolist() == [0, 0, 1]
    assert has_evidence(slots, EXAMPLES)
    assert not has_evidence((Slot(0, 0),), (EXAMPLES[0]._replace(ratings=(IndexedRating(0, 1.0, 0.0),)),))


@pytest.mark.parametrize("loss", LOSSES_OF_RATINGS)
@pytest.mark.parametrize("tokens", [6, 11, 10_000])
def test_the_gradient_is_that_of_the_loss_however_the_step_is_cut(loss, tokens):
    config = Config(loss=loss, tokens_per_forward=tokens)
    slots = tuple(Slot(prompt, response) for prompt in range(4) for response in range(3))
    model = network(double=True)
    rewards = torch.stack(
        [
            model(torch.tensor([row]), torch.ones(1, len(row), dtype=torch.bool))[0]
            for example in EXAMPLES
            for row in example.rows
        ]
    )
    target = double(*(rating.target for example in EXAMPLES for rating in example.ratings))
    weight = double(*(rating.weight for example in EXAMPLES for rating in example.ratings))
    target = target.float().double()  # targets are kept in float32
    terms = (rewards - target) ** 2
    if loss == "binary-cross-entropy":
        terms = torch.nn.functional.binary_cross_entropy_with_logits(rewards, target, reduction="none")
    expected = (weight * terms).sum() / weight.sum()
    expected.backward()
    gradients = [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]
    model.zero_grad()
    losses = accumulated(model, slots, EXAMPLES, config)
    assert losses.pair_loss == pytest.approx(expected.item(), abs=1e-10)
    actual = [weight.grad for weight in model.parameters() if weight.grad is not None]
    assert max((one - other).abs().max().item() for one, other in zip(gradients, actual, strict=True)) < 1e-9


def test_the_factor_of_pairs_is_learned_only_where_there_are_pairs():
    model = network()
    alone = Config(loss="mean-squared-error")
    put_loss_parameter(model, alone)
    assert model.tie is None
    assert loss_parameter(model, alone) == {}
    both = Config(loss="mean-squared-error", pair_weight=0.5)
    put_loss_parameter(model, both)
    assert loss_parameter(model, both) == {"log_pair_scale": 0.0}


def test_a_head_on_frozen_features_reaches_least_squares():
    """Planted linear ratings: gradient descent on the head ends where numpy's least squares does."""
    model = network(seed=1)
    config = Config(
        loss="mean-squared-error", trainable="head", epochs=300, learning_rate=0.05, batch_size=8, schedule="cosine"
    )
    examples = tuple(rated_example(number, 0.0, 0.0, 0.0) for number in range(8))
    scorer = scorer_of(model, config)
    features = scorer.head_inputs([example.rows for example in examples]).detach().double().numpy()
    planted = np.random.default_rng(0).normal(size=features.shape[1])
    values = features @ planted
    targets = iter(((values - values.mean()) / values.std()).tolist())
    examples = tuple(
        example._replace(ratings=tuple(IndexedRating(place, next(targets), 1.0) for place in range(3)))
        for example in examples
    )
    target = np.array([rating.target for example in examples for rating in example.ratings])
    head, *_ = np.linalg.lstsq(features, target, rcond=None)
    least = ((features @ head - target) ** 2).mean()
    for weight in model.backbone.parameters():
        weight.requires_grad_(False)
    torch.nn.init.zeros_(model.head.weight)
    trainer = Trainer(model, examples, config)
    equal, fitted = check_ratings_head(
        trainer.scorer, first_step(trainer.plan, examples, config), examples, objective_of(config)
    )
    assert equal == pytest.approx((target**2).mean(), rel=1e-5)
    assert fitted == pytest.approx(least, abs=1e-6)
    trainer.run()
    assert trainer.curve[-1]["pair_loss"] < 0.02 + least


SCALE = TargetScale(
    dimensions={"stars": 1.0}, ranges={"stars": (1.0, 5.0)}, lowest=1, highest=5, mean=3, spread=2, num_ratings=4,
    link="identity",
)  # fmt: skip


def test_held_out_figures_by_hand():
    examples = (rated_example(0, 1.0, -1.0), rated_example(1, 0.5), rated_example(2, 0.0, 1.0))
    rewards = [np.array([1.0, -0.5]), np.array([0.5]), np.array([-0.5, 1.5])]
    paired = (examples[0]._replace(pairs=answers((7,), (1,), (2,), pairs=[(0, 1)]).pairs), *examples[1:])
    held_out = measure(rewards, paired, scale=SCALE)
    assert (held_out.accuracy, held_out.num_pairs, held_out.num_prompts) == (1.0, 1, 1)
    fit = held_out.ratings
    assert (fit.num_ratings, fit.num_prompts) == (5, 3)
    # Errors 0, 0.5, 0, -0.5, 0.5 in units of 2 stars; targets have the squares 1, 1, 0.25, 0, 1.
    assert fit.mean_squared_error == pytest.approx(4 * 0.75 / 5)
    assert fit.variance == pytest.approx(4 * 3.25 / 5)
    reward, target = np.concatenate(rewards), np.array([1, -1, 0.5, 0, 1])
    assert fit.pearson == pytest.approx(np.corrcoef(reward, target)[0, 1])
    low, high = fit.interval
    assert low < fit.pearson < high
    assert held_out.metric("mean_squared_error") == -fit.mean_squared_error
    assert held_out.metric("accuracy") == 1.0
    assert "correlation with ratings" in held_out.sentence()


def test_a_logistic_reward_is_compared_with_ratings_as_a_share_of_their_range():
    scale = TargetScale(
        dimensions={"stars": 1.0}, ranges={"stars": (1.0, 5.0)}, lowest=1, highest=5, mean=3, spread=2, num_ratings=4,
        link="logistic",
    )  # fmt: skip
    examples = (rated_example(0, 1.0, 0.0)._replace(pairs=answers((7,), (1,), (2,), pairs=[(0, 1)]).pairs),)
    fit = measure([np.array([0.0, math.log(1 / 3)])], examples, scale=scale).ratings
    # Predicted shares 0.5 and 0.25: errors of 2 stars and 1 star.
    assert fit.mean_squared_error == pytest.approx((4 + 1) / 2)
    assert fit.interval is None


def test_equal_ratings_have_no_correlation():
    examples = (rated_example(0, 1.0, 1.0)._replace(pairs=answers((7,), (1,), (2,), pairs=[(0, 1)]).pairs),)
    held_out = measure([np.array([1.0, 0.0])], examples, scale=SCALE)
    assert held_out.ratings.pearson is None
    assert math.isnan(held_out.metric("pearson"))
