"""The verb `run`: a whole pipeline from a recipe."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.output import columns, echo_record, print_lines
from steelyard.cli.pipelines import AsJson, DryRun, RedoFrom, RunsFolder, StageSettings

if TYPE_CHECKING:
    from steelyard.recipes.run import CompletedStage, PlannedStage


def command(
    recipe: Annotated[str, typer.Argument(help="A recipe's TOML file, or the name of one that comes with Steelyard.")],
    *,
    out: RunsFolder = None,
    redo_from: RedoFrom = None,
    dry_run: DryRun = False,
    seed: Annotated[int | None, typer.Option(help="The random seed of every stage.")] = None,
    settings: StageSettings = None,
    as_json: AsJson = False,
) -> None:
    """Run a whole pipeline from a recipe: every stage in a folder of its own, finished stages skipped.

    A recipe names its stages, what each reads, and the settings that differ from the defaults. `demo` and `cheems` come
    with Steelyard. An interrupted run resumes with the same command. `overview.json` records what ran, how long, and
    what each stage wrote.

    Example: `steelyard run demo --out demo --dry-run`

    Example: `steelyard run demo --out demo --from model --set model.epochs=8`
    """
    from steelyard.core.config import parse_settings
    from steelyard.recipes.recipe import find_recipe, read_recipe

    path = find_recipe(recipe)
    content = read_recipe(path, parse_settings(settings or ()), seed=seed)
    folder = out or Path(path.stem)
    # Only now: these import torch, and a recipe that cannot be read is refused at once.
    from steelyard.recipes.preconditions import check_recipe
    from steelyard.recipes.run import check_files, overview, plan, run

    if dry_run:
        redone = () if redo_from is None else content.after(redo_from)
        check_files(content, folder)
        check_recipe(content, folder)
        planned = plan(content, folder, redone)
        print_lines([json.dumps(_records(planned), indent=2)] if as_json else _plan_lines(planned))
    else:
        done = run(content, folder, redo_from=redo_from)
        if as_json:
            echo_record(overview(content, done))
        else:
            print_lines(_done_lines(done))


def _records(plan: "Sequence[PlannedStage]") -> list[dict[str, Any]]:
    return [
        {
            "name": planned.step.name,
            "verb": planned.step.call.verb,
            "state": planned.state,
            "why": planned.why,
            "reads": [reference.text for _, reference in planned.step.references()],
            "folder": str(planned.folder),
        }
        for planned in plan
    ]


def _plan_lines(plan: "Sequence[PlannedStage]") -> Iterator[str]:
    rows: list[tuple[str, str]] = []
    for planned in plan:
        step = planned.step
        reads = ", ".join(reference.text for _, reference in step.references()) or "nothing"
        rows.append((step.name, planned.state + (f" ({planned.why})" if planned.why else "")))
        rows.append(("", f"{step.call.verb} of {reads}"))
    yield from columns(rows)
    differing = [planned.step.name for planned in plan if planned.state == "differs"]
    if differing:
        yield f"to replace what differs: --from {differing[0]}"


def _done_lines(stages: "Sequence[CompletedStage]") -> Iterator[str]:
    rows: list[tuple[str, str]] = []
    for done in stages:
        time = "finished before" if done.was_finished else f"{done.seconds:.1f} s"
        counts = done.run.counts
        passed = f", {counts.num_used:,} of {counts.num_in:,} used" if counts.num_in else ""
        rows.append((done.name, f"{done.verb}, {time}{passed}"))
        rows.append(("", ", ".join(str(done.folder / name) for name in done.run.outputs)))
    yield from columns(rows)
