"""Leave-one-out rankings: each judge compared with the ranking that the other judges make of the same prompt.

A judge's verdicts shape the ranking of all judgments: under CHEEMS, algorithm 1, without a vote, no strict verdict
contradicts the order of that ranking. Only the verdicts of the others give independent evidence about a judge.
"""

from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Integers
from steelyard.ranking.conflicts import RankedGraphs
from steelyard.ranking.judgment_table import NONE, Aggregate, Edges
from steelyard.ranking.tiers import tiers_of
from steelyard.statistics.agreement import FIRST, NUM_LABELS, SECOND, TIED, oriented, vote
from steelyard.statistics.distinct import distinct_codes

AGREES, UNORDERED, AGAINST, UNDEFINED = range(4)


class _Cells(NamedTuple):
    """The compared pairs: the ``key`` of each, and the votes on it, (cell, 3)."""

    key: Integers
    votes: Integers


class _Rows(NamedTuple):
    """A row for each graph of a judge and each compared pair of its case, without the votes of that judge."""

    graph: Integers
    key: Integers
    votes: Integers


def standing(graphs: RankedGraphs, tiers: Integers) -> Integers:
    """Compare each strict verdict with a ranking of its graph (rows of ``tiers``): agrees, unordered or against.

    Undefined for a verdict that is not strict, and where the graph's row ranks no response.
    """
    verdicts = graphs.verdicts
    better, worse = tiers[verdicts.graph, verdicts.better], tiers[verdicts.graph, verdicts.worse]
    is_ordered = (better >= 0) & (worse >= 0) & (better != worse)
    order = np.select([~is_ordered, better < worse], [UNORDERED, AGREES], AGAINST)
    has_ranking = (tiers.max(axis=1, initial=-1) >= 0)[verdicts.graph]
    return np.where(verdicts.is_strict & has_ranking, order, UNDEFINED)


def tiers_of_others(by_judge: RankedGraphs, num_judges: int, aggregate: Aggregate) -> Integers:
    """Return the tiers of each judge's graph as all other judges of the case make them; -1 where nobody else compared.

    ``by_judge`` has the graphs of all judges of the cases (`compare_with_tiers`). A single judge has no others.
    """
    if num_judges <= 1:
        return np.full_like(by_judge.tiers, -1)
    rows, width = _rows(by_judge, num_judges)
    first, second, tied = (rows.votes[:, label] for label in (FIRST, SECOND, TIED))
    if aggregate == "majority":
        voted, any_vote = vote(rows.votes), rows.votes.any(axis=1)
        down, up = any_vote & (voted != SECOND), any_vote & (voted != FIRST)
    else:
        down, up = first + tied > 0, second + tied > 0
    low, high = rows.key // width % width, rows.key % width
    edges = Edges(
        np.concatenate([rows.graph[down], rows.graph[up]]),
        np.concatenate([low[down], high[up]]),
        np.concatenate([high[down], low[up]]),
    )
    return tiers_of(edges, by_judge.num_responses)


def _rows(by_judge: RankedGraphs, num_judges: int) -> tuple[_Rows, int]:
    """Return the rows and the width in key = (case x width + lower position) x width + higher position."""
    verdicts = by_judge.verdicts.where(by_judge.verdicts.verdict != NONE)
    width = max(1, int(by_judge.num_responses.max(initial=1)))
    case_of = by_judge.owner // num_judges
    low, high = np.minimum(verdicts.left, verdicts.right), np.maximum(verdicts.left, verdicts.right)
    key = (case_of[verdicts.graph] * width + low) * width + high
    label = oriented(verdicts.left, verdicts.right, verdicts.verdict)
    num_cases = int(case_of.max(initial=-1)) + 1
    keys, cell = distinct_codes(key, num_cases * width**2)
    cells = _Cells(keys, _count(cell, label, len(keys)))
    num_cells = np.bincount(keys // width**2, minlength=num_cases)
    first_cell = np.cumsum(num_cells) - num_cells
    num_rows = num_cells[case_of]
    start = np.cumsum(num_rows) - num_rows - first_cell[case_of]  # row = start of the graph + cell
    graph = np.repeat(np.arange(len(case_of)), num_rows)
    cell_of_row = np.arange(len(graph)) - start[graph]
    of_judge = _count(start[verdicts.graph] + cell, label, len(graph))
    return _Rows(graph, cells.key[cell_of_row], cells.votes[cell_of_row] - of_judge), width


def _count(place: Integers, label: Integers, size: int) -> Integers:
    return np.bincount(place * NUM_LABELS + label, minlength=size * NUM_LABELS).reshape(size, NUM_LABELS)
