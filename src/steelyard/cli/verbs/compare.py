"""The verb `compare` on the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

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


def _lines(summary: dict[str, Any]) -> Iterator[str]:
    ranked_by = summary["headline"] or "accuracy"
    yield f"{len(summary['models'])} models on {summary['bench']}, ranked by {ranked_by} (95 % intervals)"
    if "missing" in summary:
        yield f"no headline, for want of: {', '.join(f'{name} ({why})' for name, why in summary['missing'].items())}"
    for row in summary["models"]:
        ranks = (row["best_rank"], row["worst_rank"])
        rank = f"rank {ranks[0]}" if ranks[0] == ranks[1] else f"rank {ranks[0]} to {ranks[1]}"
        own = "" if ranked_by == "accuracy" else f"{ranked_by} {_number(row['value'])}, "
        yield f"  {row['name']}: {own}accuracy {_number(row['accuracy'])}{_bounds(row)}, {rank}"
    if summary["unlike_coverage"]:
        yield "not read alike, so that a difference is partly one of the length limits (unscored pairs count as wrong;"
        yield "ranks hold with the pairs right, too, that the worse model alone has no score for):"
        yield from (f"  {sentence}" for sentence in summary["unlike_coverage"])
    for one in summary["comparisons"]:
        start, own = f"{one['first']} minus {one['second']}:", one["headline"]
        if own is not None:
            told = f"{ranked_by} {_number(own, signed=True)}"
            yield f"{start} {told}, p {_p(own['p'])}, corrected {_p(own['p_corrected'])}"
            start = " "
        yield f"{start} accuracy {_number(one['accuracy'], signed=True)}"
        yield from _doubt(one)
        yield (
            f"  p {_p(one['p_accuracy'])}, corrected {_p(one['p_accuracy_corrected'])}; "
            f"this many prompts show a difference of {one['detectable']:.3f} four times out of five"
        )
        yield (
            f"  exact match {_number(one['exact_match'], signed=True)}: {one['only_first']:,} prompts right by the "
            f"first alone, {one['only_second']:,} by the second; McNemar p {_p(one['p_exact_match'])}"
        )
        yield from _beyond_accuracy(one["measures"])
    yield f"p corrected for {len(summary['comparisons'])} comparisons ({summary['correction']})"


def _doubt(one: dict[str, Any]) -> Iterator[str]:
    """A difference that is gone once the pairs are right that the worse model alone has no score for."""
    p = one["p_accuracy_corrected"] if one["headline"] is None else one["headline"]["p_corrected"]
    if p < _LEVEL <= one["p_bounded"]:
        bounded = _p(one["p_bounded"])
        yield f"  not beyond doubt: p {bounded} with the pairs right that the worse model alone has no score for"


def _bounds(row: dict[str, Any]) -> str:
    own = row["bounds"]
    return "" if own is None else f" ({own['high']:.3f} if every unscored pair were right)"


_TITLES = {
    "kendall_tau": "Kendall's tau-b",
    "top_1": "first choice",
    "regret": "tiers lost",
    "accuracy_length_matched": "accuracy at like length",
}


def _beyond_accuracy(measures: dict[str, Any]) -> Iterator[str]:
    told = {name: own for name, own in measures.items() if own["p"] is not None}
    for name, own in told.items():
        corrected = _p(own["p_corrected"])
        yield f"  {_TITLES[name]} {_number(own['difference'], signed=True)}, p {_p(own['p'])}, corrected {corrected}"


def _number(estimate: dict[str, Any], *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    if estimate["low"] is None:
        return f"{estimate['value']:{sign}.3f}" + (f" [{estimate['why']}]" if estimate.get("why") else "")
    return f"{estimate['value']:{sign}.3f} [{estimate['low']:{sign}.3f}, {estimate['high']:{sign}.3f}]"


def _p(value: float) -> str:
    return f"{value:.4f}" if value >= 0.0001 else "< 0.0001"
