"""Each judge against everyone else: the ranking that the other judges' verdicts make of the same prompt.

A judge's own verdicts shape the ranking that it helped to make: under CHEEMS, algorithm 1, without a vote no strict
verdict that the ranking orders can be against it. Only what others said of the prompt can speak for or against a judge.
"""

from typing import NamedTuple

import numpy as np

from steelyard.methods.measures.agreement import FIRST, NUM_LABELS, SECOND, TIED, distinct, oriented, vote
from steelyard.methods.ranking.conflicts import Graphs
from steelyard.methods.ranking.graph import NONE, Aggregate, Edges, Integers
from steelyard.methods.ranking.tiers import tiers_of

AGREES, UNORDERED, AGAINST, SAYS_NOTHING = range(4)


class _Cells(NamedTuple):
    """The compared pairs: the ``key`` of each one, and the votes on it, ``[cell, 3]``."""

    key: Integers
    votes: Integers


class _Rows(NamedTuple):
    """One row for each graph of a judge and each compared pair of its case, without the judge's own votes."""

    graph: Integers
    key: Integers
    votes: Integers


def standing(graphs: Graphs, tiers: Integers) -> Integers:
    """Where each strict verdict stands in a ranking of its graph (rows of ``tiers``): agrees, unordered or against.

    It says nothing if it is not strict, or if the graph's row ranks no response at all.
    """
    verdicts = graphs.verdicts
    better, worse = tiers[verdicts.graph, verdicts.better], tiers[verdicts.graph, verdicts.worse]
    is_ordered = (better >= 0) & (worse >= 0) & (better != worse)
    found = np.select([~is_ordered, better < worse], [UNORDERED, AGREES], AGAINST)
    has_ranking = (tiers.max(axis=1, initial=-1) >= 0)[verdicts.graph]
    return np.where(verdicts.is_strict & has_ranking, found, SAYS_NOTHING)


def tiers_of_others(by_judge: Graphs, num_judges: int, aggregate: Aggregate) -> Integers:
    """The tiers of each judge's graph as all other judges of the case make them; -1 where nobody else compared.

    ``by_judge`` has the graphs of all judges of the cases (`held_against`); with one judge there are no others.
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


def _rows(by_judge: Graphs, num_judges: int) -> tuple[_Rows, int]:
    """The rows, and the number by which keys count: key = (case x width + lower position) x width + higher position."""
    verdicts = by_judge.verdicts.where(by_judge.verdicts.verdict != NONE)
    width = max(1, int(by_judge.num_responses.max(initial=1)))
    case_of = by_judge.owner // num_judges
    low, high = np.minimum(verdicts.left, verdicts.right), np.maximum(verdicts.left, verdicts.right)
    key = (case_of[verdicts.graph] * width + low) * width + high
    label = oriented(verdicts.left, verdicts.right, verdicts.verdict)
    num_cases = int(case_of.max(initial=-1)) + 1
    keys, cell = distinct(key, num_cases * width**2)
    cells = _Cells(keys, _counted(cell, label, len(keys)))
    num_cells = np.bincount(keys // width**2, minlength=num_cases)
    first_cell = np.cumsum(num_cells) - num_cells
    num_rows = num_cells[case_of]
    start = np.cumsum(num_rows) - num_rows - first_cell[case_of]  # row = start of the graph + cell
    graph = np.repeat(np.arange(len(case_of)), num_rows)
    cell_of_row = np.arange(len(graph)) - start[graph]
    own = _counted(start[verdicts.graph] + cell, label, len(graph))
    return _Rows(graph, cells.key[cell_of_row], cells.votes[cell_of_row] - own), width


def _counted(place: Integers, label: Integers, size: int) -> Integers:
    return np.bincount(place * NUM_LABELS + label, minlength=size * NUM_LABELS).reshape(size, NUM_LABELS)
