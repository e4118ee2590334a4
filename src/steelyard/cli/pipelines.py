"""Options and tables of the verbs that run many stages: `run`, `demo`, `ablate` and `sweep`."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.output import TerminalTable, interval_text
from steelyard.cli.settings import SETTINGS_OPTION

if TYPE_CHECKING:
    from steelyard.recipes.experiments import Arm, ArmDifference
    from steelyard.recipes.recipe import Recipe

_LEVEL = 0.05
_HEADS = ("prompts", "pairs", "accuracy [95%]", "seeds ±", "exact match [95%]")

FileSettings = Annotated[
    list[str] | None,
    typer.Option("--set", help="KEY=VALUE over that of the file, such as train.epochs=1; repeat."),
]
StageSettings = Annotated[
    list[str] | None, typer.Option("--set", help="STAGE.KEY=VALUE over that of the recipe: model.epochs=2; repeat.")
]
ListsSettings = Annotated[bool, typer.Option(SETTINGS_OPTION, help="Print every key of the file and stop.")]
RunsFolder = Annotated[Path | None, typer.Option("--out", help="The folder for all runs. Default: named as the file.")]
RedoFrom = Annotated[str | None, typer.Option("--from", help="Run this stage and all that follow from it again.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print every stage and its state; change nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def planned_lines(recipe: "Recipe", folder: Path) -> Iterator[str]:
    """Yield a line for each stage with its state. Raises what a stage would refuse later."""
    from steelyard.recipes.preconditions import check_recipe
    from steelyard.recipes.run import check_files, plan

    check_files(recipe, folder)
    check_recipe(recipe, folder)
    for planned in plan(recipe, folder):
        yield f"{planned.state:10}{planned.step.name}: {planned.step.call.verb}"


def arm_table(arms: "Sequence[Arm]") -> TerminalTable:
    """Return the table of the arms of an experiment."""
    rows = [
        (
            arm.name,
            f"{arm.num_prompts:,.0f}",
            f"{arm.num_pairs:,.0f}",
            interval_text(arm.accuracy),
            f"{arm.spread:.3f}",
            interval_text(arm.exact_match),
        )
        for arm in arms
    ]
    return TerminalTable("Arms", _HEADS, rows)


def difference_lines(differences: "Iterable[ArmDifference]") -> Iterator[str]:
    """Yield the differences between arms, with a star after significant ones."""
    for pair in differences:
        star = " *" if pair.p_corrected < _LEVEL else ""
        yield f"{pair.first} minus {pair.second}: {interval_text(pair.comparison.accuracy, '+')}{star}"
