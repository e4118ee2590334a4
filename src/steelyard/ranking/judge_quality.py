"""Judge quality as counts: the entries that a batch of cases adds to the tables behind the measures.

A judge's verdicts are compared with the ranking of all judgments, and with that of the other judges (leave-one-out):
the judge's own verdicts shape the ranking of all judgments. Under CHEEMS, algorithm 1, without a vote, no strict
verdict contradicts the order of that ranking. Only the verdicts of the others are independent evidence about a judge.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Integers
from steelyard.ranking.annotation_features import (
    NUM_LENGTH,
    NUM_POSITION,
    UNKNOWN,
    Traits,
    length_columns,
    position_columns,
)
from steelyard.ranking.conflicts import ConflictGraphs, RankedGraphs
from steelyard.ranking.judgment_table import NONE, TIE, Aggregate, Edges, JudgmentTable
from steelyard.ranking.tiers import tiers_of
from steelyard.statistics.agreement import (
    FIRST,
    NUM_CELLS,
    NUM_LABELS,
    SECOND,
    TIED,
    Labels,
    coincidences,
    count_labels,
    orient_labels,
    pair_raters,
    unique_labels,
    vote,
)
from steelyard.statistics.unique_rows import unique_codes
from steelyard.statistics.unit_bootstrap import Entries, Group, column_slices

AGREES, UNORDERED, AGAINST, UNDEFINED = range(4)
UNREAD, UNDECIDED, KEPT, CONFLICTING = range(4)
RATER = column_slices(conflict=4, ranking=3, others=3, length=NUM_LENGTH, position=NUM_POSITION)
"""The columns of each measure of a rater."""
RATER_WIDTH = RATER["position"].stop
GRAPH_WIDTH, AUTHOR_WIDTH = 4, NUM_LABELS


def compare_with_ranking(graphs: RankedGraphs, tiers: Integers) -> Integers:
    """Compare each strict verdict with a ranking of its graph (rows of ``tiers``): agrees, unordered or against.

    Undefined for a verdict that is not strict, and where the graph's row ranks no response.
    """
    verdicts = graphs.verdicts
    better, worse = tiers[verdicts.graph, verdicts.better], tiers[verdicts.graph, verdicts.worse]
    is_ordered = (better >= 0) & (worse >= 0) & (better != worse)
    order = np.select([~is_ordered, better < worse], [UNORDERED, AGREES], AGAINST)
    # A judge without colleagues on a case has no ranking of others there: that is no disagreement.
    has_ranking = (tiers.max(axis=1, initial=-1) >= 0)[verdicts.graph]
    return np.where(verdicts.is_strict & has_ranking, order, UNDEFINED)


def tiers_of_others(by_judge: RankedGraphs, num_judges: int, aggregate: Aggregate) -> Integers:
    """Return the tiers of each judge's graph as all other judges of the case make them; -1 where nobody else compared.

    ``by_judge`` has the graphs of all judges of the cases (`compare_with_tiers`). A single judge has no others.
    """
    if num_judges <= 1:
        return np.full_like(by_judge.tiers, -1)
    graph, low, high, votes = _votes_of_others(by_judge, num_judges)
    first, second, tied = (votes[:, label] for label in (FIRST, SECOND, TIED))
    if aggregate == "majority":
        voted, any_vote = vote(votes), votes.any(axis=1)
        down, up = any_vote & (voted != SECOND), any_vote & (voted != FIRST)
    else:
        # Every judgment is an edge: a tie in both directions.
        down, up = first + tied > 0, second + tied > 0
    edges = Edges(
        np.concatenate([graph[down], graph[up]]),
        np.concatenate([low[down], high[up]]),
        np.concatenate([high[down], low[up]]),
    )
    return tiers_of(edges, by_judge.num_responses)


def _votes_of_others(by_judge: RankedGraphs, num_judges: int) -> tuple[Integers, Integers, Integers, Integers]:
    """Count the votes of a case's pairs without each judge: all votes minus those of the judge.

    Each row is a graph of a judge and a compared pair of its case: the graph, both responses, the votes by label.

    Subtraction makes leave-one-out linear in the judgments; recounting would be quadratic in the judges.
    """
    verdicts = by_judge.verdicts.where(by_judge.verdicts.verdict != NONE)
    width = max(1, int(by_judge.num_responses.max(initial=1)))
    case_of = by_judge.owner // num_judges
    key = verdicts._replace(graph=case_of[verdicts.graph]).pair_keys(width)
    label = orient_labels(verdicts.left, verdicts.right, verdicts.verdict)
    num_cases = int(case_of.max(initial=-1)) + 1
    keys, cell = unique_codes(key, num_cases * width**2)
    votes = count_labels(cell, label, len(keys))
    num_cells = np.bincount(keys // width**2, minlength=num_cases)
    first_cell = np.cumsum(num_cells) - num_cells
    num_rows = num_cells[case_of]
    start = np.cumsum(num_rows) - num_rows - first_cell[case_of]  # row = start of the graph + cell
    graph = np.repeat(np.arange(len(case_of)), num_rows)
    cell_of_row = np.arange(len(graph)) - start[graph]
    of_judge = count_labels(start[verdicts.graph] + cell, label, len(graph))
    pair = keys[cell_of_row]
    return graph, pair // width % width, pair % width, votes[cell_of_row] - of_judge


class JudgeQualityCounts(NamedTuple):
    """The entries of one batch for four tables. Their units are the positions of the cases in the batch.

    ``raters``: groups ("judge", judge, kind). ``graphs``: ("kind", kind) and ("place", category, language).
    ``agreement``: confusions of ("judges", one, other) and ("kinds", one, other), and the coincidences of all judges,
    ("alpha",), and of those of one kind, ("alpha", kind). ``authors``: verdicts between ("authors", one, other).
    """

    raters: Entries
    graphs: Entries
    agreement: Entries
    authors: Entries


class _EntryPart(NamedTuple):
    """Entries of one group of measures: for each a unit, a position in ``groups``, and a column within the group."""

    groups: Sequence[Group]
    unit: Integers
    group: Integers
    column: Integers
    amount: np.ndarray | None = None


def judge_quality_counts(
    table: JudgmentTable, graphs: ConflictGraphs, traits: Traits, aggregate: Aggregate
) -> JudgeQualityCounts:
    """Return what the batch adds to each table; ``graphs`` and ``traits`` belong to the same judgments."""
    return JudgeQualityCounts(
        _raters(table, graphs, traits, aggregate), _graphs(table, graphs), _agreement(table), _authors(table, traits)
    )


def conflict_states(graphs: RankedGraphs) -> Integers:
    """Return whether each judgment is unread, a tie, kept by its graph's ranking, or in conflict with it."""
    verdict = graphs.verdicts.verdict
    strict = np.where(graphs.is_kept, KEPT, CONFLICTING)
    return np.where(verdict == NONE, UNREAD, np.where(verdict == TIE, UNDECIDED, strict))


