"""The verb `leaderboard` on the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from steelyard.evaluation.leaderboard import LeaderboardSummary


def command(
    runs: Annotated[list[Path], typer.Argument(help="The --out folders of evaluations of one bench.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder for leaderboard.html, .csv, .md and run.json.")],
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE, for seed, num_resamples or allow_differing; repeat."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record of the run as JSON.")] = False,
) -> None:
    """One table of many evaluations, with the ranks that the data allow: a page to sort, CSV, Markdown and JSON.

    Unlike protocols are refused, with all that differs: another bench, other pairs, an evaluation without self-tests,
    another number type or length within a family of models. Partial evaluations are listed apart.

    Example: `steelyard leaderboard evaluated-a evaluated-b --out board`

    Example: `steelyard leaderboard evaluated-a evaluated-b --set 'allow_differing=["max_length"]' --out board`
    """
    from steelyard.cli.shown import show
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.stages.leaderboard import Config, leaderboard

    config = resolve_config(Config, parse_settings(setting or ()), where="leaderboard")
    run = leaderboard(runs, out, config, force=force)
    show(run, _lines(run.summary, out), as_json=as_json)


def _lines(summary: "LeaderboardSummary", out: Path) -> Iterator[str]:
    from steelyard.report.leaderboard import rank_range, value_with_interval

    yield f"{len(summary.rows)} models on {summary.bench}, {summary.num_prompts:,} prompts (95 % intervals)"
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
