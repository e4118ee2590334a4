import json

import numpy as np
import pytest

import tiny_families
from steelyard.core.errors import ModelError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Response
from strategies import prompt

WORDS = ["你好", "world", "שלום", "नमस्ते दुनिया", "x" * 60]
CASES = [
    Case(
        prompt=prompt(f"p{index}", f"question {index}"),
        responses=tuple(Response(id=str(place), text=WORDS[(index + place) % 5]) for place in range(3)),
    )
    for index in range(3)
]


def plain_reward(folder, one, response):
    """As published, in float64: means of quantiles, transformed, weighted by a gate with batch normalisation."""
    weights = {name: value.double().numpy() for name, value in tiny_families.stored(folder).items()}
    ids = tiny_families.chat_ids(folder, one, response)
    states = tiny_families.hidden_states(folder, ids)
    mark = "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
    pattern = tiny_families.llama3_tokenizer()(mark, add_special_tokens=False).input_ids
    gate = states[max(start for start in range(len(ids)) if ids[start : start + len(pattern)] == pattern)]
    for start in (0, 3):
        gate = np.maximum(weights[f"gating.layers.{start}.weight"] @ gate, 0)
        norm = {name: weights[f"gating.layers.{start + 2}.{name}"] for name in ("running_mean", "running_var")}
        gate = (gate - norm["running_mean"]) / np.sqrt(norm["running_var"] + 1e-5)
        gate = gate * weights[f"gating.layers.{start + 2}.weight"] + weights[f"gating.layers.{start + 2}.bias"]
    gate = weights["gating.layers.6.weight"] @ gate + weights["gating.layers.6.bias"]
    gate = np.exp(gate / 2.0) / np.exp(gate / 2.0).sum() * weights["gating.logit_scale"][0]
    quantiles = (weights["regression_layer.weight"] @ states[-1]).reshape(19, 5)
    return float(gate @ (quantiles.mean(1) @ weights["reward_transform_matrix"]))


def test_the_reward_is_that_of_the_published_layout(tmp_path):
    folder = tiny_families.save_qrm(tmp_path)
    found = [score for line in build("models", "qrm", {"path": folder}).score(CASES) for score in line.scores.values()]
    expected = [plain_reward(folder, one, response) for one in CASES for response in one.responses]
    assert np.std(expected) > 0.05
    assert found == pytest.approx(expected, abs=1e-4)


def test_a_checkpoint_without_quantiles_is_of_another_family(tmp_path):
    folder = tiny_families.save_qrm(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    del settings["num_quantiles"]
    (tmp_path / "config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match="no num_quantiles"):
        build("models", "qrm", {"path": folder})


def test_the_other_gated_family_is_refused_by_the_names_of_its_weights(tmp_path):
    armorm, qrm = tiny_families.save_armorm(tmp_path / "a", num_quantiles=1), tiny_families.save_qrm(tmp_path / "q")
    with pytest.raises(ModelError, match=r"is not of this family: it lacks gating\.layers\.0\.bias"):
        build("models", "armorm", {"path": qrm})
    with pytest.raises(ModelError, match="is not of this family"):
        build("models", "qrm", {"path": armorm})
