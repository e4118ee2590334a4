"""The per-item results: a line a case, so that every number of the summary can be traced and formed again."""

from collections.abc import Iterator, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from steelyard.core.arrays import Integers
from steelyard.core.types import Case, Scores
from steelyard.evaluation.columns import BenchColumns, score_columns
from steelyard.evaluation.measures.first_choice import choices_of, outcomes_of
from steelyard.evaluation.measures.length import MATCHED_RATIO, Outcomes
from steelyard.evaluation.pair_verdicts import Judged, outcomes_by_case
from steelyard.evaluation.questions import PairValues, Questions, answers, values_of
from steelyard.io.atomic import atomic_write
from steelyard.statistics.pair_counts import ExactRule, count_unscored, exact_matches


def item_rows(
    cases: Sequence[Case],
    lines: Sequence[Scores],
    columns: BenchColumns,
    *,
    bench: str,
    rule: ExactRule,
    judged: Judged | None = None,
    own: tuple[Integers, Integers] | None = None,
    matched_ratio: float = MATCHED_RATIO,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each case of a batch, in order.

    ``exact_match`` is null where it is not counted; a pair without a score counts as wrong. ``kendall_tau``, ``top_1``
    and ``regret`` (in tiers, of all ranked responses) are null where they are not defined; ``num_matched`` counts pairs
    of like length. Other columns stand only where they say something: ``own``, what the bench's headline needs beyond
    accuracy and exact match; ``unscored``, the pairs without a score or verdict, better response first, with
    ``exact_if_right`` and ``own_if_right``, the same columns if all of them were right; and of a model that was asked
    ``outcomes``, what became of each pair, by its responses.
    """
    score = score_columns(lines).score
    values = values_of(columns, score) if judged is None else judged.values
    counts = answers(columns, values)
    outcomes = outcomes_of(columns, values, matched_ratio)
    measured = _measured(columns, score, outcomes, has_scores=judged is None or not judged.by_pair)
    by_case = None if judged is None else outcomes_by_case(cases, columns, judged)
    exact, exact_if_right = (exact_matches(count_unscored(counts, how), rule).tolist() for how in ("wrong", "right"))
    own_wrong, own_right = (one.tolist() if one.shape[1] else [] for one in own) if own is not None else ([], [])
    open_pairs = _open_pairs(cases, columns, values)
    numbers = zip(*(own.tolist() for own in (counts.num_pairs, *counts)), strict=True)
    measures = zip(*measured.values(), strict=True)
    exact = [value if is_in else None for value, is_in in zip(exact, columns.included.tolist(), strict=True)]
    for index, (case, line, (pairs, correct, tied, _, unscored), (tau, top, lost, matched, right)) in enumerate(
        zip(cases, lines, numbers, measures, strict=True)
    ):
        row = {
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
            "kendall_tau": tau,
            "top_1": top,
            "regret": lost,
            "num_matched": matched,
            "num_matched_correct": right,
            "scores": line.scores,
            "ranking": case.ranking,
        }
        if own_wrong:
            row["own"] = own_wrong[index]
        if index in open_pairs:
            row |= {"unscored": open_pairs[index], "exact_if_right": exact_if_right[index]}
            row |= {"own_if_right": own_right[index]} if own_right else {}
        if by_case is not None:
            row["outcomes"] = by_case[index]
        yield row


def _open_pairs(cases: Sequence[Case], columns: BenchColumns, values: PairValues) -> dict[int, list[tuple[str, str]]]:
    """Return the pairs without a score or verdict by case, better response first."""
    found: dict[int, list[tuple[str, str]]] = {}
    for place in np.flatnonzero(np.isnan(values.better - values.worse)).tolist():
        case = int(columns.prompt[place])
        first, responses = int(columns.start[case]), cases[case].responses
        better, worse = (responses[int(side[place]) - first].id for side in (columns.better, columns.worse))
        found.setdefault(case, []).append((better, worse))
    return found


def add_units(path: Path, questions: Questions) -> None:
    """Write ``unit`` into the rows of prompts that are resampled under another name than their id.

    Which prompts share a name is known only when all have been read. A file in which none does is left as it is.
    """
    names = zip(questions.units, questions.columns.names, strict=True)
    units = [None if unit == own[0] else unit for unit, own in names]
    if not any(units):
        return
    with path.open("rb") as rows, atomic_write(path) as file:
        for row, unit in zip(rows, units, strict=True):
            file.write(row if unit is None else row[:-2] + b',"unit":' + msgspec.json.encode(unit) + b"}\n")


def _measured(columns: BenchColumns, score: Any, outcomes: Outcomes, *, has_scores: bool) -> dict[str, list[Any]]:
    """Return what the measures other than accuracy say of each case."""
    num_cases = len(columns.start)
    measured: dict[str, list[Any]] = {name: [None] * num_cases for name in ("kendall_tau", "top_1", "regret")}
    if has_scores:
        choices = choices_of(columns, score)
        values = (choices.correlations.tau, choices.first.half, choices.lost_of_all)
        measured = {name: _or_null(own.tolist()) for name, own in zip(measured, values, strict=True)}
    matched, right = outcomes.is_matched, outcomes.is_matched & outcomes.is_right
    for name, chosen in (("num_matched", matched), ("num_matched_correct", right)):
        measured[name] = np.bincount(outcomes.prompt[chosen], minlength=num_cases).tolist()
    return measured


def _or_null(values: Sequence[float]) -> list[float | None]:
    return [None if isnan(value) else value for value in values]
