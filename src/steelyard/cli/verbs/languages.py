"""Break one evaluation down by language: the drop from English, agreement with it, families, scripts, resources.

All numbers follow the bench's own sections and weights, on the items that all compared languages have. Kappa measures
how far the model prefers the same answers in a language as in English. Translations of one item are resampled together.

Example: `steelyard languages evaluated --out languages`
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.output import TerminalTable, interval_text
from steelyard.cli.stage_verb import StageArgument, StageOption, StageVerb
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.evaluation.languages import LanguagesSummary
    from steelyard.statistics.aggregation import Drop


def lines(run: "Run[LanguagesSummary]", out: Path) -> Iterator[str | TerminalTable]:
    """Yield a table of the languages, then means, sections and groups of languages."""
    summary = run.summary
    english = summary.english
    yield f"{summary.model} on {summary.bench} by language (95% intervals, clustered by item)"
    yield f"on {summary.num_shared:,} items that all {len(summary.languages)} languages have"
    if summary.left_out:
        counts = ", ".join(f"{name} {number:,}" for name, number in summary.left_out.items())
        yield f"left out, since not every language has them: {counts}"
    if summary.missing:
        absent = ", ".join(f"{name} ({why})" for name, why in summary.missing.items())
        yield f"a part of the bench, whose arithmetic is taken over what is there; for want of: {absent}"
    yield _table(summary)
    if summary.coverage:
        from steelyard.evaluation.coverage import coverage_lines

        if not summary.are_read_alike:
            yield "not read alike, so that a drop is partly one of the length limit (unscored pairs count as wrong):"
        yield from coverage_lines(summary.coverage)
    yield f"mean without {english}: {interval_text(summary.mean)}"
    yield f"its drop from {english}: {', of it '.join(_drop(summary.drop))}"
    for name, drop in summary.drop.sections.items():
        yield f"  {name}: {', '.join(_drop(drop))}"
    if summary.standard_deviation:
        yield f"standard deviation over languages: {interval_text(summary.standard_deviation)}"
    yield f"mean kappa: {interval_text(summary.kappa)}"
    for field, groups in summary.kin.items():
        for name, group in groups.items():
            yield f"  {field.replace('_', ' ')} {name}: {interval_text(group.mean)}  {', '.join(group.languages)}"


def _drop(drop: "Drop") -> tuple[str, str]:
    """Return the difference, and its share of English."""
    share = "none" if drop.relative.value is None else f"{drop.relative.value:+.1%}"
    return interval_text(drop.absolute, "+"), share


def _table(summary: "LanguagesSummary") -> TerminalTable:
    english = summary.english
    best_first = sorted(summary.languages.items(), key=lambda pair: -(pair[1].overall.value or 0.0))
    rows = [
        (
            name,
            interval_text(values.overall),
            *(_drop(values.drop) if values.drop else ("", "")),
            interval_text(values.kappa) if values.kappa else "",
        )
        for name, values in best_first
    ]
    heads = ("overall", f"drop from {english}", f"of {english}", f"kappa with {english}")
    return TerminalTable("by language", heads, rows)


command = StageVerb(
    "languages",
    (
        StageArgument("evaluated", "The --out folder of an evaluation of parallel items."),
        StageOption("out", "The folder for the result, run.json."),
    ),
    lines,
)
