"""Supervised cases: which judgments a rule keeps, the pairs and rankings that follow, and what was dropped and why."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import NamedTuple

import msgspec
import numpy as np

from steelyard.core.iteration import batched
from steelyard.core.numerics import Booleans, Floats, Integers
from steelyard.core.types import Case, Counts, Judgment, Kind, Pair, Record, Scores, Verdict
from steelyard.curation.supervision import (
    KEPT,
    RULES,
    SupervisionRule,
    agree,
    closest,
    cut_cycles,
    margins_of,
    pair_weights,
)
from steelyard.ranking.judgment_table import (
    NONE,
    REPEATED,
    TIE,
    JudgmentTable,
    Only,
    Verdicts,
    edges_of,
    first_identical,
    judgment_table,
    majority,
)
from steelyard.ranking.tiers import ranking_of, tiers_of
from steelyard.statistics.unique_rows import find_codes

_HUMAN = Only(kind=("human",))
_CASES_A_BATCH = 256


class ScoredBatch(NamedTuple):
    """Cases, their scores, and the margin of each judgment of ``table.verdicts``."""

    cases: tuple[Case, ...]
    scores: tuple[Scores, ...]
    table: JudgmentTable
    margin: Floats


class DroppedJudgment(Record, frozen=True, kw_only=True):
    """A judgment that a rule dropped: a line of the manifest.

    The margin is null for a tie and where a score is missing.
    """

    prompt: str
    language: str | None
    left: str
    right: str
    verdict: Verdict
    judge: str
    kind: Kind
    id: str | None
    rule: str
    margin: float | None
    left_score: float | None
    right_score: float | None


class Supervised(NamedTuple):
    """The cases with the judgments kept; the judgments dropped; the rule of each supervised judgment."""

    cases: tuple[Case, ...]
    dropped: tuple[DroppedJudgment, ...]
    rule: Integers


class AgreementWithPeople(NamedTuple):
    """Columns with one entry for each strict supervised verdict on a pair that people judged.

    ``graph`` is the case's position. ``is_tied``: the people have no strict majority; then no verdict is right.
    """

    graph: Integers
    margin: Floats
    is_right: Booleans
    is_tied: Booleans


def with_margins(scored_cases: Iterable[tuple[Case, Scores]], only: Only) -> Iterator[ScoredBatch]:
    """Yield the cases in batches, with their supervised judgments and the model's margins.

    The scores must have been checked.
    """
    for batch in batched(scored_cases, _CASES_A_BATCH):
        cases, scores = tuple(case for case, _ in batch), tuple(line for _, line in batch)
        table = judgment_table(cases, only)
        flat = [
            np.nan if score is None else score
            for outline, line in zip(table.cases, scores, strict=True)
            for score in map(line.scores.__getitem__, outline.responses)
        ]
        margin = margins_of(table.verdicts, np.array(flat, np.float64), table.first_response)
        yield ScoredBatch(cases, scores, table, margin)


def count_strict(cases: Iterable[Case], only: Only) -> int:
    """Return the number of supervised verdicts that prefer one response."""
    tables = (judgment_table(batch, only) for batch in batched(cases, _CASES_A_BATCH))
    return sum(int(table.verdicts.is_strict.sum()) for table in tables)


def supervise_cases(batch: ScoredBatch, rule: SupervisionRule) -> Supervised:
    """Return each case with the judgments that the rule keeps, their pairs, and the ranking that follows from them.

    The ranking is that of CHEEMS, algorithm 1, which also orders responses that nobody compared. So the pairs of the
    kept strict verdicts are listed, for training; with the policy ``weight``, all of them with their weights. A case
    that lists pairs keeps those that a kept verdict supports. Judgments that are not supervised stay, and enter
    neither. A case without a supervised judgment stays as it is.
    """
    verdicts = batch.table.verdicts
    if rule.policy == "agree":
        code = agree(verdicts, batch.margin, min_margin=rule.min_margin, keep_ties=rule.keep_ties)
    elif rule.policy == "cycles":
        code = cut_cycles(verdicts, batch.margin, batch.table.num_responses)
    elif rule.policy == "closest":
        code = closest(verdicts, batch.margin, max_difference=rule.max_difference)
    else:
        code = np.full(len(verdicts.graph), KEPT)
    kept_verdicts = verdicts.where(code == KEPT)
    tiers = tiers_of(edges_of(kept_verdicts), batch.table.num_responses).tolist()
    supported = _supported_pairs(batch, rule, kept_verdicts, tiers)
    ends = np.cumsum(np.bincount(verdicts.graph, minlength=len(batch.cases))).tolist()
    cases, dropped = [], []
    for number, (case, start, end) in enumerate(zip(batch.cases, [0, *ends], ends, strict=False)):
        codes = code[start:end].tolist()
        dropped += _dropped(case, batch, slice(start, end), codes, rule.only)
        if not codes:
            cases.append(case)
            continue
        cases.append(
            msgspec.structs.replace(
                case,
                judgments=_kept_judgments(case, codes, rule.only),
                ranking=ranking_of(batch.table.cases[number].responses, tiers[number]),
                pairs=_pairs(case, supported.get(number, ())),
            )
        )
    return Supervised(tuple(cases), tuple(dropped), code)


def _kept_judgments(case: Case, codes: Sequence[int], only: Only) -> tuple[Judgment, ...]:
    # Codes are those of the judgments that count, in order; the others stay and consume none. A repeated judgment
    # goes with its first occurrence: it would bring a dropped verdict back.
    code = iter(codes)
    stays = [not counts or next(code) == KEPT for counts in only.votes(case.judgments)]
    return tuple(compress(case.judgments, (stays[first] for first in first_identical(case.judgments))))


def compare_with_people(batch: ScoredBatch) -> AgreementWithPeople:
    """Compare the supervised strict verdicts on pairs that people judged with the people's majority vote.

    Supervised verdicts of people are left out: they took part in the vote.
    """
    people = judgment_table(batch.cases, _HUMAN).verdicts
    voted = majority(people.where(people.verdict != NONE))
    table = batch.table
    is_not_human = np.array([name not in _HUMAN.kind for name in table.kinds], bool)
    is_tested = table.verdicts.is_strict & (is_not_human[table.kind] if len(is_not_human) else False)
    strict = table.verdicts.where(is_tested)
    width = int(table.num_responses.max(initial=0)) + 1
    place, has_vote = find_codes(voted.pair_keys(width), strict.pair_keys(width))
    vote = place[has_vote]
    is_tied = voted.verdict[vote] == TIE
    return AgreementWithPeople(
        strict.graph[has_vote],
        batch.margin[is_tested][has_vote],
        ~is_tied & (voted.better[vote] == strict.better[has_vote]),
        is_tied,
    )


def _supported_pairs(
    batch: ScoredBatch, rule: SupervisionRule, kept_verdicts: Verdicts, tiers: Sequence[Sequence[int]]
) -> dict[int, list[Pair]]:
    """Return each pair of the kept strict verdicts once, by the case's position; only ``weight`` gives weights.

    A verdict between two responses of one tier is part of a cycle through kept ties and gives no pair.
    """
    listed: dict[int, list[Pair]] = {}
    if rule.policy == "weight":
        columns = [column.tolist() for column in pair_weights(batch.table.verdicts, batch.margin, scale=rule.scale)]
    else:
        strict = kept_verdicts.where(kept_verdicts.is_strict)
        ends = dict.fromkeys(zip(strict.graph.tolist(), strict.better.tolist(), strict.worse.tolist(), strict=True))
        above = [end for end in ends if tiers[end[0]][end[1]] < tiers[end[0]][end[2]]]
        columns = [*zip(*above, strict=True), [None] * len(above)] if above else []
    for graph, better, worse, weight in zip(*columns, strict=True):
        names = batch.table.cases[graph].responses
        listed.setdefault(graph, []).append(Pair(better=names[better], worse=names[worse], weight=weight))
    return listed


def _pairs(case: Case, supported: Sequence[Pair]) -> tuple[Pair, ...]:
    """Return the supported pairs; of listed pairs those that are supported, with their weights multiplied."""
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


def _dropped(case: Case, batch: ScoredBatch, place: slice, codes: Sequence[int], only: Only) -> list[DroppedJudgment]:
    if not any(codes):
        return []
    admitted = list(compress(case.judgments, only.votes(case.judgments)))
    scores = batch.scores[int(batch.table.verdicts.graph[place.start])].scores
    return [
        DroppedJudgment(
            prompt=case.prompt.id,
            language=case.prompt.language,
            left=judgment.left,
            right=judgment.right,
            verdict=judgment.verdict,
            judge=judgment.judge,
            kind=judgment.kind,
            id=judgment.id,
            rule=RULES[code],
            margin=None if np.isnan(margin) else margin,
            left_score=scores[judgment.left],
            right_score=scores[judgment.right],
        )
        for judgment, code, margin in zip(admitted, codes, batch.margin[place].tolist(), strict=True)
        if code != KEPT
    ]


class SupervisionCounter:
    """Counts over all batches: judgments kept and dropped by rule, strict verdicts, and prompts."""

    def __init__(self, rule: SupervisionRule) -> None:
        self.rule = rule
        self.num_strict = self.num_strict_kept = self.num_prompts = self.num_prompts_kept = 0
        self._by_rule = Counter[str]()
        self._warnings = Counter[str]()

    def add(self, batch: ScoredBatch, supervised: Supervised) -> None:
        """Count a batch and its supervised cases."""
        verdicts, num_cases = batch.table.verdicts, len(batch.cases)
        is_kept = supervised.rule == KEPT
        num_judgments = np.bincount(verdicts.graph, minlength=num_cases)
        num_kept = np.bincount(verdicts.graph[is_kept], minlength=num_cases)
        strict_kept = is_kept & verdicts.is_strict
        self.num_strict += int(verdicts.is_strict.sum())
        self.num_strict_kept += int(strict_kept.sum())
        self.num_prompts += int((num_judgments > 0).sum())
        self.num_prompts_kept += len(np.unique(verdicts.graph[strict_kept]))
        self._by_rule.update({RULES[code]: number for code, number in enumerate(np.bincount(supervised.rule).tolist())})
        num_repeated = sum(outline.num_repeated for outline in batch.table.cases)
        num_given = sum(len(case.judgments) for case in batch.cases)
        num_unscored = int(np.isnan(batch.margin[strict_kept]).sum()) if self.rule.policy in ("cycles", "weight") else 0
        self._warnings.update(
            {
                "cases": num_cases,
                "cases without a supervised judgment": int((num_judgments == 0).sum()),
                "cases left without a judgment": int(((num_judgments > 0) & (num_kept == 0)).sum()),
                "judgments not supervised": num_given - num_repeated - len(verdicts.graph),
                REPEATED: num_repeated,
                "pairs listed before, without a kept verdict": sum(
                    len(case.pairs or ()) - len(now.pairs or ())
                    for case, now in zip(batch.cases, supervised.cases, strict=True)
                    if case.pairs is not None
                ),
                "unscored responses": sum(len(line.unscored) for line in batch.scores),
                "strict judgments with an unscored end": num_unscored,
            }
        )

    def counts(self) -> Counts:
        """Return the counts of judgments, with the rules that dropped them."""
        by_rule = self._by_rule.copy()
        num_kept = by_rule.pop(RULES[KEPT], 0)
        noted = {name: number for name, number in self._warnings.items() if number}
        return Counts(num_in=num_kept + by_rule.total(), num_used=num_kept, dropped=dict(+by_rule), noted=noted)
