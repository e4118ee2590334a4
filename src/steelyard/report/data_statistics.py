"""The statistics of a data set as Markdown and as LaTeX (booktabs), in the columns of CHEEMS, Table 1."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from steelyard.evaluation.tables import DASH
from steelyard.prompts.description import GROUPINGS, DescribeSummary, GroupStatistics, MeanLengths
from steelyard.report.text_tables import escape_latex, escape_markdown, latex_row, markdown_row, one_line


class StatisticsTable(NamedTuple):
    """The columns of numbers, without that of the names, and the rows of each grouping, all cases first."""

    columns: tuple[str, ...]
    groupings: Mapping[str, Sequence[tuple[str, ...]]]


def statistics_table(summary: DescribeSummary) -> StatisticsTable:
    """Return the numbers as text.

    Columns in which no row has a number, such as the lengths of chosen responses without a ranking, are left out.
    """
    groups: dict[str, Mapping[str, GroupStatistics]] = {"": {"all": summary.overall}}
    groups |= {name: getattr(summary, f"by_{name}") for name in GROUPINGS}
    units = ("characters", "tokens") if summary.tokenizer else ("characters",)
    overall = summary.overall
    parts = [part for part in MeanLengths.__struct_fields__ if getattr(overall.characters, part) is not None]
    columns = ("prompts", "responses", "responses per prompt", "comparisons")
    columns += tuple(f"{unit} of {part}" for unit in units for part in parts)
    rows = {
        name: [(label, *_cells(each, units, parts)) for label, each in table.items()]
        for name, table in groups.items()
        if table
    }
    return StatisticsTable(columns, rows)


def as_markdown(summary: DescribeSummary) -> str:
    """Return one table of all cases and every group. Mean lengths are in Unicode code points, and in tokens."""
    shown = statistics_table(summary)
    head = ["", *shown.columns]
    lines = [markdown_row(head), markdown_row(["---", *["---:"] * len(shown.columns)])]
    for name, rows in shown.groupings.items():
        if name:
            lines.append(markdown_row([f"**by {name}**", *[""] * len(shown.columns)]))
        lines += [markdown_row([escape_markdown(label), *cells]) for label, *cells in rows]
    return "\n".join([*lines, "", *_notes(summary), ""])


def as_latex(summary: DescribeSummary) -> str:
    """Return a ``tabular`` for the package booktabs, all cases and every group as rows."""
    shown = statistics_table(summary)
    width = len(shown.columns) + 1
    lines = [f"% {note}" for note in _notes(summary)]
    lines += [rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}", r"\toprule"]
    lines.append(latex_row(["", *(_latex_head(column) for column in shown.columns)]))
    for name, rows in shown.groupings.items():
        lines.append(r"\midrule")
        if name:
            lines.append(rf"\multicolumn{{{width}}}{{l}}{{\emph{{by {name}}}}} \\")
        lines += [latex_row([escape_latex(label), *map(escape_latex, cells)]) for label, *cells in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _cells(group: GroupStatistics, units: Sequence[str], parts: Sequence[str]) -> Iterator[str]:
    yield f"{group.num_prompts:,}"
    yield f"{group.num_responses:,}"
    yield _mean(group.responses_per_prompt)
    yield f"{group.num_comparisons:,}"
    for unit in units:
        lengths = getattr(group, unit)
        yield from (_mean(getattr(lengths, part)) for part in parts)


def _mean(value: float | None) -> str:
    return DASH if value is None else f"{value:,.2f}"


def _notes(summary: DescribeSummary) -> Iterator[str]:
    yield "Comparisons leave out ties. Lengths are means: of chosen and rejected responses over comparisons."
    yield "Characters are Unicode code points."
    if summary.tokenizer:
        yield f"Tokens are those of {one_line(summary.tokenizer)}, without special tokens."


def _latex_head(column: str) -> str:
    unit, of, part = column.partition(" of ")
    return f"{part} ({unit[:4]}.)" if of else column
