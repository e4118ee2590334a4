import importlib.util
import math

import pytest
import torch

import training_examples
from each_value import each
from steelyard.core.errors import MissingPartError
from steelyard.training.batching import Slot, pairs_in, plan_steps
from steelyard.training.config import Config
from steelyard.training.optimiser import learning_rate_factor, make_optimiser, set_rates
from steelyard.training.trainer import scorer_of
from training_examples import accumulated, answers, example, network, plain_loss

PROMPT = (7, 8, 9, 10, 11, 12, 13)
EXAMPLES = (
    answers(PROMPT, (20,), (21, 22, 23), (21, 30), (40, 41, 42, 43, 44), pairs=[(0, 1), (0, 2), (1, 3, 2.0, 0.5)]),
    example(9, 4, pairs=[(1, 0, 2.0, 0.5)], start=40),
    answers((3,), (50, 51), (52,), (53, 54, 55), pairs=[(2, 0), (2, 1)]),
)
(STEP,) = plan_steps(EXAMPLES, Config(epochs=1, batch_size=3))


def gradients(model):
    found = [weight.grad for weight in model.parameters()]
    model.zero_grad()
    return found


@pytest.mark.parametrize("kernel", ["packed", "padded"])
@pytest.mark.parametrize("budget", [1000, 25, 12, 1])
@pytest.mark.parametrize("reduction", ["pair", "prompt"])
def test_loss_and_gradient_equal_a_plain_float64_reference_however_the_step_is_cut(reduction, budget, kernel):
    """A budget of 12 tokens cuts prompts in two and of 1 into single answers: these take two passes."""
    config = Config(tokens_per_forward=budget, reduction=reduction, regulariser=0.1, kernel=kernel)
    model = network(double=True)
    reference = plain_loss(model, EXAMPLES, config)
    expected = torch.autograd.grad(reference, list(model.parameters()), allow_unused=True)
    found = accumulated(model, STEP.slots, EXAMPLES, config)
    assert abs(found.pair_loss + 0.1 * found.regulariser - reference.item()) < 1e-12
    assert found.num_pairs == 6
    for mine, theirs in zip(gradients(model), expected, strict=True):
        assert (mine is None) == (theirs is None)
        assert mine is None or (mine - theirs).abs().max() < 1e-12
    assert max(gradient.abs().max() for gradient in expected if gradient is not None) > 1e-3


def test_a_smoothed_label_is_the_wrong_way_round_with_its_probability():
    model = network(double=True)
    sharp, smooth = (
        accumulated(model, STEP.slots, EXAMPLES, Config(label_smoothing=value)).pair_loss for value in (0.0, 0.1)
    )
    turned = tuple(
        one._replace(pairs=tuple(
            pair._replace(better=pair.worse, worse=pair.better, margin=-pair.margin) for pair in one.pairs
        ))
        for one in EXAMPLES
    )  # fmt: skip
    wrong = accumulated(model, STEP.slots, turned, Config()).pair_loss
    assert smooth == pytest.approx(0.9 * sharp + 0.1 * wrong, abs=1e-7)


def features_of(model, prompt, config, *, seed=0):
    """What the head was given in each pass of one prompt's step."""
    seen = []
    hook = model.head.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach()))
    slots = tuple(Slot(prompt, answer) for answer in range(len(EXAMPLES[prompt].rows)))
    accumulated(model, slots, EXAMPLES, config, seed=seed)
    hook.remove()
    return seen


def test_a_prompt_over_the_bound_is_cut_between_answers_alone_and_passes_twice():
    assert [len(one) for one in features_of(network(), 0, Config(tokens_per_forward=12))] == [2, 1, 1, 2, 1, 1]
    assert [len(one) for one in features_of(network(), 0, Config(tokens_per_forward=18))] == [4]


def test_dropout_falls_on_the_same_places_in_both_passes():
    model = network(double=True)
    for layer in model.backbone.layers:
        layer.self_attn.attention_dropout = 0.5
    model.train()
    config = Config(tokens_per_forward=12)
    first = features_of(model, 0, config, seed=3)
    assert all(torch.equal(one, again) for one, again in zip(first[:3], first[3:], strict=True))
    other = features_of(model, 0, config, seed=4)
    assert not any(torch.equal(one, two) for one, two in zip(first, other, strict=True))


