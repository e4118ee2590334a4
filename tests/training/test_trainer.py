import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.core.errors import ConfigError, ModelError
from steelyard.networks.reward_network import RewardNetwork
from steelyard.training.batching import PlannedStep, pairs_in, plan_steps
from steelyard.training.config import Config
from steelyard.training.trained_network import choose_trainable
from steelyard.training.trainer import scorer_of
from training_examples import example, network, trained

EXAMPLES = (
    example(7, 3, 12, 5, pairs=[(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)]),
    example(9, 4, pairs=[(1, 0, 2.0, 0.5)], start=40),
    example(2, 2, 6, pairs=[(2, 0), (2, 1)], start=90),
)
WHOLE = Config(batch_size=3, learning_rate=1e-3, tokens_per_forward=30)


def test_an_epoch_of_whole_prompts_sees_every_pair_once():
    steps = plan_steps(EXAMPLES, Config(epochs=2, batch_size=2))
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
    steps = plan_steps(examples, Config(epochs=1, batching="greedy", responses_per_step=slots))
    assert all(pairs_in(step.slots, examples) is not None for step in steps)
    whole = plan_steps(examples, Config(epochs=1, batching="whole", batch_size=3))
    kept = sum(len(pairs_in(step.slots, examples).better) for step in whole)
    assert kept == sum(len(one.pairs) for one in examples)


def test_training_learns_repeats_and_reports():
    config = Config(epochs=30, learning_rate=3e-3, batch_size=3)
    model = network()
    curve = trained(model, EXAMPLES, config).curve
    assert curve[0]["pair_loss"] > 0.5
    assert curve[-1]["pair_loss"] < 0.2
    assert [line["step"] for line in curve] == list(range(1, 31))
    assert all(
        math.isclose(line["loss"], line["pair_loss"] + 0.1 * line["regulariser"], rel_tol=1e-5) for line in curve
    )
    torch.rand(3)
    again = trained(network(), EXAMPLES, config).network
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    other = trained(network(), EXAMPLES, Config(epochs=30, learning_rate=3e-3, batch_size=1)).network
    assert not torch.equal(model.head.weight, other.head.weight)


def test_a_loss_that_is_no_number_stops_the_run():
    model = network()
    model.head.weight.data.fill_(float("nan"))
    with pytest.raises(ModelError, match="the loss is nan at step 1"):
        trained(model, EXAMPLES, WHOLE)


def test_steps_of_a_token_budget_hold_whole_prompts_and_every_pair():
    steps = plan_steps(EXAMPLES, Config(epochs=2, batching="packed", tokens_per_step=30))
    for epoch in (0, 1):
        own = [step for step in steps if step.epoch == epoch]
        assert sum(len(pairs_in(step.slots, EXAMPLES).better) for step in own) == 8
        assert sorted(slot.prompt for step in own for slot in step.slots) == [0] * 4 + [1] * 2 + [2] * 3


def test_packing_is_used_where_it_is_exact_and_refused_where_not():
    from transformers import GPT2Config, GPT2ForSequenceClassification

    assert (scorer_of(network(), Config()).layout, scorer_of(network(), Config()).layout_reason) == ("packed", None)
    padded = scorer_of(network(), Config(kernel="padded"))
    assert (padded.layout, padded.layout_reason) == ("padded", "asked for")
    settings = GPT2Config(vocab_size=50, n_embd=8, n_layer=1, n_head=1, num_labels=1, pad_token_id=0)
    learned = RewardNetwork(GPT2ForSequenceClassification(settings))
    assert scorer_of(learned, Config()).layout_reason == "gpt2: its positions are learned"
    assert not scorer_of(learned, Config()).is_packed
    with pytest.raises(ModelError, match=r"packing is not exact for this model \(gpt2: its positions are learned\)"):
        scorer_of(learned, Config(kernel="packed"))


def test_a_step_without_a_pair_has_none():
    assert pairs_in(plan_steps(EXAMPLES, Config(epochs=1, batch_size=8))[0].slots[:1], EXAMPLES) is None
    weightless = (example(2, 2, pairs=[(0, 1, 0.0, 0.0)]),)
    assert plan_steps(weightless, Config(batch_size=8)) == ()
    assert PlannedStep(0, ()).slots == ()


@pytest.mark.parametrize(("number", "layers"), [(0, set()), (1, {1}), (2, {0, 1})])
def test_only_the_chosen_layers_are_trained(number, layers):
    names = list(choose_trainable(network(), number))
    assert "score.weight" in names
    assert {int(name.split(".")[2]) for name in names if ".layers." in name} == layers
    assert ("model.norm.weight" in names) == (number > 0)
    assert not any("embed" in name for name in names)
    assert len(list(choose_trainable(network(), None))) == len(list(network().parameters()))


def test_more_layers_than_the_model_has_are_refused():
    with pytest.raises(ConfigError, match=r"'last:99', and the model has 2 layers") as error:
        choose_trainable(network(), 99)
    assert error.value.allowed == "all, head, or last:1 to last:2"


def test_a_last_step_that_ruins_the_model_stops_the_run():
    config = Config(epochs=1, batch_size=3, learning_rate=1e30, warmup_ratio=0.0)
    with pytest.raises(ModelError, match="the sum of rewards is nan at step 1"):
        trained(network(), EXAMPLES, config)


def test_a_gradient_that_is_not_finite_stops_the_run():
    model = network()
    model.head.weight.register_hook(lambda gradient: gradient * math.inf)
    with pytest.raises(ModelError, match=r"the gradient's norm is (inf|nan) at step 1"):
        trained(model, EXAMPLES, WHOLE)


def test_the_final_norm_is_found_whatever_the_family_calls_it():
    from transformers import GPT2Config, GPT2ForSequenceClassification

    settings = GPT2Config(
        vocab_size=400, n_positions=64, n_embd=32, n_layer=2, n_head=4, num_labels=1, bos_token_id=1, eos_token_id=2
    )
    names = set(choose_trainable(RewardNetwork(GPT2ForSequenceClassification(settings)), 1))
    assert {"transformer.ln_f.weight", "transformer.ln_f.bias", "score.weight"} < names
    assert {name.split(".")[2] for name in names if ".h." in name} == {"1"}


def test_a_deterministic_training_asks_for_one_result_of_a_pack():
    kinds = [scorer_of(network(), Config(deterministic=value)).arithmetic.kind for value in (False, True)]
    assert kinds == ["fast", "repeatable"]
