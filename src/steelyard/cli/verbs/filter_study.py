"""Measure whether filtering a judge's verdicts pays on your data: label precision, and models trained on the labels.

A reward model is trained on people's judgments and scores only prompts that it was not trained on. For each threshold
on its margin, the study reports how many verdicts remain and how often they agree with people, compared with length
and chance at equal coverage. Then models are trained on people's judgments of a few prompts and the judge's verdicts
of the others, filtered or not, and tested on people's judgments.

Example: `steelyard filter-study judged.jsonl --judge gpt-4 --out studied`

Example: `steelyard filter-study judged.jsonl --judge gpt-4 --out precise --set human_shares=[]`

Example: `steelyard filter-study judged.jsonl --judge gpt-4 --out frozen --model features
--set model.path=Qwen/Qwen2.5-0.5B --set model.cache=features --set repetitions=1 --set human_shares=[0.5]`
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.output import TerminalTable, interval_text
from steelyard.cli.stage_verb import SettingOption, StageArgument, StageOption, StageVerb
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.stages.filter_study import FilterStudySummary
    from steelyard.statistics.intervals import Estimate

_PRECISION_HEADS = ("kept", "coverage", "precision", "over random", "over length")
_ARM_HEADS = ("pairs", "accuracy", "minus human only", "minus all verdicts")


def lines(run: "Run[FilterStudySummary]", out: Path) -> Iterator[str | TerminalTable]:
    """Yield the precision of every filter, then the accuracy of models trained on what it keeps."""
    summary = run.summary
    if precision := summary.precision:
        yield TerminalTable(
            f"precision of {summary.judge}'s verdicts by people's majority, supervised by {summary.model}",
            _PRECISION_HEADS,
            [
                (
                    row.filter,
                    f"{row.num_kept:,}",
                    f"{row.coverage:.1%}",
                    *map(_interval, (row.precision, row.over_random, row.over_length)),
                )
                for row in precision.filters
            ],
        )
        areas = precision.area_under_curve
        yield f"area under the curve: margin {_interval(areas.margin)}, length {_interval(areas.length)}"
    for trial in summary.downstream:
        yield ""
        yield TerminalTable(
            f"trained on people's judgments of {trial.human_prompts:.0f} prompts, tested on people's pairs",
            _ARM_HEADS,
            [
                (arm.arm, f"{arm.num_pairs:,.0f}", *map(_interval, (arm.accuracy, arm.minus_human, arm.minus_all)))
                for arm in trial.arms
            ],
        )
    yield "intervals are 95%, over prompts, paired; not corrected for their number"
    yield str(out / "filters.svg")


def _interval(share: "Estimate") -> str:
    return "-" if share.value is None else interval_text(share)


command = StageVerb(
    "filter_study",
    (
        StageArgument("cases", "The case file, judged by people and by the judge."),
        SettingOption("judge", is_required=True),
        StageOption("out", "The folder for filters.json, filters.svg, verdicts.jsonl and run.json."),
        StageOption("model", "The supervisor, a kind that learns from people's judgments: ngram or features."),
    ),
    lines,
)
