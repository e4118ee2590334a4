"""Every setting of the study, and what makes no sense."""

from typing import Literal

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError
from steelyard.core.types import Meta


class Config(BaseConfig, frozen=True):
    """``judge`` is whose verdicts are filtered.

    ``train_on``: the people's pairs that models learn from, those with a strict ``majority`` or ``unanimous`` ones;
    tests are on every strict majority. ``quantiles`` of the absolute margin are the filters' thresholds.

    ``human_shares``: for each, models are trained on people's pairs of that share of the prompts, with the judge's
    verdicts on the others filtered by what was learnt from the share; none leaves this half of the study out.
    ``repetitions`` of ``folds``-fold cross-validation. ``most_pairs``: at most so many verdicts a prompt, drawn by the
    ``seed``, for data with very many. ``model``: settings of the reward model's own Config.
    """

    judge: str = ""
    """The judge whose verdicts are filtered, as named in the file."""
    train_on: Literal["majority", "unanimous"] = "majority"
    """Which pairs of people models learn from: those with a strict majority, or unanimous ones."""
    quantiles: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)
    """The thresholds of the filters, as quantiles of the absolute margin."""
    human_shares: tuple[float, ...] = (0.1, 0.3, 0.6)
    """The shares of prompts with judgments of people; [] leaves out the trained models."""
    folds: int = 5
    """The number of folds of cross-validation."""
    repetitions: int = 4
    """The number of repetitions of cross-validation."""
    most_pairs: int | None = None
    """The largest number of verdicts a prompt, drawn at random; none for all."""
    model: Meta = msgspec.field(default_factory=dict)
    """Settings of the model's kind."""
    seed: int = 0
    """The seed of folds, draws and resamples."""


def check_settings(config: Config) -> None:
    """Raises ConfigError for what cannot be done."""
    if not config.judge:
        raise ConfigError("no judge is named", do="say whose verdicts are to be filtered: --judge NAME")
    if not all(0 <= quantile < 1 for quantile in config.quantiles):
        raise ConfigError(f"quantiles={list(config.quantiles)}", allowed="0 or more, below 1: there nothing stays")
    if not all(0 < share < 1 for share in config.human_shares):
        raise ConfigError(f"human_shares={list(config.human_shares)}", allowed="above 0 and below 1, or []")
    if config.folds < 2 or config.repetitions < 1:
        raise ConfigError(
            f"folds={config.folds}, repetitions={config.repetitions}", allowed="folds >= 2, repetitions >= 1"
        )
    if config.most_pairs is not None and config.most_pairs < 1:
        raise ConfigError(f"most_pairs={config.most_pairs}", allowed="1 or more, or null for all")
