import numpy as np
import pytest

import tiny_families
from steelyard.core.errors import ConfigError, ModelError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Response
from strategies import prompt

CASE = Case(
    prompt=prompt("p", "为什么？"), responses=tuple(Response(id=text, text=text) for text in ("因为。", "no", "z" * 40))
)
HEADS, GROUPS, SIZE = 8, 2, 4


def norm(states, weight):
    return states / np.sqrt((states**2).mean(-1, keepdims=True) + 1e-5) * weight


def rotated(states):
    """Rotary positions: (token, head, size), the two halves of a head turned together."""
    angles = np.arange(len(states))[:, None] / 1000000.0 ** (np.arange(0, SIZE, 2) / SIZE)
    cosine, sine = np.cos(angles)[:, None], np.sin(angles)[:, None]
    first, second = states[..., : SIZE // 2], states[..., SIZE // 2 :]
    return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)


def attention(states, fused, out):
    """The fused projection is stored by key head: its queries, then its key, then its value."""
    tokens, queries_a_group = len(states), HEADS // GROUPS
    by_group = (states @ fused.T).reshape(tokens, GROUPS, queries_a_group + 2, SIZE)
    queries = rotated(by_group[:, :, :-2].reshape(tokens, HEADS, SIZE))
    keys, values = rotated(by_group[:, :, -2]), by_group[:, :, -1]
    found = np.zeros((tokens, HEADS, SIZE))
    for head in range(HEADS):
        for token in range(tokens):
            group = head // queries_a_group
            logits = keys[: token + 1, group] @ queries[token, head] / np.sqrt(SIZE)
            shares = np.exp(logits - logits.max())
            found[token, head] = shares / shares.sum() @ values[: token + 1, group]
    return found.reshape(tokens, -1) @ out.T


def plain_reward(folder, ids):
    """InternLM2 in float64 with loops, from its published names."""
    weights = {name: value.double().numpy() for name, value in tiny_families.stored(folder).items()}
    states = weights["model.tok_embeddings.weight"][ids]
    for layer in range(2):
        own = {name: weights[f"model.layers.{layer}.{name}.weight"] for name in (
            "attention.wqkv", "attention.wo", "feed_forward.w1", "feed_forward.w2", "feed_forward.w3",
            "attention_norm", "ffn_norm")}  # fmt: skip
        states = states + attention(norm(states, own["attention_norm"]), own["attention.wqkv"], own["attention.wo"])
        inner = norm(states, own["ffn_norm"])
        gate = inner @ own["feed_forward.w1"].T
        states = states + (gate / (1 + np.exp(-gate)) * (inner @ own["feed_forward.w3"].T)) @ own["feed_forward.w2"].T
    return weights["v_head.weight"][0] @ norm(states, weights["model.norm.weight"])[-1]


def test_the_reward_is_that_of_the_published_layout_at_the_reward_token(tmp_path):
    folder = tiny_families.save_internlm2_reward(tmp_path)
    (line,) = build("models", "internlm2_reward", {"path": folder}).score([CASE])
    expected = [
        plain_reward(folder, [*tiny_families.chat_ids(folder, CASE, response), 401]) for response in CASE.responses
    ]
    assert np.std(expected) > 0.1
    assert list(line.scores.values()) == pytest.approx(expected, abs=1e-4)


def test_a_length_beyond_its_positions_is_refused(tmp_path):
    folder = tiny_families.save_internlm2_reward(tmp_path, max_position_embeddings=64)
    with pytest.raises(ConfigError, match="a score depends on its batch"):
        build("models", "internlm2_reward", {"path": folder, "max_length": 64})


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"model_type": "llama"}, "is no InternLM2 with a reward_token_id"),
        ({"reward_token_id": None}, "is no InternLM2 with a reward_token_id"),
        ({"bias": True}, "has biases in its attention"),
    ],
)
def test_another_model_is_refused(tmp_path, change, found):
    folder = tiny_families.save_internlm2_reward(tmp_path, **change)
    with pytest.raises(ModelError, match=found):
        build("models", "internlm2_reward", {"path": folder})


def test_a_tokenizer_that_is_code_is_not_run(tmp_path):
    folder = tiny_families.save_internlm2_reward(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match="such code is not run"):
        build("models", "internlm2_reward", {"path": folder})


@pytest.mark.parametrize("gone", ["v_head.weight", "model.layers.1.attention.wqkv.weight"])
def test_missing_weights_are_named(tmp_path, gone):
    from safetensors.torch import save_file

    folder = tiny_families.save_internlm2_reward(tmp_path)
    weights = tiny_families.stored(folder)
    del weights[gone]
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match="lacks"):
        build("models", "internlm2_reward", {"path": folder})
