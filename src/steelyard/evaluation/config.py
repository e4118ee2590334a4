"""The settings of `evaluate` that affect its results, and the baselines that they select."""

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import ConfigError
from steelyard.core.protocols import Bench
from steelyard.core.remedies import FILE, Advice, Placeholder, Remedy
from steelyard.core.types import Meta
from steelyard.evaluation.measure import MATCHED_RATIO
from steelyard.plugins.reward_models import ModelChoice, choose_kind, choose_model
from steelyard.ranking.pairs import PairChoice
from steelyard.statistics.pair_counts import ExactRule

UNTRAINED_BASELINES = ("longer", "shorter", "random", "first")
TRAINED_BASELINE = "ngram"


class Config(BaseConfig, frozen=True):
    """``bench`` and ``model`` are settings of the bench's and the model's own Config.

    ``baselines``: null selects all that need no training cases, and the n-gram model if training cases are given.
    ``self_test``: test the model on a few of the cases before it scores all of them. A response that is too long for
    the model has no score; its pairs count as wrong, with bounds. ``allow_unscored`` permits other reasons too.
    ``pairs``: null selects the listed pairs of a case, or every pair across tiers if it lists none. ``allow_overlap``
    permits prompts that the model was trained on, and counts them. ``matched_ratio``: two answers are length-matched if
    the longer one has at most this multiple of the code points of the shorter.
    """

    bench_kind: Annotated[str, msgspec.Meta(extra={"kinds_of": "benches"})] = "cases"
    """The kind of bench (`steelyard list benches`)."""
    bench: Meta = msgspec.field(default_factory=dict)
    """Settings of the bench's kind: docs/settings.md, under benches."""
    model: Meta = msgspec.field(default_factory=dict)
    """Settings of the model's kind: docs/settings.md, under models."""
    baselines: tuple[Annotated[str, msgspec.Meta(extra={"kinds_of": "models"})], ...] | None = None
    """The baselines. Default: all, ngram with --train-cases."""
    pairs: PairChoice | None = None
    """Which pairs count. Default: a case's listed pairs, or else all across tiers."""
    metric_compat: Literal["cheems"] | None = None
    """Exact match as in the code of this paper: cheems."""
    allow_unscored: bool = False
    """Accept scores missing for other reasons than length."""
    allow_overlap: bool = False
    """Accept prompts that the model was trained on, and count them."""
    self_test: bool = True
    """Test the model on a few of the cases first."""
    matched_ratio: float = MATCHED_RATIO
    """The largest ratio of the lengths of two length-matched answers."""
    width: float | None = None
    """With --human: the wanted width of a 95% interval, 0.1 for ten points; adds how many human labels it needs."""
    num_resamples: Positive = 1000
    """The number of bootstrap resamples of prompts; differences to baselines have as many as `compare`."""
    seed: int = 0
    """The seed of the resamples and of the random baseline."""

    @property
    def exact_rule(self) -> ExactRule:
        """The rule for exact match."""
        return self.metric_compat or "strict"

    def counts_unwinnable(self, bench: Bench) -> bool:
        """Return whether pairs of equal texts count as others, as published arithmetic or code has it."""
        return bench.counts_unwinnable or self.metric_compat is not None


def check_settings(config: Config) -> None:
    """Raise ConfigError for a value outside the range of its setting."""
    if not 1 <= config.matched_ratio < inf:
        raise ConfigError(
            f"matched_ratio is {config.matched_ratio:g}, but must be a finite number of at least 1",
            where="evaluate",
            allowed="1 (equal lengths only) or more",
        )
    if config.width is not None and not 0 < config.width < 1:
        raise ConfigError(
            f"width is {config.width:g}, but must be between 0 and 1",
            where="evaluate",
            allowed="a share: 0.1 for an interval of ten points",
        )


def check_model(config: Config, *, model: str | None, scores: Path | None) -> None:
    """Raise ConfigError unless there is either a model or scores, and no setting of a model beside scores."""
    if (model is None) == (scores is None):
        raise ConfigError(
            "exactly one of model and scores is required",
            do=Advice("use ", Remedy("model", Placeholder("M")), ", or ", Remedy("scores", FILE)),
        )
    if model is not None and model.endswith(".jsonl"):
        raise ConfigError(
            "a file of lines is no model",
            where=model,
            allowed="a model's folder, or a kind of model",
            do=Advice("give scores that were made elsewhere as scores, without a model: ", Remedy("scores", model)),
        )
    if scores is not None and config.model:
        problem = f"scores are given with settings of a model: {', '.join(sorted(config.model))}"
        raise ConfigError(problem, do="remove these settings: they have no effect on existing scores")


def check_labels(
    benches: Sequence[Path], human: Path | None, judged: Path | None, relabelled: Path | None, config: Config
) -> None:
    """Raise ConfigError unless there are either benches, or human labels and a judge's."""
    if (human is None) != (judged is None):
        problem = "people's labels of few prompts and a judge's labels of many belong together"
        raise ConfigError(problem, do=Advice("add ", Remedy("human" if human is None else "judged", FILE)))
    if human is not None and benches:
        raise ConfigError(
            "a benchmark is given twice",
            do=Advice(
                "leave out ", Remedy("bench"), ": ", Remedy("human"), " and ", Remedy("judged"), " are the benchmark"
            ),
        )
    if human is not None and relabelled is not None:
        problem = "relabelled cases belong to a benchmark, not to people's labels, which are taken for right"
        raise ConfigError(problem, do=Advice("leave out ", Remedy("relabelled")))
    if human is None and not benches:
        raise ConfigError(
            "no benchmark is given",
            do=Advice("add ", Remedy("bench", FILE), ", or ", Remedy("bench", Placeholder("KIND=FILE"))),
        )
    if human is None and config.width is not None:
        raise ConfigError(
            "width has no effect on one kind of labels",
            do=Advice("add ", Remedy("human", FILE), " and ", Remedy("judged", FILE)),
        )


def choose_evaluated(model: str, config: Config, train_cases: Path | None) -> ModelChoice:
    """Return the model; a kind that must be trained uses the training cases unless its settings name others."""
    choice = choose_model(model, config.model)
    if choice.settings.get("train", True):
        return choice
    if train_cases is None:
        problem = f"the {choice.kind} model needs training cases"
        raise ConfigError(problem, do=Advice("add ", Remedy("train_cases", FILE), ", or ", Remedy("model.train", FILE)))
    return choose_model(model, {**config.model, "train": str(train_cases)})


def choose_baselines(config: Config, train_cases: Path | None) -> tuple[ModelChoice, ...]:
    """Return the selected baselines. Raises ConfigError for the n-gram model without training cases, or a repeat."""
    names = config.baselines
    if names is None:
        names = UNTRAINED_BASELINES + (() if train_cases is None else (TRAINED_BASELINE,))
    if TRAINED_BASELINE in names and train_cases is None:
        raise ConfigError(
            "the ngram baseline needs training cases",
            where="baselines",
            do=Advice("add ", Remedy("train_cases", FILE), ", or remove ngram from ", Remedy("baselines")),
        )
    settings = {TRAINED_BASELINE: {"train": str(train_cases)}, "random": {"seed": config.seed}}
    chosen = tuple(choose_kind(name, settings.get(name)) for name in names)
    if len({choice.name for choice in chosen}) < len(chosen):
        raise ConfigError(f"a baseline is listed twice: {', '.join(names)}", where="baselines", do="list each once")
    return chosen
