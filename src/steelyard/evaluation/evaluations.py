"""Reading evaluations that are to stand side by side, and refusing those that were asked different things."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from steelyard.core.errors import EvidenceError, FileError
from steelyard.core.numerics import Integers
from steelyard.core.plugins import build
from steelyard.core.types import Run
from steelyard.evaluation.items import Item, MeasuredItem, measure_columns, read_items
from steelyard.evaluation.measure import measures
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.io.run_folder import read_run
from steelyard.statistics.aggregation import Headline, mean_accuracy
from steelyard.statistics.bootstrap import Items, Totals, resample
from steelyard.statistics.groups import Cell, Label, Layout, layout_of
from steelyard.statistics.pair_counts import UnscoredPairs
from steelyard.statistics.prompt_means import Ratio

ASKED = ("bench_kind", "bench", "pairs", "metric_compat", "matched_ratio")
"""The settings that must be equal for two numbers to mean the same."""


class Evaluated(NamedTuple):
    """One evaluation: its name here, its folder, its record, its statistics, and other measures.

    ``statistics`` has shape (prompt, 4 + the bench's own columns); pairs that are ``unscored`` are wrong in it.
    """

    name: str
    folder: Path
    run: Run[EvaluationSummary]
    statistics: Integers
    measures: dict[str, Ratio]
    unscored: UnscoredPairs = UnscoredPairs()


class EvaluationSet(NamedTuple):
    """Evaluations of the same prompts in the same order, what these count for, and how they are laid out.

    ``left_out`` counts, by cell, the prompts without a comparable pair.
    """

    evaluated: tuple[Evaluated, ...]
    labels: tuple[Label, ...]
    layout: Layout
    left_out: dict[Cell, int]


def read_evaluations(folders: Sequence[Path]) -> EvaluationSet:
    """The evaluations in these folders. Raises FileError for another run, EvidenceError for what does not compare."""
    runs = [_evaluation(folder) for folder in folders]
    for index in range(1, len(folders)):
        _check_alike(folders, runs, index)
    return join_evaluations(folders, runs)


def join_evaluations(folders: Sequence[Path], runs: Sequence[Run[EvaluationSummary]]) -> EvaluationSet:
    """As `read_evaluations`, of records that are read already and are known to be alike."""
    names = model_names(folders, runs)
    items = [list(read_items(folder, MeasuredItem)) for folder in folders]
    for index in range(1, len(folders)):
        _check_same(folders, items, index)
    statistics = [_statistics(folder_items) for folder_items in items]
    measures = [_measures(folder_items) for folder_items in items]
    unscored = [_unscored(folder_items) for folder_items in items]
    each = zip(names, folders, runs, statistics, measures, unscored, strict=True)
    evaluated = tuple(Evaluated(*values) for values in each)
    # A prompt without a comparable pair is not counted; its exact match is null.
    counted = [item for item in items[0] if item.exact_match is not None]
    labels = tuple(Label(item.unit or item.prompt, item.cell) for item in counted)
    left_out = Counter(item.cell for item in items[0] if item.exact_match is None)
    return EvaluationSet(evaluated, labels, layout_of(labels), dict(left_out))


def read_evaluation(folder: Path) -> Run[EvaluationSummary]:
    """The record of an evaluation. Raises FileError for a folder without a finished run, or with another stage's."""
    stage = read_run(folder).stage
    if stage != "evaluate":
        raise FileError(f"a run of {stage}", where=str(folder), allowed="the --out folder of `steelyard evaluate`")
    return read_run(folder, Run[EvaluationSummary])


def bench_of(run: Run[Any], folder: Path) -> Any:
    """The benchmark of an evaluation's record. Raises FileError for a record that names none, KindError for another."""
    kind, settings = run.config.get("bench_kind"), run.config.get("bench")
    if not isinstance(kind, str) or not isinstance(settings, dict):
        raise FileError("the record of this evaluation names no benchmark", where=str(folder), do="evaluate again")
    return build("benches", kind, settings)


def has_headline(run: Run[EvaluationSummary]) -> bool:
    """Whether the evaluation has a value: with most pairs unscored it has bounds alone."""
    return run.summary.accuracy.value is not None


def _evaluation(folder: Path) -> Run[EvaluationSummary]:
    run = read_evaluation(folder)
    if not has_headline(run):
        raise EvidenceError(
            "most pairs have no score or verdict here, so there is no headline to compare",
            where=str(folder),
            do="leave this folder out, or evaluate again with a longer limit: steelyard evaluate … --max-length N",
        )
    return run


def model_names(folders: Sequence[Path], runs: Sequence[Run[EvaluationSummary]]) -> list[str]:
    """What each evaluation is called: its model, and its folder where two have one model."""
    names = [run.summary.model for run in runs]
    return [
        name if names.count(name) == 1 else f"{name} ({folder})" for name, folder in zip(names, folders, strict=True)
    ]


def _statistics(items: Sequence[Item]) -> Integers:
    counted = [item for item in items if item.exact_match is not None]
    rows = [(item.num_pairs, item.num_correct, 1, item.exact_match, *item.bench_columns) for item in counted]
    return np.array(rows, dtype=np.int64).reshape(len(rows), 4 + (len(counted[0].bench_columns) if counted else 0))


def _unscored(items: Sequence[Item]) -> UnscoredPairs:
    counted = [item for item in items if item.exact_match is not None]
    rows = {row: item for row, item in enumerate(counted) if item.unscored}
    return UnscoredPairs(
        {row: frozenset(item.unscored) for row, item in rows.items()},
        {row: (item.exact_if_right, *item.own_if_right) for row, item in rows.items()},
    )


def _measures(items: Sequence[Item]) -> dict[str, Ratio]:
    """The ratios by which the counted prompts are compared beside accuracy and exact match, of every measure."""
    columns = measure_columns([item for item in items if item.exact_match is not None])
    ratios: dict[str, Ratio] = {}
    for name, values in columns.items():
        ratios |= measures()[name].paired(values)
    return ratios


def _check_alike(folders: Sequence[Path], runs: Sequence[Run[EvaluationSummary]], index: int) -> None:
    first, other = ({key: run.config.get(key) for key in ASKED} for run in (runs[0], runs[index]))
    differing = [key for key in ASKED if first[key] != other[key]]
    if differing:
        raise EvidenceError(
            f"evaluated by another {differing[0]}: {_json(other[differing[0]])}, and {_json(first[differing[0]])} "
            f"in {folders[0]}",
            where=str(folders[index]),
            do="evaluate both alike; numbers of unlike protocols do not compare",
        )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _check_same(folders: Sequence[Path], items: Sequence[Sequence[Item]], index: int) -> None:
    first, other = (
        [(item.prompt, item.language, item.num_pairs) for item in side] for side in (items[0], items[index])
    )
    if first == other:
        return
    absent = sorted({key[0] for key in first} ^ {key[0] for key in other})
    what = f"prompt {absent[0]!r} is in one of them alone" if absent else "its pairs, or their order, differ"
    raise EvidenceError(
        f"not the same prompts as in {folders[0]}: {what}", where=str(folders[index]), do="evaluate both on one file"
    )


def headline_of(evaluations: EvaluationSet) -> Headline:
    """The headline by which these evaluations are ranked, or what keeps it away: they hold the same prompts."""
    first = evaluations.evaluated[0]
    return bench_of(first.run, first.folder).headline(_totals(evaluations), evaluations.left_out)


def ranking_of(evaluations: EvaluationSet) -> Headline:
    """The headline; of a part of a bench, which has none, accuracy on that part, with what is ``missing``."""
    headline = headline_of(evaluations)
    return mean_accuracy(_totals(evaluations))._replace(missing=headline.missing) if headline.missing else headline


def _totals(evaluations: EvaluationSet) -> Totals:
    return resample(Items(evaluations.layout, evaluations.evaluated[0].statistics, num_resamples=0), seed=0)
