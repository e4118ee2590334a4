import numpy as np
import pytest

from steelyard.core.errors import ConfigError
from steelyard.evaluation.experiments import Arm
from steelyard.recipes.experiments import (
    Experiment,
    draw_share,
    evaluation_name,
    model_name,
    percent,
    read_experiment,
    trained_and_evaluated,
)
from steelyard.recipes.measured_arms import MeasuredArms, compare_arms
from steelyard.statistics.groups import Cell, Label, layout_of
from steelyard.statistics.intervals import Estimate


def test_settings_override_the_file_key_by_key(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("benches=['t']\n[train]\nepochs=3\ndtype='bfloat16'", encoding="utf-8")
    found = read_experiment(Experiment, path, {"train": {"epochs": 1}, "seeds": [4, 5, 6]})
    assert (found.train, found.seeds, found.benches) == ({"epochs": 1, "dtype": "bfloat16"}, (4, 5, 6), ("t",))


def test_stages_of_an_arm_and_a_seed():
    asked = Experiment(benches=("t",), train={"epochs": 3, "seed": 9}, evaluate={"pairs": "tiers"}, num_threads=2)
    stages = trained_and_evaluated("一", 5, cases="c.jsonl", model="m", experiment=asked, settings={"epochs": 1})
    assert list(stages) == [model_name("一", 5), evaluation_name("一", 5)] == ["一.5.model", "一.5.evaluated"]
    trained, evaluated = stages.values()
    assert trained["config"] == {"epochs": 1, "seed": 5}
    assert evaluated["config"] == {"baselines": [], "pairs": "tiers", "seed": 0}
    assert (evaluated["model"], trained["num_threads"]) == ("一.5.model", 2)


def test_draw_share_splits_by_seed():
    assert draw_share("c.jsonl", 1, 0, name="all") == ({}, "c.jsonl")
    stages, cases = draw_share("c.jsonl", 0.125, 3, name=percent(0.125))
    assert cases == "12.5%.3.part/kept.jsonl"
    assert stages["12.5%.3.part"]["config"] == {"parts": {"kept": 0.125, "rest": 0.875}, "seed": 3}


@pytest.mark.parametrize("share", [0, -0.5, 1.5])
def test_invalid_share_is_refused(share):
    with pytest.raises(ConfigError, match="scaling by"):
        draw_share("c.jsonl", share, 0, name="x")


def arm(name):
    return Arm(
        name=name, num_prompts=10.0, num_pairs=20.0, num_weights=30, accuracy=Estimate(0.5, 0.4, 0.6, 9),
        exact_match=Estimate(0.3, 0.2, 0.4, 9), accuracy_by_seed=(0.4, 0.5, 0.6), spread=0.1,
    )  # fmt: skip


def table(right):
    return np.array([(1, one, 1, one) for one in right], dtype=np.int64)


def test_differences_are_paired_and_corrected():
    layout = layout_of([Label(f"p{index}", Cell("one")) for index in range(40)])
    tables = {"good": table([1] * 40), "bad": table([0] * 40), "same": table([1] * 40)}
    measured = MeasuredArms(tuple(map(arm, tables)), tables, layout)
    better, equal = compare_arms(measured, [("good", "bad"), ("good", "same")])
    assert (better.first, better.second, better.accuracy.value) == ("good", "bad", 1.0)
    for measure in ("accuracy", "exact_match"):
        p = getattr(better, f"p_{measure}")
        assert getattr(better, f"p_{measure}_corrected") == pytest.approx(min(1, 2 * p))
        assert getattr(equal, f"p_{measure}_corrected") == 1.0
    assert equal.accuracy.value == 0
