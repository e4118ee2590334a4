"""Settings of `run --set STAGE.KEY=VALUE`: a misspelt one is answered with the nearest, in every recipe."""

import msgspec
import pytest

from steelyard.core.errors import ConfigError, UserError
from steelyard.recipes.preconditions import check_recipe
from steelyard.recipes.recipe import find_recipe, read_recipe

RECIPES = ("cheems", "cheems_bench", "cheems_labelled", "demo", "demo_real", "labelling", "mrewardbench")


def misspellings(name):
    """The name without a letter, with two letters exchanged, and with one too many."""
    middle = len(name) // 2
    yield name[:middle] + name[middle + 1 :]
    yield name[:middle] + name[middle : middle + 2][::-1] + name[middle + 2 :]
    yield f"{name}s"


def test_a_misspelt_setting_or_input_is_answered_with_the_nearest():
    missed, verbs = set(), set()
    for path in map(find_recipe, RECIPES):
        for step in read_recipe(path).steps:
            known = {field.name for field in msgspec.structs.fields(step.call.config_type)} | step.call.inputs.keys()
            for key in known if step.call.verb not in verbs else ():
                for wrong in set(misspellings(key)) - known - {"to"}:
                    with pytest.raises(ConfigError) as caught:
                        read_recipe(path, {step.name: {wrong: "x"}})
                    assert f"stages.{step.name}" in str(caught.value.where)
                    missed |= set() if f"did you mean {key!r}" in caught.value.allowed else {(step.call.verb, wrong)}
            verbs.add(step.call.verb)
    # They lie as near to the setting "bench" and the input "prices".
    assert missed <= {("evaluate", "benchs"), ("judge", "prcie")}
    assert {"translate", "evaluate", "judge", "train", "annotate"} <= verbs


@pytest.mark.parametrize("name", RECIPES)
def test_a_misspelt_stage_is_answered_with_the_nearest(name):
    path = find_recipe(name)
    for stage in (step.name for step in read_recipe(path).steps if len(step.name) > 4):
        with pytest.raises(ConfigError, match=f"has no stage '{stage[:-1]}'") as caught:
            read_recipe(path, {stage[:-1]: {"seed": 1}})
        assert f"'{stage}'" in caught.value.allowed.partition("?")[0]


def test_a_model_that_is_set_takes_the_place_of_the_recipes():
    path = find_recipe("mrewardbench")
    changed = read_recipe(path, {"evaluated": {"model": "my-model"}}).step("evaluated")
    assert changed.reference("model").text == "my-model"
    assert changed.config.model == {}
    assert read_recipe(path, {"evaluated": {"model": {"name": "x"}}}).step("evaluated").config.model == {"name": "x"}
    with pytest.raises(ConfigError, match="model names no files"):
        read_recipe(path, {"evaluated": {"model": ""}})


@pytest.mark.parametrize(
    ("settings", "do"),
    [
        ({"evaluated": {"config": {"seed": 1}}}, "write evaluated.KEY=VALUE, without config"),
        ({"stages": {"evaluated": {"seed": 1}}}, "write STAGE.KEY=VALUE, without stages and config"),
        ({"seed": 3}, "write seed=N"),
        ({"translated": {"to": "de, fr"}}, 'write the list with quotation marks: to=["de","fr"]'),
    ],
)
def test_a_setting_in_another_place_is_answered_with_its_own(settings, do):
    with pytest.raises(ConfigError) as caught:
        read_recipe(find_recipe("mrewardbench"), settings)
    assert str(caught.value.do) == do


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"translated": {"chat": {"modle": "x", "base_url": "http://a/v1"}}}, "did you mean 'model'"),
        ({"translated": {"chat": {"kind": "google_translat"}}}, "did you mean 'google_translate'"),
        ({"translated": {"to": ["de", "klingon"]}}, "codes such as"),
    ],
)
def test_settings_of_a_translator_are_checked_before_the_first_stage(settings, words, tmp_path):
    recipe = read_recipe(find_recipe("mrewardbench"), settings)
    with pytest.raises(UserError, match=r"stages\.translated\.config") as caught:
        check_recipe(recipe, tmp_path)
    assert words in str(caught.value.allowed)
