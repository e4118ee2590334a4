"""Models as arguments: a kind, a folder, a trained or loaded model, an object that scores, a function that judges."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias, cast, overload, runtime_checkable

import msgspec

from steelyard.api.arguments import check_value
from steelyard.api.calls import Call, json_value
from steelyard.api.cases import Cases
from steelyard.api.stage_outcomes import ScoredCases, TrainedModel
from steelyard.core.checks import Turns, content_id, read_responses, read_turns
from steelyard.core.comparison import Reply, Request
from steelyard.core.errors import ConfigError, EvidenceError, ModelError
from steelyard.core.protocols import JudgeModel, RewardModel
from steelyard.core.types import Case, JsonObject, Prompt, Scores
from steelyard.io.cases import read_cases
from steelyard.io.rows import write_rows
from steelyard.plugins.reward_models import Builder, ModelChoice, build_model, choose_model, scored


class LoadedModel:
    """A reward model that can be used many times. Its weights are read at the first score.

    >>> model = sy.load_model("longer")
    >>> model.score("Why is the sky blue?", ["Air scatters blue light most.", "It is."])
    [29.0, 6.0]
    """

    def __init__(self, name: str, settings: JsonObject) -> None:
        self.name = name
        self.settings = settings
        self._choice: ModelChoice = choose_model(name, settings)

    def __repr__(self) -> str:
        return f"LoadedModel({self._choice.name!r})"

    @cached_property
    def model(self) -> RewardModel:
        """The model itself, as its plug-in builds it."""
        return build_model(self._choice)

    def build(self, choice: ModelChoice, /, *, ledger: Path | None = None) -> RewardModel:
        """Return this model where it is the one that is chosen: its weights are in memory once. Else build it."""
        return self.model if choice == self._choice and ledger is None else build_model(choice, ledger=ledger)

    def protocol(self) -> JsonObject:
        """Return what two scores must share to be comparable."""
        return self.model.protocol()

    @overload
    def score(self, cases: Turns, responses: Sequence[Turns]) -> list[float]: ...
    @overload
    def score(self, cases: Iterable[Case], responses: None = None) -> Iterator[Scores]: ...
    def score(
        self, cases: Turns | Iterable[Case], responses: Sequence[Turns] | None = None
    ) -> list[float] | Iterator[Scores]:
        """Score the responses to one prompt (a list of numbers), or cases (an iterator of `Scores`).

        A prompt and a response is a text or a list of messages with ``role`` and ``content``. Raises ConfigError for
        anything else, EvidenceError for a response to a prompt that cannot be scored, with the reason.
        """
        if responses is not None:
            return score_responses(self.model, cast("Turns", cases), responses, name=self.name)
        if isinstance(cases, str) or (isinstance(cases, Sequence) and cases and not isinstance(cases[0], Case)):
            raise ConfigError("a prompt without responses", do="give a list of texts: model.score(prompt, responses)")
        check_value("cases", cases, Iterable[Case], where="score")
        return scored(self.model, list(Cases(cast("Iterable[Case]", cases))), name=self.name, quietly=True)


@runtime_checkable
class CaseScorer(Protocol):
    """Any object that scores cases: a model of your own. A method ``protocol`` is recorded if it has one."""

    def score(self, cases: Iterable[Case], /) -> Iterable[Scores]:
        """Yield the scores of each case, in order."""
        ...


ModelLike: TypeAlias = str | PathLike[str] | LoadedModel | TrainedModel | CaseScorer
"""A kind (``longer``), a folder or hub name, a loaded or trained model, or an object with ``score(cases)``."""


ScoresLike: TypeAlias = str | PathLike[str] | ScoredCases | Iterable[Scores]
"""A file of scores, the result of `score`, or a `Scores` for each case."""


class Scoring(NamedTuple):
    """The scoring of a stage: the name and settings of a model and what builds it, or else a file of scores."""

    model: str | None = None
    settings: JsonObject = {}  # noqa: RUF012  never changed
    scores: Path | None = None
    builder: Builder = build_model


def scoring_of(
    call: Call, model: ModelLike | None, settings: Mapping[str, object] | None, cases: Iterable[Path]
) -> Scoring:
    """Return what a stage scores with; an object scores the cases of these files at once.

    Raises ConfigError for settings of a model that has its own, ModelError for an object that is a judge.
    """
    check_value("model_settings", settings, JsonObject | None, where="settings")
    if model is None:
        return Scoring(settings=json_value(settings or {}))
    if isinstance(model, str | PathLike):
        return Scoring(str(model), json_value(settings or {}))
    if settings:
        raise ConfigError("model_settings are given with a model that has its own", do="leave them away")
    if isinstance(model, LoadedModel):
        return Scoring(model.name, model.settings, builder=model.build)
    if isinstance(model, TrainedModel):
        return Scoring(str(model.folder))
    built = built_model(model)
    read = [case for path in cases for case in read_cases(path)]
    lines = scored(built, read, name=built.name, quietly=True)
    return Scoring(scores=scores_file(call, lines, built.name))


def scores_file(call: Call, scores: ScoresLike, role: str = "scores") -> Path:
    """Return the file of scores: its own if it has one that will stay, else a new one."""
    if isinstance(scores, str | PathLike):
        return Path(scores)
    if isinstance(scores, ScoredCases) and not (call.is_kept and scores.is_temporary):
        call.owners.append(scores)
        return scores.folder / "scores.jsonl"
    lines = scores.scores if isinstance(scores, ScoredCases) else list(scores)
    check_value(role, lines, Sequence[Scores], where="scores")
    return call.write(role, ".jsonl", lambda path: write_rows(path, map(msgspec.to_builtins, lines)))


class BuiltModel(NamedTuple):
    """An object that scores, under the name of its class, as a stage uses a reward model."""

    scorer: CaseScorer
    name: str

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """Yield the scores of each case, in order."""
        yield from self.scorer.score(cases)

    def protocol(self) -> JsonObject:
        """Return the protocol of the object, or its class alone."""
        return self.scorer.protocol() if isinstance(self.scorer, RewardModel) else {"class": self.name}


def built_model(model: CaseScorer) -> BuiltModel:
    """Return an object as a reward model. Raises ModelError for a judge, whose replies could not be stored."""
    if isinstance(model, JudgeModel):
        do = 'name it: "llm_judge" with model_settings={"chat": …}, or the module of your own, "my_lab.my_judge"'
        raise ModelError("a judge is given as an object, whose replies could not be stored", do=do)
    return BuiltModel(model, type(model).__name__)


def score_responses(model: RewardModel, prompt: Turns, responses: Sequence[Turns], *, name: str) -> list[float]:
    """Return the score of each response to one prompt.

    Raises ConfigError for a value that is neither a text nor messages, EvidenceError for a response without a score.
    """
    messages = read_turns(prompt, "user", where="prompt")
    case = Case(prompt=Prompt(id="prompt", messages=messages), responses=read_responses(responses, where="responses"))
    (line,) = scored(model, [case], name=name, quietly=True)
    for number, response in enumerate(case.responses, 1):
        if response.id in line.unscored:
            raise EvidenceError(f"response {number} has no score: {line.unscored[response.id]}")
    return [float(line.scores[response.id] or 0.0) for response in case.responses]


JudgeFunction: TypeAlias = Callable[[list[dict[str, str]]], str | None]
"""A question as messages (dictionaries with ``role`` and ``content``) to the text of a reply, null for a refusal.

