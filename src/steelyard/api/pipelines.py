"""Pipelines as functions: run a recipe, an experiment or the demo."""

from importlib import import_module
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.api.arguments import checked
from steelyard.api.calls import Call, PathText, json_value
from steelyard.api.outcomes import Outcome
from steelyard.api.stage_outcomes import Pipeline
from steelyard.core.errors import ConfigError
from steelyard.core.types import JsonObject, Run

if TYPE_CHECKING:
    from steelyard.recipes.experiments import ExperimentKind


@checked
def run(
    recipe: PathText,
    *,
    out: PathText | None = None,
    settings: JsonObject | None = None,
    seed: int | None = None,
    redo_from: str | None = None,
) -> Pipeline:
    """Run a whole pipeline from a recipe: a TOML file, or the name of one that comes with Steelyard; or an experiment.

    ``settings`` (stage, then key) override the recipe's, ``seed`` the seed of every stage. With ``out`` finished stages
    are skipped; ``redo_from`` names one that runs again with all that depend on it.

    The file of an ablation or a sweep says so (``experiment = "ablation"``); ``settings`` override its keys, and
    ``.experiment`` is its result: a row of the table for each arm, differences in the summary.

    Raises ConfigError for an unknown stage, input or setting, FileError for a missing input, and the error of a stage.

    >>> recipe = '''
    ... [stages.ranked]
    ... verb = "resolve"
    ... cases = "cases.jsonl"
    ... [stages.evaluated]
    ... verb = "evaluate"
    ... benches = ["ranked/cases.jsonl"]
    ... model = "longer"
    ... '''
    >>> with open("recipe.toml", "w") as file:
    ...     _ = file.write(recipe)
    >>> cases.save("cases.jsonl")
    40
    >>> done = sy.run("recipe.toml", settings={"evaluated": {"num_resamples": 100}})
    >>> done
    Pipeline(ranked, evaluated)
    >>> float(done["evaluated"].accuracy)
    1.0
    """
    from steelyard.recipes.recipe import experiment_config, find_recipe, read_recipe
    from steelyard.recipes.run import run as run_recipe

    path, changes = find_recipe(fspath(recipe)), json_value(settings or {})
    config = experiment_config(path)
    if config is not None:
        if seed is not None or redo_from is not None:
            raise ConfigError("seed and redo_from belong to a recipe", do="set seeds in the file of the experiment")
        return _experiment(config[0], path, out, changes)
    with Call("run", out) as call:
        content = read_recipe(path, changes, seed=seed)
        done = run_recipe(content, call.out, redo_from=redo_from)
        return Pipeline({stage.name: stage.run for stage in done}, call.out, call.owners_of_result())


@checked
def demo(
    *,
    out: PathText | None = None,
    real: bool = False,
    model: PathText | None = None,
    settings: JsonObject | None = None,
    seed: int = 0,
    redo_from: str | None = None,
) -> Pipeline:
    """Run the whole pipeline on built-in data, on a CPU, in a minute: from verdicts to a reward model and a report.

    The good answers are written by hand; the worse ones and all verdicts are simulated. With ``real`` the data are
    HalluQA's, and the model is Gemma 3 270M or another ``model``. Raises MissingPartError where Gemma is not installed.

    >>> done = sy.demo()  # doctest: +SKIP
    >>> done["evaluated"].accuracy, done["report"].html  # doctest: +SKIP
    """
    from steelyard.recipes.demo import demo as simulated_demo
    from steelyard.recipes.demo import real_demo

    changes = json_value(settings or {})
    with Call("demo", out) as call:
        if real:
            name = None if model is None else fspath(model)
            runs = real_demo(call.out, changes, model=name, seed=seed, redo_from=redo_from).runs
        elif model is None:
            runs = simulated_demo(call.out, changes, seed=seed, redo_from=redo_from).runs
        else:
            raise ConfigError("model without real: the simulated demo makes its own model", do="add real=True")
        return Pipeline(runs, call.out, call.owners_of_result())


def _experiment(module: str, path: Path, out: PathText | None, settings: JsonObject) -> Pipeline:
    from steelyard.io.run_folder import read_run

    kind: ExperimentKind[Any, Any] = import_module(module).EXPERIMENT
    with Call(kind.verb, out) as call:
        experiment = kind.read(path, settings)
        kind.run(experiment, path, call.out)
        runs = {step.name: read_run(call.out / step.name) for step in kind.recipe(experiment, path).steps}
        result = Outcome.of(call, read_run(call.out, Run[kind.summary]))
        return Pipeline(runs, call.out, call.owners_of_result(), experiment=result)
