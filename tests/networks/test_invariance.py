import copy

import numpy as np
import pytest
import torch

from packed_models import causal, network
from steelyard.networks import invariance as _invariance
from steelyard.networks.invariance import invariant_arithmetic
from steelyard.networks.packed_forward import EXACT
from steelyard.networks.reward_network import PolicyNetwork
from steelyard.networks.scorer import Limits, Scorer
from steelyard.networks.self_tests import invariance_test

CPU = torch.device("cpu")
MODELS_OF_EXPERTS = {"mixtral", "qwen2_moe", "qwen3_moe"}


def prompts(number=12, seed=0, longest=90, most_answers=5):
    """Prompts whose ends and lengths lie before, at and behind the ends of blocks, some answers with one beginning."""
    draws = np.random.default_rng(seed)
    found = []
    for place in range(number):
        shared = (0, 1, 63, 64, 65, 128)[place % 6] if place < 6 else int(draws.integers(2, longest))
        prompt = draws.integers(1, 200, shared).tolist()
        beginning = draws.integers(1, 200, int(draws.integers(0, 4))).tolist() if place % 2 else []
        rows = [
            (*prompt, *beginning, *draws.integers(1, 200, int(draws.integers(1, longest))).tolist())
            for _ in range(int(draws.integers(1, most_answers + 1)))
        ]
        found.append(tuple(rows))
    return found


def rewards_of(model, asked, size, limits=None, **settings):
    scorer = Scorer(model, limits=limits or Limits(), **settings)
    parts = [scorer.rewards(asked[start : start + size]) for start in range(0, len(asked), size)]
    return torch.cat(parts)


def every_way(model, asked, **settings):
    """Rewards in packs of several sizes, orders, splits and limits, each in the order of the rows."""
    turned = [rows[::-1] for rows in asked[::-1]]
    halves = [half for rows in asked for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :]) if half]
    alone = [(row,) for rows in asked for row in rows]
    yield from (rewards_of(model, asked, size, **settings) for size in (1, 3, 7))
    yield rewards_of(model, turned, 5, **settings).flip(0)
    yield rewards_of(model, halves, 4, **settings)
    yield rewards_of(model, alone, 1, **settings)
    yield rewards_of(model, alone, len(alone), **settings)
    for tokens in (40, 300, 100_000):
        yield rewards_of(model, asked, len(asked), limits=Limits(tokens), **settings)
    yield rewards_of(model, asked, len(asked), limits=Limits(rows_per_pass=2), **settings)


QUICK = ("qwen2", "gemma3_text", "mixtral")


@pytest.mark.parametrize(
    "kind", [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in EXACT]
)
def test_no_bit_of_a_reward_depends_on_other_rows(kind):
    model = network(kind, torch.float32, max_position_embeddings=4096)
    asked = prompts(7 if kind in MODELS_OF_EXPERTS else 12)
    expected = rewards_of(model, asked, len(asked))
    assert len(set(expected.tolist())) > len(expected) // 2
    for found in every_way(model, asked):
        assert torch.equal(found, expected)


@pytest.mark.slow
def test_a_thousand_texts_in_packs_of_many_sizes():
    model = network("qwen2", torch.float32, max_position_embeddings=4096)
    asked = prompts(340, seed=3, longest=40)
    expected = rewards_of(model, asked, len(asked))
    assert len(expected) > 900
    for size in (1, 7, 32):
        assert torch.equal(rewards_of(model, asked, size), expected)
    for tokens in (1024, 32_768):
        assert torch.equal(rewards_of(model, asked, len(asked), limits=Limits(tokens)), expected)


@pytest.mark.parametrize("kind", ["qwen2", pytest.param("gemma2", marks=pytest.mark.slow)])
def test_bfloat16_keeps_its_bits_too(kind):
    model = network(kind, torch.bfloat16, max_position_embeddings=4096)
    model.head.float()
    asked = [*prompts(8), ((tuple(range(1, 199)) * 2, (*range(1, 150), *range(2, 190))))]
    expected = rewards_of(model, asked, len(asked))
    for found in every_way(model, asked):
        assert torch.equal(found, expected)


