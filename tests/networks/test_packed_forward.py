import copy
import functools

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint

from packed_models import SHAPE, furthest, gradients, network, one_by_one, packed_rewards, prompts, softmax64
from steelyard.networks.packed_forward import EXACT
from steelyard.networks.packing import fill_up, pack
from steelyard.networks.reward_network import RewardNetwork

SLIDING_QWEN = {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1}
FAMILIES = [*((kind, {}) for kind in EXACT), ("qwen2", SLIDING_QWEN), ("llama", {"num_key_value_heads": 4})]


@pytest.fixture
def in_float64(monkeypatch):
    monkeypatch.setattr(torch.nn.functional, "softmax", softmax64)


@pytest.mark.parametrize(("kind", "settings"), FAMILIES)
@pytest.mark.usefixtures("in_float64")
def test_packed_rewards_and_gradients_are_those_of_one_forward_an_answer(kind, settings):
    model, chosen = network(kind, **settings), prompts()
    alone = one_by_one(model, chosen)  # first, by the model's own attention
    expected = gradients(alone, model)
    assert alone.std() > 0.3
    for is_pruned in (True, False):
        packed = packed_rewards(model, pack(chosen), is_pruned=is_pruned)
        assert (alone - packed).abs().max() < 1e-12 * max(1.0, alone.abs().max().item())
        difference, largest = furthest(gradients(packed, model), expected)
        assert largest > 1e-3
        assert difference < 1e-11 * max(1.0, largest)


@pytest.mark.parametrize("kind", ["gemma2", "gemma3_text", "qwen2", "qwen3_moe"])
@pytest.mark.parametrize("is_pruned", [True, False])
@pytest.mark.usefixtures("in_float64")
def test_filler_changes_no_reward_and_no_gradient(kind, is_pruned):
    model, chosen = network(kind), prompts()
    packed = pack(chosen)
    filled = fill_up(packed, len(packed.ids) + 5, len(packed.last) + 3)
    expected = packed_rewards(model, packed, is_pruned=is_pruned)
    found = packed_rewards(model, filled, is_pruned=is_pruned)
    assert found.shape == expected.shape
    assert (found - expected).abs().max() < 1e-12
    assert furthest(gradients(found, model), gradients(expected, model))[0] < 1e-11


@pytest.mark.parametrize("kind", EXACT)
def test_company_and_order_change_no_reward_and_float32_is_close(kind):
    model, chosen = network(kind, torch.float32), prompts(1)
    with torch.no_grad():
        alone = one_by_one(model, chosen)
        together = packed_rewards(model, pack(chosen))
        apart = torch.cat([packed_rewards(model, pack([rows])) for rows in chosen])
        turned = packed_rewards(model, pack([rows[::-1] for rows in chosen[::-1]])).flip(0)
    for found in (together, apart, turned):
        assert torch.allclose(found, alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["gemma2", "mistral", "qwen2", "qwen3_moe"])
def test_the_model_scores_rows_as_before(kind):
    model, chosen = network(kind, torch.float32), prompts()
    before, names = one_by_one(model, chosen), set(model.state_dict())
    packed_rewards(model, pack(chosen))
    assert torch.equal(one_by_one(model, chosen), before)
    assert set(model.state_dict()) == names
    assert model.packing_obstacle is None


def test_nothing_is_worked_out_in_the_last_layer_that_the_score_does_not_read():
    model, chosen = network("qwen2"), prompts()
    seen = []
    for module in (*(layer.mlp for layer in model.backbone.layers), model.backbone.norm, model.head):
        module.register_forward_hook(lambda _, given, __: seen.append(given[0].shape[-2]))
    packed_rewards(model, pack(chosen))
    num_tokens, num_answers = len(pack(chosen).ids), sum(map(len, chosen))
    assert seen == [num_tokens, num_tokens, num_answers, num_answers, num_answers]


