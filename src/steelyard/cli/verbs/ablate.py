"""The verb `ablate` on the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from steelyard.recipes.ablate import AblationResult


def command(
    ablation: Annotated[Path, typer.Argument(help="The ablation's TOML file.")],
    *,
    out: Annotated[Path | None, typer.Option(help="The folder for all runs. Default: named as the file.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE instead of the file's own, such as train.epochs=1; repeat."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Name every stage and its state; change nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Train one backbone on different data, several seeds each, and show which data made the better reward model.

    The TOML file names the data, the backbone (`model`) and the test files (`benches`). With `human` and `llm` files
    the data compared are those of CHEEMS, Table 4: human, llm, llm with debiasing, with distant supervision, with both,
    and all. `training` names further files (Table 3), `scaling` shares of one (Figure 6).

    Finished trainings are skipped. Differences are paired by prompt and corrected for their number.

    Example: `steelyard ablate ablation.toml --out ablated --dry-run`
    """
    import json

    from steelyard.cli.arms import planned_lines
    from steelyard.cli.shown import echo
    from steelyard.core.config import parse_settings
    from steelyard.io.lines import check_readable
    from steelyard.recipes.ablate import ablate, ablation_recipe, read_ablation

    check_readable(ablation)
    asked = read_ablation(ablation, parse_settings(setting or ()))
    folder = out or Path(ablation.stem)
    if dry_run:
        echo("\n".join(planned_lines(ablation_recipe(asked, ablation), folder)))
        return
    found = ablate(asked, ablation, folder)
    lines = [json.dumps(found.record(), indent=2)] if as_json else [*_lines(found), f"{folder / 'ablation.svg'}"]
    echo("\n".join(lines))


def _lines(found: "AblationResult") -> Iterator[str]:
    from steelyard.cli.arms import arm_lines, difference_lines

    yield from arm_lines(found.arms)
    yield ""
    yield from difference_lines(found.differences)
    yield "* beyond doubt at 5 %, corrected for all differences here (Holm); intervals are over prompts, paired"
