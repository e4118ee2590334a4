"""What the report reads in the summaries of runs: typed, and tolerant of keys that are absent or new."""

from typing import Any

import msgspec


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a summary; keys that the report does not show are passed over."""


class Estimate(Seen, frozen=True, kw_only=True):
    """A value with its 95 % interval; ``n`` counts the pairs or prompts behind it. Null where nothing was measured.

    ``why`` there is no interval, or no value; null where there is one.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    why: str | None = None


class Measured(Seen, frozen=True, kw_only=True):
    """Accuracy and exact match of one group of prompts."""

    accuracy: Estimate = Estimate()
    exact_match: Estimate = Estimate()


class Subset(Measured, frozen=True, kw_only=True):
    """One subset of a bench; ``by_category`` where it has categories of its own."""

    by_category: dict[str, Measured] = {}


class Baseline(Measured, frozen=True, kw_only=True):
    """A baseline beside the model; ``difference`` is the model's accuracy minus the baseline's."""

    accuracy_micro: Estimate = Estimate()
    by_category: dict[str, Measured] = {}
    difference: Estimate = Estimate()


class Tied(Seen, frozen=True, kw_only=True):
    """Pairs whose two scores are equal, and their share of all pairs."""

    num_pairs: int = 0
    share: float | None = None


class Unscored(Seen, frozen=True, kw_only=True):
    """Responses without a score, by reason."""

    num_responses: int = 0
    by_reason: dict[str, int] = {}


class Ends(Seen, frozen=True, kw_only=True):
    """The lowest and the highest that a value can be."""

    low: float | None = None
    high: float | None = None


class Bounds(Seen, frozen=True, kw_only=True):
    """What accuracy and exact match are with every unscored pair counted wrong, and right."""

    accuracy: Ends = Ends()
    exact_match: Ends = Ends()


class LanguageCoverage(Seen, frozen=True, kw_only=True):
    """How many responses of one language there are, and how many the model read in part or not at all."""

    num_responses: int = 0
    num_cut: int = 0
    num_unscored: int = 0


class Coverage(LanguageCoverage, frozen=True, kw_only=True):
    """The same of all languages, and of each."""

    by_language: dict[str, LanguageCoverage] = {}


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


class Evaluation(Measured, frozen=True, kw_only=True):
    """The summary of an evaluation."""

    model: Any = None
    accuracy_micro: Estimate = Estimate()
    exact_match_micro: Estimate = Estimate()
    by_category: dict[str, Measured] = {}
    by_language: dict[str, Measured] = {}
    tied: Tied = Tied()
    baselines: dict[str, Baseline] = {}
    subsets: dict[str, Subset] = {}
    sections: dict[str, Estimate] = {}
    overall: Estimate | None = None
    missing: dict[str, str] = {}
    unscored: Unscored | None = None
    bounds: Bounds = Bounds()
    coverage: Coverage | None = None


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


class Item(Seen, frozen=True, kw_only=True):
    """A line of ``items.jsonl``: what became of one prompt."""

    prompt: str
    language: str | None = None
    category: str | None = None
    subset: str | None = None
    num_pairs: int = 0
    num_correct: int = 0
    num_tied: int = 0
    exact_match: bool | None = None
    scores: dict[str, float | None] = {}
    ranking: tuple[tuple[str, ...], ...] | None = None

    @property
    def key(self) -> tuple[str, str | None]:
        """The key of its case."""
        return (self.prompt, self.language)


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
