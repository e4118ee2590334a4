"""The quality of judges as entries of tallies: what each batch of cases adds to the sums behind the measures."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steelyard.methods.measures.agreement import (
    NUM_CELLS,
    NUM_LABELS,
    Labels,
    coincidences,
    compared,
    distinct,
    labels_of,
    oriented,
)
from steelyard.methods.measures.bias import NUM_LENGTH, NUM_POSITION, length_columns, position_columns
from steelyard.methods.measures.tallies import Entries, Group
from steelyard.methods.ranking.conflicts import Graphs, Held
from steelyard.methods.ranking.evidence import Evidence
from steelyard.methods.ranking.graph import NONE, TIE, Aggregate, Integers
from steelyard.methods.ranking.others import SAYS_NOTHING, standing, tiers_of_others
from steelyard.methods.ranking.traits import UNKNOWN, Traits

UNREAD, TIED, KEPT, CONFLICTING = range(4)
CONFLICT, RANKING, OTHERS, LENGTH, POSITION = 0, 4, 7, 10, 10 + NUM_LENGTH
RATER_WIDTH = POSITION + NUM_POSITION
"""Where the columns of each measure of a rater begin, and how many there are in all."""
GRAPH_WIDTH, AUTHOR_WIDTH = 4, NUM_LABELS


class Quality(NamedTuple):
    """The entries of one batch for four tables.

    ``raters``: groups ("judge", judge, kind). ``graphs``: ("kind", kind) and ("place", category, language).
    ``agreement``: confusions of ("judges", one, other) and ("kinds", one, other), and the coincidences of all judges,
    ("alpha",), and of those of one kind, ("alpha", kind). ``authors``: verdicts between ("authors", one, other).
    """

    raters: Entries
    graphs: Entries
    agreement: Entries
    authors: Entries


class _Part(NamedTuple):
    """Entries before they are joined: a position in the names that it is given with, and a column, for each."""

    groups: Sequence[Group]
    unit: Integers
    group: Integers
    column: Integers
    amount: np.ndarray | None = None


def quality_of(evidence: Evidence, held: Held, traits: Traits, aggregate: Aggregate) -> Quality:
    """What the batch adds to each table; ``held`` and ``traits`` are of the same evidence."""
    unit = traits.unit[evidence.verdicts.graph]
    return Quality(
        _raters(evidence, held, traits, unit, aggregate=aggregate),
        _graphs(evidence, held, unit),
        _agreement(evidence, traits),
        _authors(evidence, traits, unit),
    )


def conflict_states(graphs: Graphs) -> Integers:
    """Whether each judgment is unread, a tie, kept by its graph's ranking, or in conflict with it."""
    verdict = graphs.verdicts.verdict
    strict = np.where(graphs.is_kept, KEPT, CONFLICTING)
    return np.where(verdict == NONE, UNREAD, np.where(verdict == TIE, TIED, strict))