def test_layers_that_are_worked_out_again_in_the_backward_pass_give_the_same_gradients():
    model, chosen = network("qwen3"), prompts()
    expected = gradients(packed_rewards(model, pack(chosen)), model)
    for layer in model.backbone.layers:
        layer.gradient_checkpointing = True
        layer._gradient_checkpointing_func = functools.partial(checkpoint, use_reentrant=False)
    model.train()
    count = []
    model.backbone.layers[0].mlp.register_forward_pre_hook(lambda *_: count.append(1))
    found = gradients(packed_rewards(model, pack(chosen)), model)
    assert len(count) == 2
    assert furthest(found, expected)[0] < 1e-12


def test_a_copy_of_the_model_has_its_own_weights():
    model, chosen = network("qwen2"), prompts()
    before = packed_rewards(model, pack(chosen))
    other = copy.deepcopy(model)
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    assert torch.equal(packed_rewards(other, pack(chosen)), before)


@pytest.mark.parametrize(
    ("kind", "settings", "reason"),
    [
        ("gpt2", {"n_embd": 16, "n_layer": 1, "n_head": 2, "vocab_size": 50}, "its positions are learned"),
        ("gemma3_text", {**SHAPE, "head_dim": 8, "use_bidirectional_attention": True}, "its attention looks both ways"),
        ("qwen3", {**SHAPE, "attn_implementation": "flex_attention"}, "its attention is flex_attention"),
        (
            "llama",
            {**SHAPE, "rope_parameters": {"rope_type": "dynamic", "rope_theta": 10_000.0, "factor": 2.0}},
            "its positions depend on the longest row of the batch",
        ),
    ],
)  # fmt: skip
def test_models_for_which_it_is_not_exact_are_named_with_the_reason(kind, settings, reason):
    from transformers import AutoConfig, AutoModelForSequenceClassification

    made = AutoModelForSequenceClassification.from_config(AutoConfig.for_model(kind, **settings))
    assert RewardNetwork(made).packing_obstacle == f"{kind}: {reason}"


def test_an_error_half_way_leaves_the_model_as_it_was():
    model, chosen = network("qwen2"), prompts()
    before = one_by_one(model, chosen)
    broken = pack(chosen)._replace(ids=np.full(len(pack(chosen).ids), 999))
    with pytest.raises(IndexError):
        packed_rewards(model, broken)
    assert torch.equal(one_by_one(model, chosen), before)
    assert (before - packed_rewards(model, pack(chosen))).abs().max() < 1e-12


def test_no_tensor_of_the_size_of_the_vocabulary_or_of_the_square_of_the_pack_is_made():
    from torch.utils._python_dispatch import TorchDispatchMode

    shapes = set()

    class Shapes(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, given=(), named=None):
            made = function(*given, **(named or {}))
            every = made if isinstance(made, tuple) else (made,)
            shapes.update(tuple(one.shape) for one in every if isinstance(one, torch.Tensor))
            return made

    model, chosen = network("llama", torch.float32, vocab_size=211), prompts(2)
    num_tokens = len(pack(chosen).ids)
    with torch.no_grad(), Shapes():
        packed_rewards(model, pack(chosen))
    assert not any(211 in shape for shape in shapes if shape != (211, 32))
    assert not any(shape[-2:] == (num_tokens, num_tokens) for shape in shapes)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("kind", ["gemma2", "mistral", "qwen3"])
def test_an_accelerator_gives_the_rewards_of_the_cpu(kind):
    model, chosen = network(kind, torch.float32), prompts()
    expected = packed_rewards(model, pack(chosen))
    wanted = [None if one is None else one.cuda() for one in gradients(expected, model)]
    model.cuda()
    found = packed_rewards(model, pack(chosen))
    assert torch.allclose(found.cpu(), expected, rtol=1e-3, atol=1e-3)
    difference, largest = furthest(gradients(found, model), wanted)
    assert difference < 1e-2 * largest
