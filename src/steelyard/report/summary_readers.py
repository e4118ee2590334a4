"""What the report reads in the summaries of runs: typed, and tolerant of keys that are absent or new."""

from typing import Any

import msgspec


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a summary; keys that the report does not show are passed over."""


class LengthLoss(Seen, frozen=True, kw_only=True):
    """What the length limit took from the training data, or what was cut to fit it."""

    max_length: int = 0
    num_responses: int = 0
    num_too_long: int = 0
    num_pairs: int = 0
    num_pairs_over: int = 0
    num_prompts: int = 0
    num_prompts_over: int = 0
    is_cut: bool = False


class HeldOut(Seen, frozen=True, kw_only=True):
    """What was measured on held-out prompts while training."""

    accuracy: float | None = None
    exact_match: float | None = None
    num_pairs: int | None = None
    num_prompts: int | None = None


class Training(Seen, frozen=True, kw_only=True):
    """The summary of a run of ``train``."""

    num_steps: int | None = None
    num_pairs: int | None = None
    num_prompts: int | None = None
    length: LengthLoss | None = None
    num_responses: int | None = None
    final_loss: float | None = None
    held_out: HeldOut | None = None


class CurvePoint(Seen, frozen=True, kw_only=True):
    """A line of ``curve.jsonl``: a step of training, or an evaluation on held-out prompts."""

    step: int
    loss: float | None = None
    learning_rate: float | None = None
    held_out: HeldOut | None = None


def model_name(model: Any) -> str | None:
    """A short name for what was evaluated: the last part of a path, or the kind in a table of settings."""
    if isinstance(model, dict):
        for key in ("name", "path", "model", "kind"):
            if isinstance(model.get(key), str):
                return model_name(model[key])
        return None
    if not isinstance(model, str) or not model.strip("/\\ "):
        return None
    return model.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
