"""Which responses share a step: the plan of every epoch, and the pairs of each step.

No response occurs twice in an epoch. Steps of whole prompts (`whole`, `packed`) lose no pair at any size.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from steelyard.core.errors import EvidenceError
from steelyard.core.numerics import generator
from steelyard.core.remedies import NUMBER, Advice, Remedy
from steelyard.networks.packing import num_packed_tokens
from steelyard.training.config import Config
from steelyard.training.examples import Example
from steelyard.training.losses import LossInputs, PairBatch, RatingBatch

_POOL = 1024
"""Prompts that wait to be placed in a packed step."""
_NUM_TRIALS = 24
"""Prompts tried as the first of the pair that fills a step."""


class Slot(NamedTuple):
    """One response in a step: the prompt's position and the response's position within the prompt."""

    prompt: int
    response: int


Step = tuple[Slot, ...]


class PlannedStep(NamedTuple):
    """A step and the epoch that it belongs to, counted from 0."""

    epoch: int
    slots: Step


def plan_steps(examples: Sequence[Example], config: Config) -> tuple[PlannedStep, ...]:
    """Return every step of every epoch, in order; steps without a rating or both ends of a pair are left out."""
    sizes = [len(example.rows) for example in examples]
    tokens = [num_packed_tokens(example.rows) for example in examples] if config.batching == "packed" else []
    steps: list[PlannedStep] = []
    for epoch in range(config.epochs):
        # One generator per epoch: more epochs do not change the order of the earlier ones.
        rng = generator(config.seed, "order", epoch)
        if config.batching == "whole":
            assert config.batch_size is not None, "set by with_defaults"
            chosen = whole_steps(sizes, config.batch_size, rng)
        elif config.batching == "packed":
            chosen = [all_slots(prompts, sizes) for prompts in packed_steps(tokens, config.tokens_per_step, rng)]
        else:
            chosen = greedy_steps(sizes, config.responses_per_step, rng)
        steps += [PlannedStep(epoch, slots) for slots in chosen if has_evidence(slots, examples)]
    return tuple(steps)


def all_slots(prompts: Sequence[int], sizes: Sequence[int]) -> Step:
    """Return the slots of whole prompts; ``sizes`` has the number of responses of every prompt."""
    return tuple(Slot(prompt, response) for prompt in prompts for response in range(sizes[prompt]))


def whole_steps(num_responses: Sequence[int], batch_size: int, rng: np.random.Generator) -> tuple[Step, ...]:
    """Return an epoch of whole prompts, shuffled, ``batch_size`` in each step but the last, which may have fewer.

    ``num_responses`` has one entry for each prompt. Every response is in exactly one step, with its whole prompt.
    """
    order = rng.permutation(len(num_responses)).tolist()
    starts = range(0, len(order), batch_size)
    return tuple(all_slots(order[start : start + batch_size], num_responses) for start in starts)


def greedy_steps(num_responses: Sequence[int], slots: int, rng: np.random.Generator) -> tuple[Step, ...]:
    """Return an epoch as in CHEEMS, section 5: the responses of a prompt that do not fit go into the next step.

    A step has at most ``slots`` responses. Every response is in exactly one step; pairs whose ends fall into
    different steps are lost (`share_in_steps`). It ends for every input: each response is placed once, in order.

    Differs from: the published sampler, which places pairs rather than responses, loses more of them, and does not
    end on some data with unlabelled responses.
    """
    queue = all_slots(rng.permutation(len(num_responses)).tolist(), num_responses)
    return tuple(queue[start : start + slots] for start in range(0, len(queue), slots))


def share_in_steps(steps: Sequence[Step], pairs: Sequence[Sequence[tuple[int, int]]]) -> float:
    """Return the share of all pairs whose two ends share a step. ``pairs[prompt]`` are positions within the prompt."""
    num_in_steps = 0
    for step in steps:
        present = set(step)
        num_in_steps += sum(
            Slot(prompt, better) in present and Slot(prompt, worse) in present
            for prompt in {slot.prompt for slot in step}
            for better, worse in pairs[prompt]
        )
    return num_in_steps / max(1, sum(map(len, pairs)))


def packed_steps(sizes: Sequence[int], budget: int, rng: np.random.Generator) -> tuple[tuple[int, ...], ...]:
    """Return an epoch with every prompt in exactly one step of at most ``budget`` tokens.

    A prompt is a position in ``sizes``, in tokens; one over the budget is a step by itself. Prompts are shuffled and
    wait in a pool; a step takes those that wait longest, and for its last two places the pair that leaves least room.
    The last steps of an epoch, when the pool runs out, may be emptier: they are shuffled among the others.
    """
    order = rng.permutation(len(sizes)).tolist()
    pool = _Pool([], deque(), set())
    steps: list[tuple[int, ...]] = []
    for place, prompt in enumerate(order):
        if sizes[prompt] >= budget:
            steps.append((prompt,))
        else:
            pool.add(sizes[prompt], prompt)
        while len(pool.waiting) >= _POOL or (place == len(order) - 1 and pool.waiting):
            steps.append(_fill_step(pool, sizes, budget))
    return tuple(steps[place] for place in rng.permutation(len(steps)))


class _Pool(NamedTuple):
    """Waiting prompts: by size, in the order of their arrival, and as a set without those already taken."""

    by_size: list[tuple[int, int]]
    in_order: deque[int]
    waiting: set[int]

    def add(self, size: int, prompt: int) -> None:
        insort(self.by_size, (size, prompt))
        self.in_order.append(prompt)
        self.waiting.add(prompt)

    def take(self, size: int, prompt: int) -> None:
        del self.by_size[bisect_left(self.by_size, (size, prompt))]
        self.waiting.discard(prompt)

    def oldest(self) -> int:
        # Prompts that were taken by size stay in the queue until they reach its front.
        while self.in_order[0] not in self.waiting:
            self.in_order.popleft()
        return self.in_order[0]

    def largest_within(self, room: int) -> tuple[int, int] | None:
        """Return the largest prompt that fits, as (size, prompt)."""
        # Behind every prompt of size `room`, and before any that is larger.
        at = bisect_left(self.by_size, (room + 1, -1))
        return self.by_size[at - 1] if at else None


def _fill_step(pool: _Pool, sizes: Sequence[int], budget: int) -> tuple[int, ...]:
    step: list[int] = []
    room = budget
    typical = pool.by_size[len(pool.by_size) // 2][0]
    while pool.waiting:
        oldest = pool.oldest()
        # Room for two typical prompts is left: `_filling` chooses these by size, to fill the step.
        if room - sizes[oldest] < 2 * typical:
            break
        pool.take(sizes[oldest], oldest)
        step.append(oldest)
        room -= sizes[oldest]
    while pool.waiting:
        chosen = _filling(pool, room)
        if not chosen:
            break
        for size, prompt in chosen:
            pool.take(size, prompt)
            step.append(prompt)
            room -= size
    return tuple(step)


def _filling(pool: _Pool, room: int) -> list[tuple[int, int]]:
    """Return the one or two prompts that leave least room."""
    alone = pool.largest_within(room)
    if alone is None:
        return []
    best, gap = [alone], room - alone[0]
    number = len(pool.by_size)
    for attempt in range(min(_NUM_TRIALS, number)):
        if gap == 0:
            break
        first = pool.by_size[attempt * number // min(_NUM_TRIALS, number)]
        second = pool.largest_within(room - first[0])
        if second is not None and second != first and 0 <= room - first[0] - second[0] < gap:
            best, gap = [first, second], room - first[0] - second[0]
    return best


def slots_by_prompt(slots: Step) -> list[Step]:
    """Return the slots prompt by prompt, in the order of their first slots."""
    by_prompt: dict[int, list[Slot]] = {}
    for slot in slots:
        by_prompt.setdefault(slot.prompt, []).append(slot)
    return [tuple(group) for group in by_prompt.values()]


def rows_of(slots: Sequence[Slot], examples: Sequence[Example]) -> tuple[tuple[int, ...], ...]:
    """Return the token ids of the slots' responses."""
    return tuple(examples[slot.prompt].rows[slot.response] for slot in slots)


