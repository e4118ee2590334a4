"""The verb `run` on the command line."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from steelyard.recipes.run import CompletedStage, PlannedStage


def command(
    recipe: Annotated[str, typer.Argument(help="A recipe's TOML file, or the name of one that comes with Steelyard.")],
    *,
    out: Annotated[Path | None, typer.Option(help="The folder for all stages. Default: named as the recipe.")] = None,
    redo_from: Annotated[
        str | None, typer.Option("--from", help="Run this stage and all that follow from it again.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would run and why; change nothing.")] = False,
    seed: Annotated[int | None, typer.Option(help="The random seed of every stage.")] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="STAGE.KEY=VALUE instead of the recipe's own; repeat.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the overview, or the plan, as JSON.")] = False,
) -> None:
    """Run a whole pipeline from a recipe: every stage in a folder of its own, finished stages skipped.

    A recipe names its stages, what each reads, and the settings that differ from the defaults. `demo` and `cheems` come
    with Steelyard. After a kill the same command goes on where it stopped. `overview.json` says what ran, how long, and
    what each stage wrote.

    Example: `steelyard run demo --out demo --dry-run`

    Example: `steelyard run demo --out demo --from model --set model.epochs=8`
    """
    import json

    import msgspec

    from steelyard.cli.shown import echo
    from steelyard.core.config import parse_settings
    from steelyard.recipes.preconditions import check_recipe
    from steelyard.recipes.recipe import find_recipe, read_recipe
    from steelyard.recipes.run import check_files, overview, plan, run

    path = find_recipe(recipe)
    read = read_recipe(path, parse_settings(setting or ()), seed=seed)
    folder = out or Path(path.stem)
    if dry_run:
        redone = () if redo_from is None else read.after(redo_from)
        check_files(read, folder)
        check_recipe(read, folder)
        planned = plan(read, folder, redone)
        lines = [json.dumps(_rows(planned), indent=2)] if as_json else list(_plan_lines(planned))
    else:
        done = run(read, folder, redo_from=redo_from)
        lines = (
            [msgspec.json.format(msgspec.json.encode(overview(read, done)), indent=2).decode()]
            if as_json
            else list(_done_lines(done))
        )
    echo("\n".join(lines))


def _rows(planned: Sequence["PlannedStage"]) -> list[dict[str, Any]]:
    return [
        {
            "name": one.step.name,
            "verb": one.step.call.verb,
            "state": one.state,
            "why": one.why,
            "reads": [reference.text for _, reference in one.step.references()],
            "folder": str(one.folder),
        }
        for one in planned
    ]


def _plan_lines(planned: Sequence["PlannedStage"]) -> Iterator[str]:
    width = max(len(one.step.name) for one in planned)
    for one in planned:
        why = f" ({one.why})" if one.why else ""
        reads = ", ".join(reference.text for _, reference in one.step.references()) or "nothing"
        yield f"{one.step.name:{width}}  {one.state}{why}"
        yield f"{'':{width}}  {one.step.call.verb} of {reads}"
    differing = [one.step.name for one in planned if one.state == "differs"]
    if differing:
        yield f"to replace what differs: --from {differing[0]}"


def _done_lines(done: Sequence["CompletedStage"]) -> Iterator[str]:
    width = max(len(one.name) for one in done)
    for one in done:
        time = "finished before" if one.was_finished else f"{one.seconds:.1f} s"
        counts = one.run.counts
        passed = f"{counts.num_used:,} of {counts.num_in:,} used" if counts.num_in else ""
        yield f"{one.name:{width}}  {one.verb}, {time}" + (f", {passed}" if passed else "")
        yield f"{'':{width}}  {', '.join(str(one.folder / name) for name in one.run.outputs)}"
