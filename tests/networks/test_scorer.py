import pytest
import torch

from steelyard.networks.scorer import Limits, Scorer
from training_examples import answers, example, network

EXAMPLES = (
    answers((7, 8, 9, 10, 11, 12, 13), (20,), (21, 22, 23), (21, 30), (40, 41, 42, 43, 44), pairs=[(0, 1)]),
    example(9, 4, pairs=[(1, 0, 2.0, 0.5)], start=40),
    answers((3,), (50, 51), (52,), (53, 54, 55), pairs=[(2, 0), (2, 1)]),
)
PROMPTS = [one.rows for one in EXAMPLES]


def test_packed_and_padded_rewards_are_the_same_whatever_the_limit():
    model = network()
    with torch.no_grad():
        packed = Scorer(model).forward(PROMPTS)
        for budget in (1, 30, 1000):
            padded = Scorer(model, kernel="padded", limits=Limits(budget)).forward(PROMPTS)
            assert torch.allclose(padded, packed, atol=1e-5)


@pytest.mark.parametrize("kernel", ["packed", "padded"])
def test_rewards_within_the_limits_are_the_same_and_have_no_graph(kernel):
    model = network(double=True)
    expected = Scorer(model).forward(PROMPTS)
    for limits in (Limits(1), Limits(12), Limits(1000), Limits(1000, rows_per_pass=2)):
        found = Scorer(model, kernel=kernel, limits=limits).rewards(PROMPTS)
        assert not found.requires_grad
        assert (found - expected).abs().max() < 1e-12


def test_no_row_has_no_reward():
    assert Scorer(network()).rewards([]).tolist() == Scorer(network()).rewards([()]).tolist() == []


def test_an_idle_pass_is_short_and_has_a_graph():
    row = tuple(range(5, 5 + 300))
    model = network()
    seen = []
    model.backbone.register_forward_pre_hook(lambda _, __, named: seen.append(named["input_ids"]), with_kwargs=True)
    assert Scorer(model).idle(row).requires_grad
    assert seen[0].shape == (1, 256)


def test_a_prompt_takes_its_tokens_once_or_with_each_answer():
    packed, padded = Scorer(network(), limits=Limits(10)), Scorer(network(), kernel="padded")
    assert packed.size(PROMPTS[0]) == 7 + 1 + 3 + 2 + 5
    assert padded.size(PROMPTS[0]) == 4 * 7 + 1 + 3 + 2 + 5
    assert packed.tokens_per_pass == 10
    assert padded.tokens_per_pass == 8192


@pytest.mark.parametrize("kernel", ["packed", "padded"])
def test_evaluation_mode_ends_with_the_block(kernel):
    scorer = Scorer(network().train(), kernel=kernel, limits=Limits(20))
    with scorer.evaluating():
        assert not scorer.network.training
    assert scorer.network.training
    assert len(scorer.head_inputs(PROMPTS)) == 9
