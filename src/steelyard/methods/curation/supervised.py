"""Cases and their scores in, supervised cases out: the policies of `supervision` on whole cases."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.core.config import Config
from steelyard.core.types import Case, Judgment, Pair, Scores
from steelyard.methods.curation.supervision import (
    KEPT,
    RULES,
    Floats,
    Policy,
    Weighted,
    agree,
    cut_cycles,
    margins_of,
    pair_weights,
)
from steelyard.methods.ranking.evidence import Evidence, Only, gather
from steelyard.methods.ranking.graph import NONE, TIE, Integers, edges_of, majority
from steelyard.methods.ranking.tiers import ranking_of, tiers_of

SUPERVISED = Only(kind=("llm", "model"))
_HUMAN = Only(kind=("human",))


class Rule(Config, frozen=True):
    """What is done to which judgments; ``tau`` and ``keep_ties`` are of ``agree``, ``scale`` of ``weight``."""

    policy: Policy = "agree"
    tau: float = 0.0
    keep_ties: bool = False
    scale: float = 1.0
    only: Only = SUPERVISED


class Batch(NamedTuple):
    """Cases with what the supervisor says of their judgments; ``margin`` goes with ``evidence.verdicts``."""

    cases: tuple[Case, ...]
    scores: tuple[Scores, ...]
    evidence: Evidence
    margin: Floats


class Dropped(NamedTuple):
    """A judgment that a rule dropped. The margin is null for a tie and where a score is missing."""

    case: Case
    judgment: Judgment
    rule: str
    margin: float | None
    left_score: float | None
    right_score: float | None

    def as_row(self) -> dict[str, Any]:
        """A line of the manifest."""
        own = self.judgment
        return {
            "prompt": self.case.prompt.id,
            "language": self.case.prompt.language,
            "left": own.left,
            "right": own.right,
            "verdict": own.verdict,
            "judge": own.judge,
            "kind": own.kind,
            "id": own.id,
            "rule": self.rule,
            "margin": self.margin,
            "left_score": self.left_score,
            "right_score": self.right_score,
        }


class Supervised(NamedTuple):
    """The cases as they are now; what was dropped of them; the rule of each supervised judgment."""

    cases: tuple[Case, ...]
    dropped: tuple[Dropped, ...]
    rule: Integers


class Keyed(NamedTuple):
    """One entry a strict supervised verdict on a pair that people judged: by what margin, and whether they agree.

    ``graph`` is the case's position. ``is_tied``: the people have no strict majority; then it is right for nobody.
    """

    graph: Integers
    margin: Floats
    is_right: NDArray[np.bool_]
    is_tied: NDArray[np.bool_]


def margins(cases: Sequence[Case], scores: Sequence[Scores], only: Only) -> Batch:
    """The supervised judgments of the cases with the model's margins. The scores must have been checked."""
    evidence = gather(cases, only)
    flat = [
        np.nan if score is None else score
        for outline, line in zip(evidence.cases, scores, strict=True)
        for score in map(line.scores.__getitem__, outline.responses)
    ]
    first = np.cumsum(evidence.num_responses) - evidence.num_responses
    margin = margins_of(evidence.verdicts, np.array(flat, np.float64), first)
    return Batch(tuple(cases), tuple(scores), evidence, margin)


