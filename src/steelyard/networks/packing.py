"""Packs of prompts: shared tokens once, forward passes within a token budget, and fair shares for each process.

The answers of one prompt share the longest common run of *tokens* of their rendered conversations. The run is computed
and never assumed: a template may write the prompt differently for another answer, and a tokenizer may merge across the
boundary.
"""

import math
from collections.abc import Sequence
from heapq import heapify, heapreplace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Rows = Sequence[Sequence[int]]
Integers = NDArray[np.int64]
_CHEAP = 0.1
"""Share of a prompt's tokens that may be recomputed: packs of the wanted size are faster by 11 to 18 % on a CPU."""
_MOST_EXCHANGES = 1000


class Branch(NamedTuple):
    """One prompt in a pack: where its tokens begin, how many all its answers share, and how many each has of its own.

    The shared tokens come first, then the tails, one behind the other.
    """

    start: int
    num_shared: int
    tails: tuple[int, ...]

    @property
    def num_tokens(self) -> int:
        """What the prompt takes of the pack."""
        return self.num_shared + sum(self.tails)

    def places(self, answer: int) -> Integers:
        """Where the tokens of one answer's whole row stand in the pack, shape (token,)."""
        tail_start = self.start + self.num_shared + sum(self.tails[:answer])
        shared = np.arange(self.start, self.start + self.num_shared)
        return np.concatenate([shared, np.arange(tail_start, tail_start + self.tails[answer])])


class Pack(NamedTuple):
    """Prompts laid flat. ``ids``, ``positions``: shape (token,), positions begin again behind the shared tokens.

    ``last``: where the last token of each answer stands, shape (answer,), prompt by prompt in the order given.
    """

    ids: Integers
    positions: Integers
    branches: tuple[Branch, ...]
    last: Integers


def num_shared_tokens(rows: Rows) -> int:
    """How many tokens all rows begin with; at least one token of each row is left to be its own."""
    shortest = min(map(len, rows))
    ordered = sorted(map(tuple, rows))
    least, most = ordered[0], ordered[-1]  # what the first and the last in dictionary order share, all share
    length = next(
        (place for place, (one, other) in enumerate(zip(least, most, strict=False)) if one != other), shortest
    )
    return max(0, min(length, shortest - 1))


def num_packed_tokens(rows: Rows) -> int:
    """What a prompt's answers take of a pack."""
    shared = num_shared_tokens(rows)
    return shared + sum(len(row) - shared for row in rows)


def pack(prompts: Sequence[Rows]) -> Pack:
    """Lay prompts flat, one behind the other. A row must have a token at least."""
    ids: list[int] = []
    positions: list[Integers] = []
    branches: list[Branch] = []
    last: list[int] = []
    for rows in prompts:
        shared = num_shared_tokens(rows)
        branch = Branch(len(ids), shared, tuple(len(row) - shared for row in rows))
        ids += rows[0][:shared]
        positions.append(np.arange(shared))
        for row in rows:
            ids += row[shared:]
            positions.append(np.arange(shared, len(row)))
            last.append(len(ids) - 1)
        branches.append(branch)
    return Pack(np.array(ids, np.int64), np.concatenate(positions), tuple(branches), np.array(last, np.int64))


