"""Resamples for measures that are no counts: prompts drawn in blocks, and any sums added up by block.

A *block* is one unit (a prompt with its parallel items) as long as there are few; beyond `MOST_BLOCKS`, units of
one stratum are put together at random, and the blocks are drawn. The variance that the bootstrap sees keeps its
expectation; it is known to about 2 % with two thousand blocks. Every measure uses one drawing, so that differences of
measures are paired.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from steelyard.core.seeds import generator
from steelyard.statistics.estimates import Evidence
from steelyard.statistics.groups import (
    Label,
    Layout,
    Stratum,
    draw_source,
    evidence_of_groups,
    layout_of,
    rank_within,
)
from steelyard.statistics.pair_counts import Booleans, Floats, Integers

MOST_BLOCKS = 2048
_FEWEST = 64


class Blocks(NamedTuple):
    """What is drawn. ``block`` and ``unit`` have shape (prompt,); ``times`` (resample, block): the weight of each.

    ``stratum`` is that of each unit, shape (unit,). ``slot`` is the place of a prompt that is alone in its stratum
    among all such units, else -1, shape (prompt,); ``drawn`` (resample, slot) the source that stands there.
    """

    layout: Layout
    unit: Integers
    block: Integers
    times: npt.NDArray[np.float32]
    stratum: Integers
    slot: Integers
    drawn: Integers

    @property
    def num_blocks(self) -> int:
        """How many blocks there are."""
        return self.times.shape[1]


class Sums(NamedTuple):
    """Sums by group: ``point`` [group, column], ``resampled`` [resample, group, column]."""

    point: Floats
    resampled: Floats


class Terms(NamedTuple):
    """What is added up, one row each: its prompt, its group (below 0: none), and the columns' amounts."""

    prompt: Integers
    group: Integers
    columns: Sequence[npt.NDArray]


def draw_blocks(labels: Sequence[Label], *, num_resamples: int, seed: int) -> Blocks:
    """The drawing of prompts: within category and subset, those of one name together. Their order does not matter."""
    names = [label.prompt for label in labels]
    return draw_layout(layout_of(labels), names, num_resamples=num_resamples, seed=seed)


