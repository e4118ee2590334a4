"""The verb `sweep` on the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from steelyard.recipes.sweep import SweepResult


def command(
    sweep: Annotated[Path, typer.Argument(help="The sweep's TOML file.")],
    *,
    out: Annotated[Path | None, typer.Option(help="The folder for all runs. Default: named as the file.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE instead of the file's own, such as train.epochs=1; repeat."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Name every stage and its state; change nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Train several backbones on several shares of the data, several seeds each, and show what more of either brings.

    The TOML file names the `training` cases, the test files (`benches`), the `shares` of the prompts (CHEEMS, Figure
    6), and `[[models]]` with a `name`, a `model` and a `start` such as pretrained or instruct (Figure 7). `[vary]`
    lists values for settings of `train`. Each is combined with each.

    Finished trainings are skipped. What a doubling of data or weights brings has an interval over prompts.

    Example: `steelyard sweep sweep.toml --out swept --dry-run`
    """
    import json

    from steelyard.cli.arms import planned_lines
    from steelyard.cli.shown import echo
    from steelyard.core.config import parse_settings
    from steelyard.io.lines import check_readable
    from steelyard.recipes.sweep import PLOT_FILE, read_sweep, run_sweep, sweep_recipe

    check_readable(sweep)
    asked = read_sweep(sweep, parse_settings(setting or ()))
    folder = out or Path(sweep.stem)
    if dry_run:
        echo("\n".join(planned_lines(sweep_recipe(asked, sweep), folder)))
        return
    found = run_sweep(asked, sweep, folder)
    lines = [json.dumps(found.record(), indent=2)] if as_json else [*_lines(found), f"{folder / PLOT_FILE}"]
    echo("\n".join(lines))


def _lines(found: "SweepResult") -> Iterator[str]:
    from steelyard.cli.arms import arm_lines, difference_lines, with_interval

    yield from arm_lines(found.arms)
    yield ""
    for one in found.growth:
        sizes = f"{one.trend.sizes[0]:,.0f} to {one.trend.sizes[-1]:,.0f}"
        beyond = " *" if one.trend.p < 0.05 else ""
        yield f"{one.name}: {with_interval(one.trend.per_doubling, '+')} a doubling of {one.by} ({sizes}){beyond}"
    yield from difference_lines(found.starts)
    yield "* beyond doubt at 5 % (differences corrected by Holm); intervals are over prompts, not seeds"
