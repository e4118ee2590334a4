"""Per-item results of an evaluation: write and read ``items.jsonl``, one line per case with the outcome of its pairs.

Every value of the summary can be recomputed from these lines.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from steelyard.core.errors import RecordError
from steelyard.core.numerics import Booleans, Floats, Integers
from steelyard.core.types import Case, JsonObject, Scores
from steelyard.evaluation.bench_pairs import BenchPairs, count_pairs, values_of
from steelyard.evaluation.columns import BenchColumns, score_columns
from steelyard.evaluation.measure import MATCHED_RATIO, ScoredBench, item_columns, measures
from steelyard.evaluation.pair_verdicts import Judged, outcomes_by_case
from steelyard.io.atomic import atomic_write
from steelyard.io.lines import read_lines
from steelyard.statistics.groups import Cell
from steelyard.statistics.pair_counts import ExactRule, count_unscored, exact_matches


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One case of an evaluation; ``exact_match`` is null if the case is not counted.

    ``unit``: the name of the prompt's resampling unit, null for its id. ``bench_columns``: the bench's own columns.
    ``unscored``: the pairs without a score or verdict; ``exact_if_right`` and ``own_if_right`` count all of them as
    right.
    """

    prompt: str
    category: str
    num_pairs: int
    num_correct: int
    num_tied: int
    exact_match: bool | None
    language: str | None = None
    subset: str | None = None
    unit: str | None = None
    bench_columns: tuple[int, ...] = msgspec.field(default=(), name="own")
    unscored: tuple[tuple[str, str], ...] = ()
    exact_if_right: bool = False
    own_if_right: tuple[int, ...] = ()

    @property
    def cell(self) -> Cell:
        """The groups of the prompt."""
        return Cell(self.category, self.subset, self.language)

    @property
    def key(self) -> tuple[str, str | None]:
        """The key of the case: prompt id and language."""
        return (self.prompt, self.language)


class JudgedPair(msgspec.Struct, frozen=True, kw_only=True):
    """The ``outcome`` of one pair under a judge: win, loss or tie of the better response, or why there is none."""

    better: str
    worse: str
    outcome: str


class ScoredItem(Item, frozen=True, kw_only=True):
    """An item with its scores, ranking and pairs.

    ``lengths``: the Unicode code points of the responses, in the order of ``scores``; empty in runs of versions that
    did not write them. ``pairs``: null for every pair across tiers. ``outcomes``: the pairs under a judge.
    """

    scores: dict[str, float | None] = {}
    ranking: tuple[tuple[str, ...], ...] | None = None
    lengths: tuple[int, ...] = ()
    pairs: tuple[tuple[str, str], ...] | None = None
    outcomes: tuple[JudgedPair, ...] = ()


MeasuredItem: Any = msgspec.defstruct(
    "MeasuredItem",
    [(name, float | None, None) for measure in measures().values() for name in measure.column_names],
    bases=(Item,),
    frozen=True,
    kw_only=True,
)
"""An `Item` with the columns of every measure."""


def read_items(folder: Path, kind: type[Item] = Item, *, name: str = "items.jsonl") -> Iterator[Any]:
    """Yield the items of an evaluation's folder, in order. Raises RecordError with file and line for an invalid one."""
    path = folder / name
    decoder = msgspec.json.Decoder(kind)
    for place, line in read_lines(path):
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            do = "evaluate again: the file was changed after the run"
            raise RecordError(f"the line is not an item of an evaluation ({error})", where=place, do=do) from error


def measure_columns(items: Sequence[Any]) -> dict[str, dict[str, Floats]]:
    """Return the columns of each measure that has columns, from `MeasuredItem` values, with NaN for null."""
    return {
        name: {
            column: np.array([getattr(item, column) for item in items], np.float64) for column in measure.column_names
        }
        for name, measure in measures().items()
        if measure.column_names
    }


