"""What every tau would keep, how right that is where people judged too, and the tau that is calibrated on it."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.core.errors import EvidenceError
from steelyard.curation.calibration import Calibration, Trial, calibrate, candidate_taus, is_kept
from steelyard.curation.supervised import Batch, keyed
from steelyard.curation.supervision import Floats
from steelyard.stages.supervise.settings import DEFAULT_CONFIDENCE, Config
from steelyard.statistics.ratios import numbered, share_of


class Survey(NamedTuple):
    """The margins of the supervised strict verdicts of a file, and those verdicts that people judged too.

    ``num_scores`` and ``num_unscored`` count responses. Margins are NaN where the supervisor has no score.
    """

    margins: Floats
    trial: Trial
    num_scores: int
    num_unscored: int


def survey(batches: Iterable[Batch], config: Config) -> Survey:
    """One pass over a file. A prompt is its id: parallel items in several languages are one."""
    found: list[Floats] = []
    prompts: list[str] = []
    margin: list[Floats] = []
    right: list[Any] = []
    num_scores = num_unscored = 0
    for batch in batches:
        found.append(batch.margin[batch.evidence.verdicts.is_strict])
        own = keyed(batch)
        counts = ~own.is_tied if config.human_ties == "leave_out" else np.ones(len(own.graph), bool)
        prompts += [batch.cases[graph].prompt.id for graph in own.graph[counts].tolist()]
        margin.append(own.margin[counts])
        right.append(own.is_right[counts])
        num_scores += sum(len(line.scores) for line in batch.scores)
        num_unscored += sum(len(line.unscored) for line in batch.scores)
    trial = Trial(numbered(prompts), np.concatenate([[], *margin]), np.concatenate([[], *right]).astype(bool))
    return Survey(np.concatenate([[], *found]), trial, num_scores, num_unscored)


def calibrated(cases: Survey, held_out: Survey, config: Config, *, where: str) -> Calibration:
    """The calibration on the held-out cases. Raises EvidenceError if they hold no key, or no tau is certified.

    The candidate taus are taken from the margins of the cases to be supervised: the labels have no part in them.
    """
    check_key(held_out, where=where)
    assert config.precision is not None
    confidence = config.confidence or DEFAULT_CONFIDENCE
    taus = candidate_taus(cases.margins)
    found = calibrate(held_out.trial, taus, precision=config.precision, confidence=confidence)
    if found.tau is None:
        rows = by_tau(cases, held_out.trial, taus, seed=config.seed)
        raise EvidenceError(
            f"no tau reaches a precision of {config.precision} with confidence {confidence} on {where}, which has "
            f"{len(np.unique(held_out.trial.prompt))} prompts to show it\n{table(rows)}",
            allowed=f"these cases certify {_most(held_out.trial, taus, confidence)}",
            do="ask for less precision or confidence, or calibrate on more prompts that people judged",
        )
    return found


def by_tau(cases: Survey, trial: Trial, taus: Sequence[float], *, seed: int) -> list[dict[str, Any]]:
    """For each tau what it keeps of the cases, and its precision (of every verdict alike) where people judged too.

    The interval is a 95 % bootstrap over prompts, for each tau alone; it is no guarantee for a tau chosen by it.
    """
    total = max(len(cases.margins), 1)
    rows = []
    for tau in sorted(set(taus)):
        num_kept = int(is_kept(cases.margins, tau).sum())
        precision = share_of(trial.prompt, is_kept(trial.margin, tau), trial.is_right, seed=seed)
        rows.append({"tau": tau, "num_kept": num_kept, "coverage": num_kept / total, "precision": precision.record()})
    return rows


def check_key(held_out: Survey, *, where: str) -> None:
    """Raises EvidenceError if people say nothing of what the supervised judges said in the calibration cases."""
    if not len(held_out.trial.prompt):
        raise EvidenceError(
            "no pair is judged strictly both by people and by the supervised judges",
            where=where,
            do="bring both into one file: steelyard merge HUMAN LLM, on the same held-out prompts",
        )


def check_judged(cases: Survey, *, where: str) -> None:
    """Raises EvidenceError if there is nothing to supervise."""
    if not len(cases.margins):
        raise EvidenceError(
            "there is no strict judgment to supervise",
            where=where,
            do="pick others: --only kind=NAME, or --only judge=NAME",
        )


def check_some_kept(cases: Survey, tau: float, *, where: str, do: str) -> None:
    """Raises EvidenceError, with what smaller taus would keep, if nothing strict stays at tau."""
    if is_kept(cases.margins, tau).any():
        return
    rows = by_tau(cases, cases.trial, candidate_taus(cases.margins), seed=0)
    if not any(row["num_kept"] for row in rows):
        raise EvidenceError(
            f"the supervisor agrees with none of {len(cases.margins)} strict judgments, at any tau "
            f"({cases.num_unscored} of {cases.num_scores} responses are unscored)",
            where=where,
            do="check that its protocol fits these cases, and its training",
        )
    raise EvidenceError(f"tau {tau:g} drops everything\n{table(rows)}", where=where, do=do)


def _most(trial: Trial, taus: Sequence[float], confidence: float) -> str:
    """The largest precision, in steps of 0.01, that any tau is certified to have."""
    for percent in range(99, 0, -1):
        found = calibrate(trial, taus, precision=percent / 100, confidence=confidence)
        if found.tau is not None:
            return f"a precision of {percent / 100} at most, by tau {found.tau:.6g}"
    return "no precision at all"


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows of `by_tau` as lines of text."""
    lines = ["         tau      kept  coverage  precision [95 %]"]
    for row in rows:
        own = row["precision"]
        measured = "-" if own["n"] == 0 else f"{own['value']:.3f} [{own['low']:.3f}, {own['high']:.3f}] of {own['n']:,}"
        lines.append(f"{row['tau']:12.6g}{row['num_kept']:10,}{row['coverage']:10.1%}  {measured}")
    return "\n".join(lines)
