"""The verb `run`: recipes and experiments, which run many stages."""

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.options import AsJson, RedoFrom, StageSettings, Verbose
from steelyard.cli.output import columns, echo_record, next_line, print_lines, print_settings, run_answer
from steelyard.cli.verb import FunctionVerb
from steelyard.cli.verbs.demo import DEMO
from steelyard.core.settings_help import read_nested_settings
from steelyard.core.text import verb_for
from steelyard.core.types import JsonObject

if TYPE_CHECKING:
    from steelyard.recipes.experiments import ExperimentKind
    from steelyard.recipes.recipe import Recipe
    from steelyard.recipes.run import CompletedStage, PlannedStage

_MAX_LINES = 6

_RunsFolder = Annotated[Path | None, typer.Option("--out", help="The folder for all runs. Default: named as the file.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Print every stage and its state; change nothing.")]


def _run(
    recipe: Annotated[str, typer.Argument(help="A recipe's TOML file, or the name of one that comes with Steelyard.")],
    *,
    out: _RunsFolder = None,
    redo_from: RedoFrom = None,
    dry_run: _DryRun = False,
    seed: Annotated[int | None, typer.Option(help="The random seed of every stage.")] = None,
    settings: StageSettings = None,
    explain: Annotated[bool, typer.Option("--explain", help="Explain the keys of an experiment's file.")] = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Run a whole pipeline from a recipe, or an experiment: every stage in a folder of its own, finished ones skipped.

    A recipe names its stages, what each reads, and the settings that differ from the defaults. These come with
    Steelyard: cheems, cheems_bench, cheems_labelled, demo, demo_real, labelling, mrewardbench. An interrupted run
    resumes with the same command. `overview.json` records what ran, how long, and what each stage wrote.

    Example: `steelyard run demo --out demo --dry-run`

    Example: `steelyard run demo --out demo --from model --set model.epochs=8`

    A file with `experiment = "ablation"` trains one backbone on different data, several seeds each, and shows which
    data made the better reward model (CHEEMS, Table 4); one with `experiment = "sweep"` trains several backbones on
    several shares of the data, and measures the gain per doubling (Figures 6 and 7). Differences are paired by prompt
    and corrected for their number. `--explain` prints the keys of such a file.

    Example: `steelyard run ablation.toml --out ablated --dry-run`
    """
    from steelyard.core.config import parse_settings
    from steelyard.core.errors import ConfigError
    from steelyard.recipes.recipe import experiment_config, find_recipe, read_recipe

    path = find_recipe(recipe)
    changes, folder, config = parse_settings(settings or ()), out or Path(path.stem), experiment_config(path)
    if explain:
        if config is None:
            raise ConfigError("the keys of a recipe are those of its stages", do="steelyard VERB --settings")
        print_settings(read_nested_settings(*config), as_json=as_json)
        return
    if config is not None:
        for option, value in (("--from", redo_from), ("--seed", seed)):
            if value is not None:
                problem = f"{option} belongs to a recipe, and {path} is an experiment"
                raise ConfigError(problem, do="set seeds in the file; finished stages are skipped")
        _run_experiment(config[0], path, folder, changes, dry_run=dry_run, verbose=verbose, as_json=as_json)
        return
    content = read_recipe(path, changes, seed=seed)
    if dry_run:
        planned = _checked_plan(content, folder, redo_from)
        if as_json:
            echo_record(_plan_records(planned))
        else:
            print_lines(_plan_lines(planned))
        return
    # Only now: it imports torch, and a recipe that cannot be read is refused at once.
    from steelyard.recipes.run import overview, run

    done = run(content, folder, redo_from=redo_from)
    if as_json:
        echo_record(overview(content, done))
    else:
        print_lines(_run_answer(done, folder))
        if verbose:
            print_lines(["", *_done_lines(done)])


def _checked_plan(recipe: "Recipe", folder: Path, redo_from: str | None = None) -> "tuple[PlannedStage, ...]":
    """Return every stage with its state. Raises what a stage would refuse later."""
    from steelyard.recipes.preconditions import check_recipe
    from steelyard.recipes.run import check_files, plan

    redone = () if redo_from is None else recipe.after(redo_from)
    check_files(recipe, folder)
    check_recipe(recipe, folder)
    return plan(recipe, folder, redone)


def _plan_records(plan: "Sequence[PlannedStage]") -> list[JsonObject]:
    return [
        {
            "name": planned.step.name,
            "verb": planned.step.call.verb,
            "state": planned.state,
            "why": planned.why,
            "num_waiting": planned.num_waiting,
            "do": planned.do,
            "reads": [reference.text for _, reference in planned.step.references()],
            "folder": str(planned.folder),
        }
        for planned in plan
    ]


def _plan_lines(plan: "Sequence[PlannedStage]") -> Iterator[str]:
    rows: list[tuple[str, str]] = []
    for planned in plan:
        step = planned.step
        reads = ", ".join(reference.text for _, reference in step.references())
        rows.append((step.name, planned.state + (f" ({planned.why})" if planned.why else "")))
        rows.append(("", f"{step.call.verb} of {reads}" if reads else step.call.verb))
        if planned.do:
            rows.append(("", f"do: {planned.do}"))
    yield from columns(rows)
    differing = [planned.step.name for planned in plan if planned.state == "differs"]
    if differing:
        yield f"to replace what differs: --from {differing[0]}"


def _run_answer(stages: "Sequence[CompletedStage]", folder: Path) -> Iterator[str]:
    run = [done for done in stages if not done.was_finished]
    before_run = len(stages) - len(run)
    before = f"; {before_run} {verb_for(before_run, 'was', 'were')} finished before" if len(run) < len(stages) else ""
    seconds = sum(done.seconds for done in run)
    every = "the one stage" if len(stages) == 1 else f"all {len(stages)} stages"
    yield f"{folder} has {every} of the recipe: {len(run)} ran in {seconds:.1f} s{before}."
    pages = [done.folder / name for done in stages for name in done.run.outputs if name.endswith(".html")]
    yield from (f"  the page: {page}" for page in pages[:_MAX_LINES])
    yield next_line("view", folder, effect="shows each run; --verbose lists the stages")


def _done_lines(stages: "Sequence[CompletedStage]") -> Iterator[str]:
    rows: list[tuple[str, str]] = []
    for done in stages:
        time = "finished before" if done.was_finished else f"{done.seconds:.1f} s"
        counts = done.run.counts
        passed = f", {counts.num_used:,} of {counts.num_in:,} used" if counts.num_in else ""
        rows.append((done.name, f"{done.verb}, {time}{passed}"))
        rows.append(("", ", ".join(str(done.folder / name) for name in done.run.outputs)))
    yield from columns(rows)


def _run_experiment(
    module: str, path: Path, folder: Path, changes: JsonObject, *, dry_run: bool, verbose: bool, as_json: bool
) -> None:
    from steelyard.io.run_folder import read_run

    # It imports torch.
    kind: ExperimentKind[Any, Any] = import_module(module).EXPERIMENT
    experiment = kind.read(path, changes)
    if dry_run:
        plan = _checked_plan(kind.recipe(experiment, path), folder)
        print_lines(f"{planned.state:10}{planned.step.name}: {planned.step.call.verb}" for planned in plan)
        return
    result = kind.run(experiment, path, folder)
    if as_json:
        echo_record(result.record())
    else:
        print_lines(run_answer(read_run(folder), folder, is_verbose=verbose))


VERBS = (DEMO, FunctionVerb("run", _run))
