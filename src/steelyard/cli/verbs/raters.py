"""The verb `raters`: what it prints of the reliability of raters, and its options."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.options import ONLY, StageArgument, StageOption
from steelyard.cli.output import TerminalTable, next_line
from steelyard.cli.verb import StageVerb
from steelyard.core.text import number_of
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.annotation.case_answers import CaseRater, RatersSummary

_MOST_RATERS = 5
"""The largest number of raters that are shown without --verbose: the least accurate ones."""
_MOST_WITHHELD = 3
"""The largest number of raters without an estimate whose reasons are shown."""


def _raters_lines(run: "Run[RatersSummary]", out: Path) -> Iterator[str | TerminalTable]:
    summary = run.summary
    yield (
        f"{number_of(len(summary.raters), 'rater')}, {number_of(summary.num_answers, 'answer')} to "
        f"{number_of(summary.num_shared, 'prompt')} that several judged (of {summary.num_cases:,})"
    )
    known = [row for row in summary.raters if row.accuracy.value is not None]
    if known:
        title = "The least accurate raters" if len(known) > _MOST_RATERS else "Raters"
        yield _table(title, known[-_MOST_RATERS:])
    withheld = [row for row in summary.raters if row.accuracy.value is None]
    for row in withheld[:_MOST_WITHHELD]:
        yield f"{row.rater}: {row.accuracy.why}"
    if len(withheld) > _MOST_WITHHELD:
        yield f"and {number_of(len(withheld) - _MOST_WITHHELD, 'rater')} more without an estimate: --verbose has why"
    if out == Path():
        yield "all raters: --verbose"
    else:
        yield f"{out / 'raters.md'} has all raters"
        yield next_line("report", out, "--out", "report.html", effect="shows them")


def _raters_details(run: "Run[RatersSummary]", out: Path) -> Iterator[str | TerminalTable]:
    yield _table("All raters", run.summary.raters)


def _table(title: str, raters: "Sequence[CaseRater]") -> TerminalTable:
    from steelyard.report.rater_table import rater_cells

    rows: list[tuple[str, ...]] = []
    for row in raters:
        cells = rater_cells(row)
        rows.append((row.rater, cells.answers, f"{cells.accuracy} {cells.accuracy_interval}", cells.ties))
    return TerminalTable(title, ["answers", "accuracy\n[95% interval]", "ties"], rows)


RATERS = StageVerb(
    "raters",
    """Estimate how reliable each rater of cases is, people and models, from prompts that several of them judged.

    Accuracy is the probability that a strict verdict on two random responses has the right direction, with its 95%
    interval; the share of ties is estimated beside it. No truth is needed: who contradicts good raters is less
    reliable. Errors that all raters share are not seen, so that models which err alike look good together; `--only
    kind=human` leaves them out. An estimate needs 10 answers to shared prompts, and more than half of the rater's: of
    several answers of a rater to one prompt it can use one.

    Example: `steelyard raters judged.jsonl`

    Example: `steelyard raters judged.jsonl --only kind=human --out rated`
    """,
    (
        StageArgument("cases", "Case files, folders or quoted patterns.", metavar="CASES"),
        StageOption("out", "The folder for raters.md and run.json. Default: the terminal alone."),
        ONLY,
    ),
    _raters_lines,
    details=_raters_details,
)
