import pytest
import torch

from steelyard.methods.training.batching import Slot
from steelyard.stages.train.loop import plan
from steelyard.stages.train.passes import backward
from steelyard.stages.train.scoring import score_prompts
from steelyard.stages.train.settings import Config
from steelyard.stages.train.terms import pairs_in
from training_examples import answers, example, network, plain_loss

PROMPT = (7, 8, 9, 10, 11, 12, 13)
EXAMPLES = (
    answers(PROMPT, (20,), (21, 22, 23), (21, 30), (40, 41, 42, 43, 44), pairs=[(0, 1), (0, 2), (1, 3, 2.0, 0.5)]),
    example(9, 4, pairs=[(1, 0, 2.0, 0.5)], start=40),
    answers((3,), (50, 51), (52,), (53, 54, 55), pairs=[(2, 0), (2, 1)]),
)
(STEP,) = plan(EXAMPLES, Config(epochs=1, prompts_per_step=3))


def gradients(model):
    found = [weight.grad for weight in model.parameters()]
    model.zero_grad()
    return found


@pytest.mark.parametrize("is_packed", [True, False])
@pytest.mark.parametrize("budget", [1000, 25, 12, 1])
@pytest.mark.parametrize("reduction", ["pair", "prompt"])
def test_loss_and_gradient_equal_a_plain_float64_reference_however_the_step_is_cut(reduction, budget, is_packed):
    """A budget of 12 tokens cuts prompts in two and of 1 into single answers: these take two passes."""
    config = Config(tokens_per_forward=budget, reduction=reduction, regulariser=0.1)
    model = network(double=True)
    reference = plain_loss(model, EXAMPLES, config)
    expected = torch.autograd.grad(reference, list(model.parameters()), allow_unused=True)
    found = backward(model, STEP.slots, EXAMPLES, config, is_packed=is_packed)
    assert abs(found.pair_loss + 0.1 * found.regulariser - reference.item()) < 1e-12
    assert found.num_pairs == 6
    for mine, theirs in zip(gradients(model), expected, strict=True):
        assert (mine is None) == (theirs is None)
        assert mine is None or (mine - theirs).abs().max() < 1e-12
    assert max(gradient.abs().max() for gradient in expected if gradient is not None) > 1e-3


def test_a_smoothed_label_is_the_wrong_way_round_with_its_probability():
    model = network(double=True)
    sharp, smooth = (
        backward(model, STEP.slots, EXAMPLES, Config(label_smoothing=value), is_packed=True).pair_loss
        for value in (0.0, 0.1)
    )
    turned = tuple(
        one._replace(pairs=tuple(
            pair._replace(better=pair.worse, worse=pair.better, margin=-pair.margin) for pair in one.pairs
        ))
        for one in EXAMPLES
    )  # fmt: skip
    wrong = backward(model, STEP.slots, turned, Config(), is_packed=True).pair_loss
    assert smooth == pytest.approx(0.9 * sharp + 0.1 * wrong, abs=1e-7)


def features_of(model, prompt, config, *, draw=0):
    """What the head was given in each pass of one prompt's step."""
    seen = []
    hook = model.head.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach()))
    slots = tuple(Slot(prompt, answer) for answer in range(len(EXAMPLES[prompt].rows)))
    backward(model, slots, EXAMPLES, config, is_packed=True, draw=draw)
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
    first = features_of(model, 0, config, draw=3)
    assert all(torch.equal(one, again) for one, again in zip(first[:3], first[3:], strict=True))
    other = features_of(model, 0, config, draw=4)
    assert not any(torch.equal(one, two) for one, two in zip(first, other, strict=True))


def test_a_chunk_without_a_pair_adds_to_the_regulariser_alone():
    lone = (*EXAMPLES[:1], EXAMPLES[1]._replace(pairs=()))
    slots = tuple(Slot(prompt, answer) for prompt, one in enumerate(lone) for answer in range(len(one.rows)))
    model = network(double=True)
    found = backward(model, slots, lone, Config(tokens_per_forward=20), is_packed=True)
    with torch.no_grad():
        rewards = score_prompts(model, [one.rows for one in lone], Config(), is_packed=True)
    assert found.regulariser == pytest.approx(rewards.square().mean().item(), abs=1e-12)
    assert found.num_pairs == len(pairs_in(slots, lone).better) == 3
