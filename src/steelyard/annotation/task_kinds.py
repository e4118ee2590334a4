"""Kinds of tasks: what is shown, what is entered, what contradicts, where two answers agree, and what is exported.

A kind is a file in ``kinds/`` with a value ``KIND``; nothing else names it but the words of the pages. All that moves
tasks, answers and items through the pipeline asks the kind and knows none. Most kinds are a list of questions
(`QuestionTasks`); triples have a ranking that is checked against scores, and a class of their own.
"""

import pkgutil
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Literal, NamedTuple, Protocol

import numpy as np

from steelyard.annotation.answers import Inconsistency, Origin, TaskAnswer, judgments_of
from steelyard.annotation.questions import (
    FEWEST_SHARED,
    Point,
    PointValue,
    TaskQuestion,
    open_questions,
    points_of,
    question_misfits,
    shared_marks,
)
from steelyard.annotation.simulated_entries import SimulatedLook, answer_questions
from steelyard.annotation.triple_designs import Replan
from steelyard.core.config import Config, Positive
from steelyard.core.numerics import generator
from steelyard.core.text import answer_language
from steelyard.core.types import Case, Judgment, Rating

_FOLDER = "steelyard.annotation.kinds"
_NONE_UNUSUAL: Mapping[str, float] = {}
Catalogues = Mapping[str, tuple[str, ...]]
"""The choices of questions whose choices a project decides, such as the categories of prompts, by question."""
Design = tuple[tuple[str, ...], ...]
"""The ids of the responses that each task shows, one tuple for each task; empty where a task is about the prompt."""


class TaskRules(Config, frozen=True):
    """Which tasks the cases of a project get."""

    kind: Literal[
        "ranking", "pairwise", "baseline", "prompt_review", "translation_quality", "native_check", "span_marking"
    ] = "ranking"
    """The kind of the tasks. ranking: triples, and a pair where a case has two responses. pairwise: every pair."""
    baseline: str | None = None
    """Tasks of the kind baseline: the id or author of the response that is the baseline. Default: the first one."""
    num_per_language: Positive = 50
    """Tasks of the kind native_check: how many items of each language are drawn."""
    categories: tuple[str, ...] = ()
    """Tasks of the kind prompt_review: the categories, as mathematics/algebra. Empty for those of the taxonomy."""
    by_language: bool = False
    """File the tasks of a case under the language of its responses, in place of its category: people get those of the
    languages that they have. translation_quality and native_check always do."""
    too_few: Literal["refuse", "skip"] = "refuse"
    """Treatment of an import with a case that has too few responses: nothing is imported, or the case is skipped."""


class TaskKind(Protocol):
    """A kind of tasks. ``shown`` are the ids of the responses of a task, with their texts where these matter."""

    @property
    def name(self) -> str:
        """The name under which tasks are stored: that of its file."""
        ...

    @property
    def needs(self) -> str:
        """Needs of a case before it gets tasks, in words."""
        ...

    @property
    def is_shuffled(self) -> bool:
        """Show every person the responses in an order of their own."""
        ...

    @property
    def has_discards(self) -> bool:
        """Let people take a response out."""
        ...

    @property
    def is_by_language(self) -> bool:
        """File tasks under the language of their responses in place of the prompt's category."""
        ...

    def design(self, case: Case, rules: TaskRules, *, seed: int) -> Design | None:
        """Return the tasks of a case; null where it lacks what they show."""
        ...

    def select(self, cases: Iterable[Case], rules: TaskRules, *, seed: int) -> Iterable[Case]:
        """Return the cases of an import that get tasks."""
        ...

    def replan(self, design: Sequence[Sequence[str]], discarded: Container[str]) -> Replan:
        """Return the plan after responses were discarded."""
        ...

    def questions(self, shown: Sequence[str], catalogues: Catalogues) -> tuple[TaskQuestion, ...]:
        """Return what is entered, in its order; empty for triples, whose page has its own order."""
        ...

    def misfits(self, answer: TaskAnswer, shown: Mapping[str, str], catalogues: Catalogues) -> tuple[str, ...]:
        """Return what no page of ours would send, in words."""
        ...

    def contradictions(self, answer: TaskAnswer, shown: Sequence[str]) -> tuple[Inconsistency, ...]:
        """Return what keeps an answer from being submitted."""
        ...

    def points(self, answer: TaskAnswer, shown: Sequence[str]) -> dict[Point, PointValue]:
        """Return what an answer says, by point."""
        ...

    def is_same(self, point: Point, first: PointValue, second: PointValue) -> bool:
        """Tell whether two people agree on a point."""
        ...

    def judgments(self, answer: TaskAnswer, origin: Origin) -> tuple[Judgment, ...]:
        """Return the judgments that an answer is exported as."""
        ...

    def ratings(self, answer: TaskAnswer, origin: Origin) -> tuple[Rating, ...]:
        """Return the ratings that an answer is exported as."""
        ...

    def revise(self, case: Case, answer: TaskAnswer, origin: Origin) -> Case | None:
        """Return the case after the answer that stands for the task; null where the answer drops the prompt."""
        ...

    def is_clear(self, answer: TaskAnswer) -> bool:
        """Tell whether a settled answer can check people as gold."""
        ...

    def falsify(self, answer: TaskAnswer, catalogues: Catalogues, rng: np.random.Generator) -> TaskAnswer | None:
        """Return a settled answer changed into one that is clearly wrong; null where the kind cannot be sure of it."""
        ...

    def latent_quality(self, case: Case, response: str, *, seed: int) -> float:
        """Return how good a response is to simulated people, from 0 to 1, where the case does not say so."""
        ...

    def simulate(self, look: SimulatedLook, catalogues: Catalogues) -> TaskAnswer:
        """Return the answer of a simulated person."""
        ...


