import pytest
import torch

from steelyard.stages.train.scoring import num_tokens, num_wanted, score_idly, score_prompts, score_within
from steelyard.stages.train.settings import Config
from training_examples import answers, example, network

EXAMPLES = (
    answers((7, 8, 9, 10, 11, 12, 13), (20,), (21, 22, 23), (21, 30), (40, 41, 42, 43, 44), pairs=[(0, 1)]),
    example(9, 4, pairs=[(1, 0, 2.0, 0.5)], start=40),
    answers((3,), (50, 51), (52,), (53, 54, 55), pairs=[(2, 0), (2, 1)]),
)


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


def test_an_idle_pass_is_short_and_has_a_graph():
    row = tuple(range(5, 5 + 300))
    model = network()
    seen = []
    model.backbone.register_forward_pre_hook(lambda _, __, named: seen.append(named["input_ids"]), with_kwargs=True)
    assert score_idly(model, row, Config(), is_packed=True).requires_grad
    assert seen[0].shape == (1, 256)


def test_a_prompt_takes_its_tokens_once_or_with_each_answer():
    assert num_tokens(EXAMPLES[0].rows, is_packed=True) == 7 + 1 + 3 + 2 + 5
    assert num_tokens(EXAMPLES[0].rows, is_packed=False) == 4 * 7 + 1 + 3 + 2 + 5
    assert num_wanted(network(), Config(tokens_per_forward=10), is_packed=True) == 10
    assert num_wanted(network(), Config(tokens_per_forward=8192), is_packed=False) == 8192
