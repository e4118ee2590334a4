import json
from pathlib import Path

import pytest
from huggingface_hub import constants

import tiny
import tiny_families
from steelyard.core.errors import FileError, MissingPartError, ModelError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Response
from steelyard.networks.loading import (
    fill,
    load_backbone,
    load_causal,
    load_network,
    load_tokenizer,
    local_folder,
    read_config,
    stored_weights,
)
from steelyard.networks.pretrained import hub_folder, is_hub_name, load_pretrained
from steelyard.plugins.models._heads import LinearHead
from steelyard.plugins.reward_models import choose_model
from strategies import prompt

CASES = [Case(prompt=prompt("p", "why?"), responses=(Response(id="a", text="因为。"), Response(id="b", text="no")))]


def scores(folder):
    (line,) = build("models", "grm", {"path": str(folder)}).score(CASES)
    return line.scores


def in_shards(folder, ending):
    """The same checkpoint in two files with an index, as large models are published."""
    import torch
    from safetensors.torch import save_file

    weights = tiny_families.stored(folder)
    names = sorted(weights)
    places = {}
    for number, part in enumerate((names[::2], names[1::2])):
        file = f"model-{number}.{ending}"
        own = {name: weights[name] for name in part}
        if ending == "bin":
            torch.save(own, folder / f"pytorch_{file}")
            file = f"pytorch_{file}"
        else:
            save_file(own, folder / file, metadata={"format": "pt"})
        places |= dict.fromkeys(part, file)
    index = "pytorch_model.bin.index.json" if ending == "bin" else "model.safetensors.index.json"
    (folder / index).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    (folder / "model.safetensors").unlink()
    return places


@pytest.mark.parametrize("ending", ["safetensors", "bin"])
def test_shards_are_the_same_model(tmp_path, ending):
    tiny_families.save_grm(tmp_path)
    whole = scores(tmp_path)
    places = in_shards(tmp_path, ending)
    assert scores(tmp_path) == pytest.approx(whole, abs=1e-6)
    (tmp_path / places["v_head.summary.0.bias"]).unlink()
    with pytest.raises(ModelError, match="this file of its weights is missing"):
        stored_weights(tmp_path, lambda name: name.startswith("v_head."))


@pytest.mark.parametrize("load", [load_network, load_causal], ids=["reward model", "language model"])
def test_a_missing_shard_is_named_before_anything_is_loaded(tmp_path, load):
    tiny_families.save_grm(tmp_path)
    places = in_shards(tmp_path, "safetensors")
    shard = tmp_path / places["v_head.summary.0.bias"]
    shard.unlink()
    with pytest.raises(ModelError, match="this file of its weights is missing") as caught:
        load(str(tmp_path), dtype="float32")
    assert str(caught.value.where) == str(shard)


def test_one_file_of_pickled_weights_is_the_same_model(tmp_path):
    import torch

    tiny_families.save_grm(tmp_path)
    whole = scores(tmp_path)
    torch.save(tiny_families.stored(tmp_path), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    assert scores(tmp_path) == pytest.approx(whole, abs=1e-6)


def test_a_decoder_whose_weights_are_not_all_there_is_refused(tmp_path):
    from safetensors.torch import save_file

    tiny_families.save_grm(tmp_path)
    weights = tiny_families.stored(tmp_path)
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=r"lacks weights: layers\.1\.mlp\.up_proj\.weight"):
        load_backbone(tmp_path, dtype="float32")


def test_a_folder_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match="there is no such model folder"):
        local_folder(str(tmp_path / "absent"))
    with pytest.raises(ModelError, match=r"has no config\.json that can be read"):
        read_config(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ModelError, match="is not a JSON object"):
        read_config(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "no_such_type"}')
    with pytest.raises(ModelError, match="cannot be loaded as a decoder"):
        load_backbone(tmp_path, dtype="float32")
    with pytest.raises(ModelError, match="has no weights"):
        stored_weights(tmp_path, bool)


