"""Models on several benches: a row a model, a group of columns a bench, the best of each column marked, and slips.

The stage is that of `leaderboard` with evaluations of several benches, or with a published table, whose numbers are
shown as printed. `ablate` shows its arms by the same table.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from steelyard.core.types import JsonObject
from steelyard.evaluation.bench_table import BenchColumn, BenchRow, BenchTable
from steelyard.evaluation.tables import (
    DASH,
    Grouped,
    Panel,
    Sentence,
    Table,
    count,
    decimal,
    isolate,
    percent,
    table,
    word,
)
from steelyard.plugins.benches.subset_benches import CHEEMS_PUBLISHED
from steelyard.report.leaderboard import ceiling_cells, leaderboard_sentences, rank_range
from steelyard.report.page import COLON, COMMA, first_names
from steelyard.statistics.intervals import Estimate
from steelyard.views.leaderboard import board_panels, unranked_reasons
from steelyard.views.records import flat_row
from steelyard.views.view import HeadlineRule, PageSources, RunHeadline, StageRun, View, report_step

_BEST = "*"
"""The mark of the best value of a column."""


class ValueRow(NamedTuple):
    """A row: the cells that name it, its value in each column, and the rank within each bench where it has one."""

    cells: tuple[str, ...]
    values: Sequence[Estimate | None]
    ranks: dict[str, str]


def value_table(
    heads: Sequence[str],
    columns: Sequence[BenchColumn],
    rows: Sequence[ValueRow],
    form: Callable[[int, int], str],
) -> Table:
    """Return the table of values: ``form`` formats that of a row and a column, by their positions.

    The best of each column is marked where there are two different ones. Behind each headline is the rank within its
    bench, if any row has one.
    """
    ranked = {bench for row in rows for bench in row.ranks}
    best = [_best(rows, place) for place in range(len(columns))]
    lines = []
    for number, row in enumerate(rows):
        line = [*row.cells]
        for place, (column, value) in enumerate(zip(columns, row.values, strict=True)):
            shown = DASH if value is None or value.value is None else form(number, place)
            line.append(f"{shown}{_BEST}" if value is not None and value.value == best[place] else shown)
            if column.is_headline and column.bench in ranked:
                line.append(row.ranks.get(column.bench, DASH))
        lines.append(tuple(line))
    titles = [*heads]
    for column in columns:
        titles.append(column_head(column, columns))
        if column.is_headline and column.bench in ranked:
            titles.append(word("rank"))
    return Table(tuple(titles), tuple(lines))


def _best(rows: Sequence[ValueRow], place: int) -> float | None:
    """Return the highest value of a column; null where all are equal."""
    values = {None if (value := row.values[place]) is None else value.value for row in rows}
    known = {value for value in values if value is not None}
    return max(known) if len(known) > 1 else None


def bench_word(bench: str) -> str:
    """Return the name of a bench for the page."""
    return word(f"bench_{bench}", bench)


def column_head(column: BenchColumn, columns: Sequence[BenchColumn]) -> str:
    """Return the heading of a column: the bench alone where it has one column, else its subset and measure."""
    numbers = Counter(each.bench for each in columns)
    if numbers[column.bench] == 1 and column.is_headline:
        return bench_word(column.bench)
    title = word(f"column_{column.measure}", column.measure.replace("_", " "))
    if column.subset in CHEEMS_PUBLISHED:
        title = word(f"column_{column.subset}_{column.measure}")
    elif column.subset:
        title = f"{column.subset}{COLON}{title}"
    is_alone = sum(number > 1 for number in numbers.values()) == 1
    return title if is_alone else f"{bench_word(column.bench)}{COLON}{title}"


def _panels(run: StageRun[BenchTable], sources: PageSources) -> Iterator[Panel]:
    """Yield the models on all benches, the leaderboard of each bench with intervals, and numbers that do not add up."""
    summary = run.summary
    note = "note_published_benches" if summary.is_published else "note_bench_table"
    yield Panel(f"{word('bench_table')} · {summary.source}", None, (Grouped("", _main_table(summary)),), note)
    for bench, board in summary.boards.items():
        yield from board_panels(board, bench_word(bench))
    if summary.lacking:
        rows = [(name, COMMA.join(map(bench_word, benches))) for name, benches in summary.lacking.items()]
        yield Panel(word("lacking_benches"), None, (Grouped("", table((summary.rows_are, "benches"), rows)),))
    if summary.slips:
        places = {column.measure: place for place, column in enumerate(summary.columns) if column.is_headline}
        rows = [
            (slip.model, word(f"column_{slip.column}", slip.column),
             *(_printed(value / 100, places[slip.column], summary) for value in (slip.printed, slip.computed)))
            for slip in summary.slips
        ]  # fmt: skip
        columns = (summary.rows_are, "printed_column", "printed", "computed")
        yield Panel(word("printed_slips"), None, (Grouped("", table(columns, rows)),), "note_printed_overall")


def _main_table(summary: BenchTable) -> Table:
    has_kind = any(row.kind is not None for row in summary.rows)
    has_language = any(row.language is not None for row in summary.rows)
    rows = [
        ValueRow(
            (
                row.name,
                *((_kind_word(row),) if has_kind else ()),
                *((row.language or DASH,) if has_language else ()),
            ),
            row.values,
            {bench: rank_range(*ranks) for bench, ranks in row.ranks.items()},
        )
        for row in summary.rows
    ]

    def form(number: int, place: int) -> str:
        estimate = summary.rows[number].values[place]
        value = None if estimate is None else estimate.value
        return _printed(value, place, summary) if summary.is_published else percent(value)

    heads = (summary.rows_are, *(("model_kind",) if has_kind else ()), *(("language",) if has_language else ()))
    values = value_table(tuple(map(word, heads)), summary.columns, rows, form)
    ceilings = {bench: board.ceiling for bench, board in summary.boards.items()}
    known = {bench: ceiling for bench, ceiling in ceilings.items() if ceiling is not None}
    if not known or len(known) < len(summary.benches):
        return values
    perfect = [word("perfect_model"), *[DASH] * (len(heads) - 1)]
    ranked = {bench for row in rows for bench in row.ranks}
    for column in summary.columns:
        ceiling = known[column.bench]
        shown = {"accuracy": ceiling_cells(ceiling)[0]}
        if ceiling.exact_match is not None:
            shown["exact_match"] = percent(ceiling.exact_match.value)
        perfect.append(DASH if column.subset else shown.get(column.measure, DASH))
        if column.is_headline and column.bench in ranked:
            perfect.append(DASH)
    return values._replace(rows=(*values.rows, tuple(perfect)))


def _printed(value: float | None, place: int, summary: BenchTable) -> str:
    """Format a published number with the digits of its column, as a share where the table has shares."""
    if value is None:
        return DASH
    digits = summary.decimals[place]
    return decimal(value, digits + 2) if summary.is_share else decimal(100 * value, digits)


def _kind_word(row: BenchRow) -> str:
    return DASH if row.kind is None else word(f"kind_of_model_{row.kind}", row.kind)


def _sentences(run: StageRun[BenchTable]) -> Iterator[Sentence]:
    """Yield the best of each bench, the models that lack one or were evaluated unlike, and what does not add up."""
    summary = run.summary
    values = {"rows": count(len(summary.rows)), "benches": count(len(summary.benches)), "source": summary.source}
    yield Sentence(f"say_published_{summary.rows_are}" if summary.is_published else "say_bench_table", values)
    for board in summary.boards.values():
        yield from leaderboard_sentences(board)
    if summary.is_published:
        yield from _best_sentences(summary)
    if summary.lacking:
        names = [
            f"{isolate(name)} ({_lacking_words(name, benches, summary)})" for name, benches in summary.lacking.items()
        ]
        yield Sentence("say_lacking_benches", {"models": first_names(names)})
    if summary.unlike:
        names = [f"{isolate(name)} ({COMMA.join(facts)})" for name, facts in summary.unlike.items()]
        yield Sentence("say_unlike_evaluations", {"models": first_names(names)})
    if summary.slips:
        yield Sentence("say_printed_overall", {"rows": first_names([isolate(slip.model) for slip in summary.slips])})
    elif any(column.subset for column in summary.columns) and _has_overall(summary) and summary.is_published:
        yield Sentence("say_overall_adds_up")


def _has_overall(summary: BenchTable) -> bool:
    benches = {column.bench for column in summary.columns if column.subset}
    return any(column.is_headline and column.bench in benches for column in summary.columns)


def _best_sentences(summary: BenchTable) -> Iterator[Sentence]:
    """Yield the first of each bench of a published table, by its headline."""
    for place, column in enumerate(summary.columns):
        if column.is_headline:
            first = [row for row in summary.rows if row.ranks.get(column.bench, (0, 0))[0] == 1]
            value = _printed(next(each.value for row in first if (each := row.values[place])), place, summary)
            names = COMMA.join(row.name for row in first)
            yield Sentence("say_best_of_bench", {"bench": bench_word(column.bench), "best": names, "value": value})


def _lacking_words(name: str, benches: Sequence[str], summary: BenchTable) -> str:
    """Return the benches that a model lacks, each with the reason where it was evaluated on it."""
    why = {bench: unranked_reasons(board) for bench, board in summary.boards.items()}
    reasons = {bench: of_bench[name] for bench, of_bench in why.items() if name in of_bench}
    return COMMA.join(
        f"{bench_word(bench)}{COLON}{reasons[bench]}" if bench in reasons else bench_word(bench) for bench in benches
    )


class _TopRow(msgspec.Struct):
    name: str


class _BenchTableHeadline(msgspec.Struct):
    rows: tuple[_TopRow, ...]
    source: str = ""


def _headline(run: _BenchTableHeadline) -> RunHeadline:
    return RunHeadline(count(len(run.rows)), f"{word('view_models_benches')} {run.source}")


def _records(summary: BenchTable) -> Iterator[JsonObject]:
    for row in summary.rows:
        record: JsonObject = {"name": row.name, "kind": row.kind, "language": row.language}
        for column, value in zip(summary.columns, row.values, strict=True):
            record |= flat_row(value or Estimate(None, None, None, 0), column.key)
        for bench, (best, worst) in row.ranks.items():
            record |= {f"{bench}_best_rank": best, f"{bench}_worst_rank": worst}
        yield record


VIEW = View(
    31, "bench_table", BenchTable, "bench_table", _sentences, _panels,
    records=_records, headline=HeadlineRule(_BenchTableHeadline, _headline), lead=1,
    next_step=report_step("shows the leaderboard of each bench"),
)  # fmt: skip
