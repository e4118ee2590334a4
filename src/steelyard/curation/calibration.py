"""The threshold tau: the coverage and precision of each tau, and the smallest tau of a target precision.

Guarantee. Let a prompt be drawn like the calibration prompts, and one of its verdicts that people judged strictly, each
as likely. *Precision at tau* is the probability that the verdict agrees with the people, given that the supervisor
keeps it at tau. If the calibration prompts are independent draws, then over their draw the chosen tau has at least the
target precision with probability ``confidence`` or more. Nothing is assumed of the model or of the verdicts' errors.

Dependence within a prompt. The verdicts on one prompt share its responses, so a binomial over verdicts would count the
same evidence several times. A prompt is one observation here: the share of its verdicts that are kept and wrong minus
(1 - precision) times the share that is kept, a number between -(1 - precision) and precision whose mean is negative
exactly if the precision is above the target. That mean is tested by betting (Waudby-Smith and Ramdas, 2024,
"Estimating means of bounded random variables by betting"): the average over fixed stakes of the product over prompts
of (1 - stake * observation) has a mean of at most 1 where the precision is too low, so 1 / average is a p-value by
Markov's inequality, for any dependence inside a prompt. Where every prompt has one verdict, the binomial is exact
(Clopper and Pearson, 1934) and sharper, and is used instead.

Several taus. They are tested as a fixed sequence with several starts (Angelopoulos et al., 2021, "Learn then Test"):
from each start towards smaller taus until one fails, each start at its share of 1 - confidence. The candidate taus must
not depend on the calibration labels.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.errors import EvidenceError
from steelyard.core.numerics import Booleans, Floats, Integers
from steelyard.core.types import Record
from steelyard.curation.supervised import ScoredBatch, compare_with_people
from steelyard.curation.supervision import HumanTies
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.unit_bootstrap import number_units, share_of

_STAKES = np.array([0.9, 0.6, 0.35, 0.18, 0.08])
_STAKE_WEIGHTS = np.array([0.3, 0.3, 0.25, 0.1, 0.05])
"""Stakes as shares of the largest that cannot lose everything. Small ones win only small advantages over many prompts,
which can afford their small weights."""


class LabelledVerdicts(NamedTuple):
    """Columns with one entry for each verdict on which people agree: prompt, the model's margin, whether it is right.

    The margin is NaN where the model has no score: such a verdict is never kept, but counts among its prompt's.
    """

    prompt: Integers
    margin: Floats
    is_right: Booleans


class TauPoint(Record, frozen=True, kw_only=True):
    """One tau on the held-out verdicts. Precision is null where nothing is kept.

    The guarantee is about ``precision_by_prompt``; ``precision`` counts every verdict alike. ``p_value`` tests "the
    precision is not above the target"; ``is_certified``: the sequence of tests reached and passed this tau.
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


class TauCalibration(NamedTuple):
    """The smallest certified tau, or null if there is none, and all candidates, smallest first."""

    tau: float | None
    points: tuple[TauPoint, ...]


class MarginSurvey(NamedTuple):
    """The margins of a file's strict supervised verdicts, and those verdicts that people judged too.

    ``num_scores`` and ``num_unscored`` count responses. Margins are NaN where the supervisor has no score.
    """

    margins: Floats
    labelled: LabelledVerdicts
    num_scores: int
    num_unscored: int


class TauRow(Record, frozen=True):
    """The verdicts that one tau keeps, and their precision (of every verdict alike) where people judged too."""

    tau: float
    num_kept: int
    coverage: float
    precision: Estimate


def survey_margins(batches: Iterable[ScoredBatch], *, human_ties: HumanTies) -> MarginSurvey:
    """Collect the margins of a file in one pass. A prompt is its id: parallel items of several languages are one."""
    margins: list[Floats] = []
    prompts: list[str] = []
    labelled_margins: list[Floats] = []
    is_right: list[Booleans] = []
    num_scores = num_unscored = 0
    for batch in batches:
        margins.append(batch.margin[batch.table.verdicts.is_strict])
        agreement = compare_with_people(batch)
        counts = ~agreement.is_tied if human_ties == "leave_out" else np.ones(len(agreement.graph), bool)
        prompts += [batch.cases[graph].prompt.id for graph in agreement.graph[counts].tolist()]
        labelled_margins.append(agreement.margin[counts])
        is_right.append(agreement.is_right[counts])
        num_scores += sum(len(line.scores) for line in batch.scores)
        num_unscored += sum(len(line.unscored) for line in batch.scores)
    labelled = LabelledVerdicts(
        number_units(prompts), np.concatenate([[], *labelled_margins]), np.concatenate([[], *is_right]).astype(bool)
    )
    return MarginSurvey(np.concatenate([[], *margins]), labelled, num_scores, num_unscored)


