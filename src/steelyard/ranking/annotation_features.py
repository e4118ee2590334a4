"""Annotation features besides the verdicts (authors and lengths of the answers, the order shown), and biases by them.

Biases are counts by column and the shares that follow (CHEEMS, figure 15), over strict verdicts only. *Position*: is
the response shown earlier preferred? By the positions of the two among the responses shown (2, 3 or 4; more share one
column). *Length*: is the longer response preferred? By the difference of the two lengths in code points, relative to
the longer one; equal lengths are counted separately.

Differs from: the paper's figure, whose axis is the signed difference between answers A and B. If both orders occur,
the name A carries no information; the axis here is the relative excess of the longer answer.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Floats, Integers, ratio
from steelyard.core.text import num_characters
from steelyard.core.types import Case, Judgment, Meta
from steelyard.ranking.judgment_table import JudgmentTable, NameNumbers, integers
from steelyard.statistics.groups import prompt_names

UNKNOWN = -1
LENGTH_EDGES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""The upper ends of the bins of relative length difference; each bin includes its upper end."""

MOST_SHOWN = 4
POSITION_PAIRS = tuple(
    (size, early, late) for size in range(2, MOST_SHOWN + 1) for late in range(size) for early in range(late)
)
"""The number of responses shown and two positions, from 0, the earlier first."""

# Two columns a bin (the side not preferred, preferred), and one for equal lengths.
NUM_LENGTH = 2 * len(LENGTH_EDGES) + 1
# The last pair of columns holds all pairs among more than `MOST_SHOWN` responses.
NUM_POSITION = 2 * (len(POSITION_PAIRS) + 1)
_EQUAL = NUM_LENGTH - 1
_MORE = len(POSITION_PAIRS)
_PAIR_OF = np.full((MOST_SHOWN + 1,) * 3, _MORE)
for _index, _places in enumerate(POSITION_PAIRS):
    _PAIR_OF[_places] = _index


class Traits(NamedTuple):
    """Further columns of the cases of a `JudgmentTable`.

    One entry a case: ``keys``, the prompt id and the language, and ``names``, its `prompt_names`. One entry a judgment:
    ``left_place`` and ``right_place``, from 0, in the order shown, and ``num_shown``, 0 where the order is unknown;
    ``batch``, a position in ``batches`` or -1, and ``time`` in seconds, NaN where the judgment's ``meta`` has none. One
    entry a response, case after case: ``length`` in code points, and ``author``, a position in ``authors`` or -1.
    """

    keys: tuple[tuple[str, str | None], ...]
    names: tuple[tuple[str, ...], ...]
    left_place: Integers
    right_place: Integers
    num_shown: Integers
    batch: Integers
    time: Floats
    length: Integers
    author: Integers
    authors: tuple[str, ...]
    batches: tuple[str, ...]


class TraitCollector:
    """Collects traits while `judgment_table` reads the cases: ``judgment_table(cases, only, collector.add)``."""

    def __init__(self) -> None:
        self._keys: list[tuple[str, str | None]] = []
        self._names: list[tuple[str, ...]] = []
        self._batch: list[int] = []
        self._batches = NameNumbers()
        self._time: list[float] = []
        self._num_shown: list[int] = []
        self._shown: list[int] = []
        self._length: list[int] = []
        self._author: list[int] = []
        self._authors = NameNumbers()

    def add(self, case: Case, position: dict[str, int], admitted: Sequence[Judgment]) -> None:
        """Collect the traits of one case. No texts are retained."""
        self._keys.append(case.key)
        self._names.append(prompt_names(case))
        batches = self._batches
        self._batch += [UNKNOWN if each.batch is None else batches[each.batch] for each in admitted]
        self._time += [math.nan if each.meta is None else time_of(each.meta) for each in admitted]
        shown = [judgment.shown or () for judgment in admitted]
        self._num_shown += map(len, shown)
        self._shown += [position[name] for names in shown for name in names]
        self._length += map(num_characters, case.responses)
        authors = self._authors
        self._author += [
            UNKNOWN if response.author is None else authors[response.author] for response in case.responses
        ]

    def traits(self, table: JudgmentTable) -> Traits:
        """Return the traits of the cases of the table."""
        num_shown, shown = integers(self._num_shown), integers(self._shown)
        left_place = _place(shown, num_shown, table.verdicts.left)
        right_place = _place(shown, num_shown, table.verdicts.right)
        # Position statistics need the places of both responses.
        known = (left_place >= 0) & (right_place >= 0)
        author = integers(self._author)
        is_known = author >= 0
        names, author[is_known] = self._authors.sorted(author[is_known])
        return Traits(
            keys=tuple(self._keys),
            names=tuple(self._names),
            left_place=np.where(known, left_place, 0),
            right_place=np.where(known, right_place, 0),
            num_shown=np.where(known, num_shown, 0),
            batch=integers(self._batch),
            time=np.array(self._time, np.float64),
            length=integers(self._length),
            author=author,
            authors=names,
            batches=tuple(self._batches),
        )