def loss_inputs(slots: Step, examples: Sequence[Example]) -> LossInputs:
    """Return the ratings of the slots, and the pairs with both ends among them: ordered pairs, then ties, by prompt."""
    place = {slot: index for index, slot in enumerate(slots)}
    number = {prompt: index for index, prompt in enumerate(dict.fromkeys(slot.prompt for slot in slots))}
    columns: list[tuple[int, int, float, float, int]] = []
    tied: list[bool] = []
    for prompt, index in number.items():
        for pairs, is_tie in ((examples[prompt].pairs, False), (examples[prompt].ties, True)):
            for pair in pairs:
                first, second = place.get(Slot(prompt, pair.better)), place.get(Slot(prompt, pair.worse))
                if first is not None and second is not None:
                    columns.append((first, second, pair.weight, pair.margin, index))
                    tied.append(is_tie)
    better, worse, weight, margin, number_of = zip(*columns, strict=True) if columns else ((), (), (), (), ())
    pairs = PairBatch(
        torch.tensor(better, dtype=torch.long),
        torch.tensor(worse, dtype=torch.long),
        torch.tensor(weight, dtype=torch.float32),
        torch.tensor(margin, dtype=torch.float32),
        torch.tensor(number_of, dtype=torch.long),
    )
    rated = [
        (place[slot], rating.target, rating.weight, index)
        for prompt, index in number.items()
        for rating in examples[prompt].ratings
        if (slot := Slot(prompt, rating.response)) in place
    ]
    response, target, rating_weight, owner = zip(*rated, strict=True) if rated else ((), (), (), ())
    ratings = RatingBatch(
        torch.tensor(response, dtype=torch.long),
        torch.tensor(target, dtype=torch.float32),
        torch.tensor(rating_weight, dtype=torch.float32),
        torch.tensor(owner, dtype=torch.long),
    )
    return LossInputs(pairs, torch.tensor(tied, dtype=torch.bool), len(slots), ratings)


