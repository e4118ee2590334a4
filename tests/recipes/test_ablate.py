import json
import shutil

import msgspec
import numpy as np
import pytest

import steelyard as sy
import tiny
from report_sections import only_section
from steelyard.core.errors import OutputError, UserError
from steelyard.core.types import Run
from steelyard.evaluation.experiments import AblationSummary, Arm
from steelyard.io.cases import write_cases
from steelyard.io.run_folder import read_run
from steelyard.recipes.ablate import EXPERIMENT, Ablation, arms_of
from steelyard.recipes.experiments import evaluation_name
from steelyard.recipes.measured_arms import MeasuredArms
from steelyard.statistics.groups import Cell, Label, layout_of
from steelyard.statistics.intervals import Estimate
from steelyard.views.experiments import experiment_sentences
from toy_prompts import toy_prompts

pytestmark = pytest.mark.slow

TABLE_4 = Ablation(benches=("test.jsonl",), model="base", human="human.jsonl", llm="llm.jsonl", supervisors=("longer",))


def reads(recipe, name):
    return [reference.text for _, reference in recipe.step(name).references()]


def test_arms_of_table_4_read_the_right_data(tmp_path):
    recipe = EXPERIMENT.recipe(TABLE_4, tmp_path / "a.toml")
    assert arms_of(TABLE_4) == (
        "human", "llm", "llm_debiased", "llm_supervised", "llm_both", "all", "llm_supervised_by_longer"
    )  # fmt: skip
    assert reads(recipe, "human.1.model") == ["human.resolved/cases.jsonl", "base"]
    assert reads(recipe, "llm_debiased.1.model")[0] == "llm.debiased/cases.jsonl"
    # The supervisor of a seed is that seed's human reward model; debiasing follows supervision, then both are joined.
    assert reads(recipe, "llm.1.supervised") == ["llm.resolved/cases.jsonl", "human.1.model"]
    assert reads(recipe, "llm.1.both") == ["llm.1.supervised/cases.jsonl"]
    assert reads(recipe, "all.1.merged") == ["human.resolved/cases.jsonl", "llm.1.both/cases.jsonl"]
    assert reads(recipe, "all.1.model")[0] == "all.1.merged/cases.jsonl"
    assert recipe.step("llm.1.supervised_by_longer").reference("model").text == "longer"
    assert {recipe.step(f"{arm}.{seed}.model").config.seed for arm in arms_of(TABLE_4) for seed in (0, 1, 2)} == {
        0,
        1,
        2,
    }
    assert all(reads(recipe, evaluation_name(arm, 2)) == ["test.jsonl", f"{arm}.2.model"] for arm in arms_of(TABLE_4))


def test_controls_of_equal_size_and_rules_for_pairs_are_arms(tmp_path):
    asked = msgspec.structs.replace(
        TABLE_4,
        supervisors=("random", "longer", "closest"),
        equal_sizes=True,
        pair_rules=("tiers",),
        train={"epochs": 1},
    )
    recipe = EXPERIMENT.recipe(asked, tmp_path / "a.toml")
    assert arms_of(asked)[6:] == (
        "llm_supervised_by_random", "llm_as_many_by_random",
        "llm_supervised_by_longer", "llm_as_many_by_longer", "llm_as_many_by_closest", "llm_supervised_tiers",
    )  # fmt: skip
    control = recipe.step("llm.2.as_many_by_random")
    assert reads(recipe, control.name) == ["llm.resolved/cases.jsonl", "random", "llm.2.supervised/cases.jsonl"]
    assert (control.config.model, recipe.step("llm.2.as_many_by_longer").config.model) == ({"seed": 2}, {})
    closest = recipe.step("llm.2.as_many_by_closest")
    assert reads(recipe, closest.name) == ["llm.resolved/cases.jsonl", "longer", "llm.2.supervised/cases.jsonl"]
    assert closest.config.policy == "closest"
    tiers, listed = recipe.step("llm_supervised_tiers.1.model"), recipe.step("llm_supervised.1.model")
    assert (tiers.config.pairs, tiers.config.epochs, listed.config.pairs) == ("tiers", 1, None)
    assert reads(recipe, tiers.name) == reads(recipe, listed.name) == ["llm.1.supervised/cases.jsonl", "base"]