def test_a_head_takes_all_of_its_weights_and_no_others(tmp_path):
    import torch

    for weights, found in (
        ({}, "it lacks weight"),
        ({"weight": torch.zeros(1, 3), "bias": torch.zeros(1)}, "it also has bias"),
        ({"weight": torch.zeros(2, 3)}, "it has in another shape weight"),
    ):
        with pytest.raises(ModelError, match=found):
            fill(LinearHead(3), weights, where=tmp_path)
    head = LinearHead(3)
    fill(head, {"weight": torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.bfloat16)}, where=tmp_path)
    assert head.weight.tolist() == [[1.0, 2.0, 3.0]]
    assert head.weight.dtype == torch.float32


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A hub that nobody serves, and an empty cache."""
    for name in (
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "NO_PROXY",
        "no_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("name", ["owner/name", "Skywork/Skywork-Reward-Gemma-2-27B-v0.2", "a/b_c.d-e"])
def test_a_name_of_owner_and_model_is_one_of_the_hub(name):
    assert is_hub_name(name)


@pytest.mark.parametrize(
    "name", ["name", "a/b/c", "/a/b", "./a", "../b", "~/b", "a/", "a/b/", "a//b", "-a/b", "a b/c", "模型/甲"]
)
def test_a_path_is_none(name):
    assert not is_hub_name(name)


def test_a_folder_that_is_there_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner" / "name").mkdir(parents=True)
    assert not is_hub_name("owner/name")


def test_without_a_network_it_is_said(nowhere):
    with pytest.raises(ModelError, match=r"owner/name: no such local folder.*127\.0\.0\.1:9 does not answer"):
        hub_folder("owner/name")
    with pytest.raises(ModelError, match="no such local folder"):
        choose_model("owner/name")
    with pytest.raises(FileError, match=r"(?s)a name on the hub, and no folder here.*does not answer.*download it"):
        choose_model("weqweasdas/RM-Mistral-7B")


@pytest.mark.parametrize("name", ["owner/name", "gpt2"])
def test_a_tokenizer_by_name_without_a_network_is_one_error_at_once(name, nowhere, capfd):
    with pytest.raises(ModelError, match=rf"{name}: no such local folder.*127\.0\.0\.1:9 does not answer"):
        load_tokenizer(name)
    assert capfd.readouterr().err == ""


def test_what_was_fetched_before_is_scored_without_a_network(nowhere):
    repository = nowhere / "models--owner--name"
    revision = "0" * 40
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(revision, encoding="utf-8")
    tiny.save_classifier(repository / "snapshots" / revision)
    choice = choose_model("owner/name")
    assert (choice.kind, choice.name) == ("classifier", "name")
    assert choice.files["path"] == repository / "snapshots" / revision
    implicit = choose_model("implicit", {"path": "owner/name", "reference": "owner/name"})
    assert implicit.files["reference"] == choice.files["path"]


@pytest.mark.parametrize(
    ("package", "remedy"), [("faiss", "pip install faiss"), ("sentencepiece", "pip install 'steelyard[translators]'")]
)
def test_a_package_that_a_tokenizer_needs_is_named_with_its_installation(tmp_path, monkeypatch, package, remedy):
    from transformers.utils import import_utils

    class Tokenizer:
        @classmethod
        def from_pretrained(cls, path, **settings):
            import_utils.requires_backends(cls, [package])

    _, words = import_utils.BACKENDS_MAPPING[package]
    monkeypatch.setitem(import_utils.BACKENDS_MAPPING, package, (lambda: False, words))
    with pytest.raises(MissingPartError, match=f"needs the package {package}") as caught:
        load_pretrained(Tokenizer, tmp_path)
    assert caught.value.do == remedy


def test_a_kind_of_model_is_no_name_to_look_up():
    with pytest.raises(ModelError, match="ngram: this is a kind of model of its own") as caught:
        hub_folder("ngram")
    assert "a decoder" in str(caught.value.do)


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 8\n"


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json"])
def test_a_file_that_git_lfs_has_not_fetched_is_named(tmp_path, file):
    folder = Path(tiny.save_classifier(tmp_path / "model"))
    (folder / file).write_text(POINTER)
    with pytest.raises(FileError, match=f"{file}: this is a git-LFS pointer") as caught:
        choose_and_build(folder)
    assert "git lfs pull" in caught.value.do


def renamed(folder, change):
    """The same weights under other names, as a wrapper of training or another library writes them."""
    from safetensors.torch import load_file, save_file

    weights = {change(name): weight for name, weight in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize("wrapper", ["module.", "_orig_mod.", "base_model.model."])
def test_weights_with_the_prefix_of_a_wrapper_are_named(tmp_path, wrapper):
    folder = Path(tiny.save_classifier(tmp_path / "model"))
    renamed(folder, lambda name: wrapper + name)
    with pytest.raises(ModelError, match=rf"under other names: {wrapper}model\.embed_tokens") as caught:
        load_network(str(folder), dtype="float32")
    assert "wrapper" in caught.value.do


def test_a_head_under_another_name_is_not_replaced_in_silence(tmp_path, capsys):
    folder = Path(tiny.save_classifier(tmp_path / "model"))
    renamed(folder, lambda name: name.replace("score.weight", "v_head.summary.weight"))
    _, is_trained = load_network(str(folder), dtype="float32")
    assert not is_trained
    assert "v_head.summary.weight are not read" in capsys.readouterr().err
    load_network(tiny.save_base(tmp_path / "base"), dtype="float32")
    assert "not read" not in capsys.readouterr().err


def test_a_head_of_several_labels_is_refused_with_their_number(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = Path(tiny.save_classifier(tmp_path))
    weights = load_file(folder / "model.safetensors")
    weights["score.weight"] = weights["score.weight"].repeat(5, 1)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="its head has 5 labels, and a reward is one number"):
        load_network(str(folder), dtype="float32")


def test_a_folder_of_models_is_no_model_and_names_them(tmp_path):
    tiny.save_classifier(tmp_path / "checkpoint-500")
    with pytest.raises(ModelError, match=r"no config\.json") as caught:
        choose_and_build(tmp_path)
    assert caught.value.do == "name one of the models in it: checkpoint-500"


def test_an_adapter_without_a_tokenizer_has_that_of_its_base(tmp_path):
    base = tiny.save_base(tmp_path / "base")
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text(
        json.dumps({"peft_type": "LORA", "base_model_name_or_path": base})
    )
    tokenizer = load_tokenizer(str(tmp_path / "adapter"))
    assert tokenizer("杆秤").input_ids == load_tokenizer(base)("杆秤").input_ids
    with pytest.raises(ModelError, match="an adapter without its weights"):
        load_network(str(tmp_path / "adapter"), dtype="float32")


def choose_and_build(folder):
    return build("models", "classifier", {"path": str(folder)})
