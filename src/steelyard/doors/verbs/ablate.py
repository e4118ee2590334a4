"""The verb `ablate` on the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from steelyard.pipelines.ablate import Ablated


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

    from steelyard.core.config import parse_settings
    from steelyard.files.lines import check_readable
    from steelyard.pipelines.ablate import ablate
    from steelyard.pipelines.ablations import ablation_recipe, read_ablation
    from steelyard.pipelines.plan import check_files, plan

    check_readable(ablation)
    asked = read_ablation(ablation, parse_settings(setting or ()))
    folder = out or Path(ablation.stem)
    if dry_run:
        recipe = ablation_recipe(asked, ablation)
        check_files(recipe, folder)
        for one in plan(recipe, folder):
            typer.echo(f"{one.state:10}{one.step.name}: {one.step.call.verb}")
        return
    found = ablate(asked, ablation, folder)
    lines = [json.dumps(found.record(), indent=2)] if as_json else [*_lines(found), f"{folder / 'ablation.svg'}"]
    typer.echo("\n".join(lines))


def _lines(found: "Ablated") -> Iterator[str]:
    width = max(len(one.name) for one in found.arms)
    yield f"{'arm':{width}}  prompts   pairs  accuracy [95 %]       seeds ±  exact match [95 %]"
    for one in found.arms:
        yield (
            f"{one.name:{width}}  {one.num_prompts:7,.0f} {one.num_pairs:7,.0f}  {_interval(one.accuracy)}  "
            f"{one.spread:7.3f}  {_interval(one.exact_match)}"
        )
    yield ""
    for one in found.against:
        beyond = " *" if one.p_corrected < 0.05 else ""
        yield f"{one.first} minus {one.second}: {_interval(one.comparison.accuracy, '+')}{beyond}"
    yield "* beyond doubt at 5 %, corrected for all differences here (Holm); intervals are over prompts, paired"


def _interval(estimate: tuple[float | None, float | None, float | None, int], sign: str = "") -> str:
    value, low, high, _ = estimate
    if value is None or low is None:
        return "none"
    return f"{value:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"
