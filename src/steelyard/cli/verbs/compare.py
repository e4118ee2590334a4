"""Compare models on the same prompts: significant differences, and the smallest that this many prompts can show.

Each bootstrap sample of prompts serves both models of a pair; p-values are corrected for the number of pairs.
Evaluations of different prompts, or by different rules, are refused.

Example: `steelyard compare evaluated-a evaluated-b --out compared`
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.output import interval_text
from steelyard.cli.stage_verb import StageArgument, StageOption, StageVerb
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.evaluation.comparison import ComparisonSummary, ModelDifference

_LEVEL = 0.05


def lines(run: "Run[ComparisonSummary]", out: Path) -> Iterator[str]:
    """Yield the models with their ranks, then each pair's differences with their p-values."""
    summary = run.summary
    yield f"{len(summary.models)} models on {summary.bench}, ranked by {summary.ranked_by} (95% intervals)"
    if summary.missing:
        missing = ", ".join(f"{name} ({why})" for name, why in summary.missing.items())
        yield f"no headline, because these are missing: {missing}"
    for model in summary.models:
        ranks = (model.best_rank, model.worst_rank)
        rank = f"rank {ranks[0]}" if ranks[0] == ranks[1] else f"rank {ranks[0]} to {ranks[1]}"
        value = "" if summary.ranked_by == "accuracy" else f"{summary.ranked_by} {interval_text(model.value)}, "
        bounds = "" if model.bounds is None else f" ({model.bounds.high:.3f} if every unscored pair were right)"
        yield f"  {model.name}: {value}accuracy {interval_text(model.accuracy)}{bounds}, {rank}"
    if summary.unlike_coverage:
        yield "not read alike, so that a difference is partly one of the length limits (unscored pairs count as wrong;"
        yield "ranks hold with the pairs right, too, that the worse model alone has no score for):"
        yield from (f"  {sentence}" for sentence in summary.unlike_coverage)
    for difference in summary.comparisons:
        yield from _difference_lines(difference, summary.ranked_by)
    yield f"p corrected for {len(summary.comparisons)} comparisons ({summary.correction})"


def _difference_lines(difference: "ModelDifference", ranked_by: str) -> Iterator[str]:
    start, headline = f"{difference.first} minus {difference.second}:", difference.headline
    if headline is not None:
        value = f"{ranked_by} {interval_text(headline, '+')}"
        yield f"{start} {value}, p {_p(headline.p)}, corrected {_p(headline.p_corrected)}"
        start = " "
    yield f"{start} accuracy {interval_text(difference.accuracy, '+')}"
    if difference.p_ranked < _LEVEL <= difference.p_bounded:
        bounded = _p(difference.p_bounded)
        yield f"  not significant: p {bounded} with the pairs right that the worse model alone has no score for"
    yield (
        f"  p {_p(difference.p_accuracy)}, corrected {_p(difference.p_accuracy_corrected)}; "
        f"this many prompts show a difference of {difference.detectable:.3f} four times out of five"
    )
    yield (
        f"  exact match {interval_text(difference.exact_match, '+')}: {difference.only_first:,} prompts right by the "
        f"first alone, {difference.only_second:,} by the second; McNemar p {_p(difference.p_exact_match)}"
    )
    from steelyard.evaluation.measure import paired_titles

    titles = paired_titles()
    for name, measure in difference.measures.items():
        if measure.p is not None and measure.p_corrected is not None:
            value = interval_text(measure.difference, "+")
            yield f"  {titles[name]} {value}, p {_p(measure.p)}, corrected {_p(measure.p_corrected)}"


def _p(value: float) -> str:
    return f"{value:.4f}" if value >= 0.0001 else "< 0.0001"


command = StageVerb(
    "compare",
    (
        StageArgument("runs", "The --out folders of two or more evaluations of the same file."),
        StageOption("out", "The folder for the result, run.json."),
    ),
    lines,
)
