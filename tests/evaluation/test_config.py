import pytest

from steelyard.core.errors import ConfigError, FileError, KindError
from steelyard.evaluation.config import Config, check_settings, choose_baselines


def names(config, train_cases=None):
    return [own.name for own in choose_baselines(config, train_cases)]


def test_the_ngram_model_comes_with_training_cases(tmp_path):
    (tmp_path / "train.jsonl").write_text("{}")
    assert names(Config()) == ["longer", "shorter", "random", "first"]
    assert names(Config(), tmp_path / "train.jsonl") == ["longer", "shorter", "random", "first", "ngram"]
    assert names(Config(baselines=())) == []
    assert choose_baselines(Config(), tmp_path / "train.jsonl")[-1].files == {"train": tmp_path / "train.jsonl"}


def test_the_random_baseline_has_the_runs_seed():
    assert choose_baselines(Config(seed=7), None)[2].settings == {"seed": 7}


def test_what_cannot_be_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="needs training cases"):
        choose_baselines(Config(baselines=("ngram",)), None)
    with pytest.raises(ConfigError, match="a baseline is listed twice"):
        choose_baselines(Config(baselines=("longer", "longer")), None)
    with pytest.raises(KindError, match="did you mean 'longer'"):
        choose_baselines(Config(baselines=("longr",)), None)
    with pytest.raises(FileError):
        choose_baselines(Config(), tmp_path / "absent.jsonl")


def test_the_rule_of_exact_match():
    assert Config().exact_rule == "strict"
    assert Config(metric_compat="cheems").exact_rule == "cheems"


@pytest.mark.parametrize("ratio", [0.9, -1.0, float("nan"), float("inf")])
def test_a_ratio_of_lengths_is_at_least_one(ratio):
    with pytest.raises(ConfigError, match="matched_ratio is"):
        check_settings(Config(matched_ratio=ratio))
    check_settings(Config(matched_ratio=1.0))
