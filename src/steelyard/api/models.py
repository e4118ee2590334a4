"""Reward models as functions: load, train, score, evaluate."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, overload

from steelyard.api.arguments import check_value, checked
from steelyard.api.calls import Call, PathText, config_of, json_value, verb
from steelyard.api.cases import CasesLike
from steelyard.api.loaded import (
    LoadedModel,
    ModelLike,
    ScoresLike,
    built_model,
    score_responses,
    scores_file,
    scoring_of,
)
from steelyard.api.stage_outcomes import ModelEvaluation, ScoredCases, TrainedModel
from steelyard.core.checks import Turns
from steelyard.core.errors import ConfigError
from steelyard.core.types import JsonObject


@checked
def load_model(model: PathText, /, **settings: Any) -> LoadedModel:
    """Load a reward model: the folder of a trained one, a name on the hub, or a kind (`steelyard list models`).

    ``settings`` are those of the kind. Raises KindError and ConfigError for an unknown kind or setting, ModelError for
    a model that cannot be used.

    >>> sy.load_model("longer").score("2 + 2?", ["4", "four"])
    [1.0, 4.0]
    >>> sy.load_model("random", seed=7)
    LoadedModel('random')
    """
    return LoadedModel(str(model), json_value(settings))


@overload
def score(
    model: ModelLike, cases: CasesLike, *, out: PathText | None = None, force: bool = False, **settings: Any
) -> ScoredCases: ...
@overload
def score(model: ModelLike, *, prompt: Turns, responses: Sequence[Turns], **settings: Any) -> list[float]: ...
@verb("score")
def score(
    model: ModelLike,
    cases: CasesLike | None = None,
    *,
    prompt: Turns | None = None,
    responses: Sequence[Turns] | None = None,
    out: PathText | None = None,
    force: bool = False,
    **settings: Any,
) -> ScoredCases | list[float]:
    """Score cases with a reward model, or the responses to one prompt.

    The result of cases has a table with a row for each response; a response that cannot be scored is null with its
    reason. With ``prompt`` and ``responses``, each a text or a list of messages, it is a list of numbers. Raises
    EvidenceError for a score that is not a number, ModelError for a model that fails its self-tests.

    >>> sy.score("longer", prompt="2 + 2?", responses=["4", "four"])
    [1.0, 4.0]
    >>> sy.score("longer", cases).table[0]
    {'prompt': 'p1', 'language': 'zh', 'response': 'a', 'score': 20.0, 'unscored': None}
    """
    from steelyard.stages import score as stage

    model_settings = settings.pop("model_settings", None)
    check_value("model_settings", model_settings, JsonObject | None, where="score")
    if cases is None or prompt is not None or responses is not None:
        if cases is not None or prompt is None or responses is None:
            raise ConfigError(
                "cases, or a prompt with its responses, are needed", do="give cases=, or prompt= and responses="
            )
        return _score_one(model, prompt, responses, model_settings)
    with Call("score", out) as call:
        path = call.file(cases)
        if not isinstance(model, str | PathLike | LoadedModel | TrainedModel):
            built = built_model(model)
            config = config_of(stage.Config, settings, where="score")
            return ScoredCases.of(call, stage.score_with(built, built.name, path, call.out, config, force=force))
        scoring = scoring_of(call, model, model_settings, [path])
        config = config_of(stage.Config, {**settings, "model": scoring.settings}, where="score")
        run = stage.score(path, call.out, config, model=scoring.model or "", builder=scoring.builder, force=force)
        return ScoredCases.of(call, run)


def _score_one(model: ModelLike, prompt: Turns, responses: Sequence[Turns], settings: JsonObject | None) -> list[float]:
    if isinstance(model, TrainedModel):
        model = str(model.folder)
    if isinstance(model, str | PathLike):
        model = load_model(model, **(settings or {}))
    if isinstance(model, LoadedModel):
        return model.score(prompt, responses)
    built = built_model(model)
    return score_responses(built, prompt, responses, name=built.name)


@verb("evaluate")
def evaluate(
    model: ModelLike | None = None,
    bench: CasesLike | Sequence[PathText] | None = None,
    *,
    human: CasesLike | None = None,
    judged: CasesLike | None = None,
    kept_prompts: PathText | None = None,
    relabelled: CasesLike | None = None,
    out: PathText | None = None,
    scores: ScoresLike | None = None,
    train_cases: CasesLike | None = None,
    workers: int | None = None,
    force: bool = False,
    **settings: Any,
) -> ModelEvaluation:
    """Evaluate a reward model on cases with rankings, with 95% intervals over prompts and next to simple baselines.

    ``bench``: cases, or one or several files, also folders and patterns, of the benchmark ``bench_kind``. A model that
    is named, loaded or trained is tested first, and refused on prompts that it was trained on; an object of your own
    only scores. ``scores`` made elsewhere take the place of a model. ``train_cases`` are those that the baseline
    ``ngram`` learns from. Instead of ``bench``, ``human`` and ``judged`` have people's rankings of a random part of the
    prompts and a judge's of all: ``summary.prediction_powered`` has the values from both. ``kept_prompts`` is the file
    of the prompts that count, in all languages alike, as ``translate`` writes it. ``relabelled``: cases with the labels
    that better judges made again for a random part of the bench's prompts.

    Raises EvidenceError for responses without a score unless ``allow_unscored``, and for prompts that the model was
    trained on unless ``allow_overlap``.

    >>> evaluation = sy.evaluate("longer", cases)
    >>> evaluation.accuracy
    1.000 [..., 1.000] (n=40)
    >>> evaluation.by_category["uncategorised"].exact_match.value
    1.0
    >>> judged = sy.judge(cases, chat={"kind": "recorded", "path": "replies.jsonl"}, judge={"orders": "one"})
    >>> powered = sy.evaluate("longer", human=cases[:20], judged=judged).summary.prediction_powered
    >>> powered.num_labelled, powered.num_judged
    (20, 40)
    """
    from steelyard.stages import evaluate as stage

    with Call("evaluate", out) as call:
        files = [] if bench is None else _bench_files(call, bench)
        labels = {"human": call.optional_file(human, "human"), "judged": call.optional_file(judged, "judged")}
        scored_files = files or [path for path in (labels["judged"],) if path is not None]
        scoring = scoring_of(call, model, settings.pop("model_settings", None), scored_files)
        config = config_of(stage.Config, {**settings, "model": scoring.settings}, where="evaluate")
        if scores is not None and scoring.scores is not None:
            raise ConfigError("a model and scores are given", do="leave out one of them")
        run = stage.evaluate(
            files,
            call.out,
            config,
            model=scoring.model,
            scores=scoring.scores if scores is None else scores_file(call, scores),
            train_cases=call.optional_file(train_cases, "train_cases"),
            **labels,
            kept_prompts=None if kept_prompts is None else Path(kept_prompts),
            relabelled=call.optional_file(relabelled, "relabelled"),
            workers=workers,
            builder=scoring.builder,
            force=force,
        )
        return ModelEvaluation.of(call, run)


def _bench_files(call: Call, bench: CasesLike | Sequence[PathText]) -> list[Path]:
    if isinstance(bench, list | tuple):
        paths = [Path(item) for item in bench if isinstance(item, str | PathLike)]
        if paths and len(paths) == len(bench):
            return paths
    return [call.file(bench, "bench")]  # pyrefly: ignore[bad-argument-type] - `Cases` refuses a mixture