_TIME_KEYS = ("time", "timestamp", "tstamp", "created_at")
"""The keys of a judgment's ``meta`` that hold its time: seconds since 1970, or an ISO 8601 text."""

_LARGEST_SECONDS, _LARGEST_TIME = 1e11, 1e14
"""Larger numbers are milliseconds; still larger ones are not times. The first is a second of the year 5138."""

_ISO_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?))? ?(?:Z|([+-])(\d\d):?(\d\d)?)?", re.ASCII
)


def time_of(meta: Meta) -> float:
    """Return the time of a judgment in seconds since 1970; NaN if its ``meta`` has none that can be read."""
    for key in _TIME_KEYS:
        value = meta.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST_TIME:
            return value / 1000 if abs(value) > _LARGEST_SECONDS else float(value)
        if isinstance(value, str) and (parts := _ISO_TIME.fullmatch(value.strip())):
            date, clock, sign, hours, minutes = parts.groups()
            try:
                local = np.datetime64(f"{date}T{clock or '00:00'}", "ms").astype(np.int64) / 1000
            except ValueError:  # a 13th month
                continue
            offset = 3600 * int(hours or 0) + 60 * int(minutes or 0)
            return float(local - offset if sign == "+" else local + offset)
    return math.nan


def date_of(seconds: float) -> str:
    """Return the date of a time, as 2026-03-01 (UTC)."""
    return str(np.datetime64(int(seconds), "s").astype("datetime64[D]"))


def _place(shown: Integers, num_shown: Integers, response: Integers) -> Integers:
    """Return the first place of each judgment's response in the order shown, from 0, or -1; ``shown`` is flat."""
    owner = np.repeat(np.arange(len(num_shown)), num_shown)
    at = np.flatnonzero(shown == response[owner])[::-1]  # reversed, so that the first of two places is written last
    start = np.cumsum(num_shown) - num_shown
    place = np.full(len(num_shown), -1)
    place[owner[at]] = at - start[owner[at]]
    return place


class PreferenceCounts(NamedTuple):
    """The verdicts for one side (the longer, the earlier), and all verdicts on it; both of shape (…, bin)."""

    preferred: Floats
    total: Floats

    @property
    def share(self) -> Floats:
        """Return the share of strict verdicts for that side; NaN without verdicts."""
        return ratio(self.preferred, self.total)


def length_columns(better: Integers, worse: Integers) -> Integers:
    """Return the column of each strict verdict, from lengths in code points: 2 x bin + (longer preferred), or equal."""
    longer, shorter = np.maximum(better, worse), np.minimum(better, worse)
    difference = (longer - shorter) / np.maximum(longer, 1)
    # ``left``: a difference equal to an edge belongs to the bin below it.
    column = 2 * np.searchsorted(LENGTH_EDGES, difference, side="left") + (better > worse)
    return np.where(better == worse, _EQUAL, column)


def position_columns(better: Integers, worse: Integers, num_shown: Integers) -> Integers:
    """Return the column of each strict verdict from the two positions: 2 x pair + (earlier preferred)."""
    size = np.where(num_shown > MOST_SHOWN, 0, num_shown)
    early, late = (np.where(size, place, 0) for place in (np.minimum(better, worse), np.maximum(better, worse)))
    return 2 * _PAIR_OF[size, early, late] + (better < worse)


def count_longer(columns: Floats) -> PreferenceCounts:
    """Count the verdicts for the longer answer by bin: (…, NUM_LENGTH) to (…, bin)."""
    return _chosen(columns[..., :_EQUAL])


def count_equal_length(columns: Floats) -> Floats:
    """Count the strict verdicts on two answers of equal length."""
    return columns[..., _EQUAL]


def count_earlier(columns: Floats) -> PreferenceCounts:
    """Count the verdicts for the earlier answer by pair of positions: (…, NUM_POSITION) to (…, pair)."""
    return _chosen(columns)


def sum_pairs(chosen: PreferenceCounts) -> PreferenceCounts:
    """Sum over all pairs or bins, into one column."""
    return PreferenceCounts(chosen.preferred.sum(axis=-1, keepdims=True), chosen.total.sum(axis=-1, keepdims=True))


def count_by_place(columns: Floats, num_shown: int) -> PreferenceCounts:
    """Count the verdicts for the answer at each position of those shown: (…, NUM_POSITION) to (…, num_shown)."""
    chosen = count_earlier(columns)
    preferred, total = (np.zeros((*columns.shape[:-1], num_shown)) for _ in range(2))
    for index, (size, early, late) in enumerate(POSITION_PAIRS):
        if size == num_shown:
            preferred[..., early] += chosen.preferred[..., index]
            preferred[..., late] += chosen.total[..., index] - chosen.preferred[..., index]
            total[..., [early, late]] += chosen.total[..., index, None]
    return PreferenceCounts(preferred, total)


def _chosen(columns: Floats) -> PreferenceCounts:
    return PreferenceCounts(columns[..., 1::2], columns[..., 0::2] + columns[..., 1::2])
