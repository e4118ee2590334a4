"""The threshold tau from held-out human judgments: the smallest whose precision is wanted, with a stated confidence.

Guarantee. Let a prompt be drawn like the calibration prompts, and one of its verdicts that people judged strictly, each
as likely. *Precision at tau* is the probability that the verdict agrees with the people, given that the supervisor
keeps it at tau. If the calibration prompts are independent draws, then over their draw the chosen tau has at least the
wanted precision with probability ``confidence`` or more. Nothing is assumed of the model or of the verdicts' errors.

Dependence within a prompt. The verdicts on one prompt share its responses, so a binomial over verdicts would count the
same evidence several times. A prompt is one observation here: the share of its verdicts that are kept and wrong minus
(1 - precision) times the share that is kept, a number between -(1 - precision) and precision whose mean is negative
exactly if the precision is above the wanted one. That mean is tested by betting (Waudby-Smith and Ramdas, 2024,
"Estimating means of bounded random variables by betting"): the average over fixed stakes of the product over prompts
of (1 - stake * observation) has a mean of at most 1 where the precision is too low, so 1 / average is a p-value by
Markov's inequality, for any dependence inside a prompt. Where every prompt has one verdict, the binomial is exact
(Clopper and Pearson, 1934) and sharper, and is used instead.

Several taus. They are tested as a fixed sequence with several starts (Angelopoulos et al., 2021, "Learn then Test"):
from each start towards smaller taus until one fails, each start at its share of 1 - confidence. The candidate taus must
not depend on the calibration labels.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.ranking.judgment_table import Integers

Floats = NDArray[np.float64]

_STAKES = np.array([0.9, 0.6, 0.35, 0.18, 0.08])
_STAKE_WEIGHTS = np.array([0.3, 0.3, 0.25, 0.1, 0.05])
"""Stakes as shares of the largest that cannot lose everything. Small ones win only small advantages over many prompts,
which can afford their small weights."""


class Trial(NamedTuple):
    """One entry a held-out verdict on which people agree: its prompt, the model's margin for it, whether it is right.

    The margin is NaN where the model has no score: such a verdict is never kept, but counts among its prompt's.
    """

    prompt: Integers
    margin: Floats
    is_right: NDArray[np.bool_]


class Point(NamedTuple):
    """What the held-out verdicts say of one tau. Precision is null where nothing is kept.

    ``precision_by_prompt`` is what the guarantee is about; ``precision`` counts every verdict alike. ``p_value`` is of
    "the precision is not above the wanted one"; ``is_certified``: the sequence of tests reached and passed this tau.
    """

    tau: float
    num_kept: int
    num_right: int
    num_prompts: int
    coverage: float
    precision: float | None
    precision_by_prompt: float | None
    p_value: float
    is_certified: bool


class Calibration(NamedTuple):
    """The smallest certified tau, or null if there is none, and all candidates, smallest first."""

    tau: float | None
    points: tuple[Point, ...]


def calibrate(
    trial: Trial, candidates: Sequence[float], *, precision: float, confidence: float, num_starts: int = 4
) -> Calibration:
    """The smallest candidate tau whose precision is at least ``precision`` with the stated confidence.

    ``num_starts`` sequences, at least 2, begin evenly spread over the candidates, from the smallest to the largest: a
    large tau may keep too few verdicts to pass, and a sequence that began only there would end at once.
    """
    taus = sorted(set(candidates))
    p_values = [p_value(trial, tau, precision) for tau in taus]
    certified = _certified(p_values, 1 - confidence, num_starts)
    points = tuple(
        _point(trial, tau, p, is_certified=index in certified)
        for index, (tau, p) in enumerate(zip(taus, p_values, strict=True))
    )
    return Calibration(min((taus[index] for index in certified), default=None), points)


def is_kept(margin: Floats, tau: float) -> NDArray[np.bool_]:
    """Which verdicts the policy ``agree`` keeps at tau."""
    return (margin > 0) & (margin >= tau)


def p_value(trial: Trial, tau: float, precision: float) -> float:
    """How surprising the held-out verdicts would be if the precision at tau were not above the wanted one."""
    kept = is_kept(trial.margin, tau)
    wrong = kept & ~trial.is_right
    num_prompts = len(np.unique(trial.prompt))
    if num_prompts == len(trial.prompt):
        from scipy.stats import binom

        return float(binom.cdf(wrong.sum(), kept.sum(), 1 - precision)) if kept.any() else 1.0
    observed = _by_prompt(trial, wrong) - (1 - precision) * _by_prompt(trial, kept)
    wealth = np.log1p(-np.outer(_STAKES / precision, observed)).sum(1)
    largest = float(wealth.max())
    log_average = largest + float(np.log(_STAKE_WEIGHTS @ np.exp(wealth - largest)))
    return float(np.exp(min(0.0, -log_average)))


def candidate_taus(margin: Floats, num_candidates: int = 20) -> tuple[float, ...]:
    """Taus that keep evenly spread shares of the verdicts that agree with the model; the smallest is 0, which keeps
    them all. The margins should be those of the verdicts to be supervised, not of the calibration verdicts.
    """
    agreeing = margin[margin > 0]
    if not len(agreeing):
        return (0.0,)
    shares = np.arange(1, num_candidates) / num_candidates
    return tuple(dict.fromkeys([0.0, *np.quantile(agreeing, shares, method="higher").tolist()]))


def _certified(p_values: Sequence[float], risk: float, num_starts: int) -> set[int]:
    """Positions (smallest tau first) that a sequence reached and passed."""
    last = len(p_values) - 1
    starts = sorted({round(step * last / (num_starts - 1)) for step in range(num_starts)})
    found: set[int] = set()
    for start in starts:
        for index in range(start, -1, -1):
            if p_values[index] > risk / len(starts):
                break
            found.add(index)
    return found


def _by_prompt(trial: Trial, chosen: NDArray[np.bool_]) -> Floats:
    """The share of each prompt's verdicts that are chosen."""
    _, place = np.unique(trial.prompt, return_inverse=True)
    return np.bincount(place, chosen) / np.bincount(place)


def _point(trial: Trial, tau: float, p: float, *, is_certified: bool) -> Point:
    kept = is_kept(trial.margin, tau)
    right = kept & trial.is_right
    num_kept, num_right = int(kept.sum()), int(right.sum())
    share = float(_by_prompt(trial, kept).sum()) if num_kept else 0.0
    return Point(
        tau=tau,
        num_kept=num_kept,
        num_right=num_right,
        num_prompts=len(np.unique(trial.prompt[kept])),
        coverage=num_kept / len(kept) if len(kept) else 0.0,
        precision=num_right / num_kept if num_kept else None,
        precision_by_prompt=float(_by_prompt(trial, right).sum()) / share if num_kept else None,
        p_value=p,
        is_certified=is_certified,
    )