def test_the_supervised_arm_is_compared_with_its_controls():
    asked = msgspec.structs.replace(TABLE_4, supervisors=("random",), equal_sizes=True, pair_rules=("tiers",))
    layout = layout_of([Label(f"p{index}", Cell("one")) for index in range(9)])
    statistics = {name: np.tile([1, 1, 1, 1], (9, 1)) for name in arms_of(asked)}
    arm = Arm("x", 1, 1, 1, Estimate(1, 1, 1, 9), Estimate(1, 1, 1, 9), (1.0,), 0.0)
    found = EXPERIMENT.compare(asked, MeasuredArms((arm,), statistics, layout))
    pairs = [(each.first, each.second) for each in found.differences]
    assert len(pairs) == len(set(pairs)) == 8 + 7 + 3
    assert pairs[-3:] == [
        ("llm_supervised", name)
        for name in ("llm_supervised_by_random", "llm_as_many_by_random", "llm_supervised_tiers")
    ]


def test_training_files_and_shares_become_arms(tmp_path):
    asked = Ablation(
        benches=("t",), model="m", training={"一": "a.jsonl", "b": "b.jsonl"}, scaled="b", scaling=(0.25, 1.0),
        train={"epochs": 1}, num_threads=1,
    )  # fmt: skip
    recipe = EXPERIMENT.recipe(asked, tmp_path / "a.toml")
    assert arms_of(asked) == ("一", "b", "b_25%", "b_100%")
    assert recipe.step("b_25%.2.part").config.parts == {"kept": 0.25, "rest": 0.75}
    assert recipe.step("b_25%.2.part").config.seed == 2
    assert reads(recipe, "b_25%.2.model")[0] == "b_25%.2.part/kept.jsonl"
    assert reads(recipe, "b_100%.2.model")[0] == "b.jsonl"
    assert recipe.step("一.0.model").config.epochs == 1
    assert recipe.step("一.0.model").num_threads == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("model='m'", "benches is missing"),
        ("model='m'\nbenches=['t']", "nothing to compare"),
        ("model='m'\nbenches=['t']\ntraining={a='a'}", "nothing to compare"),
        ("model='m'\nbenches=['t']\nhuman='h'", "human without llm"),
        ("model='m'\nbenches=['t']\nhuman='h'\nllm='l'\nseeds=[0,0,1]", "2 seeds\n  allowed: 3 different or more"),
        ("model='m'\nbenches=['t']\nhuman='h'\nllm='l'\nequal_sizes=true", "equal_sizes without supervisors"),
        ("model='m'\nbenches=['t']\nhuman='h'\nllm='l'\nsupervisors=['closest']", "closest has no size of its own"),
        (
            "model='m'\nbenches=['t']\ntraining={a='a',b='b'}\nsupervisors=['random']\npair_rules=['tiers']",
            "supervisors, pair_rules without human and llm",
        ),
        ("model='m'\nbenches=['t']\nhuman='h'\nllm='l'\npair_rules=['tier']", "did you mean 'tiers'|tiers"),
        ("model='m'\nbenches=['t']\nhumans='h'", "unknown setting 'humans'\n  allowed: did you mean 'human'"),
    ],
)
def test_invalid_ablation_files_are_refused(tmp_path, text, found):
    path = tmp_path / "a.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=found):
        EXPERIMENT.read(path)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"scaling": (1.5,)}, "scaling by 1.5"),
        ({"scaling": (0.5,), "scaled": "humans"}, "no file of 'humans'"),
        ({"train": {"epoch": 2}}, r"unknown setting 'epoch'\n  allowed: did you mean 'epochs'"),
    ],
)
def test_invalid_settings_are_named(tmp_path, change, found):
    with pytest.raises(UserError, match=found):
        EXPERIMENT.recipe(msgspec.structs.replace(TABLE_4, **change), tmp_path / "a.toml")