@cache
def kind_names() -> tuple[str, ...]:
    """Return the names of all kinds of tasks, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(import_module(_FOLDER).__path__)))


@cache
def kind_named(name: str) -> TaskKind:
    """Return a kind of tasks by its name."""
    assert name in kind_names(), name
    return import_module(f"{_FOLDER}.{name}").KIND


def kinds_of(rules: TaskRules) -> tuple[TaskKind, ...]:
    """Return the kinds that a case may get, the first that fits it counts."""
    names = {"ranking": ("triple", "pairwise")}.get(rules.kind, (rules.kind,))
    return tuple(map(kind_named, names))


def category_of_tasks(case: Case, rules: TaskRules) -> str:
    """Return what the tasks of a case are filed under, which decides who gets them; empty where the case lacks it."""
    if rules.by_language or kinds_of(rules)[0].is_by_language:
        return answer_language(case.prompt) or ""
    return case.prompt.category[0] if case.prompt.category else ""


def _no_ratings(answer: TaskAnswer, origin: Origin) -> tuple[Rating, ...]:
    return ()


def _unchanged(case: Case, answer: TaskAnswer, origin: Origin) -> Case | None:
    return case


def _none_is_wrong(answer: TaskAnswer, catalogues: Catalogues, rng: np.random.Generator) -> TaskAnswer | None:
    return None


def each_response(case: Case, rules: TaskRules) -> Design | None:
    """Return a task for each response of a case by itself; null without any."""
    return tuple((response.id,) for response in case.responses) or None


def any_quality(case: Case, response: str, seed: int) -> float:
    """Return a latent quality for simulated people that is drawn from 0 to 1 evenly."""
    return float(generator(seed, "latent quality", case.prompt.id, response).random())


def _every_case(cases: Iterable[Case], rules: TaskRules, seed: int) -> Iterable[Case]:
    return cases


def without_new_tasks(design: Sequence[Sequence[str]], discarded: Container[str]) -> Replan:
    """Return the plan in which tasks with a discarded response retire, and the others stay as they are."""
    places = range(len(design))
    staying = tuple(place for place in places if not any(response in discarded for response in design[place]))
    retiring = tuple(place for place in places if place not in staying)
    remaining = tuple(dict.fromkeys(response for place in staying for response in design[place]))
    return Replan(staying, retiring, (), remaining)


class QuestionTasks(NamedTuple):
    """A kind of tasks that is a list of questions.

    ``ask`` gives the questions about the responses shown, with the choices of the project; ``plan`` the tasks of a
    case. Two scores are the same if they differ by ``tolerance`` at most. ``rate`` and ``change`` give what is exported
    beside judgments: ratings, and the case itself as the answer changes it. ``sample`` takes some of the cases.
    ``spoil`` makes a wrong answer of a settled one (`wrong_answers`); a kind without it cannot say what is wrong.
    Simulated people find responses as good as ``quality`` says of the case, the response and the seed, and all but
    the share ``unusual`` of the prompts, by the name of a choice, have its first value.
    """

    name: str
    needs: str
    plan: Callable[[Case, TaskRules], Design | None]
    ask: Callable[[Sequence[str], Catalogues], tuple[TaskQuestion, ...]]
    is_shuffled: bool = True
    has_discards: bool = False
    is_by_language: bool = False
    tolerance: int = 0
    rate: Callable[[TaskAnswer, Origin], tuple[Rating, ...]] = _no_ratings
    change: Callable[[Case, TaskAnswer, Origin], Case | None] = _unchanged
    sample: Callable[[Iterable[Case], TaskRules, int], Iterable[Case]] = _every_case
    spoil: Callable[[TaskAnswer, Catalogues, np.random.Generator], TaskAnswer | None] = _none_is_wrong
    quality: Callable[[Case, str, int], float] = any_quality
    unusual: Mapping[str, float] = _NONE_UNUSUAL

    def design(self, case: Case, rules: TaskRules, *, seed: int) -> Design | None:
        """Return the tasks of a case; null where it lacks what they show."""
        return self.plan(case, rules)

    def select(self, cases: Iterable[Case], rules: TaskRules, *, seed: int) -> Iterable[Case]:
        """Return the cases of an import that get tasks."""
        return self.sample(cases, rules, seed)

    def replan(self, design: Sequence[Sequence[str]], discarded: Container[str]) -> Replan:
        """Return the plan after responses were discarded: their tasks retire."""
        return without_new_tasks(design, discarded)

    def questions(self, shown: Sequence[str], catalogues: Catalogues) -> tuple[TaskQuestion, ...]:
        """Return what is entered, in its order."""
        return self.ask(shown, catalogues)

    def misfits(self, answer: TaskAnswer, shown: Mapping[str, str], catalogues: Catalogues) -> tuple[str, ...]:
        """Return what no page of ours would send, in words."""
        wrong = question_misfits(answer, self.ask(tuple(shown), catalogues), shown)
        if self.has_discards:
            unknown = [response for response in answer.discarded if response not in shown]
        else:
            unknown = list(answer.discarded)
        return wrong + tuple(f"{response!r} as discarded" for response in unknown)

    def contradictions(self, answer: TaskAnswer, shown: Sequence[str]) -> tuple[Inconsistency, ...]:
        """Return the questions that are still open."""
        return open_questions(answer, self.ask(shown, {}))

    def points(self, answer: TaskAnswer, shown: Sequence[str]) -> dict[Point, PointValue]:
        """Return what an answer says, by point."""
        return points_of(answer, self.ask(shown, {}))

    def is_same(self, point: Point, first: PointValue, second: PointValue) -> bool:
        """Tell whether two people agree on a point: equal values, near scores, or marks that overlap by half."""
        if isinstance(first, int) and isinstance(second, int):
            return abs(first - second) <= self.tolerance
        if isinstance(first, tuple) and isinstance(second, tuple):
            is_severe = any(question.severities for question in self.ask(point[1:], {}))
            return shared_marks(first, second, with_severity=is_severe) >= FEWEST_SHARED
        return first == second

    def judgments(self, answer: TaskAnswer, origin: Origin) -> tuple[Judgment, ...]:
        """Return a judgment for every pair of responses; entries and marks are in its ``meta``."""
        extras = {"entries": dict(answer.entries)} if answer.entries else {}
        if answer.spans and self.rate is _no_ratings:
            extras |= {"spans": {response: list(spans) for response, spans in answer.spans.items()}}
        return judgments_of(answer, origin._replace(meta=origin.meta | extras))

    def ratings(self, answer: TaskAnswer, origin: Origin) -> tuple[Rating, ...]:
        """Return the ratings that an answer is exported as; none where the person could not judge."""
        return () if answer.cannot_judge is not None else self.rate(answer, origin)

    def revise(self, case: Case, answer: TaskAnswer, origin: Origin) -> Case | None:
        """Return the case after the answer that stands; null where the answer drops the prompt."""
        return self.change(case, answer, origin)

    def is_clear(self, answer: TaskAnswer) -> bool:
        """Tell whether a settled answer can check people: it answers, and discards nothing."""
        return answer.cannot_judge is None and not answer.discarded and len(answer.ranking) != 1

    def falsify(self, answer: TaskAnswer, catalogues: Catalogues, rng: np.random.Generator) -> TaskAnswer | None:
        """Return a settled answer changed into one that is clearly wrong; null where the kind cannot be sure of it."""
        return self.spoil(answer, catalogues, rng)

    def latent_quality(self, case: Case, response: str, *, seed: int) -> float:
        """Return how good a response is to simulated people."""
        return self.quality(case, response, seed)

    def simulate(self, look: SimulatedLook, catalogues: Catalogues) -> TaskAnswer:
        """Return the answer of a simulated person to the questions."""
        return answer_questions(self.ask(look.shown, catalogues), look, self.unusual)