A reply has its verdict in the form that the question requests: ``[[A]]`` for the answer shown first, ``[[B]]``,
``[[C]]`` for a tie. ``judge_name`` on the function, otherwise its own name, signs the judgments.
"""


_FAULTS = (ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, TypeError)
"""Errors of a function itself, which would fail for every question; any other is that of one request."""


class FunctionChat:
    """A Chat whose replies are those of a function. An exception is a failed request, with its text as the reason.

    The source of the function is part of the identity of a reply: a changed function replies anew. What the function
    reads from elsewhere is not: change ``judge_name`` with it.
    """

    def __init__(self, function: JudgeFunction) -> None:
        plain = getattr(function, "__name__", type(function).__name__)
        self.name = str(getattr(function, "judge_name", plain))
        self._function = function
        self._source = _source_hash(function)

    def ask(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Yield a reply for each request, in order.

        Raises ModelError for a reply of another type than text, and for a fault of the function.
        """
        for request in requests:
            messages = [{"role": turn.role, "content": turn.content} for turn in request.question.messages]
            try:
                text = self._function(messages)
            except Exception as error:
                if isinstance(error, _FAULTS):
                    problem = f"the function {self.name} fails ({type(error).__name__}: {error})"
                    raise ModelError(
                        problem, do="correct the function; replies until here are kept with out="
                    ) from error
                detail = f"{type(error).__name__}: {error}"
                yield Reply(request=request.id, failure="failed", detail=detail)
                continue
            if text is not None and not isinstance(text, str):
                problem = f"the judge {self.name} returned {type(text).__name__}"
                raise ModelError(problem, allowed="the text of a reply, such as '[[A]]', or None for a refusal")
            yield Reply(request=request.id, text=text, failure="refused" if text is None else None)

    def protocol(self) -> JsonObject:
        """Return the name and the hash of the source."""
        return {"chat": "function", "model": self.name, "source": self._source}


def _source_hash(function: JudgeFunction) -> str | None:
    """Return the hash of the source of a function, or of an object's class; null where there is none to read."""
    try:
        return content_id(inspect.getsource(function if inspect.isroutine(function) else type(function)))
    except (OSError, TypeError):
        return None
