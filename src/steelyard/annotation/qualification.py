"""Qualification before real work: tasks with a reference answer, the reason behind it, and a threshold to pass.

It is training, unlike hidden gold: after each task the annotator sees the reference and the reason. An answer to a task
scores the share of the points of the reference that it has, free texts aside; a point that the answer lacks is wrong.
The accuracy of a round is the mean over its tasks. The reference answer is read from a case as it is exported: the
ranking or the judgments, entries in ``meta``, and ratings with their spans.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations, compress
from typing import Any

from steelyard.annotation.agreement import PairCounts
from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.case_answers import rankings_of
from steelyard.annotation.questions import Point, TaskQuestion, applies
from steelyard.annotation.task_kinds import Catalogues, TaskKind
from steelyard.core.config import Config
from steelyard.core.errors import ConfigError, EvidenceError, Place
from steelyard.core.text import response_text
from steelyard.core.types import Case, JsonObject, Judgment, Ranking
from steelyard.ranking.judgment_table import distinct_judgments, standing
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.linearised import mean_of_sums

_MOST_TASKS = 200


class QualificationRules(Config, frozen=True):
    """The round that a person has to pass before real tasks."""

    num_tasks: int = 0
    """Tasks with a known answer that new annotators do before real ones; 0 for none."""
    least_accuracy: float = 0.8
    """The share of the reference that they must have for real tasks."""

    def __post_init__(self) -> None:
        if not 0 <= self.num_tasks <= _MOST_TASKS:
            raise ConfigError(f"{self.num_tasks} tasks", where="num_tasks", allowed=f"0 to {_MOST_TASKS}")
        if not 0 <= self.least_accuracy <= 1:
            raise ConfigError(f"{self.least_accuracy} is no share", where="least_accuracy", allowed="0 to 1")


def score_answer(kind: TaskKind, shown: Sequence[str], answer: TaskAnswer, reference: TaskAnswer) -> PairCounts:
    """Count the points of the reference, and those on which the answer has the same."""
    expected, actual = scored_points(kind, shown, reference), _points(kind, shown, answer)
    same = sum(point in actual and kind.is_same(point, actual[point], value) for point, value in expected.items())
    return PairCounts(same, len(expected))


def scored_points(kind: TaskKind, shown: Sequence[str], reference: TaskAnswer) -> dict[Point, Any]:
    """Return the points of a reference that count: all but free texts, which nobody writes in the same words."""
    texts = {question.name for question in kind.questions(shown, {}) if question.input == "text"}
    points = _points(kind, shown, reference)
    return {point: value for point, value in points.items() if point[0] != "entry" or point[1] not in texts}


def accuracy_of(shares: Sequence[float]) -> Estimate:
    """Return the mean of the shares of tasks with its 95% interval; no value without tasks."""
    return mean_of_sums(len(shares), sum(shares), sum(share**2 for share in shares), low=0.0, high=1.0)


def has_passed(accuracy: Estimate, rules: QualificationRules) -> bool:
    """Tell whether an accuracy is enough: the share itself is compared, not an end of its interval."""
    return accuracy.value is not None and accuracy.value >= rules.least_accuracy - 1e-12


def reference_answer(kind: TaskKind, case: Case, shown: Sequence[str], catalogues: Catalogues) -> TaskAnswer:
    """Return the reference answer to a task that shows these responses of a case.

    Raises EvidenceError for a case without an answer to one of the questions, or with contradicting ones.
    """
    questions = kind.questions(shown, catalogues)
    is_ordered = not questions or any(question.input == "comparison" for question in questions)
    wanted = {question.responses[0]: question.range for question in questions if question.input == "number"}
    marked = {question.responses[0] for question in questions if question.input == "marks"}
    rated = [each for each in case.ratings if each.response in marked]
    if missing := marked - {each.response for each in rated}:
        raise _unusable(case, f"no rating of {min(missing)!r} with the reference marks", "ratings")
    answer = TaskAnswer(
        ranking=_order(case, shown) if is_ordered else (),
        scores={
            each.response: round(each.value)
            for each in case.ratings
            if each.response in wanted
            and each.range is not None
            and tuple(map(int, each.range)) == wanted[each.response]
        },
        spans={each.response: tuple(each.spans) for each in rated if each.spans},
    )
    for question in questions:
        answer = _with_entry(answer, question, case, kind.name)
    if wrong := kind.misfits(
        answer, {each.id: response_text(each) for each in case.responses if each.id in shown}, catalogues
    ):
        raise _unusable(case, f"a reference with {wrong[0]}", "meta")
    open_points = kind.contradictions(answer, shown) if questions else ()
    if open_points:
        raise _unusable(case, f"no reference answer to {open_points[0].responses[0]!r}", "meta.entries")
    return answer


def reference_reason(case: Case, shown: Sequence[str]) -> str:
    """Return why the reference is as it is: ``meta.reason`` of the case, else the reasons of its judgments."""
    reason = case.meta.get("reason")
    if isinstance(reason, str) and reason.strip():
        return reason.strip()
    reasons = [
        each.reason for each in case.judgments if {each.left, each.right} <= set(shown) and each.verdict != "none"
    ]
    return "\n".join(dict.fromkeys(each.strip() for each in reasons if each and each.strip()))


def _points(kind: TaskKind, shown: Sequence[str], answer: TaskAnswer) -> dict[Point, Any]:
    return {} if answer.cannot_judge is not None else kind.points(answer, shown)


def _order(case: Case, shown: Sequence[str]) -> Ranking:
    """Return the tiers of the responses shown by the ranking of the case, else by the majority of what stands."""
    if case.ranking is not None:
        tiers = [tuple(each for each in tier if each in shown) for tier in case.ranking]
        if sorted(each for tier in tiers for each in tier) == sorted(shown):
            return tuple(tier for tier in tiers if tier)
    votes: defaultdict[frozenset[str], defaultdict[str, list[Judgment]]] = defaultdict(lambda: defaultdict(list))
    for each in distinct_judgments(tuple(compress(case.judgments, standing(case.judgments)))):
        if {each.left, each.right} <= set(shown) and each.verdict != "none":
            better = {"left": each.left, "right": each.right}.get(each.verdict, "")
            votes[frozenset((each.left, each.right))][better].append(each)
    once: list[Judgment] = []
    for verdicts in votes.values():
        first, *others = sorted(verdicts.values(), key=len, reverse=True)
        if others and len(others[0]) == len(first):
            raise _unusable(case, f"contradicting judgments of {first[0].left!r} and {first[0].right!r}", "judgments")
        once.append(first[0])
    if len(once) < len(list(combinations(shown, 2))):
        raise _unusable(case, "no reference order of the responses of a task", "ranking")
    rankings = rankings_of(once)
    if len(rankings) != 1:
        raise _unusable(case, "judgments that no ranking agrees with", "judgments")
    return tuple(tuple(tier) for tier in rankings[0])


def _with_entry(answer: TaskAnswer, question: TaskQuestion, case: Case, kind: str) -> TaskAnswer:
    """Return the answer with the entry of a question that applies; as it is where the case has none."""
    if question.input not in ("choice", "text") or not applies(question, answer):
        return answer
    sources: list[JsonObject] = [
        *((each.meta or {}).get("entries", {}) for each in case.judgments),
        case.meta.get("entries", {}),
        # What an export says of the decision on a prompt.
        case.meta.get(kind, {}),
        {"category": "/".join(case.prompt.category)} if case.prompt.category else {},
    ]
    values = [source[question.name] for source in sources if isinstance(source, dict) and question.name in source]
    if not values or not isinstance(values[0], str):
        return answer
    return TaskAnswer(
        ranking=answer.ranking,
        scores=answer.scores,
        spans=answer.spans,
        entries={**answer.entries, question.name: values[0]},
    )


def _unusable(case: Case, problem: str, field: str) -> EvidenceError:
    return EvidenceError(
        f"prompt {case.prompt.id!r} has {problem}",
        where=Place("qualification cases", path=field),
        allowed="a ranking or judgments of every two responses, entries in meta.entries, ratings with their spans",
        do="add the reference answer to the case, or leave the case out",
    )