def rounded_up(size: int) -> int:
    """The next of few sizes, four for each doubling: 16 and over are made larger by 9 % on average, 25 % at most."""
    step = max(4, 2 ** (size.bit_length() - 3))
    return -(-size // step) * step


def fill_up(packed: Pack) -> Pack:
    """The pack with filler behind its last token, and behind its last answer, that make both numbers round ones.

    Matrix products of few sizes need few compiled kernels. The filler stands in no branch: no token attends to it.
    Answers are few beside tokens, so their number becomes a power of two.
    """
    num_tokens = rounded_up(len(packed.ids)) - len(packed.ids)
    num_answers = (1 << (len(packed.last) - 1).bit_length()) - len(packed.last)
    return packed._replace(
        ids=np.pad(packed.ids, (0, num_tokens)),
        positions=np.pad(packed.positions, (0, num_tokens)),
        last=np.pad(packed.last, (0, num_answers)),
    )


class PackPart(NamedTuple):
    """Some answers of one prompt: the prompt's position and those of the answers."""

    prompt: int
    answers: tuple[int, ...]


def pack_groups(
    prompts: Sequence[Rows], *, max_tokens: int, max_rows: int | None = None, wanted_tokens: int | None = None
) -> tuple[tuple[PackPart, ...], ...]:
    """Packs of at most ``max_tokens`` and ``max_rows``: prompts in order, cut between answers only where they must be.

    An answer that exceeds the bound alone is a pack of its own. A pack ends before the prompt with which it would
    exceed ``wanted_tokens``; a prompt larger than that is cut into parts of this size where that is cheap.
    """
    wanted = max_tokens if wanted_tokens is None else min(wanted_tokens, max_tokens)
    groups: list[tuple[PackPart, ...]] = []
    taken = rows_taken = 0
    for part in (
        part
        for index, rows in enumerate(prompts)
        for part in _parts(index, rows, _cut_at(rows, wanted, max_tokens), max_rows)
    ):
        size = num_packed_tokens([prompts[part.prompt][answer] for answer in part.answers])
        is_full = taken + size > wanted or (max_rows is not None and rows_taken + len(part.answers) > max_rows)
        if is_full or not groups:
            groups.append(())
            taken = rows_taken = 0
        groups[-1] += (part,)
        taken, rows_taken = taken + size, rows_taken + len(part.answers)
    return tuple(groups)


def _cut_at(rows: Rows, wanted: int, most: int) -> int:
    """``wanted`` where parts of this size work few tokens out twice, else ``most``."""
    total = num_packed_tokens(rows) if rows else 0
    if total <= wanted:
        return most
    shared = num_shared_tokens(rows)
    if shared >= wanted:
        return most
    again = shared * (math.ceil((total - shared) / (wanted - shared)) - 1)
    return wanted if again <= _CHEAP * total else most


def _parts(prompt: int, rows: Rows, max_tokens: int, max_rows: int | None) -> list[PackPart]:
    """A prompt whole where it fits, else its answers in runs that do."""
    if rows and num_packed_tokens(rows) <= max_tokens and (max_rows is None or len(rows) <= max_rows):
        return [PackPart(prompt, tuple(range(len(rows))))]
    parts: list[list[int]] = []
    for answer in range(len(rows)):
        grown = [*(parts[-1] if parts else []), answer]
        fits = num_packed_tokens([rows[one] for one in grown]) <= max_tokens
        if parts and fits and (max_rows is None or len(grown) <= max_rows):
            parts[-1] = grown
        else:
            parts.append([answer])
    return [PackPart(prompt, tuple(part)) for part in parts]


def forward_groups(
    lengths: Sequence[int], *, max_tokens: int, max_rows: int | None = None
) -> tuple[tuple[int, ...], ...]:
    """Positions grouped into padded forward passes: sorted by length, a group's rows times its longest row is bounded.

    A row longer than ``max_tokens`` (in tokens) gets a pass of its own. Equal lengths keep their order.
    """
    groups: list[list[int]] = []
    for position in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        # In ascending order the newest row is the longest: it alone decides what the group would take.
        group = groups[-1] if groups else None
        if (
            group is None
            or (len(group) + 1) * lengths[position] > max_tokens
            or (max_rows is not None and len(group) == max_rows)
        ):
            groups.append([position])
        else:
            group.append(position)
    return tuple(map(tuple, groups))


def process_shares(sizes: Sequence[int], num_processes: int) -> tuple[tuple[int, ...], ...]:
    """Positions in ``sizes`` (tokens of a prompt) for each process: every position once, in ascending order.

    The largest first, each to the process that has least (Graham, 1969); then moves and swaps between the process that
    has most and the others, as long as they bring the most down. With fewer prompts than processes some have none. The
    most is over the mean by less than the largest prompt.
    """
    parts: list[list[int]] = [[] for _ in range(num_processes)]
    loads = [(0, rank) for rank in range(num_processes)]
    heapify(loads)
    for position in sorted(range(len(sizes)), key=lambda one: (-sizes[one], one)):
        load, rank = loads[0]
        parts[rank].append(position)
        heapreplace(loads, (load + sizes[position], rank))
    _even_out(parts, sizes)
    return tuple(tuple(sorted(part)) for part in parts)


def _even_out(parts: list[list[int]], sizes: Sequence[int]) -> None:
    """Give from the fullest part to another, or swap with it, while both end below what the fullest had."""
    totals = [sum(sizes[position] for position in part) for part in parts]
    for _ in range(_MOST_EXCHANGES):
        fullest = max(range(len(parts)), key=lambda rank: totals[rank])
        exchange = _best_exchange(parts, sizes, totals, fullest)
        if exchange is None:
            return
        other, given, taken = exchange
        moved = sizes[given] - (0 if taken is None else sizes[taken])
        totals[fullest] -= moved
        totals[other] += moved
        parts[fullest].remove(given)
        parts[other].append(given)
        if taken is not None:
            parts[other].remove(taken)
            parts[fullest].append(taken)


def _best_exchange(
    parts: list[list[int]], sizes: Sequence[int], totals: list[int], fullest: int
) -> tuple[int, int, int | None] | None:
    """The other part, what it is given and what it gives back, for which the fuller of the two ends lowest."""
    best, least = None, totals[fullest]
    for other in sorted(set(range(len(parts))) - {fullest}, key=lambda rank: totals[rank]):
        if (totals[fullest] + totals[other] + 1) // 2 >= least:
            break  # not even an exact half would be better, and the parts that follow are fuller
        for given in parts[fullest]:
            for taken in (None, *parts[other]):
                moved = sizes[given] - (0 if taken is None else sizes[taken])
                fuller = max(totals[fullest] - moved, totals[other] + moved)
                if moved > 0 and fuller < least:
                    best, least = (other, given, taken), fuller
    return best
