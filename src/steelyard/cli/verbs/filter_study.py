"""The study of filters of LLM judgments: `filter-study`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.options import (
    SettingOption,
    StageArgument,
    StageOption,
)
from steelyard.cli.output import TerminalTable, interval_text
from steelyard.cli.verb import StageVerb
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.curation.filter_study import FilterStudySummary
    from steelyard.statistics.intervals import Estimate


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
