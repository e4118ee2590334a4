"""Cases and their scores in, supervised cases out: the policies of `supervision` on whole cases."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.core.config import Config
from steelyard.core.types import Case, Judgment, Pair, Scores
from steelyard.curation.supervision import (
    KEPT,
    RULES,
    Floats,
    Policy,
    agree,
    cut_cycles,
    margins_of,
    pair_weights,
)
from steelyard.ranking.judgment_table import (
    NONE,
    TIE,
    Integers,
    JudgmentTable,
    Only,
    Verdicts,
    edges_of,
    judgment_table,
    majority,
)
from steelyard.ranking.tiers import ranking_of, tiers_of

SUPERVISED = Only(kind=("llm", "model"))
_HUMAN = Only(kind=("human",))


class Rule(Config, frozen=True):
    """What is done to which judgments; ``tau`` and ``keep_ties`` are of ``agree``, ``scale`` of ``weight``."""

    policy: Policy = "agree"
    """What is dropped: see the settings of `supervise`."""
    tau: float = 0.0
    """With agree: the least margin for a verdict."""
    keep_ties: bool = False
    """With agree: whether ties are kept."""
    scale: float = 1.0
    """With weight: the divisor of margins."""
    only: Only = SUPERVISED
    """The judgments that are filtered."""


class Batch(NamedTuple):
    """Cases with what the supervisor says of their judgments; ``margin`` goes with ``evidence.verdicts``."""

    cases: tuple[Case, ...]
    scores: tuple[Scores, ...]
    evidence: JudgmentTable
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
    evidence = judgment_table(cases, only)
    flat = [
        np.nan if score is None else score
        for outline, line in zip(evidence.cases, scores, strict=True)
        for score in map(line.scores.__getitem__, outline.responses)
    ]
    first = np.cumsum(evidence.num_responses) - evidence.num_responses
    margin = margins_of(evidence.verdicts, np.array(flat, np.float64), first)
    return Batch(tuple(cases), tuple(scores), evidence, margin)


def supervise_cases(batch: Batch, rule: Rule) -> Supervised:
    """Each case with the judgments that the rule keeps, their pairs, and the ranking that follows from them.

    The ranking is that of CHEEMS, algorithm 1, which also orders responses that nobody compared. So the pairs of the
    kept strict verdicts are listed, for training; with the policy ``weight``, all of them with their weights. Of a case
    that lists pairs already, only those stay that a kept verdict supports. Judgments that are not supervised stay, and
    enter neither. A case without a supervised judgment stays as it is.
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
    supported = _supported_pairs(batch, rule, kept, tiers)
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
                pairs=_pairs(case, supported.get(number, ())),
            )
        )  # fmt: skip
    return Supervised(tuple(cases), tuple(dropped), code)


def keyed(batch: Batch) -> Keyed:
    """The supervised strict verdicts on pairs that people judged, held against the people's majority vote.

    Where people's own verdicts are supervised, those are left out: a verdict that has a vote in its key is no test.
    """
    people = judgment_table(batch.cases, _HUMAN).verdicts
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


def _supported_pairs(batch: Batch, rule: Rule, kept: Verdicts, tiers: Sequence[Sequence[int]]) -> dict[int, list[Pair]]:
    """The pairs of the kept strict verdicts by the case's position, each once; weighed by the policy ``weight`` alone.

    A verdict between two responses of one tier is part of a cycle through kept ties and gives no pair.
    """
    listed: dict[int, list[Pair]] = {}
    if rule.policy == "weight":
        columns = [column.tolist() for column in pair_weights(batch.evidence.verdicts, batch.margin, scale=rule.scale)]
    else:
        strict = kept.where(kept.is_strict)
        ends = dict.fromkeys(zip(strict.graph.tolist(), strict.better.tolist(), strict.worse.tolist(), strict=True))
        above = [end for end in ends if tiers[end[0]][end[1]] < tiers[end[0]][end[2]]]
        columns = [*zip(*above, strict=True), [None] * len(above)] if above else []
    for graph, better, worse, weight in zip(*columns, strict=True):
        names = batch.evidence.cases[graph].responses
        listed.setdefault(graph, []).append(Pair(better=names[better], worse=names[worse], weight=weight))
    return listed


def _pairs(case: Case, supported: Sequence[Pair]) -> tuple[Pair, ...]:
    """The supported pairs; where the case lists pairs, those of them that are supported, their weights multiplied."""
    if case.pairs is None:
        return tuple(supported)
    weights = {(pair.better, pair.worse): pair.weight for pair in supported}
    listed = [(pair, weights[pair.better, pair.worse]) for pair in case.pairs if (pair.better, pair.worse) in weights]
    return tuple(
        pair
        if weight is None
        else msgspec.structs.replace(pair, weight=weight * (1 if pair.weight is None else pair.weight))
        for pair, weight in listed
    )


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
