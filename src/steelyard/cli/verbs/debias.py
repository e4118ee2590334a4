"""The balance of training pairs by length, markup or author: `debias`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.options import SettingOption, StageArgument, StageOption
from steelyard.cli.output import TerminalTable, interval_text
from steelyard.cli.verb import StageVerb
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.curation.debiasing import Balance, BeforeAfter, DebiasSummary, GroupBalance

_MAX_BALANCE_ROWS = 20
_FEATURES = {"length": "is longer", "markdown": "has more Markdown", "author": "is by the author named first"}


def _debias_answer(run: "Run[DebiasSummary]", out: Path) -> Iterator[str]:
    summary = run.summary
    balances = (summary.overall.before, summary.overall.after)
    before, after = (balance.num_more + balance.num_less + balance.num_equal for balance in balances)
    shares = ["none" if balance.share_more is None else f"{balance.share_more:.1%}" for balance in balances]
    balance = f"the better answer {_FEATURES[summary.by]} in {shares[1]} of them ({shares[0]} before)"
    yield f"{after:,} of {number_of(before, 'pair')} {verb_for(after, 'stays', 'stay')}; {balance}."
    if summary.accuracy:
        for name in ("all", "length_matched"):
            share = getattr(summary.accuracy, name)
            old, new = (
                interval_text(estimate) if estimate.n else "no pairs" for estimate in (share.before, share.after)
            )
            yield f"accuracy, {name.replace('_', ' ')}: {old} before, {new} after"
    yield f"pairs in {out / 'cases.jsonl'}"


def _debias_details(run: "Run[DebiasSummary]", _: Path) -> Iterator[str | TerminalTable]:
    summary = run.summary
    yield _balance_table(summary)
    accuracies = {"the longer answer is better": summary.longer_is_better}
    if summary.accuracy:
        names = ("all", "length_matched", "better_is_longer", "better_is_not_longer")
        accuracies |= {f"accuracy, {name.replace('_', ' ')}": getattr(summary.accuracy, name) for name in names}
    for name, share in accuracies.items():
        before, after = (
            f"{interval_text(estimate)} of {estimate.n:,}" if estimate.n else "no pairs"
            for estimate in (share.before, share.after)
        )
        yield f"{name}: {before} before, {after} after"


def _balance_table(summary: "DebiasSummary") -> TerminalTable:
    rows: list[tuple[str, ...]] = [("all", *_balance_row(summary.overall))]
    groups = [row for row in summary.groups if row.group]
    largest = sorted(groups, key=lambda row: -row.before.num_more - row.before.num_less)[:_MAX_BALANCE_ROWS]
    rows += [(f"  {' / '.join(row.group)}", *_balance_row(row)) for row in largest]
    if len(groups) > len(largest):
        rows.append((f"  … {len(groups) - len(largest)} more",))
    heads = [head for when in ("before", "after") for head in (f"{when}: more /\nless / equal", "more")]
    return TerminalTable(f"Pairs by {summary.by}", heads, rows)


def _balance_row(balances: "BeforeAfter[Balance] | GroupBalance") -> Iterator[str]:
    for balance in (balances.before, balances.after):
        yield f"{balance.num_more:,} / {balance.num_less:,} / {balance.num_equal:,}"
        yield "-" if balance.share_more is None else f"{balance.share_more:.1%}"


DEBIAS = StageVerb(
    "debias",
    """Balance training pairs: as many whose better answer is longer as whose better answer is shorter.

    The larger side is thinned out at random; pairs of equal length stay. `--by markdown` counts marks of Markdown
    instead, `--by author` balances every two authors. The pairs that stay are listed in OUT/cases.jsonl for training.

    Balanced counts alone do not show that a bias is gone: with --scores the model's accuracy is measured before and
    after, on all pairs and on those of about equal length (10 %, or beside --scores `--set length_tolerance=0.05`).

    Example: `steelyard debias resolved/cases.jsonl --out debiased --within language`

    Example: `steelyard debias resolved/cases.jsonl --out debiased --scores scored/scores.jsonl`
    """,
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
    _debias_answer,
    _debias_details,
)
