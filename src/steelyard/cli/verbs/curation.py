"""Curation of training pairs: their balance, `debias`, and the precision of filtered verdicts, `filter-study`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.options import SettingOption, StageArgument, StageOption
from steelyard.cli.output import TerminalTable, interval_text
from steelyard.cli.verb import StageVerb
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.curation.debiasing import Balance, BeforeAfter, DebiasSummary, GroupBalance
    from steelyard.curation.filter_study import FilterStudySummary
    from steelyard.statistics.intervals import Estimate

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


def _filter_study_answer(run: "Run[FilterStudySummary]", out: Path) -> Iterator[str]:
    summary = run.summary
    if precision := summary.precision:
        every = precision.filters[0]
        best = max(precision.filters, key=lambda row: row.precision.value or 0.0)
        yield (
            f"{interval_text(best.precision)} of {summary.judge}'s verdicts that {summary.model} keeps ({best.filter}: "
            f"{best.coverage:.1%}) agree with people's majority, {interval_text(every.precision)} of all."
        )
    else:
        yield f"people have no majority on a pair that {summary.judge} compared: no precision was measured."
    yield f"figure: {out / 'filter_study.svg'}; --verbose prints every filter"


def _filter_study_details(run: "Run[FilterStudySummary]", _: Path) -> Iterator[str | TerminalTable]:
    summary = run.summary
    if precision := summary.precision:
        rows = [
            (row.filter, f"{row.num_kept:,}", f"{row.coverage:.1%}",
             *_intervals((row.precision, row.over_random, row.over_length)))
            for row in precision.filters
        ]  # fmt: skip
        title = f"precision of {summary.judge}'s verdicts by people's majority, supervised by {summary.model}"
        yield TerminalTable(title, ("kept", "coverage", "precision", "over random", "over length"), rows)
        margin, length = _intervals((precision.area_under_curve.margin, precision.area_under_curve.length))
        yield f"area under the curve: margin {margin}, length {length}"
    yield "intervals are 95%, over prompts, paired; not corrected for their number"


def _intervals(estimates: "Sequence[Estimate]") -> list[str]:
    return ["-" if estimate.value is None else interval_text(estimate) for estimate in estimates]


FILTER_STUDY = StageVerb(
    "filter_study",
    """Measure how precise a judge's verdicts are on your data once a reward model has filtered them.

    A reward model is trained on people's judgments and scores only prompts that it was not trained on. For each
    threshold on its margin, the study reports how many verdicts remain and how often they agree with people, compared
    with length and chance at equal coverage. Whether models trained on the filtered verdicts are more accurate is an
    ablation: `steelyard run` with a table of `human` and `llm` cases (docs/howto/ablate.md).

    Example: `steelyard filter-study judged.jsonl --judge gpt-4 --out studied`

    Example: `steelyard filter-study judged.jsonl --judge gpt-4 --out frozen --model features
    --set model.path=Qwen/Qwen2.5-0.5B --set model.cache=features`
    """,
    (
        StageArgument("cases", "The case file, judged by people and by the judge."),
        SettingOption("judge", is_required=True),
        StageOption("out", "The folder for filter_study.json, filter_study.svg, verdicts.jsonl and run.json."),
        StageOption("model", "The supervisor, a kind that learns from people's judgments: ngram or features."),
    ),
    _filter_study_answer,
    _filter_study_details,
)