def calibrate_tau(
    cases: MarginSurvey, held_out: MarginSurvey, *, precision: float, confidence: float, seed: int, where: str
) -> TauCalibration:
    """Calibrate tau on the held-out cases. Raises EvidenceError if they hold no label, or no tau is certified.

    The candidate taus are quantiles of the margins of the cases to be supervised: the labels have no part in them.
    """
    check_labelled(held_out, where=where)
    taus = candidate_taus(cases.margins)
    calibration = calibrate(held_out.labelled, taus, precision=precision, confidence=confidence)
    if calibration.tau is None:
        rows = rows_by_tau(cases, held_out.labelled, taus, seed=seed)
        raise EvidenceError(
            f"no tau reaches a precision of {precision} with confidence {confidence} on {where}, which has "
            f"{len(np.unique(held_out.labelled.prompt))} prompts to show it\n{tau_table(rows)}",
            allowed=f"these cases certify {_best_certified(held_out.labelled, taus, confidence)}",
            do="lower the precision or the confidence, or calibrate on more prompts that people judged",
        )
    return calibration


def rows_by_tau(cases: MarginSurvey, labelled: LabelledVerdicts, taus: Sequence[float], *, seed: int) -> list[TauRow]:
    """Return for each tau its coverage of the cases, and its precision where people judged too.

    The interval is a 95% bootstrap over prompts, for each tau alone; it does not cover a tau chosen by it.
    """
    total = max(len(cases.margins), 1)
    rows = []
    for tau in sorted(set(taus)):
        num_kept = int(is_kept(cases.margins, tau).sum())
        precision = share_of(labelled.prompt, is_kept(labelled.margin, tau), labelled.is_right, seed=seed)
        rows.append(TauRow(tau, num_kept, num_kept / total, precision))
    return rows


def check_labelled(held_out: MarginSurvey, *, where: str) -> None:
    """Check that there is a labelled verdict.

    Raises EvidenceError if people and the supervised judges have no strictly judged pair in common.
    """
    if not len(held_out.labelled.prompt):
        raise EvidenceError(
            "no pair is judged strictly both by people and by the supervised judges",
            where=where,
            do="bring both into one file: steelyard merge HUMAN LLM, on the same held-out prompts",
        )


def check_judged(cases: MarginSurvey, *, where: str) -> None:
    """Check that a strict judgment is supervised. Raises EvidenceError if none is."""
    if not len(cases.margins):
        raise EvidenceError(
            "there is no strict judgment to supervise",
            where=where,
            do="pick others: --only kind=NAME, or --only judge=NAME",
        )


def check_some_kept(cases: MarginSurvey, tau: float, *, where: str, do: str) -> None:
    """Check that tau keeps a strict judgment. Raises EvidenceError, with the coverage of smaller taus, if not."""
    if is_kept(cases.margins, tau).any():
        return
    rows = rows_by_tau(cases, cases.labelled, candidate_taus(cases.margins), seed=0)
    if not any(row.num_kept for row in rows):
        raise EvidenceError(
            f"the supervisor agrees with none of {len(cases.margins)} strict judgments, at any tau "
            f"({cases.num_unscored} of {cases.num_scores} responses are unscored)",
            where=where,
            do="check that its protocol fits these cases, and its training",
        )
    raise EvidenceError(f"tau {tau:g} drops everything\n{tau_table(rows)}", where=where, do=do)


def tau_table(rows: Sequence[TauRow]) -> str:
    """Return the rows of `rows_by_tau` as lines of text."""
    lines = ["         tau      kept  coverage  precision [95%]"]
    for row in rows:
        share = row.precision
        measured = "-" if share.n == 0 else f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}] of {share.n:,}"
        lines.append(f"{row.tau:12.6g}{row.num_kept:10,}{row.coverage:10.1%}  {measured}")
    return "\n".join(lines)


def _best_certified(labelled: LabelledVerdicts, taus: Sequence[float], confidence: float) -> str:
    """Return the largest certified precision of any tau, in steps of 0.01."""
    for percent in range(99, 0, -1):
        calibration = calibrate(labelled, taus, precision=percent / 100, confidence=confidence)
        if calibration.tau is not None:
            return f"a precision of {percent / 100} at most, by tau {calibration.tau:.6g}"
    return "no precision at all"


