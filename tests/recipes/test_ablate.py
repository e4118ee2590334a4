import json

import numpy as np
import pytest

import tiny
from steelyard.io.cases import write_cases
from steelyard.io.run_folder import read_run
from steelyard.recipes.ablate import ablate
from steelyard.recipes.ablations import Ablation
from steelyard.recipes.experiments import run_name
from toy_prompts import toy_prompts


@pytest.fixture(scope="module")
def ablated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ablate")
    write_cases(folder / "right.jsonl", toy_prompts(24, right=True))
    write_cases(folder / "wrong.jsonl", toy_prompts(24, right=False))
    write_cases(folder / "test.jsonl", toy_prompts(30, right=True, start=100))
    tiny.save_base(folder / "base")
    asked = Ablation(
        benches=("test.jsonl",), model="base", training={"right": "right.jsonl", "wrong": "wrong.jsonl"},
        train={"epochs": 2, "learning_rate": 3e-3, "prompts_per_step": 4}, num_threads=1,
    )  # fmt: skip
    path = folder / "ablation.toml"
    path.write_text("", encoding="utf-8")
    return asked, path, folder / "out", ablate(asked, path, folder / "out")


def test_data_that_teach_the_opposite_end_below_by_an_interval_without_zero(ablated):
    _, _, _, found = ablated
    right, wrong = found.arms
    assert (right.accuracy.value, wrong.accuracy.value) == (1.0, 0.0)
    (difference,) = found.against
    assert (difference.first, difference.second) == ("wrong", "right")
    assert difference.comparison.accuracy.high < 0
    assert difference.p_corrected < 0.01
    assert (right.num_prompts, right.num_pairs, right.accuracy.n) == (24, 24, 30)


def test_an_arm_is_the_mean_of_its_seeds(ablated):
    asked, _, out, found = ablated
    for arm in found.arms:
        values = [read_run(out / run_name(arm.name, seed)).summary["accuracy"]["value"] for seed in asked.seeds]
        assert list(arm.by_seed) == values
        assert arm.accuracy.value == pytest.approx(np.mean(values))
        assert arm.spread == pytest.approx(np.std(values, ddof=1))


def test_the_table_and_the_plot_are_written_and_a_second_run_only_adds_them(ablated):
    asked, path, out, found = ablated
    told = json.loads((out / "ablation.json").read_text("utf-8"))
    assert [row["name"] for row in told["arms"]] == ["right", "wrong"]
    assert (out / "ablation.svg").read_text("utf-8").startswith("<svg")
    before = {run: run.stat().st_mtime_ns for run in out.glob("*/run.json")}
    assert len(before) == 12
    assert ablate(asked, path, out) == found
    assert {run: run.stat().st_mtime_ns for run in before} == before