def test_a_chunk_without_a_pair_adds_to_the_regulariser_alone():
    lone = (*EXAMPLES[:1], EXAMPLES[1]._replace(pairs=()))
    slots = tuple(Slot(prompt, answer) for prompt, one in enumerate(lone) for answer in range(len(one.rows)))
    model = network(double=True)
    found = accumulated(model, slots, lone, Config(tokens_per_forward=20))
    with torch.no_grad():
        rewards = scorer_of(model, Config()).forward([one.rows for one in lone])
    assert found.regulariser == pytest.approx(rewards.square().mean().item(), abs=1e-12)
    assert found.num_pairs == len(pairs_in(slots, lone).better) == 3


HAS_TORCHAO = importlib.util.find_spec("torchao") is not None


def test_a_first_step_moves_each_weight_by_the_rate_against_its_gradient():
    network = training_examples.network()
    optimiser = make_optimiser(network, Config(learning_rate=0.5))
    set_rates(optimiser, 0.1)
    before = network.head.weight.detach().clone()
    network.head.weight.sum().backward()
    optimiser.step()
    # Adam's first step is rate x gradient / (|gradient| + 1e-8), and the gradient of a sum is 1.
    assert torch.allclose(before - network.head.weight.detach(), torch.full_like(before, 0.05), atol=1e-6)


def test_a_rate_that_is_a_tensor_stays_one():
    network = training_examples.network()
    optimiser = make_optimiser(network, Config(learning_rate=0.5))
    rate = torch.tensor(0.0)
    optimiser.param_groups[0]["lr"] = rate
    set_rates(optimiser, 0.1)
    assert optimiser.param_groups[0]["lr"] is rate
    assert rate.item() == pytest.approx(0.05)


@pytest.mark.skipif(HAS_TORCHAO, reason="torchao is installed")
def test_eight_bits_without_their_package_name_it_and_its_group():
    with pytest.raises(MissingPartError, match=r"torchao[\s\S]*steelyard\[eight-bit\]"):
        make_optimiser(training_examples.network(), Config(learning_rate=0.5, optimiser="adamw-8bit"))


@pytest.mark.field  # it is compiled at its first step
@pytest.mark.filterwarnings("ignore")  # torchao's own
@pytest.mark.skipif(not HAS_TORCHAO, reason="torchao is not installed")
def test_eight_bits_move_weights_as_float32_does_but_for_rounding():
    moved = []
    for name in ("adamw", "adamw-8bit"):
        network = training_examples.network()
        optimiser = make_optimiser(network, Config(learning_rate=0.5, optimiser=name))
        set_rates(optimiser, 0.1)
        network.head.weight.sum().backward()
        optimiser.step()
        moved.append(network.head.weight.detach().clone())
    assert torch.allclose(*moved, atol=1e-3)


def factors(num_steps, **settings):
    return [learning_rate_factor(step, num_steps, **settings) for step in range(num_steps)]


def test_warm_up_then_half_a_cosine_by_hand():
    # Ten steps, two of warm-up: 1/2, 1, then (1 + cos(pi * k / 8)) / 2 for k = 0 to 7.
    expected = [0.5, 1.0] + [(1 + math.cos(math.pi * k / 8)) / 2 for k in range(8)]
    assert factors(10, warmup_ratio=0.2, schedule="cosine") == pytest.approx(expected)


def test_a_constant_schedule_stays_at_its_peak():
    assert factors(4, warmup_ratio=0.5, schedule="constant") == [0.5, 1.0, 1.0, 1.0]
    assert factors(3, warmup_ratio=0.0, schedule="constant") == [1.0, 1.0, 1.0]


def test_a_linear_schedule_falls_in_equal_parts():
    assert factors(6, warmup_ratio=0.3, schedule="linear") == pytest.approx([0.5, 1.0, 1.0, 0.75, 0.5, 0.25])


@each("num_steps", [1, 2, 7, 100])
@each("warmup_ratio", [0.0, 0.1, 1.0])
@each("schedule", ["cosine", "linear"])
def test_every_step_moves(num_steps, warmup_ratio, schedule):
    assert all(0 < factor <= 1 for factor in factors(num_steps, warmup_ratio=warmup_ratio, schedule=schedule))
