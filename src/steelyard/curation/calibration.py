"""The margin threshold: coverage and precision of each candidate, and the smallest that reaches a target precision.

Guarantee. Let a prompt be drawn like the calibration prompts, and one of its verdicts that people judged strictly, each
as likely. *Precision at a threshold* is the probability that the verdict agrees with the people, given that the
supervisor keeps it there. If the calibration prompts are independent draws, then over their draw the chosen
threshold has at least the target precision with probability ``confidence`` or more. Nothing is assumed of the model or
of the verdicts' errors.

Dependence within a prompt. The verdicts on one prompt share its responses, so a binomial over verdicts would count the
same evidence several times. A prompt is one observation here: the share of its verdicts that are kept and wrong minus
(1 - precision) times the share that is kept, a number between -(1 - precision) and precision whose mean is negative
exactly if the precision is above the target. That mean is tested by betting (Waudby-Smith and Ramdas, 2024,
"Estimating means of bounded random variables by betting"): the average over fixed stakes of the product over prompts
of (1 - stake * observation) has a mean of at most 1 where the precision is too low, so 1 / average is a p-value by
Markov's inequality, for any dependence inside a prompt. Where every prompt has one verdict, the binomial is exact
(Clopper and Pearson, 1934) and sharper, and is used instead.

Several thresholds. They are tested as a fixed sequence with several starts (Angelopoulos et al., 2021, "Learn then
Test"): from each start towards smaller thresholds until one fails, each start at its share of 1 - confidence. The
candidate thresholds must not depend on the calibration labels.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.errors import EvidenceError
from steelyard.core.numerics import Booleans, Floats, Integers
from steelyard.core.remedies import CASES, Advice, Command, Remedy
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Record
from steelyard.curation.supervised import ScoredBatch, compare_with_people
from steelyard.curation.supervision import HumanTies
from steelyard.ranking.judgment_table import integers
from steelyard.statistics.groups import PromptUnits
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.unit_bootstrap import share_of

_STAKES = np.array([0.9, 0.6, 0.35, 0.18, 0.08])
_STAKE_WEIGHTS = np.array([0.3, 0.3, 0.25, 0.1, 0.05])
"""Stakes as shares of the largest that cannot lose everything. Small ones win only small advantages over many prompts,
which can afford their small weights."""
_NUM_STARTS = 4
_NUM_CANDIDATES = 20


class LabelledVerdicts(NamedTuple):
    """Columns with one entry for each verdict on which people agree: prompt, the model's margin, whether it is right.

    The margin is NaN where the model has no score: such a verdict is never kept, but counts among its prompt's.
    """

    prompt: Integers
    margin: Floats
    is_right: Booleans


class ThresholdPoint(Record, frozen=True, kw_only=True):
    """One threshold on the held-out verdicts. Precision is null where nothing is kept.

    The guarantee is about ``precision_by_prompt``; ``precision`` counts every verdict alike. ``p_value`` tests "the
    precision is not above the target"; ``is_certified``: the sequence of tests reached and passed this threshold.
    """

    threshold: float
    num_kept: int
    num_right: int
    num_prompts: int
    coverage: float
    precision: float | None
    precision_by_prompt: float | None
    p_value: float
    is_certified: bool


class ThresholdCalibration(NamedTuple):
    """The smallest certified threshold, or null if there is none, and all candidates, smallest first."""

    threshold: float | None
    points: tuple[ThresholdPoint, ...]


class MarginSurvey(NamedTuple):
    """The margins of a file's strict supervised verdicts, and those verdicts that people judged too.

    ``num_scores`` and ``num_unscored`` count responses. Margins are NaN where the supervisor has no score.
    """

    prompt: Integers
    margins: Floats
    labelled: LabelledVerdicts
    num_scores: int
    num_unscored: int

    def agreement(self, seed: int) -> Estimate:
        """Return the share of the scored verdicts that prefer the response with the greater score."""
        return share_of(self.prompt, ~np.isnan(self.margins), self.margins > 0, seed=seed)


class ThresholdRow(Record, frozen=True):
    """The verdicts that one threshold keeps, and their precision (of every verdict alike) where people judged too."""

    threshold: float
    num_kept: int
    coverage: float
    precision: Estimate


def survey_margins(batches: Iterable[ScoredBatch], *, human_ties: HumanTies) -> MarginSurvey:
    """Collect the margins of a file in one pass. Prompts of one id or one text are one (`PromptUnits`)."""
    units = PromptUnits()
    margins: list[Floats] = []
    every_prompt: list[Integers] = []
    prompts: list[Integers] = []
    labelled_margins: list[Floats] = []
    is_right: list[Booleans] = []
    num_scores = num_unscored = 0
    for batch in batches:
        unit = integers(units.unit(case.prompt) for case in batch.cases)
        is_strict = batch.table.verdicts.is_strict
        margins.append(batch.margin[is_strict])
        every_prompt.append(unit[batch.table.verdicts.graph[is_strict]])
        agreement = compare_with_people(batch)
        counts = ~agreement.is_tied if human_ties == "leave_out" else np.ones(len(agreement.graph), bool)
        prompts.append(unit[agreement.graph[counts]])
        labelled_margins.append(agreement.margin[counts])
        is_right.append(agreement.is_right[counts])
        num_scores += sum(len(line.scores) for line in batch.scores)
        num_unscored += sum(len(line.unscored) for line in batch.scores)
    labelled = LabelledVerdicts(
        _numbered(prompts), np.concatenate([[], *labelled_margins]), np.concatenate([[], *is_right]).astype(bool)
    )
    return MarginSurvey(_numbered(every_prompt), np.concatenate([[], *margins]), labelled, num_scores, num_unscored)


def _numbered(prompts: Sequence[Integers]) -> Integers:
    """Return the prompts of all batches, numbered from 0 without a gap."""
    return np.unique(np.concatenate([integers(()), *prompts]), return_inverse=True)[1]


def calibrate_threshold(
    cases: MarginSurvey, held_out: MarginSurvey, *, precision: float, confidence: float, seed: int, where: str
) -> ThresholdCalibration:
    """Calibrate the threshold on held-out cases. Raises EvidenceError if their labels cannot serve or certify none.

    The candidate thresholds are quantiles of the margins of the cases to be supervised: the labels have no part in
    them.
    """
    check_labelled(held_out, where=where)
    thresholds = candidate_thresholds(cases.margins)
    calibration = calibrate(held_out.labelled, thresholds, precision=precision, confidence=confidence)
    if calibration.threshold is None:
        rows = rows_by_threshold(cases, held_out.labelled, thresholds, seed=seed)
        raise EvidenceError(
            f"no threshold reaches a precision of {precision} with confidence {confidence} on {where}, which has "
            f"{number_of(len(np.unique(held_out.labelled.prompt)), 'prompt')} to show it\n{threshold_table(rows)}",
            allowed=f"these cases certify {_best_certified(held_out.labelled, thresholds, confidence)}",
            do="lower the precision or the confidence, or calibrate on more prompts that people judged",
        )
    return calibration


def rows_by_threshold(
    cases: MarginSurvey, labelled: LabelledVerdicts, thresholds: Sequence[float], *, seed: int
) -> list[ThresholdRow]:
    """Return for each threshold its coverage of the cases, and its precision where people judged too.

    The interval is a 95% bootstrap over prompts, for each threshold alone; it does not cover a threshold chosen by it.
    """
    total = max(len(cases.margins), 1)
    rows = []
    for threshold in sorted(set(thresholds)):
        num_kept = int(is_kept(cases.margins, threshold).sum())
        precision = share_of(labelled.prompt, is_kept(labelled.margin, threshold), labelled.is_right, seed=seed)
        rows.append(ThresholdRow(threshold, num_kept, num_kept / total, precision))
    return rows


def check_labelled(held_out: MarginSurvey, *, where: str) -> None:
    """Check that there is a labelled verdict, and that a label contradicts one.

    Raises EvidenceError if people and the supervised judges have no strictly judged pair in common, or if all of their
    verdicts agree: a copy of people's verdicts would certify a precision of 1 at every threshold.
    """
    is_right = held_out.labelled.is_right
    if not len(is_right):
        raise EvidenceError(
            "no pair is judged strictly both by people and by the supervised judges",
            where=where,
            do=Advice("bring both into one file, on the same held-out prompts: ", Command("merge", (CASES, CASES))),
        )
    if is_right.all():
        raise EvidenceError(
            f"the supervised judges contradict people in none of {number_of(len(is_right), 'verdict')} on pairs that "
            "both judge: their verdicts are people's, or these are too few to show how often they are wrong",
            where=where,
            do=Advice("calibrate on verdicts of the judges' own, and on more of them: ", Command("judge")),
        )


def check_judged(cases: MarginSurvey, *, where: str) -> None:
    """Check that a strict judgment is supervised. Raises EvidenceError if none is."""
    if not len(cases.margins):
        raise EvidenceError(
            "there is no strict judgment to supervise",
            where=where,
            do=Advice("pick others: ", Remedy("only", ("kind=NAME",)), ", or ", Remedy("only", ("judge=NAME",))),
        )


def check_some_kept(cases: MarginSurvey, threshold: float, *, where: str, scores: str | None = None) -> None:
    """Check that the threshold keeps a strict judgment. Raises EvidenceError, with the coverage of smaller ones.

    ``scores``: the file in which a model's scores were written, for another threshold.
    """
    if is_kept(cases.margins, threshold).any():
        return
    rows = rows_by_threshold(cases, cases.labelled, candidate_thresholds(cases.margins), seed=0)
    if not any(row.num_kept for row in rows):
        raise EvidenceError(
            f"the supervisor agrees with none of {len(cases.margins)} strict judgments, at any threshold "
            f"({cases.num_unscored} of {number_of(cases.num_scores, 'response')} "
            f"{verb_for(cases.num_unscored, 'is', 'are')} unscored)",
            where=where,
            do="if lower scores are better, change their sign; else check that its protocol fits these cases",
        )
    hint = (f"; the scores are in {scores}, for ", Remedy("scores"), " and another ", Remedy("out")) if scores else ()
    problem = f"threshold {threshold:g} drops everything\n{threshold_table(rows)}"
    raise EvidenceError(problem, where=where, do=Advice("take a smaller threshold", *hint))


def threshold_of_size(cases: MarginSurvey, number: int, *, where: str) -> float:
    """Return the margin from which ``number`` strict verdicts are kept, and more where several have this margin.

    It is below 0 where fewer verdicts agree with the supervisor. Raises EvidenceError for a number without a verdict,
    or above that of the scored ones.
    """
    margins = np.sort(cases.margins[~np.isnan(cases.margins)])
    if not 0 < number <= len(margins):
        raise EvidenceError(
            f"{where} has {number_of(number, 'strict judgment')} of those that are supervised",
            allowed=f"from 1 to {len(margins)}, the scored ones of these cases",
            do=Advice("name a file that a supervisor filtered, of the same cases: ", Remedy("as_many_as", CASES)),
        )
    return float(margins[-number])


def threshold_table(rows: Sequence[ThresholdRow]) -> str:
    """Return the rows of `rows_by_threshold` as lines of text."""
    lines = ["   threshold      kept  coverage  precision [95%]"]
    for row in rows:
        share = row.precision
        measured = "-" if share.n == 0 else f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}] of {share.n:,}"
        lines.append(f"{row.threshold:12.6g}{row.num_kept:10,}{row.coverage:10.1%}  {measured}")
    return "\n".join(lines)


def _best_certified(labelled: LabelledVerdicts, thresholds: Sequence[float], confidence: float) -> str:
    """Return the largest certified precision of any threshold, in steps of 0.01."""
    for percent in range(99, 0, -1):
        calibration = calibrate(labelled, thresholds, precision=percent / 100, confidence=confidence)
        if calibration.threshold is not None:
            return f"a precision of {percent / 100} at most, by threshold {calibration.threshold:.6g}"
    return "no precision at all"


def calibrate(
    labelled: LabelledVerdicts, candidates: Sequence[float], *, precision: float, confidence: float
) -> ThresholdCalibration:
    """Return the smallest candidate threshold whose precision is at least ``precision`` with the stated confidence.

    Several sequences begin evenly spread over the candidates, from the smallest to the largest: a large threshold may
    keep too few verdicts to pass, and a sequence that began only there would end at once.
    """
    thresholds = sorted(set(candidates))
    p_values = [p_value(labelled, threshold, precision) for threshold in thresholds]
    last = len(p_values) - 1
    starts = sorted({round(step * last / (_NUM_STARTS - 1)) for step in range(_NUM_STARTS)})
    # The positions, smallest threshold first, that a sequence reached and passed.
    certified: set[int] = set()
    for start in starts:
        for index in range(start, -1, -1):
            # Bonferroni over the starts; within a fixed sequence no correction is needed (Maurer et al., 1995).
            if p_values[index] > (1 - confidence) / len(starts):
                break
            certified.add(index)
    points = tuple(
        _point(labelled, threshold, p, is_certified=index in certified)
        for index, (threshold, p) in enumerate(zip(thresholds, p_values, strict=True))
    )
    return ThresholdCalibration(min((thresholds[index] for index in certified), default=None), points)


def is_kept(margin: Floats, threshold: float) -> Booleans:
    """Return which verdicts the policy ``agree`` keeps at a threshold; one below 0 keeps margins from it on."""
    return margin >= threshold if threshold < 0 else (margin > 0) & (margin >= threshold)


def p_value(labelled: LabelledVerdicts, threshold: float, precision: float) -> float:
    """Return the p-value of the hypothesis that the precision at the threshold is not above the target."""
    at_threshold = is_kept(labelled.margin, threshold)
    wrong = at_threshold & ~labelled.is_right
    num_prompts = len(np.unique(labelled.prompt))
    # One verdict a prompt: independent draws, for which the binomial is exact.
    if num_prompts == len(labelled.prompt):
        # Imported on use: scipy.stats takes over a second to load.
        from scipy.stats import binom

        return float(binom.cdf(wrong.sum(), at_threshold.sum(), 1 - precision)) if at_threshold.any() else 1.0
    observed = _by_prompt(labelled, wrong) - (1 - precision) * _by_prompt(labelled, at_threshold)
    # Logarithms, because a product over thousands of prompts overflows. A stake is relative to 1 / precision: the
    # largest observation is the precision, so that a stake below 1 never loses everything.
    wealth = np.log1p(-np.outer(_STAKES / precision, observed)).sum(1)
    largest = float(wealth.max())
    log_average = largest + float(np.log(_STAKE_WEIGHTS @ np.exp(wealth - largest)))
    # Markov's inequality: P(average >= 1 / p) <= p. It says nothing above 1.
    return float(np.exp(min(0.0, -log_average)))


def candidate_thresholds(margin: Floats) -> tuple[float, ...]:
    """Return thresholds that keep evenly spread shares of the verdicts that agree with the model; the smallest, 0,
    keeps all.

    The margins should be those of the verdicts to be supervised, not of the calibration verdicts.
    """
    agreeing = margin[margin > 0]
    if not len(agreeing):
        return (0.0,)
    shares = np.arange(1, _NUM_CANDIDATES) / _NUM_CANDIDATES
    # `higher` gives margins that occur in the data; equal candidates are merged, in ascending order.
    return tuple(dict.fromkeys([0.0, *np.quantile(agreeing, shares, method="higher").tolist()]))


def _by_prompt(labelled: LabelledVerdicts, chosen: Booleans) -> Floats:
    """Return the share of each prompt's verdicts that are chosen."""
    _, place = np.unique(labelled.prompt, return_inverse=True)
    return np.bincount(place, chosen) / np.bincount(place)


def _point(labelled: LabelledVerdicts, threshold: float, p: float, *, is_certified: bool) -> ThresholdPoint:
    """Count what the threshold keeps of the labelled verdicts, by verdict and by prompt."""
    at_threshold = is_kept(labelled.margin, threshold)
    right = at_threshold & labelled.is_right
    num_kept, num_right = int(at_threshold.sum()), int(right.sum())
    share = float(_by_prompt(labelled, at_threshold).sum()) if num_kept else 0.0
    return ThresholdPoint(
        threshold=threshold,
        num_kept=num_kept,
        num_right=num_right,
        num_prompts=len(np.unique(labelled.prompt[at_threshold])),
        coverage=num_kept / len(at_threshold) if len(at_threshold) else 0.0,
        precision=num_right / num_kept if num_kept else None,
        precision_by_prompt=float(_by_prompt(labelled, right).sum()) / share if num_kept else None,
        p_value=p,
        is_certified=is_certified,
    )