def test_rows_are_alone_where_they_would_be_padded():
    for model, settings in (
        (network("gpt2", torch.float32), {}),
        (network("qwen2", torch.float32), {"kernel": "padded"}),
    ):
        asked = prompts(6, longest=40)
        expected = rewards_of(model, asked, len(asked), **settings)
        for found in every_way(model, asked, **settings):
            assert torch.equal(found, expected)
        scorer = Scorer(model, **settings)
        assert scorer.protocol() == {"kernel": "padded", "invariant": True, "single_rows": scorer.layout_reason}


def test_a_policy_keeps_the_bits_of_its_rewards():
    policy = PolicyNetwork(causal("qwen2", torch.float32), beta=0.1, is_mean=False)
    asked = prompts(5, longest=30)
    expected = rewards_of(policy, asked, len(asked))
    assert Scorer(policy).protocol()["single_rows"] == "a reward of log-probabilities"
    for found in every_way(policy, asked):
        assert torch.equal(found, expected)


def test_products_of_another_processor_are_computed_in_blocks(monkeypatch):
    """A processor whose kernels differ up to a thousand rows: its rewards keep their bits in blocks, and only there."""
    model = network("qwen2", torch.float32, max_position_embeddings=4096)
    for layer in [one for one in model.backbone.modules() if isinstance(one, torch.nn.Linear)]:
        plain = layer.forward

        def rounded(inputs, plain=plain):
            number = inputs.numel() // inputs.shape[-1]
            return plain(inputs) * (1 + 2e-7 * (number % 7))

        layer.forward = rounded
    asked = prompts(8)
    fast = [rewards_of(model, asked, size, invariant=False) for size in (1, 8)]
    assert not torch.equal(*fast)
    arithmetic = invariant_arithmetic(model, CPU)
    assert (arithmetic.block, arithmetic.least_rows, arithmetic.single_reason) == (256, 256, None)
    expected = rewards_of(model, asked, len(asked))
    assert (expected - fast[1]).abs().max() < 1e-4
    for found in every_way(model, asked):
        assert torch.equal(found, expected)


def test_a_device_that_rounds_at_random_scores_rows_alone():
    model = network("qwen2", torch.float32)
    draws = torch.Generator().manual_seed(0)
    for layer in [one for one in model.backbone.modules() if isinstance(one, torch.nn.Linear)]:
        plain = layer.forward
        layer.forward = lambda inputs, plain=plain: plain(inputs) + 1e-6 * torch.rand(1, generator=draws)
    scorer = Scorer(model)
    assert scorer.protocol()["single_rows"] == "products of equal size differ on this device"
    assert len(scorer.passes(prompts(3))) == sum(map(len, prompts(3)))


def test_bits_that_differ_are_found_by_the_self_test():
    model, asked = network("qwen2", torch.float32, max_position_embeddings=4096), prompts(6)
    scorer = Scorer(model)
    assert invariance_test(scorer, asked).state == "passed"
    layer = model.backbone.layers[1].mlp.up_proj
    plain = layer.forward
    layer.forward = lambda inputs: plain(inputs) * (1 + 1e-5 * (inputs.shape[1] % 2))
    failed = invariance_test(scorer, asked)
    assert failed.state == "failed"
    assert failed.figures["num_different"] > 0
    assert invariance_test(Scorer(model, invariant=False), asked).state == "not applicable"


def test_a_layer_that_computes_in_blocks_gives_the_product_and_its_gradient():
    layer = torch.nn.Linear(5, 3).double()
    inputs = torch.randn(2, 11, 5, dtype=torch.float64, requires_grad=True)
    expected = layer(inputs)
    gradient = torch.autograd.grad(expected.cos().sum(), inputs)[0]
    blocked = copy.deepcopy(layer)
    _invariance._replace_forward(blocked, _invariance._in_blocks, 4)
    with torch.no_grad():
        assert (blocked(inputs) - expected).abs().max() < 1e-14
        assert (blocked(inputs[0, :1]) - expected[0, :1]).abs().max() < 1e-14
    assert torch.equal(torch.autograd.grad(blocked(inputs).cos().sum(), inputs)[0], gradient)


def test_the_products_of_a_device_are_tried_once():
    model, seen = network("qwen2", torch.float32), []
    scorer = Scorer(model)
    arithmetic = scorer.arithmetic
    assert arithmetic.is_invariant
    assert 1 <= arithmetic.least_rows <= 128
    model.backbone.layers[0].mlp.up_proj.register_forward_pre_hook(lambda _, arguments: seen.append(len(arguments[0])))
    assert scorer.arithmetic is arithmetic
    assert not seen
