"""Balance training pairs: as many whose better answer is longer as whose better answer is shorter.

The larger side is thinned out at random; pairs of equal length stay. `--by markdown` counts marks of Markdown
instead, `--by author` balances every two authors. The pairs that stay are listed in OUT/cases.jsonl for training.

Balanced counts alone do not show that a bias is gone: with --scores the model's accuracy is measured before and
after, on all pairs and on those of about equal length (10 %, or beside --scores `--set matched=0.05`).

Example: `steelyard debias resolved/cases.jsonl --out debiased --within language`

Example: `steelyard debias resolved/cases.jsonl --out debiased --scores scored/scores.jsonl`
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.output import TerminalTable, interval_text
from steelyard.cli.stage_verb import SettingOption, StageArgument, StageOption, StageVerb
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.stages.debias import Balance, BeforeAfter, DebiasSummary, GroupBalance
    from steelyard.statistics.intervals import Estimate

_MOST_ROWS = 20


def lines(run: "Run[DebiasSummary]", out: Path) -> Iterator[str | TerminalTable]:
    """Yield the pairs before and after, the accuracy of length, and of the scored model."""
    yield _table(run.summary)
    yield from _accuracies(run.summary)
    yield f"pairs in {out / 'cases.jsonl'}"


def _table(summary: "DebiasSummary") -> TerminalTable:
    rows: list[tuple[str, ...]] = [("all", *_row(summary.overall))]
    groups = [row for row in summary.groups if row.group]
    largest = sorted(groups, key=lambda row: -row.before.num_more - row.before.num_less)[:_MOST_ROWS]
    rows += [(f"  {' / '.join(row.group)}", *_row(row)) for row in largest]
    if len(groups) > len(largest):
        rows.append((f"  … {len(groups) - len(largest)} more",))
    heads = [head for when in ("before", "after") for head in (f"{when}: more /\nless / equal", "more")]
    return TerminalTable(f"Pairs by {summary.by}", heads, rows)


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
    return f"{interval_text(share)} of {share.n:,}" if share.n else "no pairs"


command = StageVerb(
    "debias",
    (
        StageArgument("cases", "The case file with rankings or pairs."),
        StageOption("out", "The folder for cases.jsonl and run.json."),
        SettingOption("by"),
        SettingOption("within"),
        SettingOption("tokenizer"),
        StageOption("scores", "Scores of a model, to show its accuracy before and after."),
        SettingOption("pairs"),
        SettingOption("seed"),
    ),
    lines,
)
