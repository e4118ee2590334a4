import json

import pytest
import torch

import packed_models
import tiny
import training_examples
from steelyard.core.errors import ConfigError, ModelError
from steelyard.networks.adapters import (
    Adapter,
    fingerprint_of,
    load_adapter,
    merge_adapter,
    put_adapter,
    saved_adapter,
    write_adapter,
)
from steelyard.networks.loading import load_network
from steelyard.networks.packing import pack

LORA = Adapter("lora", 4, 8.0, 0.0, "all-linear")
IDS = torch.arange(5, 17).reshape(2, 6)
ATTENDED = torch.ones(2, 6, dtype=torch.bool)


def moved(network, seed=1):
    """Every trained weight away from where it began: a fresh adapter changes nothing."""
    draws = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in network.parameters():
            if weight.requires_grad:
                weight.add_(torch.randn(weight.shape, generator=draws).to(weight) * 0.2)


@pytest.mark.parametrize("kind", ["lora", "dora"])
def test_a_fresh_adapter_changes_no_reward_and_a_merged_one_scores_as_before(kind):
    network = training_examples.network().eval()
    before = network(IDS, ATTENDED)
    put_adapter(network, LORA._replace(kind=kind), seed=3)
    assert torch.allclose(network(IDS, ATTENDED), before, atol=1e-6)
    moved(network)
    apart = network(IDS, ATTENDED)
    assert (apart - before).abs().max() > 1e-3
    merge_adapter(network)
    assert torch.allclose(network(IDS, ATTENDED), apart, atol=1e-5)
    assert not [name for name, _ in network.named_parameters() if "lora" in name or "base_layer" in name]


def test_only_the_adapter_and_the_head_are_trained_and_the_seed_draws_them():
    one, other, third = (training_examples.network() for _ in range(3))
    put_adapter(one, LORA, seed=3)
    put_adapter(other, LORA, seed=3)
    put_adapter(third, LORA, seed=4)
    trained = {name for name, weight in one.named_parameters() if weight.requires_grad}
    assert {"classifier.score.weight"} < trained
    assert all(".lora_" in name for name in trained - {"classifier.score.weight", "head.weight"})
    # 7 linear layers in each of 2 decoder layers, two factors each, and the head.
    assert len(trained) == 7 * 2 * 2 + 1
    drawn = [dict(network.named_parameters()) for network in (one, other, third)]
    name = next(name for name in trained if "lora_A" in name)
    assert torch.equal(drawn[0][name], drawn[1][name])
    assert not torch.equal(drawn[0][name], drawn[2][name])


@pytest.mark.parametrize("kind", ["qwen2", "gemma", "qwen3"])
def test_a_pack_has_the_rewards_and_gradients_of_one_row_an_answer(kind):
    network = packed_models.network(kind)
    put_adapter(network, LORA, seed=0)
    moved(network.double())
    trained = [weight for weight in network.parameters() if weight.requires_grad]
    prompts = packed_models.prompts()
    found, expected = packed_models.packed_rewards(network, pack(prompts)), packed_models.one_by_one(network, prompts)
    weights = torch.linspace(-1, 2, len(found), dtype=torch.float64)
    assert torch.allclose(found, expected, atol=1e-10)
    ours, theirs = (
        torch.autograd.grad((rewards * weights).sum(), trained, allow_unused=True) for rewards in (found, expected)
    )
    difference, largest = packed_models.furthest(ours, theirs)
    assert difference < 1e-10 * max(1.0, largest)


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")  # peft asks transformers
@pytest.mark.parametrize("kind", ["lora", "dora"])
def test_a_saved_adapter_is_loaded_by_peft_and_by_us_with_its_head(tmp_path, kind):
    from peft import PeftModel
    from transformers import AutoModelForSequenceClassification

    base = tiny.save_base(tmp_path / "base")
    network, _ = load_network(base, dtype="float32")
    fingerprint = fingerprint_of(network)
    put_adapter(network.eval(), LORA._replace(kind=kind), seed=0)
    moved(network)
    expected = network(IDS, ATTENDED)
    folder = tmp_path / "adapter"
    folder.mkdir()
    write_adapter(folder, saved_adapter(network, base=base, fingerprint=fingerprint), network.head)
    plain = AutoModelForSequenceClassification.from_pretrained(base, num_labels=1)
    wrapped = PeftModel.from_pretrained(plain, str(folder)).eval()
    hidden = wrapped.base_model.model.model(input_ids=IDS).last_hidden_state[:, -1]
    assert torch.allclose(wrapped.base_model.model.score(hidden)[:, 0], expected, atol=1e-5)
    ours, is_trained = load_network(str(folder), dtype="float32")
    assert is_trained
    assert torch.allclose(ours.eval()(IDS, ATTENDED), expected, atol=1e-5)


def test_an_adapter_is_refused_without_its_base_and_on_another(tmp_path):
    base = tiny.save_base(tmp_path / "base")
    network, _ = load_network(base, dtype="float32")
    fingerprint = fingerprint_of(network)
    put_adapter(network, LORA, seed=0)
    write_adapter(tmp_path, saved_adapter(network, base=base, fingerprint=fingerprint), network.head)
    other, _ = load_network(tiny.save_base(tmp_path / "other", seed=1), dtype="float32")
    with pytest.raises(ModelError, match="another base model"):
        load_adapter(other, tmp_path, dtype="float32")
    (tmp_path / "base").rename(tmp_path / "away")
    with pytest.raises(ModelError, match="base model is not there"):
        load_network(str(tmp_path), dtype="float32")
    settings = json.loads((tmp_path / "adapter_config.json").read_text())
    settings["base_model_name_or_path"] = str(tmp_path / "away")
    (tmp_path / "adapter_config.json").write_text(json.dumps(settings))
    assert load_network(str(tmp_path), dtype="float32")[1]


def test_layers_that_the_model_has_not_are_named():
    with pytest.raises(ConfigError, match="k_proj, o_proj, q_proj"):
        put_adapter(training_examples.network(), LORA._replace(layers=("query",)), seed=0)
    with pytest.raises(ConfigError, match="names query"):
        put_adapter(training_examples.network(), LORA._replace(layers=("q_proj", "query")), seed=0)
