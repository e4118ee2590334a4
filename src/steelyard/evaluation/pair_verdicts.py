"""The verdicts of a judge on the pairs of a bench: the outcome of each pair, also of pairs without a verdict."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.core.comparison import OUTCOMES, VERDICTS, Answer, Outcome
from steelyard.core.errors import EvidenceError, FailuresError
from steelyard.core.protocols import Bench, JudgeModel
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Case, Record, Scores
from steelyard.evaluation.bench_pairs import PairValues
from steelyard.evaluation.columns import BenchColumns
from steelyard.judging.verdicts import VerdictCounter, VerdictSummary, shares_won

MOST_UNREAD = 0.5
"""Above this share of pairs without a verdict, a headline would reflect the policy for them, not the judge."""

_TURNED: dict[Outcome, Outcome] = {"left": "right", "right": "left"}
_NAMES = {"left": "win", "right": "loss"}


class OutcomeCounts(Record, frozen=True, kw_only=True):
    """Pairs by outcome: the better response won, lost or tied, or the reason for no verdict."""

    win: int
    loss: int
    tie: int
    unparsed: int
    refused: int
    cut_off: int
    failed: int


class PairOutcomes(OutcomeCounts, frozen=True, kw_only=True):
    """The counts over all pairs, and by language."""

    num_pairs: int
    by_language: dict[str, OutcomeCounts]


class Judged(NamedTuple):
    """The outcomes of the pairs of a bench under a judge.

    ``by_pair``: the judge gives verdicts on pairs only, and no score per response.
    """

    outcomes: tuple[Outcome, ...]
    """The outcome of each pair, where ``left`` is the better response; shape (pair,)."""
    judges: Mapping[str, VerdictSummary]
    """The summary of each judge: outcomes, inconsistency between orders, and position bias."""
    by_pair: bool = True

    @property
    def values(self) -> PairValues:
        """1 for the preferred response and 0 for the other, 0 for both of a tie, NaN for no verdict."""
        sides: tuple[Outcome, ...] = ("left", "right")
        better, worse = (
            np.array([float(outcome == side) if outcome in VERDICTS else np.nan for outcome in self.outcomes])
            for side in sides
        )
        return PairValues(better, worse)

    @property
    def num_failed(self) -> int:
        """The number of pairs without a verdict because a request failed; these can be asked again."""
        return self.outcomes.count("failed")

    @property
    def share_unread(self) -> float:
        """The share of pairs without a verdict."""
        return sum(outcome not in VERDICTS for outcome in self.outcomes) / len(self.outcomes)

    @property
    def is_withheld(self) -> bool:
        """True where the headline is withheld: a request failed, or more pairs than `MOST_UNREAD` have no verdict."""
        return self.num_failed > 0 or self.share_unread > MOST_UNREAD


class Answered(NamedTuple):
    """The score lines of a judge, and the outcomes of the pairs of the bench."""

    lines: tuple[Scores, ...]
    judged: Judged


def check_bench(bench: Bench, model: JudgeModel) -> None:
    """Raise EvidenceError if the bench needs a score per response and the judge gives verdicts on pairs only."""
    num_columns = bench.columns((), (), unscored_is_right=False).shape[1]
    if num_columns and model.compares_pairs and bench.pair_columns is None:
        problem = "the headline of this benchmark needs a score for each response, and the judge compares pairs"
        raise EvidenceError(
            problem,
            where="bench",
            do=Advice("use ", Remedy("model.task", "best"), ", or ", Remedy("model.task", "ratings")),
        )


def pair_columns(
    bench: Bench, cases: Sequence[Case], columns: BenchColumns, judged: Judged, *, open_is_right: bool
) -> Any:
    """Return the bench's own columns from verdicts; ``open_is_right`` counts ties and missing verdicts as right."""
    if bench.pair_columns is None:
        return np.zeros((len(cases), 0), dtype=np.int64)
    right = [
        {
            (pair["better"], pair["worse"]): pair["outcome"] == "win" or (open_is_right and pair["outcome"] != "loss")
            for pair in pairs
        }
        for pairs in outcomes_by_case(cases, columns, judged)
    ]
    return bench.pair_columns(cases, right)


