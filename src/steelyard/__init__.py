"""Steelyard (杆秤): build and evaluate reward models in any language.

    import steelyard as sy

    cases = sy.convert("ratings.jsonl", ratings_to_judgments=True).cases   # any known format, or a table in memory
    ranked = sy.resolve(cases).cases                                       # conflict-free rankings
    parts = sy.split(ranked)
    model = sy.train(parts["train"], model="Qwen/Qwen2.5-0.5B", out="my-model")
    evaluation = sy.evaluate(model, parts["test"], train_cases=parts["train"])
    print(evaluation.accuracy)                                             # 0.748 [0.693, 0.796] (n=353)

Every verb of the command line is a function with the same settings and defaults. It takes paths or values in memory
(`Cases`, rows, polars, pandas, pyarrow, datasets); with ``out`` it writes its folder as the command does, without it
nothing stays behind. Errors that a user can cause are in `errors`. Names are imported on first use.
"""

import importlib
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.api.cases import Cases
    from steelyard.api.comparisons import compare, languages, leaderboard, report, view
    from steelyard.api.data import convert, describe, inspect, merge, read_cases, simulate, split, write_cases
    from steelyard.api.judgments import audit, debias, filter_study, judge, judge_cards, raters, resolve, supervise
    from steelyard.api.labelling import clean, prompts, sample
    from steelyard.api.models import backbone, evaluate, load_model, score, train
    from steelyard.api.outcomes import Pipeline
    from steelyard.api.pipelines import ablate, demo, run, sweep
    from steelyard.core import errors
    from steelyard.core.types import Case, Judgment, Message, Pair, Prompt, Rating, Response, Scores
    from steelyard.statistics.intervals import Estimate

_HOMES = {
    "steelyard.api.cases": ("Cases",),
    "steelyard.api.comparisons": ("compare", "languages", "leaderboard", "report", "view"),
    "steelyard.api.data": ("convert", "describe", "inspect", "merge", "read_cases", "simulate", "split", "write_cases"),
    "steelyard.api.judgments": (
        "audit",
        "debias",
        "filter_study",
        "judge",
        "judge_cards",
        "raters",
        "resolve",
        "supervise",
    ),
    "steelyard.api.labelling": ("clean", "prompts", "sample"),
    "steelyard.api.models": ("backbone", "evaluate", "load_model", "score", "train"),
    "steelyard.api.outcomes": ("Pipeline",),
    "steelyard.api.pipelines": ("ablate", "demo", "run", "sweep"),
    "steelyard.core": ("errors",),
    "steelyard.core.types": ("Case", "Judgment", "Message", "Pair", "Prompt", "Rating", "Response", "Scores"),
    "steelyard.statistics.intervals": ("Estimate",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Case",
    "Cases",
    "Estimate",
    "Judgment",
    "Message",
    "Pair",
    "Pipeline",
    "Prompt",
    "Rating",
    "Response",
    "Scores",
    "ablate",
    "audit",
    "backbone",
    "clean",
    "compare",
    "convert",
    "debias",
    "demo",
    "describe",
    "errors",
    "evaluate",
    "filter_study",
    "inspect",
    "judge",
    "judge_cards",
    "languages",
    "leaderboard",
    "load_model",
    "merge",
    "prompts",
    "raters",
    "read_cases",
    "report",
    "resolve",
    "run",
    "sample",
    "score",
    "simulate",
    "split",
    "supervise",
    "sweep",
    "train",
    "view",
    "write_cases",
]

_NO_TELEMETRY = {
    "DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "RAY_USAGE_STATS_ENABLED": "0",
    "WANDB_ERROR_REPORTING": "false",
}
# Set before any library is imported that would send usage reports. A user who wants them sets the variable.
for _name, _value in _NO_TELEMETRY.items():
    os.environ.setdefault(_name, _value)


class _Package(ModuleType):
    """The package, in which importing ``steelyard.report`` or ``steelyard.prompts`` does not hide that function."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _HOME_OF and isinstance(value, ModuleType):
            return
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'steelyard' has no attribute {name!r}")
    if name == "errors":
        return importlib.import_module("steelyard.core.errors")
    value = globals()[name] = getattr(importlib.import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return list(__all__)
