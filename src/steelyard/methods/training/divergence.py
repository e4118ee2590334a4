"""Whether a training has lost its way: losses far over what they were, step after step."""

from collections.abc import Sequence
from math import log
from statistics import median

_WINDOW = 100


def usual_loss(losses: Sequence[float], num_steps: int) -> float:
    """The median of the hundred losses before the last ``num_steps``, and at least ln 2, which equal scores cost.

    A training that has its pairs by heart has losses near nothing, of which a multiple says nothing.
    """
    before = losses[max(0, len(losses) - num_steps - _WINDOW) : len(losses) - num_steps]
    return max(log(2), median(before)) if before else log(2)


def has_diverged(losses: Sequence[float], *, factor: float, num_steps: int) -> bool:
    """Whether each of the last ``num_steps`` losses is over ``factor`` times the usual one; never for 0 steps.

    The losses before them must be at least as many: a training may begin badly.
    """
    if num_steps == 0 or len(losses) < 2 * num_steps:
        return False
    bound = factor * usual_loss(losses, num_steps)
    return all(loss > bound for loss in losses[-num_steps:])
