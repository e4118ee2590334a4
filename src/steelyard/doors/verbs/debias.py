"""The verb `debias` on the command line."""

from pathlib import Path
from typing import Annotated, Any

import typer

_MOST_ROWS = 20


def command(
    cases: Annotated[Path, typer.Argument(help="The case file with rankings or pairs.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder for cases.jsonl and run.json.")],
    by: Annotated[str | None, typer.Option(help="length (default), markdown or author.")] = None,
    within: Annotated[str | None, typer.Option(help="overall (default), category, language or both.")] = None,
    tokenizer: Annotated[str | None, typer.Option(help="Length in its tokens, not in characters.")] = None,
    scores: Annotated[Path | None, typer.Option(help="A model's scores.jsonl: its accuracy before and after.")] = None,
    pairs: Annotated[str | None, typer.Option(help="tiers, reachable, judged or listed.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed keeps others of the larger side.")] = 0,
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, any setting; repeat.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace another run in OUT.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the run as JSON.")] = False,
) -> None:
    """Keep as many pairs whose better answer is longer as pairs whose better answer is shorter.

    The larger side is downsampled by the seed; pairs of equal length stay. `--by markdown` compares marks of Markdown,
    `--by author` balances every two authors. The pairs that stay are listed in OUT/cases.jsonl, which training uses.

    Balanced counts alone do not show that a bias is gone: with --scores the model's accuracy is measured before and
    after, on all pairs and on those of about equal length (10 %, or `--set matched=0.05`).

    Example: `steelyard debias resolved/cases.jsonl --out debiased --within language`

    Example: `steelyard debias resolved/cases.jsonl --out debiased --scores scored/scores.jsonl`
    """
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.doors.shown import show
    from steelyard.stages.debias import Config, debias

    flags = {"by": by, "within": within, "tokenizer": tokenizer, "pairs": pairs, "seed": seed}
    given = {name: value for name, value in flags.items() if value is not None}
    config = resolve_config(Config, parse_settings(settings or ()) | given, where="debias")
    run = debias(cases, out, config, scores=scores, force=force)
    if not as_json:
        _print_table(run.summary)
    show(run, [*_accuracies(run.summary), f"pairs in {out / 'cases.jsonl'}"], as_json=as_json)


def _print_table(summary: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), title=f"Pairs by {summary['by']}", title_justify="left")
    table.add_column("", overflow="fold")
    for when in ("before", "after"):
        table.add_column(f"{when}: more / less / equal", justify="right")
        table.add_column("more", justify="right", no_wrap=True)
    table.add_row("all", *_row(summary["overall"]))
    groups = [row for row in summary["groups"] if row["group"]]
    largest = sorted(groups, key=lambda row: -row["before"]["num_more"] - row["before"]["num_less"])[:_MOST_ROWS]
    for row in largest:
        table.add_row(f"  {' / '.join(row['group'])}", *_row(row))
    if len(groups) > len(largest):
        table.add_row(f"  … {len(groups) - len(largest)} more")
    Console(highlight=False, markup=False).print(table)


def _row(stages: dict[str, Any]) -> list[str]:
    cells = []
    for when in ("before", "after"):
        own = stages[when]
        cells.append(f"{own['num_more']:,} / {own['num_less']:,} / {own['num_equal']:,}")
        cells.append("-" if own["share_more"] is None else f"{own['share_more']:.1%}")
    return cells


def _accuracies(summary: dict[str, Any]) -> list[str]:
    parts = {"the longer answer is better": summary["longer_is_better"]}
    if summary["accuracy"]:
        names = ("all", "length_matched", "better_is_longer", "better_is_not_longer")
        parts |= {f"accuracy, {name.replace('_', ' ')}": summary["accuracy"][name] for name in names}
    return [
        f"{name}: {_interval(part['before'])} before, {_interval(part['after'])} after" for name, part in parts.items()
    ]


def _interval(share: dict[str, Any]) -> str:
    if share["n"] == 0:
        return "no pairs"
    return f"{share['value']:.3f} [{share['low']:.3f}, {share['high']:.3f}] of {share['n']:,}"
