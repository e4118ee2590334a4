"""The verb `ablate`: training data compared by the reward models that they give."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.output import TerminalTable, print_lines
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
    from steelyard.recipes.ablate import AblationResult

CONFIG = ("steelyard.recipes.ablate", "Ablation")


def command(
    ablation: Annotated[Path, typer.Argument(help="The ablation's TOML file.")],
    *,
    out: RunsFolder = None,
    settings: FileSettings = None,
    lists_settings: ListsSettings = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Train one backbone on different data, several seeds each, and show which data made the better reward model.

    The TOML file names the data, the backbone (`model`) and the test files (`benches`). With `human` and `llm` files
    the data compared are those of CHEEMS, Table 4: human, llm, llm with debiasing, with distant supervision, with both,
    and all. `training` names further files (Table 3), `scaling` shares of one (Figure 6).

    Finished trainings are skipped. Differences are paired by prompt and corrected for their number.

    Example: `steelyard ablate ablation.toml --out ablated --dry-run`
    """
    from steelyard.core.config import parse_settings
    from steelyard.io.lines import check_readable

    check_readable(ablation)
    # Only now: it imports torch, and a file that cannot be read is refused at once.
    from steelyard.recipes.ablate import PLOT_FILE, ablate, ablation_recipe, read_ablation

    experiment = read_ablation(ablation, parse_settings(settings or ()))
    folder = out or Path(ablation.stem)
    if dry_run:
        print_lines(planned_lines(ablation_recipe(experiment, ablation), folder))
        return
    result = ablate(experiment, ablation, folder)
    print_lines([json.dumps(result.record(), indent=2)] if as_json else [*_lines(result), f"{folder / PLOT_FILE}"])


def _lines(result: "AblationResult") -> Iterator[str | TerminalTable]:
    yield arm_table(result.arms)
    yield ""
    yield from difference_lines(result.differences)
    yield "* significant at 5 %, corrected for all differences here (Holm); intervals are over prompts, paired"
