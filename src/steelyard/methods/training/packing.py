"""Whole prompts into steps of a token budget: random prompts first, and last the ones that fill the step up.

A prompt is never split between steps, so no pair is lost, whatever the budget and on however many devices.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_POOL = 1024
_TRIED = 24


def packed_steps(sizes: Sequence[int], budget: int, rng: np.random.Generator) -> tuple[tuple[int, ...], ...]:
    """An epoch: every prompt (a position in ``sizes``, in tokens) in exactly one step of at most ``budget`` tokens.

    A prompt over the budget is a step of its own. Prompts are shuffled and wait in a pool of some hundreds; a step
    takes those that wait longest, and for its last two places the pair that leaves least room. The last steps of an
    epoch, when the pool runs out, may be emptier: they are shuffled among the others.
    """
    order = rng.permutation(len(sizes)).tolist()
    pool = _Pool([], deque(), set())
    steps: list[tuple[int, ...]] = []
    for place, one in enumerate(order):
        if sizes[one] >= budget:
            steps.append((one,))
        else:
            pool.add(sizes[one], one)
        while len(pool.waiting) >= _POOL or (place == len(order) - 1 and pool.waiting):
            steps.append(_step(pool, sizes, budget))
    return tuple(steps[place] for place in rng.permutation(len(steps)))


class _Pool(NamedTuple):
    """Prompts that wait: by size, in the order in which they came, and which of these are still there."""

    by_size: list[tuple[int, int]]
    in_order: deque[int]
    waiting: set[int]

    def add(self, size: int, one: int) -> None:
        insort(self.by_size, (size, one))
        self.in_order.append(one)
        self.waiting.add(one)

    def take(self, size: int, one: int) -> None:
        del self.by_size[bisect_left(self.by_size, (size, one))]
        self.waiting.discard(one)

    def oldest(self) -> int:
        while self.in_order[0] not in self.waiting:
            self.in_order.popleft()
        return self.in_order[0]

    def largest_within(self, room: int) -> tuple[int, int] | None:
        """The largest that fits, as (size, prompt)."""
        at = bisect_left(self.by_size, (room + 1, -1))
        return self.by_size[at - 1] if at else None


def _step(pool: _Pool, sizes: Sequence[int], budget: int) -> tuple[int, ...]:
    step: list[int] = []
    room = budget
    typical = pool.by_size[len(pool.by_size) // 2][0]
    while pool.waiting:
        oldest = pool.oldest()
        if room - sizes[oldest] < 2 * typical:
            break
        pool.take(sizes[oldest], oldest)
        step.append(oldest)
        room -= sizes[oldest]
    while pool.waiting:
        chosen = _filling(pool, room)
        if not chosen:
            break
        for size, one in chosen:
            pool.take(size, one)
            step.append(one)
            room -= size
    return tuple(step)


def _filling(pool: _Pool, room: int) -> list[tuple[int, int]]:
    """One prompt, or two, that leave least room."""
    alone = pool.largest_within(room)
    if alone is None:
        return []
    best, gap = [alone], room - alone[0]
    number = len(pool.by_size)
    for attempt in range(min(_TRIED, number)):
        if gap == 0:
            break
        first = pool.by_size[attempt * number // min(_TRIED, number)]
        second = pool.largest_within(room - first[0])
        if second is not None and second != first and 0 <= room - first[0] - second[0] < gap:
            best, gap = [first, second], room - first[0] - second[0]
    return best


def balanced(steps: Sequence[Sequence[int]], sizes: Sequence[int], num_ranks: int) -> tuple[tuple[int, ...], ...]:
    """Steps in an order in which each run of ``num_ranks`` has nearly equal tokens: what devices work on together.

    Steps are sorted by tokens and dealt in runs; the runs keep the order of their first member. Steps that fill no run
    stand last.
    """
    by_size = sorted(range(len(steps)), key=lambda one: sum(sizes[member] for member in steps[one]))
    by_size = by_size[len(by_size) % num_ranks :] + by_size[: len(by_size) % num_ranks]
    runs = [by_size[start : start + num_ranks] for start in range(0, len(steps), num_ranks)]
    whole = sorted((run for run in runs if len(run) == num_ranks), key=min)
    rest = [run for run in runs if len(run) < num_ranks]
    return tuple(tuple(steps[one]) for run in (*whole, *rest) for one in run)
