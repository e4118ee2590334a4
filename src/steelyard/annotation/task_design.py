"""The triple design: the responses that are shown together, their order, and the annotator (CHEEMS, section 3.2)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.errors import ConfigError

Triple = tuple[int, int, int]


class Task(NamedTuple):
    """One comparison of one prompt: positions of the responses in the order shown, and the annotator."""

    number: int
    shown: Triple
    annotator: int


def circular_triples(num_responses: int) -> tuple[Triple, ...]:
    """Return one triple for each response: it and the next two around the circle. Raises ConfigError below three.

    For five responses these are five tasks with 15 verdicts on all 10 pairs: neighbours on the circle are compared
    twice, the other pairs once. For three, the one triple is judged three times; for four, every pair twice; from six
    on, pairs more than two apart on the circle are never compared, and their order follows only from others.
    """
    if num_responses < 3:
        raise ConfigError(f"{num_responses} responses", where="triples", allowed="3 or more: a task shows three")
    return tuple((start, (start + 1) % num_responses, (start + 2) % num_responses) for start in range(num_responses))


def assign(num_prompts: int, num_tasks: int, num_annotators: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Assign an annotator to each task, (prompt, task): none sees a prompt twice, and loads differ by at most one.

    Raises ConfigError for fewer annotators than a prompt has tasks.
    """
    if num_annotators < num_tasks:
        raise ConfigError(
            f"{num_annotators} annotators for {num_tasks} tasks a prompt",
            where="num_annotators",
            allowed=f"{num_tasks} or more: nobody judges a prompt twice",
        )
    loads = np.zeros(num_annotators, np.int64)
    chosen = np.empty((num_prompts, num_tasks), np.int64)
    for row in chosen:
        row[:] = np.lexsort((rng.random(num_annotators), loads))[:num_tasks]
        loads[row] += 1
        rng.shuffle(row)
    return chosen


def plan_tasks(num_responses: int, annotators: NDArray[np.int64], rng: np.random.Generator) -> tuple[Task, ...]:
    """Return the tasks of one prompt for a row of `assign`; each triple is shown in its own random order."""
    return tuple(
        Task(number, _shuffled(triple, rng), int(annotator))
        for number, (triple, annotator) in enumerate(
            zip(circular_triples(num_responses), annotators, strict=True), start=1
        )
    )


def _shuffled(triple: Triple, rng: np.random.Generator) -> Triple:
    first, second, third = rng.permutation(3)
    return (triple[first], triple[second], triple[third])