def supervise_cases(batch: Batch, rule: Rule) -> Supervised:
    """Each case with the judgments that the rule keeps, and the ranking (CHEEMS, algorithm 1) that follows from them.

    Judgments that are not supervised stay, and do not enter the ranking. Listed pairs are older than the new ranking
    and go; ``weight`` lists new ones. A case without a supervised judgment stays as it is.
    """
    verdicts = batch.evidence.verdicts
    if rule.policy == "agree":
        code = agree(verdicts, batch.margin, tau=rule.tau, keep_ties=rule.keep_ties)
    elif rule.policy == "cycles":
        code = cut_cycles(verdicts, batch.margin, batch.evidence.num_responses)
    else:
        code = np.full(len(verdicts.graph), KEPT)
    kept = verdicts.where(code == KEPT)
    tiers = tiers_of(edges_of(kept), batch.evidence.num_responses).tolist()
    listed = _listed(batch, rule) if rule.policy == "weight" else {}
    ends = np.cumsum(np.bincount(verdicts.graph, minlength=len(batch.cases))).tolist()
    cases, dropped = [], []
    for number, (case, start, end) in enumerate(zip(batch.cases, [0, *ends], ends, strict=False)):
        own = code[start:end].tolist()
        dropped += _dropped(case, batch, slice(start, end), own, rule.only)
        if not own:
            cases.append(case)
            continue
        codes = iter(own)
        cases.append(
            msgspec.structs.replace(
                case,
                judgments=tuple(
                    one for one in case.judgments if not rule.only.admits(one) or next(codes) == KEPT
                ),
                ranking=ranking_of(batch.evidence.cases[number].responses, tiers[number]),
                pairs=listed.get(number, ()) if rule.policy == "weight" else None,
            )
        )  # fmt: skip
    return Supervised(tuple(cases), tuple(dropped), code)


def keyed(batch: Batch) -> Keyed:
    """The supervised strict verdicts on pairs that people judged, held against the people's majority vote.

    Where people's own verdicts are supervised, those are left out: a verdict that has a vote in its key is no test.
    """
    people = gather(batch.cases, _HUMAN).verdicts
    voted = majority(people.where(people.verdict != NONE))
    evidence = batch.evidence
    is_other = np.array([name not in _HUMAN.kind for name in evidence.kinds], bool)
    is_asked = evidence.verdicts.is_strict & (is_other[evidence.kind] if len(is_other) else False)
    strict = evidence.verdicts.where(is_asked)
    span = int(batch.evidence.num_responses.max(initial=0)) + 1

    def pair(graph: Integers, one: Integers, other: Integers) -> Integers:
        return (graph * span + np.minimum(one, other)) * span + np.maximum(one, other)

    known, asked = pair(voted.graph, voted.left, voted.right), pair(strict.graph, strict.left, strict.right)
    order = np.argsort(known)
    place = np.searchsorted(known[order], asked).clip(max=max(len(known) - 1, 0))
    has_key = known[order][place] == asked if len(known) else np.zeros(len(asked), bool)
    found, chosen = order[place[has_key]] if len(known) else place[has_key], strict.where(has_key)
    is_tied = voted.verdict[found] == TIE
    return Keyed(
        chosen.graph,
        batch.margin[is_asked][has_key],
        ~is_tied & (voted.better[found] == chosen.better),
        is_tied,
    )


def _listed(batch: Batch, rule: Rule) -> dict[int, tuple[Pair, ...]]:
    found: Weighted = pair_weights(batch.evidence.verdicts, batch.margin, scale=rule.scale)
    listed: dict[int, tuple[Pair, ...]] = {}
    for graph, better, worse, weight in zip(*(column.tolist() for column in found), strict=True):
        names = batch.evidence.cases[graph].responses
        listed[graph] = (*listed.get(graph, ()), Pair(better=names[better], worse=names[worse], weight=weight))
    return listed


def _dropped(case: Case, batch: Batch, place: slice, codes: Sequence[int], only: Only) -> list[Dropped]:
    if not any(codes):
        return []
    admitted = [one for one in case.judgments if only.admits(one)]
    scores = batch.scores[int(batch.evidence.verdicts.graph[place.start])].scores
    return [
        Dropped(
            case,
            one,
            RULES[code],
            None if np.isnan(margin) else margin,
            scores[one.left],
            scores[one.right],
        )
        for one, code, margin in zip(admitted, codes, batch.margin[place].tolist(), strict=True)
        if code != KEPT
    ]
