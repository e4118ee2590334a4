"""The verbs of stages as functions, each made from the declaration of its verb when it is first used.

What an input may be follows from its type in the stage: a case file may also be cases in memory. A function that does
more than run its stage is written in the modules beside this one.
"""

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from steelyard.api.calls import Call, config_of, verb
from steelyard.api.inputs import made_verbs, stage_inputs
from steelyard.api.loaded import scoring_of
from steelyard.api.outcomes import Outcome
from steelyard.api.stage_outcomes import TrainedModel
from steelyard.core.errors import ConfigError
from steelyard.core.types import JsonObject, Run
from steelyard.io.verbs import paragraphs, run_verb, stage_verbs

_IN_TERMINAL = "Example: `steelyard"
_STAGES = "steelyard.stages"
_RESULTS: Mapping[str, type[Outcome[Any]]] = {"train": TrainedModel}
_FOLDERS = {"train": "model"}
"""The names of temporary folders that are shown, as the name of a model is."""


def __getattr__(name: str) -> Any:
    if name not in made_verbs():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = globals()[name] = _function(name)
    return function


def _function(stage: str) -> Callable[..., Any]:
    inputs = stage_inputs(stage)

    def function(*arguments: Any, **keywords: Any) -> Any:
        bound = signature.bind(*arguments, **keywords)
        bound.apply_defaults()
        values: JsonObject = bound.arguments
        settings: JsonObject = values.pop("settings")
        with Call(_FOLDERS.get(stage, stage), values.pop("out"), function=stage) as call:
            force = values.pop("force")
            stored = {each.name: each.stored(call, values[each.name]) for each in inputs if each.name in values}
            if any(each.kind.text == "ModelLike" for each in inputs):
                scoring = scoring_of(call, stored["model"], settings.pop("model_settings", None), [stored["cases"]])
                if scoring.scores is not None and stored["scores"] is not None:
                    raise ConfigError("a model and scores are given", do="leave one away")
                settings["model"] = scoring.settings
                scores = stored["scores"] if scoring.scores is None else scoring.scores
                stored |= {"model": scoring.model, "builder": scoring.builder, "scores": scores}
            module = importlib.import_module(f"{_STAGES}.{stage}")
            config = config_of(module.Config, settings, where=stage)
            result = run_verb(module, stage_verbs()[stage], {**stored, "out": call.out}, config, force=force)
            return _RESULTS.get(stage, Outcome).of(call, result) if isinstance(result, Run) else result

    function.__name__ = function.__qualname__ = stage
    function.__doc__ = "\n\n".join(text for text in paragraphs(stage) if not text.startswith(_IN_TERMINAL))
    parameters = [each.parameter for each in inputs]
    parameters.append(inspect.Parameter("settings", inspect.Parameter.VAR_KEYWORD))
    signature = inspect.Signature(parameters)
    function.__signature__ = signature  # pyrefly: ignore[missing-attribute] - unknown to the stubs of functions
    function.__annotations__ = {each.name: each.annotation for each in parameters[:-1]}
    return verb(stage, foresees=[each.name for each in inputs if each.name == "dry_run"])(function)
