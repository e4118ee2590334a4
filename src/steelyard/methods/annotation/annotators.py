"""Simulated annotators: a documented noise model from latent quality to verdicts, for testing methods, never as data.

An annotator who is shown k responses perceives each as its latent quality plus normal noise (Thurstone's model, case
V), drawn anew for every task, so that verdicts on one task agree with each other. A verdict prefers what is perceived
as better, unless the two are closer than the tie band; a small share of verdicts cannot be read. Biases of place and
of length are added to what is perceived.
"""

import numpy as np
from numpy.typing import NDArray

from steelyard.core.config import Config
from steelyard.core.types import Verdict

Floats = NDArray[np.float64]

VERDICTS: tuple[Verdict, ...] = ("left", "right", "tie", "none")


class Noise(Config, frozen=True):
    """How an annotator errs, in units of latent quality, where a good answer has 1 and a useless one about 0.

    ``spread`` is the standard deviation of perception; ``tie_band`` the perceived difference below which a verdict is
    a tie; ``unreadable`` the share of verdicts that cannot be read. ``position_bias`` is what the last place is
    perceived better by than the first. ``length_bias`` is what a far longer text is perceived better by: it is
    multiplied with the hyperbolic tangent of the logarithm of the length over the geometric mean of those shown.
    """

    spread: float
    tie_band: float
    unreadable: float = 0.01
    position_bias: float = 0.0
    length_bias: float = 0.0


# Calibrated so that the triple design gives the conflict ratio of human annotators (CHEEMS, table 5: 0.1999 and
# 0.2161) and the share of ordered pairs of CheemsBench (table 1: 68 to 73 % of ten), for the qualities of `drafts`.
HUMAN = Noise(spread=0.155, tie_band=0.065)

# Calibrated so that all pairs, judged one by one, give the conflict ratio of GPT-4o (CHEEMS, table 5: 0.2593 and
# 0.3170), with its preference for what is placed later and for what is longer (figure 15).
LLM = Noise(spread=0.27, tie_band=0.03, position_bias=0.12, length_bias=0.25)


def perceive(qualities: Floats, lengths: Floats, noise: Noise, rng: np.random.Generator) -> Floats:
    """What is perceived of the responses of each task, ``[tasks, shown]``, from their qualities and lengths likewise.

    The last axis is the order shown. Lengths are in any unit and above 0.
    """
    num_shown = qualities.shape[-1]
    place = np.linspace(-0.5, 0.5, num_shown)
    logarithm = np.log(lengths)
    relative = np.tanh(logarithm - logarithm.mean(axis=-1, keepdims=True))
    drawn = rng.normal(0.0, noise.spread, qualities.shape)
    return qualities + drawn + noise.position_bias * place + noise.length_bias * relative


def compare(perceived: Floats, noise: Noise, rng: np.random.Generator) -> NDArray[np.int64]:
    """The verdict of each task on each pair shown, ``[tasks, pairs]``, as places in `VERDICTS`.

    Pairs are (0, 1), (0, 2), …, (1, 2), … of the order shown, and ``left`` is the one shown earlier.
    """
    left, right = np.triu_indices(perceived.shape[-1], 1)
    difference = perceived[..., left] - perceived[..., right]
    verdicts = np.where(np.abs(difference) < noise.tie_band, 2, np.where(difference > 0, 0, 1))
    return np.where(rng.random(verdicts.shape) < noise.unreadable, 3, verdicts)
