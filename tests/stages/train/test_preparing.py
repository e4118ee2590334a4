import msgspec
import pytest
import torch

import tiny
from steelyard.core.errors import EvidenceError, ModelError
from steelyard.core.types import Case, Response
from steelyard.io.cases import write_cases
from steelyard.training.config import Config
from steelyard.training.inputs import read_inputs
from strategies import case


def ranked(text, name="p"):
    answers = (Response(id="g", text="Yes, here it is."), Response(id="b", text="no"))
    return Case(prompt=case(id=name, text=text).prompt, responses=answers, ranking=(("g",), ("b",)))


@pytest.fixture
def base(tmp_path):
    return tiny.save_base(tmp_path / "base")


def test_the_parts_are_what_the_files_hold(tmp_path, base):
    write_cases(tmp_path / "train.jsonl", [ranked("one"), ranked("two", "q")])
    write_cases(tmp_path / "held.jsonl", [ranked("three", "r")])
    parts = read_inputs(tmp_path / "train.jsonl", tmp_path / "held.jsonl", base, Config(max_length=77))
    assert (parts.train.num_pairs, parts.held_out.num_pairs) == (2, 1)
    assert parts.rendering.max_length == 77
    assert parts.network.head.weight.dtype == torch.float32


def test_a_fresh_head_is_that_of_the_seed(tmp_path, base):
    write_cases(tmp_path / "train.jsonl", [ranked("one")])
    first, again, other = (
        read_inputs(tmp_path / "train.jsonl", None, base, Config(seed=seed)).network.head.weight for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_only_frozen_weights_are_stored_in_bfloat16(tmp_path, base):
    write_cases(tmp_path / "train.jsonl", [ranked("one")])
    settings = Config(dtype="bfloat16", trainable="last:1")
    network = read_inputs(tmp_path / "train.jsonl", None, base, settings).network
    kinds = {(weight.requires_grad, weight.dtype) for weight in network.parameters()}
    assert kinds == {(True, torch.float32), (False, torch.bfloat16)}


def test_held_out_prompts_in_the_training_data_are_refused_unless_allowed(tmp_path, base):
    write_cases(tmp_path / "train.jsonl", [ranked("one")])
    write_cases(tmp_path / "held.jsonl", [ranked("one", "q")])
    with pytest.raises(EvidenceError, match="1 of 1 held-out prompts"):
        read_inputs(tmp_path / "train.jsonl", tmp_path / "held.jsonl", base, Config())
    assert read_inputs(tmp_path / "train.jsonl", tmp_path / "held.jsonl", base, Config(allow_overlap=True)).held_out


def test_broken_weights_are_refused_behind_faults_of_the_cases_which_come_first(tmp_path, base):
    write_cases(tmp_path / "train.jsonl", [ranked("one")])
    write_cases(tmp_path / "unranked.jsonl", [msgspec.structs.replace(ranked("one"), ranking=None)])
    (tmp_path / "base" / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match=r"base: cannot be loaded"):
        read_inputs(tmp_path / "train.jsonl", None, base, Config())
    with pytest.raises(EvidenceError, match=r"none of 1 case has a comparable pair"):
        read_inputs(tmp_path / "unranked.jsonl", None, base, Config())
