import json

import msgspec
import pytest

import steelyard as sy
import tiny
from report_sections import only_section, panels_of
from steelyard.core.errors import UserError
from steelyard.evaluation.tables import word
from steelyard.io.cases import write_cases
from steelyard.recipes.experiments import evaluation_name
from steelyard.recipes.sweep import EXPERIMENT, Backbone, Sweep, points_of
from toy_prompts import toy_prompts

FILE = """
training = "train.jsonl"
benches = ["test.jsonl"]
shares = [0.5, 1.0]
train.epochs = 1

[[models]]
name = "小"
model = "small"
start = "pretrained"

[[models]]
name = "大"
model = "some-lab/large"
"""


def written(tmp_path, text=FILE):
    path = tmp_path / "sweep.toml"
    path.write_text(text, encoding="utf-8")
    return path


def reads(recipe, name):
    return [reference.text for _, reference in recipe.step(name).references()]


def test_recipe_combines_models_shares_and_settings(tmp_path):
    path = written(tmp_path, "vary.learning_rate = [1e-5, 3e-5]\n" + FILE)
    asked = EXPERIMENT.read(path)
    names = [point.name for point in points_of(asked)]
    assert len(names) == len(set(names)) == 8
    assert names[:3] == ["小_learning_rate=1e-05_50%", "小_learning_rate=1e-05_100%", "小_learning_rate=3e-05_50%"]
    recipe = EXPERIMENT.recipe(asked, path)
    step = recipe.step("大_learning_rate=3e-05_50%.2.model")
    assert (step.config.learning_rate, step.config.epochs, step.config.seed) == (3e-5, 1, 2)
    # A share of a seed is drawn once for all models.
    assert reads(recipe, step.name) == ["50%.2.part/kept.jsonl", "some-lab/large"]
    assert reads(recipe, "小_learning_rate=1e-05_100%.0.model") == ["train.jsonl", "small"]
    assert reads(recipe, evaluation_name("小_learning_rate=1e-05_50%", 1)) == [
        "test.jsonl", "小_learning_rate=1e-05_50%.1.model"
    ]  # fmt: skip
    assert sum(one.call.verb == "split" for one in recipe.steps) == 3


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"shares": [1.0], "models": [{"name": "a", "model": "m"}]}, "a sweep of one training"),
        ({"seeds": [0, 1]}, "2 seeds\n  allowed: 3 different or more"),
        ({"shares": [0.5, 0.5]}, "2 trainings named '小_50%'"),
        ({"models": [{"name": "a/b", "model": "m"}]}, "a training named 'a/b_50%'"),
        ({"vary": {"learning_rate": []}}, "a setting in vary without values"),
        ({"models": [{"nam": "a", "model": "m"}]}, "nam"),
        ({"model": "m"}, "unknown setting 'model'\n  allowed: did you mean 'models'"),
    ],
)
def test_invalid_sweep_files_are_refused(tmp_path, change, found):
    with pytest.raises(UserError, match=found):
        EXPERIMENT.read(written(tmp_path), change)


@pytest.mark.parametrize(
    ("change", "found"),
    [({"shares": [0.0, 1.0]}, "scaling by 0.0"), ({"vary": {"epoch": [1, 2]}}, "unknown setting 'epoch'")],
)
def test_invalid_settings_are_named(tmp_path, change, found):
    path = written(tmp_path)
    with pytest.raises(UserError, match=found):
        EXPERIMENT.recipe(EXPERIMENT.read(path, change), path)


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
        train={"epochs": 1, "learning_rate": 3e-3, "batch_size": 2},
    )  # fmt: skip
    path = folder / "sweep.toml"
    path.write_text('experiment = "sweep"\nabout = ""', encoding="utf-8")
    return asked, path, folder / "out", EXPERIMENT.run(asked, path, folder / "out")


@pytest.mark.slow
def test_each_point_is_trained_on_its_share(swept):
    _, _, _, found = swept
    assert [(arm.name, arm.num_prompts) for arm in found.arms] == [
        ("a_12.5%", 4), ("a_100%", 32), ("b_12.5%", 4), ("b_100%", 32)
    ]  # fmt: skip
    assert all(arm.accuracy.n == 20 for arm in found.arms)
    full = [arm for arm in found.arms if arm.num_prompts == 32]
    assert all(arm.accuracy.value == 1.0 for arm in full), "three seeds of 16 steps learn it"


@pytest.mark.slow
@pytest.mark.slow
def test_growth_is_the_difference_per_doubling(swept):
    _, _, _, found = swept
    assert [(one.name, one.by) for one in found.growth] == [("a", "pairs"), ("b", "pairs")]
    small, large = found.arms[:2]
    assert found.growth[0].per_doubling.value == pytest.approx((large.accuracy.value - small.accuracy.value) / 3)
    assert found.growth[0].sizes == (4, 32)


@pytest.mark.slow
def test_starts_of_equal_size_are_compared(swept):
    _, _, _, found = swept
    assert [(one.first, one.second) for one in found.starts] == [("b_12.5%", "a_12.5%"), ("b_100%", "a_100%")]


@pytest.mark.slow
def test_second_run_skips_stages_and_rewrites_results(swept):
    asked, path, out, found = swept
    told = json.loads((out / "sweep.json").read_text("utf-8"))
    assert [(row["model"], row["start"], row["share"]) for row in told["arms"]][:2] == [
        ("a", "pretrained", 0.125), ("a", "pretrained", 1.0)
    ]  # fmt: skip
    assert (out / "sweep.svg").read_text("utf-8").startswith("<svg")
    before = {run: run.stat().st_mtime_ns for run in out.glob("*/run.json")}
    assert EXPERIMENT.run(asked, path, out) == found
    assert {run: run.stat().st_mtime_ns for run in before} == before


@pytest.mark.slow
def test_a_report_shows_the_curve_over_pairs_and_the_growth(swept):
    _, _, out, found = swept
    section, sentences = only_section(out)
    assert (sentences[0].values["arms"], sentences[0].values["seeds"]) == ("4", "3")
    panels = panels_of(section)
    points = panels[word("by_pairs")].figure.spec["data"]["values"]
    assert [(point["series"], point["x"]) for point in points] == [
        ("a", arm.num_pairs) if arm.name.startswith("a") else ("b", arm.num_pairs) for arm in found.arms
    ]
    assert word("by_weights") not in panels  # both models have one size
    assert [row[0] for row in panels[word("growth")].tables[0].table.rows] == ["a", "b"]
    assert len(panels[word("start_differences")].tables[0].table.rows) == 2


@pytest.mark.slow
def test_python_gives_the_record_of_the_sweep(swept):
    asked, path, out, found = swept
    outcome = sy.run(path, out=out, settings=msgspec.to_builtins(asked)).experiment
    assert [row["name"] for row in outcome.table] == ["a_12.5%", "a_100%", "b_12.5%", "b_100%"]
    assert [growth.p for growth in outcome.summary.growth] == [growth.p for growth in found.growth]