def _raters(table: JudgmentTable, graphs: ConflictGraphs, traits: Traits, aggregate: Aggregate) -> Entries:
    num_kinds = max(1, len(table.kinds))
    code = table.judge * num_kinds + table.kind
    codes, rater = unique_codes(code, len(table.judges) * num_kinds)
    groups = [("judge", table.judges[code // num_kinds], table.kinds[code % num_kinds]) for code in codes.tolist()]
    others = tiers_of_others(graphs.by_judge, len(table.judges), aggregate)
    columns = [
        RATER["conflict"].start + conflict_states(graphs.by_judge),
        _offset(compare_with_ranking(graphs.full, graphs.full.tiers), RATER["ranking"].start),
        _offset(compare_with_ranking(graphs.by_judge, others), RATER["others"].start),
        _length(table, traits),
        _position(table, traits),
    ]
    column = np.concatenate(columns)
    known = column >= 0
    part = _EntryPart(groups, np.tile(table.verdicts.graph, 5)[known], np.tile(rater, 5)[known], column[known])
    return _concatenate([part], RATER_WIDTH)


def _offset(state: Integers, start: int) -> Integers:
    """Return the columns of states, counted from ``start``; `UNKNOWN` columns are left out of the table."""
    return np.where(state == UNDEFINED, UNKNOWN, start + state)


def _length(table: JudgmentTable, traits: Traits) -> Integers:
    verdicts = table.verdicts
    first = table.first_response[verdicts.graph]
    column = length_columns(traits.length[first + verdicts.better], traits.length[first + verdicts.worse])
    return np.where(verdicts.is_strict, RATER["length"].start + column, UNKNOWN)


def _position(table: JudgmentTable, traits: Traits) -> Integers:
    verdicts = table.verdicts
    known = verdicts.is_strict & (traits.num_shown > 0)
    is_left = verdicts.verdict == 0
    better = np.where(is_left, traits.left_place, traits.right_place)
    worse = np.where(is_left, traits.right_place, traits.left_place)
    column = position_columns(np.where(known, better, 0), np.where(known, worse, 0), traits.num_shown)
    return np.where(known, RATER["position"].start + column, UNKNOWN)


def _graphs(table: JudgmentTable, graphs: ConflictGraphs) -> Entries:
    unit = table.verdicts.graph
    places = [("place", case.category, case.language) for case in table.cases]
    names = tuple(sorted(set(places)))
    code = {name: index for index, name in enumerate(names)}
    place = np.array([code[name] for name in places], np.int64)[unit]
    kinds = [("kind", kind) for kind in table.kinds]
    parts = [
        _EntryPart(kinds, unit, table.kind, conflict_states(graphs.by_kind)),
        _EntryPart(names, unit, place, conflict_states(graphs.full)),
    ]
    return _concatenate(parts, GRAPH_WIDTH)


class RepeatedJudgments(NamedTuple):
    """The readable judgments of pairs that have more than one: ``at`` are their positions in the table.

    ``item`` is the number of each one's pair, ``label`` its verdict in the pair's direction, and ``case`` (item,) the
    case of each pair.
    """

    at: Integers
    item: Integers
    label: Integers
    case: Integers


def repeated_judgments(table: JudgmentTable) -> RepeatedJudgments:
    """Return the judgments that can agree with another one: only these carry information on agreement."""
    verdicts = table.verdicts
    width = max(1, int(table.num_responses.max(initial=1)))
    items, item = unique_codes(verdicts.pair_keys(width), len(table.cases) * width**2)
    is_read = verdicts.verdict != NONE
    again = is_read & (np.bincount(item[is_read], minlength=len(items)) > 1)[item]
    label = orient_labels(verdicts.left, verdicts.right, verdicts.verdict)
    return RepeatedJudgments(np.flatnonzero(again), item[again], label[again], items // width**2)


def _agreement(table: JudgmentTable) -> Entries:
    again, item, label, unit = repeated_judgments(table)
    judge, kind = table.judge[again], table.kind[again]
    by_judge = unique_labels(item, judge, label)
    everyone = _coincidences(("alpha",), by_judge, unit)
    parts = [_confusions("judges", table.judges, by_judge, unit), everyone]
    if len(table.kinds) > 1:
        parts.append(_confusions("kinds", table.kinds, unique_labels(item, kind, label), unit))
    for index, name in enumerate(table.kinds):
        of_kind = kind == index
        if of_kind.all():  # the same numbers under the kind's name
            parts.append(everyone._replace(groups=tuple(("alpha", name) for _ in everyone.groups)))
        else:
            parts.append(
                _coincidences(("alpha", name), unique_labels(item[of_kind], judge[of_kind], label[of_kind]), unit)
            )
    return _concatenate(parts, NUM_CELLS)


def _confusions(word: str, names: tuple[str, ...], labels: Labels, unit: Integers) -> _EntryPart:
    both = pair_raters(labels)
    codes, group = unique_codes(both.first * len(names) + both.second, len(names) ** 2)
    groups = [(word, names[code // len(names)], names[code % len(names)]) for code in codes.tolist()]
    return _EntryPart(groups, unit[both.item], group, both.cell)


def _coincidences(group: Group, labels: Labels, unit: Integers) -> _EntryPart:
    units, place = unique_codes(unit, int(unit.max(initial=-1)) + 1)
    sums = coincidences(labels, place[labels.item], len(units))
    row, column = np.nonzero(sums)
    return _EntryPart((group,) if len(row) else (), units[row], np.zeros(len(row), np.int64), column, sums[row, column])


def _authors(table: JudgmentTable, traits: Traits) -> Entries:
    verdicts, names = table.verdicts, traits.authors
    first = table.first_response[verdicts.graph]
    left, right = (traits.author[first + side] for side in (verdicts.left, verdicts.right))
    known = (verdicts.verdict != NONE) & (left >= 0) & (right >= 0) & (left != right)
    left, right, verdict = left[known], right[known], verdicts.verdict[known]
    code = np.minimum(left, right) * len(names) + np.maximum(left, right)
    codes, group = unique_codes(code, len(names) ** 2)
    groups = [("authors", names[code // len(names)], names[code % len(names)]) for code in codes.tolist()]
    part = _EntryPart(groups, verdicts.graph[known], group, orient_labels(left, right, verdict))
    return _concatenate([part], AUTHOR_WIDTH)


def _concatenate(parts: Sequence[_EntryPart], width: int) -> Entries:
    """Concatenate the parts to one table's entries, in narrow types: they are sent to another process."""
    start = np.cumsum([0, *(len(part.groups) for part in parts)])
    column = [(first + part.group) * width + part.column for first, part in zip(start[:-1], parts, strict=True)]
    has_amounts = any(part.amount is not None for part in parts)
    amounts = [np.ones(len(part.unit)) if part.amount is None else part.amount for part in parts]
    return Entries(
        tuple(group for part in parts for group in part.groups),
        np.concatenate([part.unit for part in parts]).astype(np.int32),
        np.concatenate(column).astype(np.int32),
        np.concatenate(amounts) if has_amounts else None,
    )
