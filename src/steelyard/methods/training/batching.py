"""Which responses share a step, and which a forward pass: no response twice in an epoch; in `whole` no pair lost."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Slot(NamedTuple):
    """One response in a step: the prompt's position and the response's position within the prompt."""

    prompt: int
    response: int


Step = tuple[Slot, ...]


def whole_steps(num_responses: Sequence[int], prompts_per_step: int, rng: np.random.Generator) -> tuple[Step, ...]:
    """An epoch in which a prompt is never split: shuffled prompts, ``prompts_per_step`` a step, the last may be less.

    ``num_responses`` has one entry a prompt. Every response stands in exactly one step, with all others of its prompt.
    """
    order = rng.permutation(len(num_responses)).tolist()
    return tuple(
        tuple(
            Slot(prompt, response)
            for prompt in order[start : start + prompts_per_step]
            for response in range(num_responses[prompt])
        )
        for start in range(0, len(order), prompts_per_step)
    )


def greedy_steps(num_responses: Sequence[int], slots: int, rng: np.random.Generator) -> tuple[Step, ...]:
    """An epoch by the paper's sentence (CHEEMS, section 5): what of a prompt does not fit goes into the next step.

    A step has at most ``slots`` responses. Every response stands in exactly one step; pairs whose ends fall into
    different steps are lost (`share_kept`). It ends for every input: each response is placed once, in order.

    Differs from: the published sampler, which places pairs rather than responses, loses more of them, and does not
    end on some data with unlabelled responses.
    """
    queue = [
        Slot(prompt, response)
        for prompt in rng.permutation(len(num_responses)).tolist()
        for response in range(num_responses[prompt])
    ]
    return tuple(tuple(queue[start : start + slots]) for start in range(0, len(queue), slots))


def share_kept(steps: Sequence[Step], pairs: Sequence[Sequence[tuple[int, int]]]) -> float:
    """The share of all pairs whose two ends share a step. ``pairs[prompt]`` are positions within the prompt."""
    kept = 0
    for step in steps:
        present = set(step)
        kept += sum(
            Slot(prompt, better) in present and Slot(prompt, worse) in present
            for prompt in {slot.prompt for slot in step}
            for better, worse in pairs[prompt]
        )
    return kept / max(1, sum(map(len, pairs)))


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
