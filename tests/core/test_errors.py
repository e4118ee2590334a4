import importlib
import pickle

import msgspec
import pytest

from steelyard.core import errors
from steelyard.core.config import resolve_config
from steelyard.core.errors import PEER_NAMES, ConfigError, MissingPartError, Place, RecordError, UserError, choices
from steelyard.stages.evaluate import Config as EvaluateConfig
from steelyard.stages.train import Config as TrainConfig


def test_an_error_says_where_what_and_what_next():
    error = RecordError("unknown verdict 'x'", where=Place("c.jsonl", 3, "judgments[0]"), allowed="left", do="fix it")
    assert str(error) == "c.jsonl:3 at judgments[0]: unknown verdict 'x'\n  allowed: left\n  do: fix it"
    assert str(UserError("plain")) == "plain"
    assert str(Place("f")) == "f"


def test_placing_an_error_keeps_its_kind_and_words():
    placed = ConfigError("wrong", allowed="right", do="so").at(Place("f", 1))
    assert isinstance(placed, ConfigError)
    assert str(placed) == "f:1: wrong\n  allowed: right\n  do: so"


def test_errors_cross_a_process_boundary_whole():
    error = RecordError("wrong", where=Place("f", 2), allowed="right", do="so")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is RecordError
    assert str(again) == str(error)


@pytest.mark.parametrize(
    ("given", "first"), [("tires", "did you mean 'tiers'? judged, tiers"), ("zzz", "judged, tiers")]
)
def test_the_nearest_choice_is_offered(given, first):
    assert choices(given, ["tiers", "judged"]) == first


@pytest.mark.parametrize(
    ("given", "hint"),
    [("to", "'to_kind'"), ("time", "'time_column'"), ("alpaca", "'alpaca_kto' or 'alpaca_sft'")],
)
def test_names_that_begin_with_the_words_given_are_offered_before_similar_ones(given, hint):
    names = ["to_kind", "tie_column", "time_column", "alpaca_sft", "alpaca_kto", "tom"]
    assert choices(given, names).startswith(f"did you mean {hint}? ")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("lr", "learning_rate"), ("prompts_per_step", "batch_size"), ("train_batch_size", "batch_size"),
        ("warmup", "warmup_ratio"), ("warm_up", "warmup_ratio"), ("lr_scheduler_type", "schedule"),
        ("num_train_epochs", "epochs"), ("max_epochs", "epochs"), ("cutoff_len", "max_length"),
        ("max_norm", "max_grad_norm"), ("center_rewards_coefficient", "centring"), ("lora_r", "adapter_rank"),
        ("activation_checkpointing", "gradient_checkpointing"), ("report_to", "trackers"),
        ("eval_steps", "evaluate_every"), ("optim", "optimiser"), ("learning-rate", "learning_rate"),
    ],
)  # fmt: skip
def test_another_librarys_name_of_a_setting_is_answered_with_ours(theirs, ours):
    with pytest.raises(ConfigError, match=f"did you mean '{ours}'"):
        resolve_config(TrainConfig, {theirs: 1}, where="train")


def test_every_answer_is_a_setting_or_an_option_and_never_the_other_librarys_name():
    settings = {field.encode_name for kind in (TrainConfig, EvaluateConfig) for field in msgspec.structs.fields(kind)}
    options = {"model", "held_out", "out", "force"}
    assert set(PEER_NAMES.values()) <= settings | options
    assert not set(PEER_NAMES) & (settings | options)


def test_the_drawing_names_every_error():
    classes = [name for name, item in vars(errors).items() if isinstance(item, type) and issubclass(item, UserError)]
    for name in classes:
        assert name in errors.__doc__


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (None, "the package steelyard_optional is not installed\n  do: pip install 'steelyard[train]'"),
        ("raise ImportError('no symbol')", "is installed and cannot be imported (ImportError: no symbol)"),
        (
            "import steelyard_no_such_module",
            "is installed and cannot be imported (ModuleNotFoundError: No module named",
        ),
    ],
)
def test_a_package_that_is_broken_is_not_called_absent(monkeypatch, tmp_path, code, problem):
    if code is not None:
        (tmp_path / "steelyard_optional.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError) as failed:
        importlib.import_module("steelyard_optional")
    assert problem in str(MissingPartError.of_import(failed.value, "steelyard_optional", "'steelyard[train]'"))
