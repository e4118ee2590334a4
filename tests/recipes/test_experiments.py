import pytest

from steelyard.core.errors import ConfigError
from steelyard.recipes.experiments import (
    Experiment,
    model_name,
    percent,
    read_experiment,
    run_name,
    share_of,
    trained_and_evaluated,
)


def test_settings_given_stand_over_those_of_the_file_key_by_key(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("benches=['t']\n[train]\nepochs=3\ndtype='bfloat16'", encoding="utf-8")
    found = read_experiment(Experiment, path, {"train": {"epochs": 1}, "seeds": [4, 5, 6]})
    assert (found.train, found.seeds, found.benches) == ({"epochs": 1, "dtype": "bfloat16"}, (4, 5, 6), ("t",))


def test_an_arm_is_trained_and_then_evaluated_with_its_own_settings_and_seed():
    asked = Experiment(benches=("t",), train={"epochs": 3, "seed": 9}, evaluate={"pairs": "tiers"}, num_threads=2)
    stages = trained_and_evaluated("一", 5, cases="c.jsonl", model="m", experiment=asked, settings={"epochs": 1})
    assert list(stages) == [model_name("一", 5), run_name("一", 5)] == ["一.5.model", "一.5.evaluated"]
    trained, evaluated = stages.values()
    assert trained["config"] == {"epochs": 1, "seed": 5}
    assert evaluated["config"] == {"baselines": [], "pairs": "tiers", "seed": 0}
    assert (evaluated["model"], trained["num_threads"]) == ("一.5.model", 2)


def test_a_share_is_a_split_of_its_own_seed_and_the_whole_is_the_file():
    assert share_of("c.jsonl", 1, 0, name="all") == ({}, "c.jsonl")
    stages, cases = share_of("c.jsonl", 0.125, 3, name=percent(0.125))
    assert cases == "12.5%.3.part/kept.jsonl"
    assert stages["12.5%.3.part"]["config"] == {"parts": {"kept": 0.125, "rest": 0.875}, "seed": 3}


@pytest.mark.parametrize("share", [0, -0.5, 1.5])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(ConfigError, match="scaling by"):
        share_of("c.jsonl", share, 0, name="x")
