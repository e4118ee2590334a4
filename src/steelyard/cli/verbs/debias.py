"""The verb `debias` on the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from steelyard.stages.debias import Balance, BeforeAfter, DebiasSummary, GroupBalance
    from steelyard.statistics.intervals import Estimate

_MOST_ROWS = 20


def command(
    cases: Annotated[Path, typer.Argument(help="The case file with rankings or pairs.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder for cases.jsonl and run.json.")],
    by: Annotated[str | None, typer.Option(help="What to balance: length (default), markdown or author.")] = None,
    within: Annotated[
        str | None, typer.Option(help="Balance overall (default), or within each category, language or both.")
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="Measure length in this tokenizer's tokens, not in characters.")
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(help="Scores of a model, to show its accuracy before and after.")
    ] = None,
    pairs: Annotated[str | None, typer.Option(help="Which pairs count: tiers, reachable, judged or listed.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed keeps others of the larger side.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting, as KEY=VALUE; repeat. An unknown KEY lists all.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record of the run as JSON.")] = False,
) -> None:
    """Balance training pairs: as many whose better answer is longer as whose better answer is shorter.

    The larger side is thinned out at random; pairs of equal length stay. `--by markdown` counts marks of Markdown
    instead, `--by author` balances every two authors. The pairs that stay are listed in OUT/cases.jsonl for training.

    Balanced counts alone do not show that a bias is gone: with --scores the model's accuracy is measured before and
    after, on all pairs and on those of about equal length (10 %, or beside --scores `--set matched=0.05`).

    Example: `steelyard debias resolved/cases.jsonl --out debiased --within language`

    Example: `steelyard debias resolved/cases.jsonl --out debiased --scores scored/scores.jsonl`
    """
    from steelyard.cli.shown import show
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.stages.debias import Config, debias

    flags = {"by": by, "within": within, "tokenizer": tokenizer, "pairs": pairs, "seed": seed}
    given = {name: value for name, value in flags.items() if value is not None}
    config = resolve_config(Config, parse_settings(settings or ()) | given, where="debias")
    run = debias(cases, out, config, scores=scores, force=force)
    if not as_json:
        _print_table(run.summary)
    show(run, [*_accuracies(run.summary), f"pairs in {out / 'cases.jsonl'}"], as_json=as_json)


def _print_table(summary: "DebiasSummary") -> None:
    from steelyard.cli.tables import print_table

    rows: list[tuple[str, ...]] = [("all", *_row(summary.overall))]
    groups = [row for row in summary.groups if row.group]
    largest = sorted(groups, key=lambda row: -row.before.num_more - row.before.num_less)[:_MOST_ROWS]
    rows += [(f"  {' / '.join(row.group)}", *_row(row)) for row in largest]
    if len(groups) > len(largest):
        rows.append((f"  … {len(groups) - len(largest)} more",))
    headings = [heading for when in ("before", "after") for heading in (f"{when}: more /\nless / equal", "more")]
    print_table(f"Pairs by {summary.by}", headings, rows)


def _row(balances: "BeforeAfter[Balance] | GroupBalance") -> list[str]:
    cells = []
    for balance in (balances.before, balances.after):
        cells.append(f"{balance.num_more:,} / {balance.num_less:,} / {balance.num_equal:,}")
        cells.append("-" if balance.share_more is None else f"{balance.share_more:.1%}")
    return cells


def _accuracies(summary: "DebiasSummary") -> list[str]:
    parts = {"the longer answer is better": summary.longer_is_better}
    if summary.accuracy:
        names = ("all", "length_matched", "better_is_longer", "better_is_not_longer")
        parts |= {f"accuracy, {name.replace('_', ' ')}": getattr(summary.accuracy, name) for name in names}
    return [
        f"{name}: {_interval(share.before)} before, {_interval(share.after)} after" for name, share in parts.items()
    ]


def _interval(share: "Estimate") -> str:
    if share.n == 0:
        return "no pairs"
    return f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}] of {share.n:,}"