def draw_layout(layout: Layout, names: Sequence[str], *, num_resamples: int, seed: int) -> Blocks:
    """The same of prompts that are laid out already; ``names`` are those of their units, one a prompt."""
    random = generator(seed, "bootstrap of blocks")
    block, unit = np.empty(len(names), np.int64), np.empty(len(names), np.int64)
    slot = np.full(len(names), -1)
    drawn: list[npt.NDArray[np.float32]] = []
    num_blocks = num_units = num_slots = 0
    for stratum in layout.strata:
        if stratum.num_units == 1:
            slot[stratum.rows] = num_slots
            num_slots += 1
        place = _place_by_name(stratum, names)
        size = min(stratum.num_units, max(_FEWEST, MOST_BLOCKS * stratum.num_units // len(names)))
        folded = np.arange(stratum.num_units) % size
        if size < stratum.num_units:
            random.shuffle(folded)
        block[stratum.rows] = num_blocks + folded[place]
        unit[stratum.rows] = num_units + place
        num_blocks, num_units = num_blocks + size, num_units + stratum.num_units
        drawn.append(_counts(random, size, num_resamples))
    owner = np.repeat(np.arange(len(layout.strata)), [stratum.num_units for stratum in layout.strata])
    sources = draw_source(layout.pool, random, num_resamples, num_slots)
    return Blocks(layout, unit, block, np.concatenate(drawn, axis=1), owner, slot, sources)


def evidence_of(blocks: Blocks, group: Integers, counted: Booleans) -> Evidence:
    """What stands behind the plain mean over groups of prompts (below 0: of none), by the counted ones; (prompt,)."""
    chosen = counted & (group >= 0)
    num_strata, num_units = len(blocks.layout.strata), len(blocks.stratum)
    num_groups = int(group[chosen].max(initial=-1)) + 1
    # A unit counts once in a group, however many of its prompts do. Marking is faster than sorting.
    is_there = np.zeros(num_groups * num_units, np.bool_)
    is_there[group[chosen] * num_units + blocks.unit[chosen]] = True
    groups, units = np.divmod(np.flatnonzero(is_there), max(1, num_units))
    place = groups * num_strata + blocks.stratum[units]
    counts = np.bincount(place, minlength=num_groups * num_strata).reshape(num_groups, num_strata)
    layout = blocks.layout
    return evidence_of_groups(counts.astype(np.float64), layout.sizes, layout.pool.num_sources)


def add_up(blocks: Blocks, terms: Terms, num_groups: int) -> Sums:
    """The sums of the columns by group, of the prompts themselves and of every resample."""
    kept = terms.group >= 0
    is_all = bool(kept.all())
    place = blocks.block[terms.prompt] * num_groups + terms.group
    place = place if is_all else place[kept]
    size = blocks.num_blocks * num_groups
    summed = [np.bincount(place, column if is_all else column[kept], size) for column in terms.columns]
    table = np.stack(summed, axis=-1).reshape(blocks.num_blocks, num_groups * len(terms.columns))
    # A resample's sums need no more digits than these; those of the prompts themselves keep all.
    resampled = (blocks.times @ table.astype(np.float32)).astype(np.float64)
    shape = (num_groups, len(terms.columns))
    resampled = resampled.reshape(len(resampled), *shape)
    if blocks.drawn.size:
        _fill_slots(
            blocks, Terms(terms.prompt[kept], terms.group[kept], [own[kept] for own in terms.columns]), resampled
        )
    return Sums(table.sum(axis=0).reshape(shape), resampled)


def _fill_slots(blocks: Blocks, terms: Terms, resampled: Floats) -> None:
    """Adds what units of the pool have in the place of units that are alone; groups go by their rank within the unit.

    A group is met again only in other units, so that the sums of a source are kept by the rank of its groups.
    """
    pool = blocks.layout.pool
    source_of = np.full(len(blocks.unit), -1)
    source_of[pool.rows] = pool.source
    source = source_of[terms.prompt]
    is_source = source >= 0
    source, rank = source[is_source], rank_within(source[is_source], terms.group[is_source])
    num_ranks = np.zeros(pool.num_sources, np.int64)
    np.maximum.at(num_ranks, source, rank + 1)
    table = np.zeros((pool.num_sources, int(num_ranks.max(initial=1)), len(terms.columns)))
    np.add.at(table, (source, rank), np.stack([own[is_source] for own in terms.columns], axis=-1))
    slot = blocks.slot[terms.prompt]
    slots, groups = np.unique(np.stack([slot, terms.group])[:, slot >= 0], axis=1)
    for place, group, rank_of in zip(slots, groups, rank_within(slots, groups), strict=True):
        drawn = blocks.drawn[:, place]
        resampled[:, group] += table[drawn, rank_of % np.maximum(num_ranks[drawn], 1)]


def one_group(size: int) -> Integers:
    """The group of rows that are all in one."""
    return np.zeros(size, np.int64)


def _place_by_name(stratum: Stratum, names: Sequence[str]) -> Integers:
    """The unit of each row of the stratum, numbered in the order of their names."""
    one_of = np.empty(stratum.num_units, np.int64)
    one_of[stratum.unit] = stratum.rows
    named = [names[row] for row in one_of.tolist()]
    rank = np.empty(stratum.num_units, np.int64)
    rank[sorted(range(stratum.num_units), key=named.__getitem__)] = np.arange(stratum.num_units)
    return rank[stratum.unit]


def _counts(random: np.random.Generator, size: int, num_resamples: int) -> npt.NDArray[np.float32]:
    """The weights of one stratum's blocks: size - 1 draws that count size / (size - 1) each; none of one block."""
    drawn = random.integers(size, size=(num_resamples, size - 1))
    drawn += np.arange(num_resamples)[:, None] * size
    times = np.bincount(drawn.reshape(-1), minlength=num_resamples * size).reshape(-1, size).astype(np.float32)
    return times * np.float32(size / max(1, size - 1))
