"""The verb `compare` on the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from steelyard.evaluation.comparison import ComparisonSummary, ModelDifference
    from steelyard.statistics.intervals import Estimate

_LEVEL = 0.05


def command(
    runs: Annotated[list[Path], typer.Argument(help="The --out folders of two or more evaluations of the same file.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder for the result, run.json.")],
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE, for seed or num_resamples; repeat.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record of the run as JSON.")] = False,
) -> None:
    """Compare models on the same prompts: which is better beyond doubt, and what this many prompts could show.

    Each bootstrap sample of prompts serves both models of a pair; p-values are corrected for the number of pairs.
    Evaluations of different prompts, or by different rules, are refused.

    Example: `steelyard compare evaluated-a evaluated-b --out compared`
    """
    from steelyard.cli.shown import show
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.stages.compare import Config, compare

    config = resolve_config(Config, parse_settings(setting or ()), where="compare")
    run = compare(runs, out, config, force=force)
    show(run, _lines(run.summary), as_json=as_json)


def _lines(summary: "ComparisonSummary") -> Iterator[str]:
    yield f"{len(summary.models)} models on {summary.bench}, ranked by {summary.ranked_by} (95 % intervals)"
    if summary.missing:
        yield f"no headline, for want of: {', '.join(f'{name} ({why})' for name, why in summary.missing.items())}"
    for model in summary.models:
        ranks = (model.best_rank, model.worst_rank)
        rank = f"rank {ranks[0]}" if ranks[0] == ranks[1] else f"rank {ranks[0]} to {ranks[1]}"
        value = "" if summary.ranked_by == "accuracy" else f"{summary.ranked_by} {_number(model.value)}, "
        bounds = "" if model.bounds is None else f" ({model.bounds['high']:.3f} if every unscored pair were right)"
        yield f"  {model.name}: {value}accuracy {_number(model.accuracy)}{bounds}, {rank}"
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
        value = f"{ranked_by} {_number(headline, signed=True)}"
        yield f"{start} {value}, p {_p(headline.p)}, corrected {_p(headline.p_corrected)}"
        start = " "
    yield f"{start} accuracy {_number(difference.accuracy, signed=True)}"
    if difference.p_ranked < _LEVEL <= difference.p_bounded:
        bounded = _p(difference.p_bounded)
        yield f"  not beyond doubt: p {bounded} with the pairs right that the worse model alone has no score for"
    yield (
        f"  p {_p(difference.p_accuracy)}, corrected {_p(difference.p_accuracy_corrected)}; "
        f"this many prompts show a difference of {difference.detectable:.3f} four times out of five"
    )
    yield (
        f"  exact match {_number(difference.exact_match, signed=True)}: {difference.only_first:,} prompts right by the "
        f"first alone, {difference.only_second:,} by the second; McNemar p {_p(difference.p_exact_match)}"
    )
    for name, own in difference.measures.items():
        if own.p is not None and own.p_corrected is not None:
            value = _number(own.difference, signed=True)
            yield f"  {_TITLES[name]} {value}, p {_p(own.p)}, corrected {_p(own.p_corrected)}"


_TITLES = {
    "kendall_tau": "Kendall's tau-b",
    "top_1": "first choice",
    "regret": "tiers lost",
    "accuracy_length_matched": "accuracy at like length",
}


def _number(estimate: "Estimate", *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    if estimate.low is None:
        return f"{estimate.value:{sign}.3f}" + (f" [{estimate.why}]" if estimate.why else "")
    return f"{estimate.value:{sign}.3f} [{estimate.low:{sign}.3f}, {estimate.high:{sign}.3f}]"


def _p(value: float) -> str:
    return f"{value:.4f}" if value >= 0.0001 else "< 0.0001"