def item_rows(
    cases: Sequence[Case],
    lines: Sequence[Scores],
    columns: BenchColumns,
    *,
    bench: str,
    rule: ExactRule,
    judged: Judged | None = None,
    bench_columns: tuple[Integers, Integers] | None = None,
    matched_ratio: float = MATCHED_RATIO,
) -> Iterator[JsonObject]:
    """Yield a row for each case of a batch, in order.

    ``exact_match`` is null if the case is not counted; a pair without a score counts as wrong. Columns of measures are
    null where these are undefined. ``lengths`` are code points, in the order of ``scores``. Other columns are present
    only if they apply: ``pairs``, better response first, unless they are all pairs across tiers; ``own``, the columns
    that the bench's headline needs beyond accuracy and exact match; ``unscored``, the pairs without a score or verdict,
    with ``exact_if_right`` and ``own_if_right``, which count all of them as right; and for a judge ``outcomes``,
    the outcome of each pair.
    """
    scores = score_columns(lines)
    values = values_of(columns, scores.score) if judged is None else judged.values
    counts = count_pairs(columns, values)
    has_scores = judged is None or not judged.by_pair
    measured = item_columns(ScoredBench(columns, scores, values, has_scores, judged is None, matched_ratio))
    by_case = None if judged is None else outcomes_by_case(cases, columns, judged)
    exact, exact_if_right = (exact_matches(count_unscored(counts, how), rule).tolist() for how in ("wrong", "right"))
    own_wrong, own_right = (
        (side.tolist() if side.shape[1] else [] for side in bench_columns) if bench_columns is not None else ([], [])
    )
    open_pairs = _named_pairs(cases, columns, np.isnan(values.better - values.worse))
    chosen_pairs = _named_pairs(cases, columns, _is_chosen(cases, counts.num_pairs)[columns.prompt])
    lengths = columns.length.tolist()
    numbers = zip(*(column.tolist() for column in (columns.start, counts.num_pairs, *counts)), strict=True)
    exact = [value if is_in else None for value, is_in in zip(exact, columns.included.tolist(), strict=True)]
    for index, (case, line, (first, pairs, correct, tied, _, unscored)) in enumerate(
        zip(cases, lines, numbers, strict=True)
    ):
        row: JsonObject = {
            "prompt": case.prompt.id,
            "language": case.prompt.language,
            "category": columns.cells[index].category,
            "subset": case.prompt.subset,
            "bench": bench,
            "num_pairs": pairs,
            "num_correct": correct,
            "num_tied": tied,
            "num_unscored": unscored,
            "exact_match": exact[index],
            **{name: column[index] for name, column in measured.items()},
            "scores": line.scores,
            "ranking": case.ranking,
            "lengths": lengths[first : first + len(case.responses)],
        }
        if index in chosen_pairs:
            row["pairs"] = chosen_pairs[index]
        if own_wrong:
            row["own"] = own_wrong[index]
        if index in open_pairs:
            row |= {"unscored": open_pairs[index], "exact_if_right": exact_if_right[index]}
            row |= {"own_if_right": own_right[index]} if own_right else {}
        if by_case is not None:
            row["outcomes"] = by_case[index]
        yield row


def _is_chosen(cases: Sequence[Case], num_pairs: Integers) -> Booleans:
    """Return whether the pairs of each case may be others than all pairs across its tiers; shape (case,)."""
    sizes = [[len(tier) for tier in case.ranking or ()] for case in cases]
    num_across = np.array([(sum(tiers) ** 2 - sum(size**2 for size in tiers)) // 2 for tiers in sizes], np.int64)
    return np.array([case.pairs is not None for case in cases], bool) | (num_across != num_pairs)


def _named_pairs(cases: Sequence[Case], columns: BenchColumns, chosen: Booleans) -> dict[int, list[tuple[str, str]]]:
    """Return the chosen pairs by case, better response first; ``chosen`` has shape (pair,)."""
    pairs: dict[int, list[tuple[str, str]]] = {}
    for place in np.flatnonzero(chosen).tolist():
        case = int(columns.prompt[place])
        first, responses = int(columns.start[case]), cases[case].responses
        better, worse = (responses[int(side[place]) - first].id for side in (columns.better, columns.worse))
        pairs.setdefault(case, []).append((better, worse))
    return pairs


def add_units(path: Path, bench_pairs: BenchPairs) -> None:
    """Add ``unit`` to the rows of prompts whose resampling unit has another name than their id.

    The units are known only after all prompts are read. A file without such prompts is not rewritten.
    """
    names = zip(bench_pairs.units, bench_pairs.columns.names, strict=True)
    units = [None if unit == names_of_prompt[0] else unit for unit, names_of_prompt in names]
    if not any(units):
        return
    with path.open("rb") as rows, atomic_write(path) as file:
        for row, unit in zip(rows, units, strict=True):
            # A row ends with "}" and a line feed: the field is inserted before them without decoding the row.
            file.write(row if unit is None else row[:-2] + b',"unit":' + msgspec.json.encode(unit) + b"}\n")
