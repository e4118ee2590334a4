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
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

_HOMES = {
    "steelyard.api.cases": ("Cases",),
    "steelyard.api.comparisons": ("report", "view"),
    "steelyard.api.data": ("convert", "inspect", "read_cases", "write_cases"),
    "steelyard.api.judgments": ("judge", "judge_cards"),
    "steelyard.api.models": ("evaluate", "load_model", "score"),
    "steelyard.api.pipelines": ("demo", "run"),
    "steelyard.api.stage_outcomes": ("Pipeline",),
    "steelyard.core": ("errors",),
    "steelyard.core.types": ("Case", "Judgment", "Message", "Pair", "Prompt", "Rating", "Response", "Scores"),
    "steelyard.statistics.intervals": ("Estimate",),
}
"""Where the names are that are written out; the other verbs of stages are made from their declarations."""
_STAGES = Path(__file__).with_name("stages")
_WRITTEN = {name: module for module, names in _HOMES.items() for name in names}

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
        if isinstance(value, ModuleType) and _STAGES.joinpath(f"{name}.py").is_file():
            return
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


@cache
def _home_of() -> dict[str, str]:
    """Return the module of every public name."""
    from steelyard.io.verbs import stage_verbs

    return dict.fromkeys(stage_verbs(), "steelyard.api.verbs") | _WRITTEN


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_home_of())
    if name.startswith("_") or name not in _home_of():
        raise AttributeError(f"module 'steelyard' has no attribute {name!r}")
    if name == "errors":
        return importlib.import_module("steelyard.core.errors")
    value = globals()[name] = getattr(importlib.import_module(_home_of()[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(_home_of())
