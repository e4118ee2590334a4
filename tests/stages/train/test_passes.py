import pytest
import torch

from steelyard.methods.training.batching import Slot
from steelyard.stages.train.loop import plan
from steelyard.stages.train.passes import _parts, _scored, backward, pairs_in, score_prompts, score_within
from steelyard.stages.train.settings import Config
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


def test_a_prompt_over_the_bound_is_cut_between_answers_alone():
    slots = [Slot(0, answer) for answer in range(4)]
    parts = _parts(slots, EXAMPLES, Config(tokens_per_forward=12), is_packed=True)
    assert [[slot.response for slot in part] for part in parts] == [[0, 1], [2], [3]]
    assert len(_parts(slots, EXAMPLES, Config(tokens_per_forward=18), is_packed=True)) == 1


def test_dropout_falls_on_the_same_places_in_both_passes():
    model = network(double=True)
    for layer in model.backbone.layers:
        layer.self_attn.attention_dropout = 0.5
    model.train()
    slots = tuple(Slot(0, answer) for answer in range(4))
    config = Config(tokens_per_forward=12)
    torch.manual_seed(3)
    graph, first = _scored(model, slots, EXAMPLES, config, is_packed=True)
    assert graph is None
    parts = _parts(slots, EXAMPLES, config, is_packed=True)
    rows = [[EXAMPLES[slot.prompt].rows[slot.response] for slot in part] for part in parts]
    again = torch.cat([score_prompts(model, [part], config, is_packed=True) for part in rows])
    assert torch.equal(first, again)
    other = torch.cat([score_prompts(model, [part], config, is_packed=True) for part in rows])
    assert not torch.equal(first, other)


def test_a_chunk_without_a_pair_adds_to_the_regulariser_alone():
    lone = (*EXAMPLES[:1], EXAMPLES[1]._replace(pairs=()))
    slots = tuple(Slot(prompt, answer) for prompt, one in enumerate(lone) for answer in range(len(one.rows)))
    model = network(double=True)
    found = backward(model, slots, lone, Config(tokens_per_forward=20), is_packed=True)
    with torch.no_grad():
        rewards = score_prompts(model, [one.rows for one in lone], Config(), is_packed=True)
    assert found.regulariser == pytest.approx(rewards.square().mean().item(), abs=1e-12)
    assert found.num_pairs == len(pairs_in(slots, lone).better) == 3


def test_packed_and_padded_scores_are_the_same_whatever_the_bound():
    model = network()
    prompts = [one.rows for one in EXAMPLES]
    with torch.no_grad():
        packed = score_prompts(model, prompts, Config(), is_packed=True)
        for budget in (1, 30, 1000):
            padded = score_prompts(model, prompts, Config(tokens_per_forward=budget), is_packed=False)
            assert torch.allclose(padded, packed, atol=1e-5)


@pytest.mark.parametrize("is_packed", [True, False])
def test_scores_within_a_bound_are_the_same_and_have_no_graph(is_packed):
    model = network(double=True)
    prompts = [one.rows for one in EXAMPLES]
    expected = score_prompts(model, prompts, Config(), is_packed=True)
    for budget in (1, 12, 1000):
        found = score_within(model, prompts, Config(tokens_per_forward=budget), is_packed=is_packed)
        assert not found.requires_grad
        assert (found - expected).abs().max() < 1e-12
