import math
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
from steelyard.core.errors import ModelError
from steelyard.methods.ranking.pairs import IndexedPair
from steelyard.methods.training.losses import bradley_terry_loss, gaussian_regulariser
from steelyard.plugins.models._network import RewardNetwork
from steelyard.stages.train.examples import Example
from steelyard.stages.train.loop import Planned, choose_trainable, fit, pairs_in, plan, score_step
from steelyard.stages.train.settings import Config


class RMSNorm64(torch.nn.Module):
    """The norm without transformers' cast to float32, which alone would move float64 gradients by 2e-9."""

    def __init__(self, norm):
        super().__init__()
        self.weight, self.epsilon = norm.weight, norm.variance_epsilon

    def forward(self, hidden):
        return self.weight * hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + self.epsilon)


def network(seed=0, *, double=False):
    from transformers import Qwen2ForSequenceClassification

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = RewardNetwork(Qwen2ForSequenceClassification(tiny.config(num_labels=1, pad_token_id=0)))
    if double:
        made.double()
        for name, module in list(made.classifier.named_modules()):
            if type(module).__name__ == "Qwen2RMSNorm":
                parent = made.classifier.get_submodule(name.rpartition(".")[0])
                setattr(parent, name.rpartition(".")[2], RMSNorm64(module))
    return made


def example(*lengths, pairs, start=5):
    rows = tuple(tuple(range(start + index, start + index + length)) for index, length in enumerate(lengths))
    return Example(rows, tuple(IndexedPair(*pair) for pair in pairs))


EXAMPLES = (
    example(7, 3, 12, 5, pairs=[(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)]),
    example(9, 4, pairs=[(1, 0, 2.0, 0.5)], start=40),
    example(2, 2, 6, pairs=[(2, 0), (2, 1)], start=90),
)
WHOLE = Config(prompts_per_step=3, tokens_per_forward=30)


def plain_loss(model, config):
    """Every response alone, every pair in a loop, as the equations say it."""
    by_prompt, squares = [], []
    for one in EXAMPLES:
        rewards = [model(torch.tensor([row]), torch.ones(1, len(row), dtype=torch.bool))[0] for row in one.rows]
        squares += [reward**2 for reward in rewards]
        by_prompt.append(
            [
                (pair.weight, -torch.log(torch.sigmoid(rewards[pair.better] - rewards[pair.worse] - pair.margin)))
                for pair in one.pairs
            ]
        )
    if config.reduction == "pair":
        every = [term for terms in by_prompt for term in terms]
        loss = sum(weight * term for weight, term in every) / sum(weight for weight, _ in every)
    else:
        means = [sum(w * term for w, term in terms) / sum(w for w, _ in terms) for terms in by_prompt]
        loss = sum(means) / len(means)
    return loss + config.regulariser * sum(squares) / len(squares)


@pytest.mark.parametrize("reduction", ["pair", "prompt"])
def test_loss_and_gradient_equal_a_plain_float64_reference(reduction):
    config = Config(prompts_per_step=3, tokens_per_forward=30, reduction=reduction, regulariser=0.1)
    model = network(double=True)
    reference = plain_loss(model, config)
    expected = torch.autograd.grad(reference, list(model.parameters()), allow_unused=True)
    (planned,) = plan(EXAMPLES, Config(epochs=1, prompts_per_step=3))
    scores = score_step(model, [EXAMPLES[slot.prompt].rows[slot.response] for slot in planned.slots], config)
    pairs = pairs_in(planned.slots, EXAMPLES)
    pairs = pairs._replace(weight=pairs.weight.double(), margin=pairs.margin.double())
    loss = bradley_terry_loss(scores, pairs, reduction) + config.regulariser * gaussian_regulariser(scores)
    assert scores.dtype == torch.float64
    assert abs(loss.item() - reference.item()) < 1e-12
    found = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine is None) == (theirs is None)
        assert mine is None or (mine - theirs).abs().max() < 1e-12
    assert max(gradient.abs().max() for gradient in expected if gradient is not None) > 1e-3


def test_an_epoch_of_whole_prompts_sees_every_pair_once():
    steps = plan(EXAMPLES, Config(epochs=2, prompts_per_step=2))
    for epoch in (0, 1):
        own = [step for step in steps if step.epoch == epoch]
        assert sum(len(pairs_in(step.slots, EXAMPLES).better) for step in own) == 8


@st.composite
def label_graph(draw):
    size = draw(st.integers(2, 6))
    end = st.integers(0, size - 1)
    return size, draw(st.sets(st.tuples(end, end).filter(lambda pair: pair[0] != pair[1]), max_size=6))