def test_settings_override_the_file(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(
        "model='m'\nbenches=['t']\nhuman='h'\nllm='l'\n[train]\nepochs=3\ndtype='bfloat16'", encoding="utf-8"
    )
    found = EXPERIMENT.read(path, {"train": {"epochs": 1}, "seeds": [4, 5, 6]})
    assert (found.train, found.seeds) == ({"epochs": 1, "dtype": "bfloat16"}, (4, 5, 6))


@pytest.fixture(scope="module")
def ablated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ablate")
    write_cases(folder / "right.jsonl", toy_prompts(24, right=True))
    write_cases(folder / "wrong.jsonl", toy_prompts(24, right=False))
    write_cases(folder / "test.jsonl", toy_prompts(30, right=True, start=100))
    tiny.save_base(folder / "base")
    asked = Ablation(
        benches=("test.jsonl",), model="base", training={"right": "right.jsonl", "wrong": "wrong.jsonl"},
        train={"epochs": 2, "learning_rate": 3e-3, "batch_size": 4}, num_threads=1,
    )  # fmt: skip
    path = folder / "ablation.toml"
    path.write_text('experiment = "ablation"\nabout = ""', encoding="utf-8")
    return asked, path, folder / "out", EXPERIMENT.run(asked, path, folder / "out")


def test_training_on_reversed_data_is_significantly_worse(ablated):
    _, _, _, found = ablated
    right, wrong = found.arms
    assert (right.accuracy.value, wrong.accuracy.value) == (1.0, 0.0)
    (difference,) = found.differences
    assert (difference.first, difference.second) == ("wrong", "right")
    assert difference.accuracy.high < 0
    assert difference.p_accuracy_corrected < 0.01
    assert (right.num_prompts, right.num_pairs, right.accuracy.n) == (24, 24, 30)


def test_arm_is_the_mean_over_seeds(ablated):
    asked, _, out, found = ablated
    for arm in found.arms:
        values = [read_run(out / evaluation_name(arm.name, seed)).summary["accuracy"]["value"] for seed in asked.seeds]
        assert list(arm.accuracy_by_seed) == values
        assert arm.accuracy.value == pytest.approx(np.mean(values))
        assert arm.spread == pytest.approx(np.std(values, ddof=1))


def test_second_run_skips_stages_and_rewrites_results(ablated):
    asked, path, out, found = ablated
    told = json.loads((out / "ablation.json").read_text("utf-8"))
    assert [row["name"] for row in told["arms"]] == ["right", "wrong"]
    assert (out / "ablation.svg").read_text("utf-8").startswith("<svg")
    before = {run: run.stat().st_mtime_ns for run in out.glob("*/run.json")}
    assert len(before) == 12
    assert EXPERIMENT.run(asked, path, out) == found
    assert {run: run.stat().st_mtime_ns for run in before} == before


def test_a_report_shows_the_arms_and_their_difference(ablated):
    _, _, out, found = ablated
    section, sentences = only_section(out)
    assert sentences[0].values["best"] == "right"
    for sentence in sentences[1:3]:
        assert (sentence.values["significant"], sentence.values["all"]) == ("1", "1")
        assert sentence.values["differences"] == "wrong \N{EN DASH} right (\N{MINUS SIGN}100.0)"
    arms, differences = section.panels
    assert [row[:3] for row in arms.tables[0].table.rows] == [("right", "24", "24"), ("wrong", "24", "24")]
    assert [row[4] for row in arms.tables[0].table.rows] == ["100.0%", "0.0%"]
    seeds = arms.figure.spec["layer"][-1]["data"]["values"]
    assert [seed["value"] for seed in seeds] == [1.0] * 3 + [0.0] * 3
    (row,) = differences.tables[0].table.rows
    assert (row[1], row[5]) == ("\N{MINUS SIGN}100.0*", "\N{MINUS SIGN}100.0*")
    assert found.differences[0].p_accuracy_corrected < 0.01


def test_no_record_vouches_for_results_that_are_half_replaced(ablated):
    asked, path, out, found = ablated
    plot = out / "ablation.svg"
    plot.unlink()
    plot.mkdir()  # the second of the two files cannot be written
    with pytest.raises(OutputError):
        EXPERIMENT.run(asked, path, out)
    assert not (out / "run.json").exists()
    plot.rmdir()
    assert EXPERIMENT.run(asked, path, out) == found
    assert read_run(out).stage == "ablate"


def test_python_gives_the_record_of_the_ablation(ablated):
    asked, path, out, found = ablated
    settings = {"benches": ["test.jsonl"], "model": "base", "training": asked.training, "train": asked.train}
    outcome = sy.run(path, out=out, settings={**settings, "num_threads": 1}).experiment
    assert [(row["name"], row["accuracy"]) for row in outcome.table] == [("right", 1.0), ("wrong", 0.0)]
    (difference,) = outcome.summary.differences
    assert (difference.first, difference.second) == ("wrong", "right")
    assert difference.p_accuracy_corrected == found.differences[0].p_accuracy_corrected
    with pytest.raises(UserError, match="did you mean 'benches'"):
        sy.run(path, settings={"benchs": []})


def kinds_of(recipe, name):
    step = recipe.step(name)
    return step.config.bench_kind, [reference.text for reference in step.inputs["benches"]]


def test_a_test_file_has_its_kind_before_it(tmp_path):
    asked = msgspec.structs.replace(TABLE_4, benches=("cheemsbench=open.jsonl", "cheemsbench=human=2.jsonl"))
    recipe = EXPERIMENT.recipe(asked, tmp_path / "a.toml")
    assert kinds_of(recipe, "human.0.evaluated") == ("cheemsbench", ["open.jsonl", "human=2.jsonl"])
    (tmp_path / "lang=zh.jsonl").write_text("")
    asked = msgspec.structs.replace(TABLE_4, benches=("lang=zh.jsonl",))
    recipe = EXPERIMENT.recipe(asked, tmp_path / "a.toml")
    assert kinds_of(recipe, "human.0.evaluated") == ("cases", ["lang=zh.jsonl"])


def test_each_kind_is_an_evaluation_of_its_own(tmp_path):
    asked = msgspec.structs.replace(TABLE_4, benches=("cheemsbench=open.jsonl", "rewardbench=rb.jsonl", "own.jsonl"))
    recipe = EXPERIMENT.recipe(asked, tmp_path / "a.toml")
    assert kinds_of(recipe, "llm.1.evaluated.cheemsbench") == ("cheemsbench", ["open.jsonl"])
    assert kinds_of(recipe, "llm.1.evaluated.rewardbench") == ("rewardbench", ["rb.jsonl"])
    assert kinds_of(recipe, "llm.1.evaluated.cases") == ("cases", ["own.jsonl"])
    assert "llm.1.evaluated" not in {step.name for step in recipe.steps}
    both = msgspec.structs.replace(asked, evaluate={"bench_kind": "rmb"})
    with pytest.raises(UserError, match="bench_kind with files of several kinds: cheemsbench, rewardbench, cases"):
        EXPERIMENT.recipe(both, tmp_path / "a.toml")


def test_arms_are_measured_on_each_kind(ablated, tmp_path):
    asked, path, out, alone = ablated
    both = tmp_path / "out"
    shutil.copytree(out, both)
    write_cases(path.parent / "more_open.jsonl", toy_prompts(30, right=False, start=200))
    asked = msgspec.structs.replace(asked, benches=("test.jsonl", "cheemsbench=more_open.jsonl"))
    measured = EXPERIMENT.run(asked, path, both)
    assert [(arm.name, arm.bench, arm.accuracy.value) for arm in measured.arms] == [
        ("cases: right", "cases", 1.0), ("cases: wrong", "cases", 0.0),
        ("cheemsbench: right", "cheemsbench", 0.0), ("cheemsbench: wrong", "cheemsbench", 1.0),
    ]  # fmt: skip
    assert [(each.first, each.second) for each in measured.differences] == [
        ("cases: wrong", "cases: right"), ("cheemsbench: wrong", "cheemsbench: right"),
    ]  # fmt: skip
    # Twice as many differences: Holm doubles the smallest p-value.
    assert measured.differences[0].p_accuracy_corrected == pytest.approx(2 * alone.differences[0].p_accuracy_corrected)
    summary = read_run(both, Run[AblationSummary]).summary
    assert [arm.bench for arm in summary.arms] == ["cases", "cases", "cheemsbench", "cheemsbench"]
    sentences = list(experiment_sentences("a", summary.arms, summary.differences))
    assert [sentence.key for sentence in sentences[2:]] == ["say_significant_arms"] * 2
    lines = [sentence.values["best"] for sentence in sentences[:2]]
    assert lines == ["cases: right", "cheemsbench: wrong"]
