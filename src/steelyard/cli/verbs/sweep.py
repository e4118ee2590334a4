"""The verb `sweep`: backbones, shares of the data and settings, each combined with each."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.output import TerminalTable, interval_text, print_lines
from steelyard.cli.pipelines import (
    AsJson,
    DryRun,
    FileSettings,
    ListsSettings,
    RunsFolder,
    arm_table,
    difference_lines,
    planned_lines,
)

if TYPE_CHECKING:
    from steelyard.recipes.sweep import SweepResult

CONFIG = ("steelyard.recipes.sweep", "Sweep")


def command(
    sweep: Annotated[Path, typer.Argument(help="The sweep's TOML file.")],
    *,
    out: RunsFolder = None,
    settings: FileSettings = None,
    lists_settings: ListsSettings = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Train several backbones on several shares of the data, several seeds each, and measure the gain per doubling.

    The TOML file names the `training` cases, the test files (`benches`), the `shares` of the prompts (CHEEMS, Figure
    6), and `[[models]]` with a `name`, a `model` and a `start` such as pretrained or instruct (Figure 7). `[vary]`
    lists values for settings of `train`. Each is combined with each.

    Finished trainings are skipped. The gain per doubling of data or weights has an interval over prompts.

    Example: `steelyard sweep sweep.toml --out swept --dry-run`
    """
    from steelyard.core.config import parse_settings
    from steelyard.io.lines import check_readable

    check_readable(sweep)
    # Only now: it imports torch, and a file that cannot be read is refused at once.
    from steelyard.recipes.sweep import PLOT_FILE, read_sweep, run_sweep, sweep_recipe

    experiment = read_sweep(sweep, parse_settings(settings or ()))
    folder = out or Path(sweep.stem)
    if dry_run:
        print_lines(planned_lines(sweep_recipe(experiment, sweep), folder))
        return
    result = run_sweep(experiment, sweep, folder)
    print_lines([json.dumps(result.record(), indent=2)] if as_json else [*_lines(result), f"{folder / PLOT_FILE}"])


def _lines(result: "SweepResult") -> Iterator[str | TerminalTable]:
    yield arm_table(result.arms)
    yield ""
    for growth in result.growth:
        trend = growth.trend
        star = " *" if trend.p < 0.05 else ""
        sizes = f"{trend.sizes[0]:,.0f} to {trend.sizes[-1]:,.0f}"
        yield f"{growth.name}: {interval_text(trend.per_doubling, '+')} a doubling of {growth.by} ({sizes}){star}"
    yield from difference_lines(result.starts)
    yield "* significant at 5 % (differences corrected by Holm); intervals are over prompts, not seeds"
