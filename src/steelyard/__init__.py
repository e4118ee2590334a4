"""Steelyard (杆秤): build and evaluate reward models in any language.

The Python API. Names are imported on first use, so that ``import steelyard`` is fast.
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.api import evaluate, load_model, resolve, score
    from steelyard.core import errors
    from steelyard.core.types import Case, Judgment, Message, Pair, Prompt, Rating, Response, Scores
    from steelyard.io.cases import read_cases, write_cases

__all__ = [
    "Case",
    "Judgment",
    "Message",
    "Pair",
    "Prompt",
    "Rating",
    "Response",
    "Scores",
    "errors",
    "evaluate",
    "load_model",
    "read_cases",
    "resolve",
    "score",
    "write_cases",
]

_HOMES = {
    "errors": "steelyard.core.errors",
    "evaluate": "steelyard.api",
    "load_model": "steelyard.api",
    "read_cases": "steelyard.io.cases",
    "resolve": "steelyard.api",
    "score": "steelyard.api",
    "write_cases": "steelyard.io.cases",
}


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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'steelyard' has no attribute {name!r}")
    module = importlib.import_module(_HOMES.get(name, "steelyard.core.types"))
    return module if name == "errors" else getattr(module, name)
