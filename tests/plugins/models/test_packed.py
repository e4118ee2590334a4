import numpy as np
import pytest
import torch

from steelyard.methods.training.sharing import pack
from steelyard.plugins.models._network import RewardNetwork, padded
from steelyard.plugins.models._packed import EXACT, packed_rewards, reason_against

SHAPE = {
    "vocab_size": 200, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256, "num_labels": 1, "pad_token_id": 0,
}  # fmt: skip
# Windows that are shorter than the rows, so that they matter; Gemma 2 caps its logits besides.
OWN = {
    "gemma": {"head_dim": 8},
    "gemma2": {"head_dim": 8, "sliding_window": 6, "attn_logit_softcapping": 2.0},
    "gemma3_text": {"head_dim": 8, "sliding_window": 5},
    "mistral": {"sliding_window": 7},
    "qwen3": {"head_dim": 8},
}


def network(kind, dtype=torch.float64, **settings):
    from transformers import AutoConfig, AutoModelForSequenceClassification

    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = AutoModelForSequenceClassification.from_config(
            AutoConfig.for_model(kind, **SHAPE, **OWN.get(kind, {}), **settings)
        )
        with torch.no_grad():
            for weight in made.parameters():
                weight.add_(torch.randn_like(weight) * 0.3)
    return RewardNetwork(made.to(dtype)).eval()


def prompts(seed=0):
    """Prompts of one to five answers; some share nothing, some answers are one token."""
    rng = np.random.default_rng(seed)
    found = []
    for number in (5, 1, 3, 2):
        prompt = rng.integers(1, 200, int(rng.integers(0, 15))).tolist()
        found.append([prompt + rng.integers(1, 200, int(rng.integers(1, 12))).tolist() for _ in range(number)])
    return found


def one_by_one(model, chosen):
    return torch.cat([model(*padded([row], filler=0)) for rows in chosen for row in rows])


def gradients(rewards, model):
    weights = torch.linspace(-1, 2, len(rewards), dtype=rewards.dtype)
    return torch.autograd.grad((rewards * weights).sum(), list(model.parameters()), allow_unused=True)


@pytest.mark.parametrize("kind", EXACT)
def test_packed_rewards_and_gradients_are_those_of_one_forward_an_answer(kind):
    """Transformers casts norms, and Gemma 2's softmax, to float32 inside a float64 model: that is what is left."""
    model, chosen = network(kind), prompts()
    alone, packed = one_by_one(model, chosen), packed_rewards(model, pack(chosen))
    assert alone.std() > 0.3
    assert (alone - packed).abs().max() < (1e-6 if kind == "gemma2" else 1e-12)
    for mine, theirs in zip(gradients(packed, model), gradients(alone, model), strict=True):
        assert (mine is None) == (theirs is None)
        assert mine is None or (mine - theirs).abs().max() < 1e-5 * max(1.0, theirs.abs().max())


@pytest.mark.parametrize("kind", EXACT)
def test_company_and_order_change_no_reward(kind):
    model, chosen = network(kind, torch.float32), prompts(1)
    with torch.no_grad():
        together = packed_rewards(model, pack(chosen))
        apart = torch.cat([packed_rewards(model, pack([rows])) for rows in chosen])
        turned = packed_rewards(model, pack([rows[::-1] for rows in chosen[::-1]])).flip(0)
    assert torch.allclose(together, apart, atol=1e-5)
    assert torch.allclose(together, turned, atol=1e-5)


@pytest.mark.parametrize("kind", EXACT)
def test_the_model_is_left_as_it_was(kind):
    model, chosen = network(kind), prompts()
    before = one_by_one(model, chosen)
    names = set(model.state_dict())
    packed_rewards(model, pack(chosen))
    assert torch.equal(one_by_one(model, chosen), before)
    assert set(model.state_dict()) == names
    assert reason_against(model) is None


def test_nothing_is_worked_out_in_the_last_layer_that_the_score_does_not_read():
    model, chosen = network("qwen2"), prompts()
    seen = []
    for layer in model.backbone.layers:
        layer.mlp.register_forward_hook(lambda _, given, __: seen.append(given[0].shape[1]))
    packed_rewards(model, pack(chosen))
    num_tokens, num_answers = len(pack(chosen).ids), sum(map(len, chosen))
    assert seen == [num_tokens, num_tokens, num_answers]


@pytest.mark.parametrize(
    ("kind", "settings", "reason"),
    [
        ("gpt2", {"n_embd": 16, "n_layer": 1, "n_head": 2, "vocab_size": 50}, "its positions are learned"),
        ("mixtral", {**SHAPE, "num_local_experts": 2}, "its experts are not tested"),
        ("gemma3_text", {**SHAPE, "head_dim": 8, "use_bidirectional_attention": True}, "its attention looks both ways"),
    ],
)
def test_models_for_which_it_is_not_exact_are_named_with_the_reason(kind, settings, reason):
    from transformers import AutoConfig, AutoModelForSequenceClassification

    made = AutoModelForSequenceClassification.from_config(AutoConfig.for_model(kind, **settings))
    assert reason_against(RewardNetwork(made)) == f"{kind}: {reason}"


def test_an_error_half_way_leaves_the_model_as_it_was():
    model, chosen = network("qwen2"), prompts()
    broken = pack(chosen)._replace(ids=np.full(len(pack(chosen).ids), 999))
    with pytest.raises(IndexError):
        packed_rewards(model, broken)
    assert (one_by_one(model, chosen) - packed_rewards(model, pack(chosen))).abs().max() < 1e-12
