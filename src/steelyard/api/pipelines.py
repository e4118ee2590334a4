"""Pipelines as functions: run a recipe, the demo, an ablation, a sweep."""

from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.api.arguments import checked
from steelyard.api.calls import Call, PathText, json_value
from steelyard.api.outcomes import Outcome, Pipeline
from steelyard.core.errors import ConfigError
from steelyard.core.types import JsonObject, Run
from steelyard.evaluation.experiments import AblationSummary, SweepSummary

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
    """Run a whole pipeline from a recipe: a TOML file, or the name of one that comes with Steelyard.

    ``settings`` (stage, then key) override the recipe's, ``seed`` the seed of every stage. With ``out`` finished stages
    are skipped; ``redo_from`` names one that runs again with all that depend on it.

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
    from steelyard.recipes.recipe import find_recipe, read_recipe
    from steelyard.recipes.run import run as run_recipe

    with Call("run", out) as call:
        content = read_recipe(find_recipe(fspath(recipe)), json_value(settings or {}), seed=seed)
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


@checked
def ablate(
    file: PathText, *, out: PathText | None = None, settings: JsonObject | None = None
) -> Outcome[AblationSummary]:
    """Train one backbone on different data, several seeds each, and show which data made the better reward model.

    ``file`` is the TOML file of the ablation, whose keys ``settings`` override. With ``out`` finished trainings are
    skipped. The table has a row for each arm; differences, paired by prompt, are in the summary. Raises ConfigError for
    a file that compares nothing.

    >>> ablated = sy.ablate("ablation.toml", out="ablated")  # doctest: +SKIP
    >>> ablated.summary.differences[0].p_corrected  # doctest: +SKIP
    """
    from steelyard.recipes.ablate import EXPERIMENT

    return _experiment(EXPERIMENT, AblationSummary, file, out, settings)


@checked
def sweep(file: PathText, *, out: PathText | None = None, settings: JsonObject | None = None) -> Outcome[SweepSummary]:
    """Train several backbones on several shares of the data, several seeds each, and measure the gain per doubling.

    ``file`` is the TOML file of the sweep, whose keys ``settings`` override. With ``out`` finished trainings are
    skipped. The table has a row for each arm; the gain per doubling is ``summary.growth``. Raises ConfigError for a
    file that compares nothing.

    >>> swept = sy.sweep("sweep.toml", out="swept")  # doctest: +SKIP
    >>> swept.summary.growth[0].per_doubling  # doctest: +SKIP
    """
    from steelyard.recipes.sweep import EXPERIMENT

    return _experiment(EXPERIMENT, SweepSummary, file, out, settings)


def _experiment(
    kind: "ExperimentKind[Any, Any]",
    summary: type[Any],
    file: PathText,
    out: str | PathLike[str] | None,
    settings: JsonObject | None,
) -> Outcome[Any]:
    from steelyard.io.lines import check_readable
    from steelyard.io.run_folder import read_run

    with Call(kind.verb, out) as call:
        check_readable(Path(file))
        experiment = kind.read(Path(file), json_value(settings or {}))
        kind.run(experiment, Path(file), call.out)
        return Outcome.of(call, read_run(call.out, Run[summary]))
