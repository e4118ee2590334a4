import json

import pytest

import tiny
from steelyard.io.cases import write_cases
from steelyard.recipes.sweep import sweep
from steelyard.recipes.sweeps import Backbone, Sweep
from toy_prompts import toy_prompts


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    write_cases(folder / "train.jsonl", toy_prompts(32, right=True))
    write_cases(folder / "test.jsonl", toy_prompts(20, right=True, start=100))
    tiny.save_base(folder / "base")
    tiny.save_base(folder / "other", seed=1)
    asked = Sweep(
        training="train.jsonl", benches=("test.jsonl",), shares=(0.125, 1.0), num_threads=1,
        models=(
            Backbone(name="a", model="base", start="pretrained"), Backbone(name="b", model="other", start="instruct")
        ),
        train={"epochs": 1, "learning_rate": 3e-3, "prompts_per_step": 2},
    )  # fmt: skip
    path = folder / "sweep.toml"
    path.write_text("", encoding="utf-8")
    return asked, path, folder / "out", sweep(asked, path, folder / "out")


def test_each_point_is_trained_on_its_share(swept):
    _, _, _, found = swept
    assert [(arm.name, arm.num_prompts) for arm in found.arms] == [
        ("a_12.5%", 4), ("a_100%", 32), ("b_12.5%", 4), ("b_100%", 32)
    ]  # fmt: skip
    assert all(arm.accuracy.n == 20 for arm in found.arms)
    full = [arm for arm in found.arms if arm.num_prompts == 32]
    assert all(arm.accuracy.value == 1.0 for arm in full), "three seeds of 16 steps learn it"


def test_growth_is_the_difference_over_the_doublings_between_two_shares(swept):
    _, _, _, found = swept
    assert [(one.name, one.by) for one in found.grown] == [("a", "pairs"), ("b", "pairs")]
    small, large = found.arms[:2]
    assert found.grown[0].trend.per_doubling.value == pytest.approx((large.accuracy.value - small.accuracy.value) / 3)
    assert found.grown[0].trend.sizes == (4, 32)


def test_starts_of_one_size_are_held_against_each_other(swept):
    _, _, _, found = swept
    assert [(one.first, one.second) for one in found.starts] == [("b_12.5%", "a_12.5%"), ("b_100%", "a_100%")]


def test_the_table_and_the_plot_are_written_and_a_second_run_only_adds_them(swept):
    asked, path, out, found = swept
    told = json.loads((out / "sweep.json").read_text("utf-8"))
    assert [(row["model"], row["start"], row["share"]) for row in told["arms"]][:2] == [
        ("a", "pretrained", 0.125), ("a", "pretrained", 1.0)
    ]  # fmt: skip
    assert (out / "sweep.svg").read_text("utf-8").startswith("<svg")
    before = {run: run.stat().st_mtime_ns for run in out.glob("*/run.json")}
    assert sweep(asked, path, out) == found
    assert {run: run.stat().st_mtime_ns for run in before} == before
