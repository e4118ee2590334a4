"""The verb `languages` on the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from steelyard.evaluation.languages import LanguagesSummary
    from steelyard.statistics.headline import Drop
    from steelyard.statistics.intervals import Estimate


def command(
    evaluated: Annotated[Path, typer.Argument(help="The --out folder of an evaluation of parallel items.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder for the result, run.json.")],
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help='KEY=VALUE: english=CODE (what to compare with), languages=["en","he"], seed=1; repeat.'
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record of the run as JSON.")] = False,
) -> None:
    """Break one evaluation down by language: the drop from English, agreement with it, families, scripts, resources.

    All numbers follow the bench's own sections and weights, on the items that all compared languages have. Kappa says
    how far the model prefers the same answers in a language as in English. Translations of one item are drawn together
    for the intervals.

    Example: `steelyard languages evaluated --out languages`
    """
    from steelyard.cli.shown import show
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.stages.languages import Config, languages

    config = resolve_config(Config, parse_settings(setting or ()), where="languages")
    run = languages(evaluated, out, config, force=force)
    show(run, _lines(run.summary), as_json=as_json)


def _lines(summary: "LanguagesSummary") -> Iterator[str]:
    english = summary.english
    yield f"{summary.model} on {summary.bench} by language (95 % intervals, clustered by item)"
    yield f"on {summary.num_shared:,} items that all {len(summary.languages)} languages have"
    if summary.left_out:
        counts = ", ".join(f"{name} {number:,}" for name, number in summary.left_out.items())
        yield f"left out, since not every language has them: {counts}"
    if summary.missing:
        absent = ", ".join(f"{name} ({why})" for name, why in summary.missing.items())
        yield f"a part of the bench, whose arithmetic is taken over what is there; for want of: {absent}"
    yield f"{'':12} {'overall':24} {'drop from ' + english:26} {'of ' + english:11} kappa with {english}"
    for name, values in sorted(summary.languages.items(), key=lambda pair: -(pair[1].overall.value or 0.0)):
        absolute, relative = _drop(values.drop) if values.drop else ("", "")
        agreement = _number(values.kappa) if values.kappa else ""
        yield f"{name:12} {_number(values.overall):24} {absolute:26} {relative:11} {agreement}".rstrip()
    if summary.coverage:
        from steelyard.evaluation.coverage import coverage_lines

        if not summary.are_read_alike:
            yield "not read alike, so that a drop is partly one of the length limit (unscored pairs count as wrong):"
        yield from coverage_lines(summary.coverage)
    yield f"mean without {english}: {_number(summary.mean)}"
    yield f"its drop from {english}: {', of it '.join(_drop(summary.drop))}"
    for name, drop in summary.drop.sections.items():
        yield f"  {name}: {', '.join(_drop(drop))}"
    if summary.standard_deviation:
        yield f"standard deviation over languages: {_number(summary.standard_deviation)}"
    yield f"mean kappa: {_number(summary.kappa)}"
    for field, groups in summary.kin.items():
        for name, group in groups.items():
            yield f"  {field.replace('_', ' ')} {name}: {_number(group.mean)}  {', '.join(group.languages)}"


def _drop(drop: "Drop") -> tuple[str, str]:
    """Return the difference, and its share of English."""
    share = "none" if drop.relative.value is None else f"{drop.relative.value:+.1%}"
    return _number(drop.absolute, "+"), share


def _number(estimate: "Estimate", sign: str = "") -> str:
    if estimate.value is None:
        return "none"
    if estimate.low is None:
        return f"{estimate.value:{sign}.3f}" + (f" [{estimate.why}]" if estimate.why else "")
    return f"{estimate.value:{sign}.3f} [{estimate.low:{sign}.3f}, {estimate.high:{sign}.3f}]"
