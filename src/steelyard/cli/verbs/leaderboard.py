"""One table of many evaluations, with the ranks that the data allow: a page to sort, CSV, Markdown and JSON.

Evaluations by different protocols are refused, with a list of the differences: another bench, other pairs, no
self-tests, another number type or length within a family of models. Partial evaluations are listed apart.

Example: `steelyard leaderboard evaluated-a evaluated-b --out board`

Example: `steelyard leaderboard evaluated-a evaluated-b --set 'allow_differing=["max_length"]' --out board`
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.stage_verb import StageArgument, StageOption, StageVerb
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.evaluation.leaderboard import LeaderboardSummary


def lines(run: "Run[LeaderboardSummary]", out: Path) -> Iterator[str]:
    """Yield the models with their ranks, and what differs between their evaluations."""
    from steelyard.report.leaderboard import rank_range, value_with_interval

    summary = run.summary
    yield f"{len(summary.rows)} models on {summary.bench}, {summary.num_prompts:,} prompts (95% intervals)"
    yield f"ranked by {summary.ranked_by.replace('_', ' ')}: {summary.about}"
    if summary.missing:
        yield f"a part of the bench, which has no headline for want of {len(summary.missing)} parts: see the page"
    for row in summary.rows:
        numbers = row.by_column
        values = ", ".join(
            f"{name.replace('_', ' ')} {value_with_interval(numbers['headline', name])}"
            for name in dict.fromkeys((summary.ranked_by, "accuracy"))
        )
        yield (
            f"  {rank_range(row.best_rank, row.worst_rank):>5} {row.group:3} {row.name}: {values}, "
            f"first in {row.rank_shares[0]:.0%} of resamples"
        )
    yield f"models that share a letter cannot be told apart ({summary.correction})"
    if summary.unlike_coverage:
        yield "not read alike, so that a difference is partly one of the length limits (unscored pairs count as wrong;"
        yield "ranks and letters hold with the pairs right, too, that the worse model alone has no score for):"
        yield from (f"  {sentence}" for sentence in summary.unlike_coverage)
    for unranked in summary.partial:
        yield f"without a headline: {unranked.name}: {unranked.why}"
    yield f"the page: {out / 'leaderboard.html'}"


command = StageVerb(
    "leaderboard",
    (
        StageArgument("runs", "The --out folders of evaluations of one bench."),
        StageOption("out", "The folder for leaderboard.html, .csv, .md and run.json."),
    ),
    lines,
)