label_graphs = st.lists(label_graph(), min_size=1, max_size=25)


@settings(max_examples=60, deadline=None)
@given(label_graphs, st.integers(2, 12))
def test_greedy_plans_end_for_every_label_graph_and_have_pairs_in_every_step(graphs, slots):
    examples = [example(*[2] * size, pairs=sorted(pairs)) for size, pairs in graphs]
    started = time.monotonic()
    steps = plan(examples, Config(epochs=1, batching="greedy", slots=slots))
    assert time.monotonic() - started < 2
    assert all(pairs_in(step.slots, examples) is not None for step in steps)
    whole = plan(examples, Config(epochs=1, batching="whole", prompts_per_step=3))
    kept = sum(len(pairs_in(step.slots, examples).better) for step in whole)
    assert kept == sum(len(one.pairs) for one in examples)


def test_scores_of_a_step_do_not_depend_on_how_it_is_divided():
    model = network()
    rows = [row for one in EXAMPLES for row in one.rows]
    with torch.no_grad():
        single = score_step(model, rows, Config(tokens_per_forward=1))
        for budget in (10, 30, 1000):
            assert torch.allclose(score_step(model, rows, Config(tokens_per_forward=budget)), single, atol=1e-5)


def trained(config, seed=0):
    model, curve = network(seed), []
    fit(model, EXAMPLES, plan(EXAMPLES, config), config, after_step=curve.append)
    return model, curve


def test_training_learns_repeats_and_reports():
    config = Config(epochs=30, learning_rate=3e-3, prompts_per_step=3)
    model, curve = trained(config)
    assert curve[0].pair_loss > 0.5
    assert curve[-1].pair_loss < 0.2
    assert [point.step for point in curve] == list(range(1, 31))
    assert all(math.isclose(point.loss, point.pair_loss + 0.1 * point.regulariser, rel_tol=1e-5) for point in curve)
    torch.rand(3)
    again, _ = trained(config)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    other, _ = trained(Config(epochs=30, learning_rate=3e-3, prompts_per_step=1))
    assert not torch.equal(model.head.weight, other.head.weight)


def test_a_loss_that_is_no_number_stops_the_run():
    model = network()
    model.head.weight.data.fill_(float("nan"))
    with pytest.raises(ModelError, match="the loss is nan at step 1"):
        fit(model, EXAMPLES, plan(EXAMPLES, WHOLE), WHOLE, after_step=lambda _: None)


def test_a_step_without_a_pair_has_none():
    assert pairs_in(plan(EXAMPLES, Config(epochs=1))[0].slots[:1], EXAMPLES) is None
    weightless = (example(2, 2, pairs=[(0, 1, 0.0, 0.0)]),)
    assert plan(weightless, Config()) == ()
    assert Planned(0, ()).slots == ()


@pytest.mark.parametrize(("number", "layers"), [(0, set()), (1, {1}), (2, {0, 1})])
def test_only_the_chosen_layers_are_trained(number, layers):
    names = list(choose_trainable(network(), number))
    assert "score.weight" in names
    assert {int(name.split(".")[2]) for name in names if ".layers." in name} == layers
    assert ("model.norm.weight" in names) == (number > 0)
    assert not any("embed" in name for name in names)
    assert len(list(choose_trainable(network(), None))) == len(list(network().parameters()))


def test_a_last_step_that_ruins_the_model_stops_the_run():
    config = Config(epochs=1, prompts_per_step=3, learning_rate=1e30, warm_up=0.0)
    with pytest.raises(ModelError, match="the sum of rewards is nan at step 1"):
        fit(network(), EXAMPLES, plan(EXAMPLES, config), config, after_step=lambda _: None)


def test_a_gradient_that_is_not_finite_stops_the_run():
    model = network()
    model.head.weight.register_hook(lambda gradient: gradient * math.inf)
    with pytest.raises(ModelError, match=r"the gradient's norm is (inf|nan) at step 1"):
        fit(model, EXAMPLES, plan(EXAMPLES, WHOLE), WHOLE, after_step=lambda _: None)


def test_the_final_norm_is_found_whatever_the_family_calls_it():
    from transformers import GPT2Config, GPT2ForSequenceClassification

    settings = GPT2Config(
        vocab_size=400, n_positions=64, n_embd=32, n_layer=2, n_head=4, num_labels=1, bos_token_id=1, eos_token_id=2
    )
    names = set(choose_trainable(RewardNetwork(GPT2ForSequenceClassification(settings)), 1))
    assert {"transformer.ln_f.weight", "transformer.ln_f.bias", "score.weight"} < names
    assert {name.split(".")[2] for name in names if ".h." in name} == {"1"}
