"""Reward models as arguments: a kind, a folder, a trained or loaded model, or any object that scores cases."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias, overload

import msgspec

from steelyard.api.calls import Call, json_value
from steelyard.api.outcomes import ScoredCases, TrainedModel
from steelyard.core.errors import ConfigError, EvidenceError, ModelError
from steelyard.core.protocols import JudgeModel, RewardModel
from steelyard.core.types import Case, JsonObject, Message, Prompt, Response, Scores
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
    def score(self, cases: str, responses: Sequence[str]) -> list[float]: ...
    @overload
    def score(self, cases: Iterable[Case], responses: None = None) -> Iterator[Scores]: ...
    def score(
        self, cases: str | Iterable[Case], responses: Sequence[str] | None = None
    ) -> list[float] | Iterator[Scores]:
        """Score the responses to one prompt (a list of numbers), or cases (an iterator of `Scores`).

        Raises EvidenceError for a response to a prompt that cannot be scored, with the reason.
        """
        if not isinstance(cases, str):
            return scored(self.model, list(cases), name=self.name, quietly=True)
        if responses is None:
            raise ConfigError("a prompt without responses", do="give a list of texts: model.score(prompt, responses)")
        return score_responses(self.model, cases, responses, name=self.name)


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
    """What a stage scores with: the name and settings of a model and what builds it, or else a file of scores."""

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
    lines = scores.scores if isinstance(scores, ScoredCases) else scores
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


def score_responses(model: RewardModel, prompt: str, responses: Sequence[str], *, name: str) -> list[float]:
    """Return the score of each response to one prompt. Raises EvidenceError for one without a score."""
    ids = [f"r{number}" for number in range(1, len(responses) + 1)]
    case = Case(
        prompt=Prompt(id="prompt", messages=(Message(role="user", content=prompt),)),
        responses=tuple(Response(id=key, text=text) for key, text in zip(ids, responses, strict=True)),
    )
    (line,) = scored(model, [case], name=name, quietly=True)
    for key, reason in line.unscored.items():
        raise EvidenceError(f"response {ids.index(key) + 1} has no score: {reason}")
    return [float(line.scores[key] or 0.0) for key in ids]
