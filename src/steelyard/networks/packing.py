"""Packs of prompts: shared tokens once, forward passes within a token budget, and fair shares for each process.

The answers of one prompt share the longest common beginning, in tokens, of their rendered conversations. It is computed
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
_MOST_RECOMPUTED = 0.1
"""Share of a prompt's tokens that may be recomputed: packs of the wanted size are faster by 11 to 18 % on a CPU."""
_MOST_EXCHANGES = 1000


class Branch(NamedTuple):
    """One prompt in a pack: its first position, the number of shared tokens, and that of further tokens by answer.

    The shared tokens come first, then the tails, one after another.
    """

    start: int
    num_shared: int
    tails: tuple[int, ...]

    @property
    def num_tokens(self) -> int:
        """The number of the prompt's tokens in the pack."""
        return self.num_shared + sum(self.tails)

    def places(self, answer: int) -> Integers:
        """Return the positions of one answer's whole row in the pack, shape (token,)."""
        tail_start = self.start + self.num_shared + sum(self.tails[:answer])
        shared = np.arange(self.start, self.start + self.num_shared)
        return np.concatenate([shared, np.arange(tail_start, tail_start + self.tails[answer])])


class Pack(NamedTuple):
    """Prompts in one flat row. ``ids``, ``positions``: shape (token,); each tail continues from the shared tokens.

    ``last``: the position in the pack of each answer's last token, shape (answer,), prompt by prompt in order.
    """

    ids: Integers
    positions: Integers
    branches: tuple[Branch, ...]
    last: Integers


def num_shared_tokens(rows: Rows) -> int:
    """Return the number of tokens that all rows begin with, at most all but one token of the shortest row."""
    shortest = min(map(len, rows))
    ordered = sorted(map(tuple, rows))
    ends = zip(ordered[0], ordered[-1], strict=False)  # the common beginning of first and last is that of all
    length = next((place for place, (left, right) in enumerate(ends) if left != right), shortest)
    # Each answer keeps a token of its own: one that begins another answer still needs a place to be scored at.
    return max(0, min(length, shortest - 1))


def num_packed_tokens(rows: Rows) -> int:
    """Return the number of tokens that a prompt's answers take in a pack."""
    shared = num_shared_tokens(rows)
    return shared + sum(len(row) - shared for row in rows)


def pack(prompts: Sequence[Rows]) -> Pack:
    """Return prompts as one flat row, one after another. Each row must have at least one token."""
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