def _raters(evidence: Evidence, held: Held, traits: Traits, unit: Integers, *, aggregate: Aggregate) -> Entries:
    num_kinds = max(1, len(evidence.kinds))
    code = evidence.judge * num_kinds + evidence.kind
    found, rater = distinct(code, len(evidence.judges) * num_kinds)
    groups = [("judge", evidence.judges[one // num_kinds], evidence.kinds[one % num_kinds]) for one in found.tolist()]
    columns = [
        CONFLICT + conflict_states(held.by_judge),
        _offset(standing(held.full, held.full.tiers), RANKING),
        _offset(_standing_among_others(evidence, held, aggregate), OTHERS),
        _length(evidence, traits),
        _position(evidence, traits),
    ]
    column = np.concatenate(columns)
    known = column >= 0
    part = _Part(groups, np.tile(unit, 5)[known], np.tile(rater, 5)[known], column[known])
    return _joined([part], RATER_WIDTH)


def _standing_among_others(evidence: Evidence, held: Held, aggregate: Aggregate) -> Integers:
    others = tiers_of_others(held.by_judge, len(evidence.judges), aggregate)
    return standing(held.by_judge, others)


def _offset(state: Integers, start: int) -> Integers:
    return np.where(state == SAYS_NOTHING, UNKNOWN, start + state)


def _length(evidence: Evidence, traits: Traits) -> Integers:
    verdicts = evidence.verdicts
    start = np.cumsum(evidence.num_responses) - evidence.num_responses
    own = start[verdicts.graph]
    column = length_columns(traits.length[own + verdicts.better], traits.length[own + verdicts.worse])
    return np.where(verdicts.is_strict, LENGTH + column, UNKNOWN)


def _position(evidence: Evidence, traits: Traits) -> Integers:
    verdicts = evidence.verdicts
    known = verdicts.is_strict & (traits.num_shown > 0)
    is_left = verdicts.verdict == 0
    better = np.where(is_left, traits.left_place, traits.right_place)
    worse = np.where(is_left, traits.right_place, traits.left_place)
    column = position_columns(np.where(known, better, 0), np.where(known, worse, 0), traits.num_shown)
    return np.where(known, POSITION + column, UNKNOWN)


def _graphs(evidence: Evidence, held: Held, unit: Integers) -> Entries:
    places = [("place", case.category, case.language) for case in evidence.cases]
    names = tuple(sorted(set(places)))
    code = {name: index for index, name in enumerate(names)}
    place = np.array([code[name] for name in places], np.int64)[evidence.verdicts.graph]
    kinds = [("kind", kind) for kind in evidence.kinds]
    parts = [
        _Part(kinds, unit, evidence.kind, conflict_states(held.by_kind)),
        _Part(names, unit, place, conflict_states(held.full)),
    ]
    return _joined(parts, GRAPH_WIDTH)


def _agreement(evidence: Evidence, traits: Traits) -> Entries:
    """Only pairs with more than one readable judgment can say anything."""
    verdicts = evidence.verdicts
    width = max(1, int(evidence.num_responses.max(initial=1)))
    low, high = np.minimum(verdicts.left, verdicts.right), np.maximum(verdicts.left, verdicts.right)
    items, item = distinct((verdicts.graph * width + low) * width + high, len(evidence.cases) * width**2)
    is_read = verdicts.verdict != NONE
    again = is_read & (np.bincount(item[is_read], minlength=len(items)) > 1)[item]
    item, judge, kind = item[again], evidence.judge[again], evidence.kind[again]
    label = oriented(verdicts.left, verdicts.right, verdicts.verdict)[again]
    unit = traits.unit[items // width**2]
    by_judge = labels_of(item, judge, label)
    everyone = _coincidences(("alpha",), by_judge, unit)
    parts = [_confusions("judges", evidence.judges, by_judge, unit), everyone]
    if len(evidence.kinds) > 1:
        parts.append(_confusions("kinds", evidence.kinds, labels_of(item, kind, label), unit))
    for index, name in enumerate(evidence.kinds):
        own = kind == index
        if own.all():  # the same numbers under the kind's name
            parts.append(everyone._replace(groups=tuple(("alpha", name) for _ in everyone.groups)))
        else:
            parts.append(_coincidences(("alpha", name), labels_of(item[own], judge[own], label[own]), unit))
    return _joined(parts, NUM_CELLS)


def _confusions(word: str, names: tuple[str, ...], labels: Labels, unit: Integers) -> _Part:
    both = compared(labels)
    found, group = distinct(both.first * len(names) + both.second, len(names) ** 2)
    groups = [(word, names[one // len(names)], names[one % len(names)]) for one in found.tolist()]
    return _Part(groups, unit[both.item], group, both.cell)


def _coincidences(group: Group, labels: Labels, unit: Integers) -> _Part:
    units, place = distinct(unit, int(unit.max(initial=-1)) + 1)
    sums = coincidences(labels, place[labels.item], len(units))
    row, column = np.nonzero(sums)
    return _Part((group,) if len(row) else (), units[row], np.zeros(len(row), np.int64), column, sums[row, column])


def _authors(evidence: Evidence, traits: Traits, unit: Integers) -> Entries:
    verdicts, names = evidence.verdicts, traits.authors
    start = np.cumsum(evidence.num_responses) - evidence.num_responses
    left, right = (traits.author[start[verdicts.graph] + side] for side in (verdicts.left, verdicts.right))
    known = (verdicts.verdict != NONE) & (left >= 0) & (right >= 0) & (left != right)
    left, right, verdict = left[known], right[known], verdicts.verdict[known]
    code = np.minimum(left, right) * len(names) + np.maximum(left, right)
    found, group = distinct(code, len(names) ** 2)
    groups = [("authors", names[one // len(names)], names[one % len(names)]) for one in found.tolist()]
    return _joined([_Part(groups, unit[known], group, oriented(left, right, verdict))], AUTHOR_WIDTH)


def _joined(parts: Sequence[_Part], width: int) -> Entries:
    """One table's entries from several parts, in as few bytes as they travel with to another process."""
    start = np.cumsum([0, *(len(part.groups) for part in parts)])
    column = [(first + part.group) * width + part.column for first, part in zip(start[:-1], parts, strict=True)]
    has_amounts = any(part.amount is not None for part in parts)
    amounts = [np.ones(len(part.unit)) if part.amount is None else part.amount for part in parts]
    return Entries(
        tuple(group for part in parts for group in part.groups),
        np.concatenate([part.unit for part in parts]).astype(np.uint16),
        np.concatenate(column).astype(np.int32),
        np.concatenate(amounts) if has_amounts else None,
    )