def pairs_in(slots: Step, examples: Sequence[Example]) -> PairBatch | None:
    """Return the ordered pairs with both ends among the slots, or null where none has a weight."""
    inputs = loss_inputs(slots, examples)
    ordered = PairBatch(*(column[~inputs.tied] for column in inputs.pairs))
    return ordered if bool((ordered.weight > 0).any()) else None


def first_step(plan: Sequence[PlannedStep], examples: Sequence[Example], config: Config) -> Step:
    """Return the first step with an ordered pair, or with a rating where the loss reads these.

    Raises EvidenceError where there is none.
    """
    # A step of ratings is in the plan because it has one.
    is_first = config.reads_ratings
    slots = next((step.slots for step in plan if is_first or pairs_in(step.slots, examples) is not None), None)
    if slots is None:
        raise EvidenceError(
            "no step has both responses of a pair",
            do=Advice("raise ", Remedy("responses_per_step", NUMBER), ", or use ", Remedy("batching", "whole")),
        )
    return slots


def has_evidence(slots: Step, examples: Sequence[Example]) -> bool:
    """Return whether the slots hold a pair, a tie or a rating with a weight."""
    ends: dict[int, set[int]] = {}
    for slot in slots:
        ends.setdefault(slot.prompt, set()).add(slot.response)
    return any(
        pair.weight > 0 and pair.better in present and pair.worse in present
        for prompt, present in ends.items()
        for pair in (*examples[prompt].pairs, *examples[prompt].ties)
    ) or any(
        rating.weight > 0 and rating.response in present
        for prompt, present in ends.items()
        for rating in examples[prompt].ratings
    )
