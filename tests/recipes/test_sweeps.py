import pytest

from steelyard.core.errors import UserError
from steelyard.recipes.experiments import run_name
from steelyard.recipes.sweeps import points_of, read_sweep, sweep_recipe

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


def test_every_model_is_trained_on_every_share_with_every_setting(tmp_path):
    path = written(tmp_path, "vary.learning_rate = [1e-5, 3e-5]\n" + FILE)
    asked = read_sweep(path)
    names = [point.name for point in points_of(asked)]
    assert len(names) == len(set(names)) == 8
    assert names[:3] == ["小_learning_rate=1e-05_50%", "小_learning_rate=1e-05_100%", "小_learning_rate=3e-05_50%"]
    recipe = sweep_recipe(asked, path)
    step = recipe.step("大_learning_rate=3e-05_50%.2.model")
    assert (step.config.learning_rate, step.config.epochs, step.config.seed) == (3e-5, 1, 2)
    # A share of a seed is drawn once for all models.
    assert reads(recipe, step.name) == ["50%.2.part/kept.jsonl", "some-lab/large"]
    assert reads(recipe, "小_learning_rate=1e-05_100%.0.model") == ["train.jsonl", "small"]
    assert reads(recipe, run_name("小_learning_rate=1e-05_50%", 1)) == [
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
def test_what_compares_nothing_is_refused(tmp_path, change, found):
    with pytest.raises(UserError, match=found):
        read_sweep(written(tmp_path), change)


@pytest.mark.parametrize(
    ("change", "found"),
    [({"shares": [0.0, 1.0]}, "scaling by 0.0"), ({"vary": {"epoch": [1, 2]}}, "unknown setting 'epoch'")],
)
def test_settings_that_cannot_be_are_named(tmp_path, change, found):
    path = written(tmp_path)
    with pytest.raises(UserError, match=found):
        sweep_recipe(read_sweep(path, change), path)