def round_up_size(size: int) -> int:
    """Return the next of four sizes for each doubling: from 16 on, larger by 9% on average and 25% at most."""
    step = max(4, 2 ** (size.bit_length() - 3))
    return -(-size // step) * step


def few_sizes(packed: Pack) -> tuple[int, int]:
    """Return the numbers of tokens and answers to which a pack is filled up so that sizes take few values.

    Matrix products of few sizes need few compiled kernels. Answers are few compared with tokens, so their number
    becomes a power of two.
    """
    return round_up_size(len(packed.ids)), 1 << (len(packed.last) - 1).bit_length()


def fill_up(packed: Pack, num_tokens: int, num_answers: int) -> Pack:
    """Return the pack with filler after its last token and its last answer, up to these numbers.

    The filler belongs to no branch: no token attends to it.
    """
    tokens = (0, num_tokens - len(packed.ids))
    return packed._replace(
        ids=np.pad(packed.ids, tokens),
        positions=np.pad(packed.positions, tokens),
        # Answers of filler point at token 0; their rewards are dropped.
        last=np.pad(packed.last, (0, num_answers - len(packed.last))),
    )


class PackPart(NamedTuple):
    """Some answers of one prompt: the prompt's position and those of the answers."""

    prompt: int
    answers: tuple[int, ...]


def pack_groups(
    prompts: Sequence[Rows], *, max_tokens: int, max_rows: int | None = None, wanted_tokens: int | None = None
) -> tuple[tuple[PackPart, ...], ...]:
    """Return packs of at most ``max_tokens`` and ``max_rows``: prompts in order, split between answers where necessary.

    An answer over the bound is a pack by itself. A pack ends before the prompt with which it would exceed
    ``wanted_tokens``; a larger prompt is split into parts of this size where that is cheap.
    """
    wanted = max_tokens if wanted_tokens is None else min(wanted_tokens, max_tokens)
    groups: list[tuple[PackPart, ...]] = []
    taken = rows_taken = 0
    for part in (
        part
        for index, rows in enumerate(prompts)
        for part in _parts(index, rows, _part_size(rows, wanted, max_tokens), max_rows)
    ):
        size = num_packed_tokens([prompts[part.prompt][answer] for answer in part.answers])
        is_full = taken + size > wanted or (max_rows is not None and rows_taken + len(part.answers) > max_rows)
        if is_full or not groups:
            groups.append(())
            taken = rows_taken = 0
        groups[-1] += (part,)
        taken, rows_taken = taken + size, rows_taken + len(part.answers)
    return tuple(groups)


def _part_size(rows: Rows, wanted: int, most: int) -> int:
    """Return ``wanted`` where parts of this size recompute few tokens, else ``most``."""
    total = num_packed_tokens(rows) if rows else 0
    if total <= wanted:
        return most
    shared = num_shared_tokens(rows)
    if shared >= wanted:
        return most
    num_recomputed = shared * (math.ceil((total - shared) / (wanted - shared)) - 1)
    return wanted if num_recomputed <= _MOST_RECOMPUTED * total else most


def _parts(prompt: int, rows: Rows, max_tokens: int, max_rows: int | None) -> list[PackPart]:
    """Return a prompt whole where it fits, else its answers in runs that fit."""
    if rows and num_packed_tokens(rows) <= max_tokens and (max_rows is None or len(rows) <= max_rows):
        return [PackPart(prompt, tuple(range(len(rows))))]
    parts: list[list[int]] = []
    for answer in range(len(rows)):
        grown = [*(parts[-1] if parts else []), answer]
        fits = num_packed_tokens([rows[index] for index in grown]) <= max_tokens
        if parts and fits and (max_rows is None or len(grown) <= max_rows):
            parts[-1] = grown
        else:
            parts.append([answer])
    return [PackPart(prompt, tuple(part)) for part in parts]


def forward_groups(
    lengths: Sequence[int], *, max_tokens: int, max_rows: int | None = None
) -> tuple[tuple[int, ...], ...]:
    """Return positions grouped into padded passes, sorted by length, each of at most ``max_tokens`` with padding.

    A longer row is a pass by itself. Equal lengths keep their order.
    """
    groups: list[list[int]] = []
    for position in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        # In ascending order the newest row is the longest: it alone decides the size of the group.
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
    """Return positions in ``sizes`` (tokens of a prompt) for each process: every position once, in ascending order.

    The largest first, each to the process with the smallest load (Graham, 1969); then moves and swaps between the
    process with the largest load and the others, as long as they reduce the maximum. With fewer prompts than processes
    some have none. The maximum exceeds the mean by less than the largest prompt.
    """
    parts: list[list[int]] = [[] for _ in range(num_processes)]
    loads = [(0, rank) for rank in range(num_processes)]
    heapify(loads)
    # Ties go by position: every process must compute the same division.
    for position in sorted(range(len(sizes)), key=lambda index: (-sizes[index], index)):
        load, rank = loads[0]
        parts[rank].append(position)
        heapreplace(loads, (load + sizes[position], rank))
    _balance(parts, sizes)
    return tuple(tuple(sorted(part)) for part in parts)


def _balance(parts: list[list[int]], sizes: Sequence[int]) -> None:
    """Move or swap positions of the fullest part while both parts end below its former load."""
    totals = [sum(sizes[position] for position in part) for part in parts]
    for _ in range(_MOST_EXCHANGES):
        fullest = max(range(len(parts)), key=lambda rank: totals[rank])
        exchange = _best_exchange(parts, sizes, totals, fullest)
        if exchange is None:
            return
        other, outgoing, incoming = exchange
        moved = sizes[outgoing] - (0 if incoming is None else sizes[incoming])
        totals[fullest] -= moved
        totals[other] += moved
        parts[fullest].remove(outgoing)
        parts[other].append(outgoing)
        if incoming is not None:
            parts[other].remove(incoming)
            parts[fullest].append(incoming)


def _best_exchange(
    parts: list[list[int]], sizes: Sequence[int], totals: list[int], fullest: int
) -> tuple[int, int, int | None] | None:
    """Return the other part and the positions to exchange with it that minimise the larger load of the two."""
    best, least = None, totals[fullest]
    for other in sorted(set(range(len(parts))) - {fullest}, key=lambda rank: totals[rank]):
        if (totals[fullest] + totals[other] + 1) // 2 >= least:
            break  # not even equal halves would be better, and the parts that follow are fuller
        for outgoing in parts[fullest]:
            for incoming in (None, *parts[other]):
                moved = sizes[outgoing] - (0 if incoming is None else sizes[incoming])
                fuller = max(totals[fullest] - moved, totals[other] + moved)
                if moved > 0 and fuller < least:
                    best, least = (other, outgoing, incoming), fuller
    return best
