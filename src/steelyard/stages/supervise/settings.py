"""Every setting of supervision, and which of them contradict each other."""

import math
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError
from steelyard.core.types import Meta
from steelyard.curation.supervised import SUPERVISED, Rule
from steelyard.curation.supervision import Policy
from steelyard.ranking.judgment_table import Only

DEFAULT_CONFIDENCE = 0.95


class Config(BaseConfig, frozen=True):
    """``policy`` is the rule; ``only`` picks the judgments that it is applied to: those of LLMs and models.

    ``tau`` and ``keep_ties`` are of ``agree``; null is 0 for tau. ``precision`` and ``confidence`` (null is 0.95) are
    wanted of a calibrated tau; ``human_ties`` says what a verdict is worth on a pair where people have no strict
    majority. ``scale`` divides margins in ``weight`` (null is 1). ``compare_ids``: an equal prompt id alone makes a
    prompt one that the model was trained on. ``any_language`` lets a model judge languages that it was not trained on.
    ``model``: settings of the reward model's own Config. ``seed`` draws intervals only.
    """

    policy: Policy = "agree"
    """What is dropped: verdicts without enough margin, what closes a cycle, or nothing."""
    tau: float | None = None
    """With agree: the least margin for a verdict; none is 0."""
    keep_ties: bool = False
    """With agree: keep ties too."""
    precision: float | None = None
    """With --calibrate: the share of kept verdicts that must be right."""
    confidence: float | None = None
    """With --calibrate: the confidence in that share; none is 0.95."""
    human_ties: Literal["leave_out", "wrong"] = "leave_out"
    """What a verdict counts on a pair without a strict majority of people."""
    scale: float | None = None
    """With weight: the divisor of margins; none is 1."""
    only: Only = SUPERVISED
    """The judgments that are filtered."""
    compare_ids: bool = True
    """Whether an equal prompt id alone makes a prompt one that the model was trained on."""
    any_language: bool = False
    """Whether a model may judge languages that it was not trained on."""
    model: Meta = msgspec.field(default_factory=dict)
    """Settings of the model's kind."""
    seed: int = 0
    """The seed of the intervals."""

    def rule(self, tau: float) -> Rule:
        """What is done to each batch, once tau is known."""
        scale = 1.0 if self.scale is None else self.scale
        return Rule(policy=self.policy, tau=tau, keep_ties=self.keep_ties, scale=scale, only=self.only)


class Files(NamedTuple):
    """What supervision reads beside the cases.

    Either a ``model`` (a trained model's folder, or a kind) or ``scores``. ``calibrate``: cases that people and the
    supervised judge judged alike, with ``calibrate_scores`` where scores are given. ``train_cases``: what the
    supervisor was trained on.
    """

    model: str | None = None
    scores: Path | None = None
    calibrate: Path | None = None
    calibrate_scores: Path | None = None
    train_cases: Path | None = None


def check_settings(config: Config, files: Files) -> None:
    """Raises ConfigError for settings that contradict each other, lack another, or make no sense."""
    _check_supervisor(files)
    if config.model and files.scores is not None:
        raise ConfigError(
            f"settings of a model ({', '.join(sorted(config.model))}) with --scores", do="the scores are made already"
        )
    if config.policy != "agree":
        given = {"tau": config.tau is not None, "keep-ties": config.keep_ties, "calibrate": files.calibrate is not None}
        wrong = [f"--{name}" for name, is_given in given.items() if is_given]
        if wrong:
            raise ConfigError(f"{', '.join(wrong)} with the policy {config.policy}", do="they belong to --policy agree")
    if config.scale is not None and config.policy != "weight":
        raise ConfigError(f"scale with the policy {config.policy}", do="it belongs to --policy weight")
    if config.tau is not None and files.calibrate is not None:
        raise ConfigError("--tau with --calibrate", do="give tau by hand, or have it calibrated")
    if (config.precision is None) != (files.calibrate is None):
        raise ConfigError("--calibrate FILE and --precision go together", do="give both, or neither")
    if config.confidence is not None and files.calibrate is None:
        raise ConfigError("--confidence without --calibrate", do="it is the confidence of a calibrated tau")
    _check_numbers(config)


def _check_supervisor(files: Files) -> None:
    if (files.model is None) == (files.scores is None):
        found = "both --model and --scores" if files.model else "neither --model nor --scores"
        raise ConfigError(found, do="give a reward model, or the scores that one gave these cases")
    if files.calibrate_scores is not None and (files.calibrate is None or files.model is not None):
        raise ConfigError("--calibrate-scores goes with --scores and --calibrate", do="a --model scores both files")
    if files.scores is not None and files.calibrate is not None and files.calibrate_scores is None:
        raise ConfigError(
            "--scores with --calibrate, but no scores of the calibration cases", do="give --calibrate-scores FILE too"
        )


def _check_numbers(config: Config) -> None:
    if config.tau is not None and not 0 <= config.tau < math.inf:
        raise ConfigError(f"tau is {config.tau}", allowed="0 or more: a margin of scores")
    for name, share in (("precision", config.precision), ("confidence", config.confidence)):
        if share is not None and not 0 < share < 1:
            raise ConfigError(f"{name} is {share}", allowed="above 0 and below 1")
    if config.scale is not None and not 0 < config.scale < math.inf:
        raise ConfigError(f"scale is {config.scale}", allowed="above 0")