def ask(model: JudgeModel, cases: Sequence[Case], columns: BenchColumns, *, seed: int) -> Answered:
    """Ask the judge about the pairs of the bench, or about whole cases if it does not compare pairs."""
    counter = VerdictCounter()
    pairs = local_pairs(columns)
    answered = list(model.answers(cases, pairs if model.compares_pairs else None))
    for case, comparisons in zip(cases, answered, strict=True):
        for comparison in comparisons:
            counter.add(case.prompt, comparison)
    judges = counter.summaries(seed=seed)
    together = [[comparison[model.name] for comparison in comparisons] for comparisons in answered]
    if model.compares_pairs:
        outcomes: tuple[Outcome, ...] = tuple(
            outcome
            for case, pairs_of_case, answers in zip(cases, pairs, together, strict=True)
            for outcome in _of_verdicts(case, pairs_of_case, answers)
        )
        lines = tuple(_won(case, answers) for case, answers in zip(cases, together, strict=True))
    else:
        # Every reply is in the ledger by now, so no request is sent again.
        lines = tuple(model.score(cases))
        outcomes = tuple(
            outcome
            for case, pairs_of_case, line in zip(cases, pairs, lines, strict=True)
            for outcome in _of_scores(case, pairs_of_case, line)
        )
    return Answered(lines, Judged(outcomes, judges, model.compares_pairs))


def local_pairs(columns: BenchColumns) -> list[list[tuple[int, int]]]:
    """Return the pairs of each case, better first, as positions in the case."""
    pairs: list[list[tuple[int, int]]] = [[] for _ in columns.start]
    start = columns.start[columns.prompt]
    positions = np.stack([columns.prompt, columns.better - start, columns.worse - start], axis=1)
    for case, better, worse in positions.tolist():
        pairs[case].append((better, worse))
    return pairs


def outcome_report(columns: BenchColumns, judged: Judged) -> PairOutcomes:
    """Count the pairs by outcome or reason for no verdict, overall and by language."""
    languages: dict[str, Counter[str]] = {}
    for case, outcome in zip(columns.prompt.tolist(), judged.outcomes, strict=True):
        language = columns.cells[case].language or "unknown"
        languages.setdefault(language, Counter())[outcome] += 1
    return PairOutcomes(
        num_pairs=len(judged.outcomes),
        **_counts(Counter(judged.outcomes)),
        by_language={language: OutcomeCounts(**_counts(counts)) for language, counts in sorted(languages.items())},
    )


def outcomes_by_case(cases: Sequence[Case], columns: BenchColumns, judged: Judged) -> list[list[dict[str, str]]]:
    """Return the pairs of each case: the ids of ``better`` and ``worse``, and the ``outcome``."""
    outcomes = iter(judged.outcomes)
    return [
        [
            {
                "better": case.responses[better].id,
                "worse": case.responses[worse].id,
                "outcome": _name_of(next(outcomes)),
            }
            for better, worse in pairs
        ]
        for case, pairs in zip(cases, local_pairs(columns), strict=True)
    ]


def _counts(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts by the name of each outcome in ``run.json``, with 0 for outcomes that did not occur."""
    return {_name_of(outcome): counts.get(outcome, 0) for outcome in OUTCOMES}


def _name_of(outcome: Outcome) -> str:
    return _NAMES.get(outcome, outcome).replace(" ", "_")


def _of_verdicts(case: Case, pairs: Sequence[tuple[int, int]], answers: Sequence[Answer]) -> Iterator[Outcome]:
    for (better, _), answer in zip(pairs, answers, strict=True):
        (verdict,) = answer.verdicts
        # The judge may see a pair in the opposite order.
        is_turned = verdict.left != case.responses[better].id
        yield _TURNED.get(verdict.outcome, verdict.outcome) if is_turned else verdict.outcome


def _of_scores(case: Case, pairs: Sequence[tuple[int, int]], line: Scores) -> Iterator[Outcome]:
    for better, worse in pairs:
        names = case.responses[better].id, case.responses[worse].id
        better_score, worse_score = (line.scores[name] for name in names)
        if better_score is None or worse_score is None:
            reasons = [line.unscored[name] for name in names if name in line.unscored]
            reason: Outcome | None = next((known for known in OUTCOMES if known in reasons), None)
            if reason is None:
                do = Advice("compare pairs instead: ", Remedy("model.task", "pairs"))
                raise EvidenceError(f"the judge gave no score for prompt id {case.prompt.id!r}: {reasons[0]}", do=do)
            yield reason
        else:
            yield "tie" if better_score == worse_score else ("left" if better_score > worse_score else "right")


def _won(case: Case, answers: Sequence[Answer]) -> Scores:
    names = [response.id for response in case.responses]
    won = shares_won(names, [verdict for answer in answers for verdict in answer.verdicts])
    return Scores(prompt=case.prompt.id, language=case.prompt.language, scores=won.shares, unscored=won.reasons)


def refuse_failed(judged: Judged) -> None:
    """Raise FailuresError if requests failed; other missing verdicts are outcomes, which a policy counts."""
    if judged.num_failed:
        raise FailuresError(
            f"{judged.num_failed} of {number_of(len(judged.outcomes), 'pair')} "
            f"{verb_for(judged.num_failed, 'has', 'have')} no verdict because requests failed",
            do=Advice(
                "run the same again: finished requests are kept. Or accept no headline: ",
                Remedy("allow_unscored", value=True),
            ),
        )
