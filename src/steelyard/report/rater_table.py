"""The reliability of raters as rows: for the terminal, for Markdown, and for the report."""

from collections.abc import Iterator
from typing import NamedTuple

from steelyard.annotation.case_answers import CaseRater, RatersSummary
from steelyard.core.text import number_of
from steelyard.evaluation.tables import DASH, percent
from steelyard.report.text_tables import escape_markdown, markdown_row
from steelyard.statistics.intervals import Estimate

HEADS = ("rater", "answers", "accuracy", "95% interval", "ties", "95% interval")


class RaterCells(NamedTuple):
    """A rater's row as text, but for the name."""

    answers: str
    accuracy: str
    accuracy_interval: str
    ties: str
    ties_interval: str


def rater_cells(row: CaseRater) -> RaterCells:
    """Return the row of a rater; dashes for a missing estimate."""
    return RaterCells(
        f"{row.num_answers:,}",
        percent(row.accuracy.value),
        _ends(row.accuracy),
        percent(row.ties.value),
        _ends(row.ties),
    )


def raters_as_markdown(summary: RatersSummary) -> str:
    """Return the table of all raters, with what it stands on."""
    return "\n".join([*_lines(summary), ""])


def _lines(summary: RatersSummary) -> Iterator[str]:
    yield markdown_row(HEADS)
    yield markdown_row(["---", *["---:"] * (len(HEADS) - 1)])
    for row in summary.raters:
        yield markdown_row([escape_markdown(row.rater), *rater_cells(row)])
    yield ""
    shared = number_of(summary.num_shared, "prompt")
    yield (
        f"Accuracy: the probability that a strict verdict on two random responses has the right direction; ties: the "
        f"share of two random responses called equal. Estimated from {number_of(summary.num_answers, 'answer')} to "
        f"{shared} that several raters judged; errors that all raters share are not seen. An interval of accuracy that "
        "ends at 100% means at least: the answers do not bound it above."
    )
    for row in summary.raters:
        if row.accuracy.why is not None:
            yield ""
            yield f"{escape_markdown(row.rater)}: {row.accuracy.why}."


def _ends(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return DASH
    return f"[{percent(estimate.low)}, {percent(estimate.high)}]"
