import json

import pytest

from steelyard.core.errors import ConfigError
from steelyard.core.types import Case, Response
from steelyard.io.cases import write_cases
from steelyard.stages.backbone import Config, backbone
from strategies import prompt

TINY = Config(hidden_size=32, num_layers=1, vocabulary=300)
TEXTS = ("Weigh it twice. 称两次。", "משקל 🪨 مِيزان", "x = $\\frac{1}{2}$\n\tdone", "日本語のテキスト हिन्दी")


def spoken(*texts):
    return Case(prompt=prompt(), responses=tuple(Response(id=text, text=text) for text in texts))


@pytest.fixture
def cases(tmp_path):
    path = tmp_path / "cases.jsonl"
    write_cases(path, [spoken(*TEXTS)])
    return path


def weights(folder):
    from safetensors.numpy import load_file

    return load_file(folder / "model.safetensors")


def test_the_folder_loads_and_has_the_sizes_asked_for(cases, tmp_path):
    from transformers import AutoConfig, AutoTokenizer

    run = backbone(cases, tmp_path / "out", Config(hidden_size=64, num_layers=3, vocabulary=300))
    shape = AutoConfig.from_pretrained(tmp_path / "out")
    assert (shape.hidden_size, shape.num_hidden_layers) == (64, 3)
    assert shape.vocab_size == len(AutoTokenizer.from_pretrained(tmp_path / "out")) == run.summary.vocabulary
    num_weights = sum(weight.size for weight in weights(tmp_path / "out").values())
    assert num_weights == run.summary.num_weights


def test_every_text_survives_the_tokenizer(cases, tmp_path):
    from transformers import AutoTokenizer

    backbone(cases, tmp_path / "out", TINY)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    for text in (*TEXTS, "never seen: Ωμέγα 👩‍👩‍👧"):
        assert tokenizer.decode(tokenizer(text).input_ids, clean_up_tokenization_spaces=False) == text


def test_the_template_frames_each_turn_with_its_role(cases, tmp_path):
    from transformers import AutoTokenizer

    backbone(cases, tmp_path / "out", TINY)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    turns = [{"role": "user", "content": "Hi {{ x }}"}, {"role": "assistant", "content": "Yes"}]
    assert (
        tokenizer.apply_chat_template(turns, tokenize=False)
        == "<|user|>Hi {{ x }}<|endoftext|><|assistant|>Yes<|endoftext|>"
    )
    ids = tokenizer("<|user|><|endoftext|>").input_ids
    assert len(ids) == 2, "a mark is one token"


def test_the_weights_depend_on_the_seed_alone(cases, tmp_path):
    import torch

    backbone(cases, tmp_path / "one", TINY)
    torch.rand(7)
    before = torch.random.get_rng_state()
    backbone(cases, tmp_path / "again", TINY)
    assert torch.equal(before, torch.random.get_rng_state()), "nobody else's draws move"
    backbone(cases, tmp_path / "other", Config(hidden_size=32, num_layers=1, vocabulary=300, seed=1))
    one, again, other = (weights(tmp_path / name) for name in ("one", "again", "other"))
    assert all((one[name] == again[name]).all() for name in one)
    assert any((one[name] != other[name]).any() for name in one)


def test_the_vocabulary_is_learnt_from_the_cases(cases, tmp_path):
    backbone(cases, tmp_path / "out", Config(hidden_size=32, num_layers=1, vocabulary=320))
    write_cases(tmp_path / "twos.jsonl", [spoken("qxqx qxqx qxqx", "qxqx qxqx")])
    backbone(tmp_path / "twos.jsonl", tmp_path / "twos", Config(hidden_size=32, num_layers=1, vocabulary=320))
    learnt = json.loads((tmp_path / "twos" / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    before = json.loads((tmp_path / "out" / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    assert "qx" in learnt
    assert "qx" not in before


def test_a_second_call_changes_nothing(cases, tmp_path):
    run = backbone(cases, tmp_path / "out", TINY)
    assert backbone(cases, tmp_path / "out", TINY) == run


def test_no_progress_bar_of_transformers_appears(cases, tmp_path, capfd):
    backbone(cases, tmp_path / "out", TINY)
    assert "Writing" not in capfd.readouterr().err


@pytest.mark.parametrize("config", [Config(hidden_size=48), Config(num_layers=0), Config(vocabulary=0)])
def test_sizes_that_make_no_network_are_refused(cases, tmp_path, config):
    with pytest.raises(ConfigError, match="backbone"):
        backbone(cases, tmp_path / "out", config)
    assert not (tmp_path / "out").exists()