def calibrate(
    labelled: LabelledVerdicts, candidates: Sequence[float], *, precision: float, confidence: float, num_starts: int = 4
) -> TauCalibration:
    """Return the smallest candidate tau whose precision is at least ``precision`` with the stated confidence.

    ``num_starts`` sequences, at least 2, begin evenly spread over the candidates, from the smallest to the largest: a
    large tau may keep too few verdicts to pass, and a sequence that began only there would end at once.
    """
    taus = sorted(set(candidates))
    p_values = [p_value(labelled, tau, precision) for tau in taus]
    certified = _certified(p_values, 1 - confidence, num_starts)
    points = tuple(
        _point(labelled, tau, p, is_certified=index in certified)
        for index, (tau, p) in enumerate(zip(taus, p_values, strict=True))
    )
    return TauCalibration(min((taus[index] for index in certified), default=None), points)


def is_kept(margin: Floats, tau: float) -> Booleans:
    """Return which verdicts the policy ``agree`` keeps at tau."""
    return (margin > 0) & (margin >= tau)


def p_value(labelled: LabelledVerdicts, tau: float, precision: float) -> float:
    """Return the p-value of the hypothesis that the precision at tau is not above the target."""
    at_tau = is_kept(labelled.margin, tau)
    wrong = at_tau & ~labelled.is_right
    num_prompts = len(np.unique(labelled.prompt))
    # One verdict a prompt: independent draws, for which the binomial is exact.
    if num_prompts == len(labelled.prompt):
        # Imported on use: scipy.stats takes over a second to load.
        from scipy.stats import binom

        return float(binom.cdf(wrong.sum(), at_tau.sum(), 1 - precision)) if at_tau.any() else 1.0
    observed = _by_prompt(labelled, wrong) - (1 - precision) * _by_prompt(labelled, at_tau)
    # Logarithms, because a product over thousands of prompts overflows. A stake is relative to 1 / precision: the
    # largest observation is the precision, so that a stake below 1 never loses everything.
    wealth = np.log1p(-np.outer(_STAKES / precision, observed)).sum(1)
    largest = float(wealth.max())
    log_average = largest + float(np.log(_STAKE_WEIGHTS @ np.exp(wealth - largest)))
    # Markov's inequality: P(average >= 1 / p) <= p. It says nothing above 1.
    return float(np.exp(min(0.0, -log_average)))


def candidate_taus(margin: Floats, num_candidates: int = 20) -> tuple[float, ...]:
    """Return taus that keep evenly spread shares of the verdicts that agree with the model; the smallest, 0, keeps all.

    The margins should be those of the verdicts to be supervised, not of the calibration verdicts.
    """
    agreeing = margin[margin > 0]
    if not len(agreeing):
        return (0.0,)
    shares = np.arange(1, num_candidates) / num_candidates
    # `higher` gives margins that occur in the data; equal candidates are merged, in ascending order.
    return tuple(dict.fromkeys([0.0, *np.quantile(agreeing, shares, method="higher").tolist()]))


def _certified(p_values: Sequence[float], risk: float, num_starts: int) -> set[int]:
    """Return the positions (smallest tau first) that a sequence reached and passed."""
    last = len(p_values) - 1
    starts = sorted({round(step * last / (num_starts - 1)) for step in range(num_starts)})
    certified: set[int] = set()
    for start in starts:
        for index in range(start, -1, -1):
            # Bonferroni over the starts; within a fixed sequence no correction is needed (Maurer et al., 1995).
            if p_values[index] > risk / len(starts):
                break
            certified.add(index)
    return certified


def _by_prompt(labelled: LabelledVerdicts, chosen: Booleans) -> Floats:
    """Return the share of each prompt's verdicts that are chosen."""
    _, place = np.unique(labelled.prompt, return_inverse=True)
    return np.bincount(place, chosen) / np.bincount(place)


def _point(labelled: LabelledVerdicts, tau: float, p: float, *, is_certified: bool) -> TauPoint:
    """Count what tau keeps of the labelled verdicts, by verdict and by prompt."""
    at_tau = is_kept(labelled.margin, tau)
    right = at_tau & labelled.is_right
    num_kept, num_right = int(at_tau.sum()), int(right.sum())
    share = float(_by_prompt(labelled, at_tau).sum()) if num_kept else 0.0
    return TauPoint(
        tau=tau,
        num_kept=num_kept,
        num_right=num_right,
        num_prompts=len(np.unique(labelled.prompt[at_tau])),
        coverage=num_kept / len(at_tau) if len(at_tau) else 0.0,
        precision=num_right / num_kept if num_kept else None,
        precision_by_prompt=float(_by_prompt(labelled, right).sum()) / share if num_kept else None,
        p_value=p,
        is_certified=is_certified,
    )
