"""Many models on several benches (CHEEMS, Tables 2 to 4 and 8): one row a model, a group of columns a bench.

A bench whose prompts have several pairs shows accuracy and exact match of each subset before its headline; any other
bench has its headline alone. Ranks are those within a bench: a rank over benches would need a rule for weighing them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from steelyard.core.errors import EvidenceError
from steelyard.core.types import Record, Run
from steelyard.evaluation.evaluations import EvaluationSet, ranking_of
from steelyard.evaluation.leaderboard import LeaderboardRow, LeaderboardSummary
from steelyard.evaluation.parallel_runs import kind_of_model
from steelyard.evaluation.printed_tables import Slip
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.statistics.aggregation import ACCURACY, EXACT_MATCH, Formula, by_category, group_cells, macro
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.pair_counts import NUM_COLUMNS

MOST_SUBSETS = 4
"""The most subsets of a bench that have columns of their own."""
SHARES = {"accuracy": ACCURACY, "exact_match": EXACT_MATCH}
"""The measures of a subset."""
_OF_A_MODEL = ("dtype", "max_length", "over_length", "template_hash")


class BenchColumn(Record, frozen=True, kw_only=True):
    """A column: its bench, the subset (empty for the whole bench) and the measure; ranks follow the headline."""

    bench: str
    subset: str = ""
    measure: str
    is_headline: bool = False

    @property
    def key(self) -> str:
        """The name of the column in plain tables."""
        return "_".join(filter(None, (self.bench, self.subset, self.measure)))


class BenchRow(Record, frozen=True, kw_only=True):
    """A row: a value for each column, null where there is none, and the best and worst possible rank by bench.

    ``language`` is that of a training set in a published table.
    """

    name: str
    kind: str | None = None
    language: str | None = None
    values: tuple[Estimate | None, ...]
    ranks: dict[str, tuple[int, int]]


class BenchTable(Record, frozen=True, kw_only=True):
    """The summary of a run of ``leaderboard`` over several benches, or over a published table.

    ``rows_are``: what has a row (``model``, ``dataset`` or ``training_data``). The published numbers of each column
    have ``decimals``, in percent, and are printed as shares if ``is_share``. ``lacking``: the benches that a model has
    no value of. ``unlike``: the settings that differ between the evaluations of a model on several benches. ``boards``:
    the leaderboard of each bench. ``slips``: printed numbers that do not follow from their row.
    """

    source: str
    rows_are: str = "model"
    is_published: bool = False
    decimals: tuple[int, ...] = ()
    is_share: bool = False
    columns: tuple[BenchColumn, ...]
    rows: tuple[BenchRow, ...]
    lacking: dict[str, tuple[str, ...]]
    unlike: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - msgspec copies it
    boards: dict[str, LeaderboardSummary] = {}  # noqa: RUF012 - msgspec copies it
    slips: tuple[Slip, ...] = ()

    @property
    def benches(self) -> tuple[str, ...]:
        """The benches in the order of their columns."""
        return tuple(dict.fromkeys(column.bench for column in self.columns))


class EvaluatedModel(NamedTuple):
    """One evaluation: the name of its model, the kind of the model, and its record."""

    name: str
    kind: str | None
    run: Run[EvaluationSummary]

    @classmethod
    def of(cls, run: Run[EvaluationSummary]) -> Self:
        """Return the model of an evaluation."""
        return cls(run.summary.model, kind_of_model(run), run)


def bench_columns(bench: str, headline: str, subsets: Sequence[str], *, has_exact_match: bool) -> list[BenchColumn]:
    """Return the columns of a bench.

    ``subsets``: those with an exact match of their own. A bench whose headline is accuracy has no other columns of the
    whole than accuracy and, where prompts have several pairs (``has_exact_match``), exact match.
    """
    columns = [
        BenchColumn(bench=bench, subset=name, measure=measure)
        for name in (subsets if 1 < len(subsets) <= MOST_SUBSETS else ())
        for measure in ("accuracy", "exact_match")
    ]
    columns.append(BenchColumn(bench=bench, measure=headline, is_headline=True))
    if headline == "accuracy" and has_exact_match:
        columns.append(BenchColumn(bench=bench, measure="exact_match"))
    return columns


class ColumnFormula(NamedTuple):
    """A column with its value as a formula of sums by cell; ``n``: the prompts or pairs that it is computed from."""

    column: BenchColumn
    formula: Formula
    n: float


def column_formulas(evaluations: EvaluationSet) -> tuple[ColumnFormula, ...]:
    """Return the columns of the bench of these evaluations, by the bench's own arithmetic.

    A part of a bench, which has no headline, has accuracy instead.
    """
    summary, headline = evaluations.evaluated[0].run.summary, ranking_of(evaluations)
    subsets = {
        name: subset
        for name, subset in (summary.subsets or {}).items()
        if subset.exact_match is not None and subset.exact_match.n != subset.accuracy.n
    }
    has_exact_match = summary.exact_match is not None and summary.exact_match.n != summary.accuracy.n
    columns = bench_columns(summary.bench, headline.name, list(subsets), has_exact_match=has_exact_match)
    cells = evaluations.layout.cells
    sizes = np.zeros((len(cells), NUM_COLUMNS))
    np.add.at(sizes, evaluations.layout.cell, evaluations.evaluated[0].statistics[:, :NUM_COLUMNS])

    def formula_of(column: BenchColumn) -> ColumnFormula:
        if column.is_headline:
            return ColumnFormula(column, headline.formula, headline.n)
        share, groups = SHARES[column.measure], by_category(cells)
        if column.subset:
            has_categories = bool(subsets[column.subset].by_category)
            of_subset = group_cells(cells, lambda cell: column.subset if cell.subset == column.subset else None)
            groups = by_category(cells, subset=column.subset) if has_categories else of_subset
        n = float((groups.members @ sizes)[:, share.denominator].sum())
        return ColumnFormula(column, lambda sums: macro(sums, groups, share), n)

    return tuple(map(formula_of, columns))


def join_boards(boards: Mapping[str, LeaderboardSummary], models: Mapping[str, Sequence[EvaluatedModel]]) -> BenchTable:
    """Return the leaderboards of several benches as one table; ``models`` are the evaluations of each bench.

    Rows follow the first bench, then the second for models that lack the first, and so on.
    """
    columns = [column for bench, board in boards.items() for column in _columns_of_board(bench, board)]
    ranked = {bench: {row.name: row for row in board.rows} for bench, board in boards.items()}
    kinds = {model.name: model.kind for each in models.values() for model in each}

    def order(name: str) -> tuple[object, ...]:
        rows = [of_bench.get(name) for of_bench in ranked.values()]
        return (*((row is None, 0.0 if row is None else -row.value) for row in rows), name)

    rows = [
        BenchRow(
            name=name,
            kind=kinds[name],
            values=tuple(_value(ranked[column.bench].get(name), column) for column in columns),
            ranks={
                bench: (row.best_rank, row.worst_rank)
                for bench, of_bench in ranked.items()
                if (row := of_bench.get(name)) is not None
            },
        )
        for name in sorted(kinds, key=order)
    ]
    return BenchTable(
        source=", ".join(boards),
        columns=tuple(columns),
        rows=tuple(rows),
        lacking=lacking_benches(columns, rows),
        unlike={name: facts for name in kinds if (facts := tuple(_unlike_facts(name, models)))},
        boards=dict(boards),
    )


def check_models(models: Mapping[str, Sequence[EvaluatedModel]], folders: Mapping[str, Sequence[Path]]) -> None:
    """Raise EvidenceError for two evaluations of one model on one bench, and where no model is on two benches."""
    for bench, evaluated in models.items():
        known: dict[str, Path] = {}
        for model, folder in zip(evaluated, folders[bench], strict=True):
            if model.name in known:
                raise EvidenceError(
                    f"{known[model.name]} and this folder are two evaluations of {model.name} on {bench}",
                    where=str(folder),
                    do="name one of them, or make a leaderboard of this bench alone",
                )
            known[model.name] = folder
    if max(Counter(model.name for evaluated in models.values() for model in evaluated).values()) < 2:
        raise EvidenceError(
            f"the evaluations are of different benches, and no model has two of them: {', '.join(models)}",
            do="evaluate the models on the same benches, or make a leaderboard of each bench",
        )


def check_weights(models: Mapping[str, Sequence[EvaluatedModel]]) -> None:
    """Raise EvidenceError where two benches were evaluated with different models of one name."""
    known: dict[tuple[str, str], tuple[str, str]] = {}
    for bench, evaluated in models.items():
        for model in evaluated:
            for role, file in model.run.inputs.items():
                if not role.startswith("model"):
                    continue
                first, sha256 = known.setdefault((model.name, role), (bench, file.sha256))
                if sha256 != file.sha256:
                    raise EvidenceError(
                        f"the weights of {model.name} on {bench} are not those on {first}",
                        where=file.path,
                        do="give different models different names, and evaluate one model on all benches",
                    )


def lacking_benches(columns: Sequence[BenchColumn], rows: Sequence[BenchRow]) -> dict[str, tuple[str, ...]]:
    """Return the benches that each row lacks a value of, by the name of the row."""
    lacking = {
        row.name: dict.fromkeys(
            column.bench for column, value in zip(columns, row.values, strict=True) if value is None
        )
        for row in rows
    }
    return {name: tuple(benches) for name, benches in lacking.items() if benches}


def _columns_of_board(bench: str, board: LeaderboardSummary) -> list[BenchColumn]:
    subsets = [column.name for column in board.columns if column.group == "subsets_exact_match"]
    numbers = [row.by_column for row in board.rows]
    has_exact_match = any(
        (exact := each.get(("headline", "exact_match"))) is not None and exact.n != each["headline", "accuracy"].n
        for each in numbers
    )
    return bench_columns(bench, board.ranked_by, subsets, has_exact_match=has_exact_match)


def _value(row: LeaderboardRow | None, column: BenchColumn) -> Estimate | None:
    if row is None:
        return None
    group = "headline"
    if column.subset:
        group = "subsets" if column.measure == "accuracy" else "subsets_exact_match"
    number = row.by_column.get((group, column.subset or column.measure))
    if number is None or number.value is None:
        return None
    return Estimate(number.value, number.low, number.high, number.n)


def _unlike_facts(name: str, models: Mapping[str, Sequence[EvaluatedModel]]) -> Iterator[str]:
    """Yield the settings that differ between the evaluations of one model."""
    protocols = [model.run.summary.protocol or {} for each in models.values() for model in each if model.name == name]
    for fact in _OF_A_MODEL:
        if len({str(protocol.get(fact)) for protocol in protocols}) > 1:
            yield fact
