"""Settings and summary of a training run, as its ``run.json`` records them; reading them needs no torch.

Settings have checks, and defaults that depend on the model and the data.
The default rates for a head and for the last layers were measured by `speed/defaults.py`. Those for all weights are
published (CHEEMS, Table 9: 5e-6 for its largest model), and higher for smaller models.
"""

import math
from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, choices
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import number_of
from steelyard.core.types import JsonObject, OverLength, Record
from steelyard.io.progress import log_detail
from steelyard.networks.settings import RatingCenter
from steelyard.ranking.pairs import PairChoice

_HEAD_RATE = 3e-3
_LAST_LAYERS_RATE = 3e-4
_ADAPTER_RATE = 2e-4
_POLICY_RATE = 5e-6
_ALL_RATES = ((1e9, 3e-5), (4e9, 1e-5), (math.inf, 5e-6))
"""Rates where all weights are trained, each for models with fewer weights than the first number."""
_MOST_PROMPTS = 8
_FEWEST_PROMPTS = 2
_ENOUGH_STEPS = 100
_NUM_LOWEST = 3
"""The number of groups with the lowest accuracy that a log line names."""


class Config(BaseConfig, frozen=True):
    """Settings of a training run. The defaults train small models on little data.

    Table 9 of CHEEMS is in ``recipes/cheems.toml``.
    """

    kind: Literal["classifier", "implicit"] = "classifier"
    """A classifier has a scalar head; implicit is a policy trained by DPO, whose reward its probabilities imply."""
    beta: float = 0.1
    """The factor of an implicit reward: how much likelier an answer is than it was before training."""
    reference_free: bool = False
    """Take the answer's likelihood alone as the implicit reward, without a reference."""
    answer_reduction: Literal["sum", "avg"] = "sum"
    """Reduction of the log-probabilities of an answer's tokens to one number: their sum or their mean."""
    batch_size: int | None = None
    """Prompts in one optimiser step, each with all its answers. Default: 8, or fewer for few prompts."""
    epochs: int = 2
    """The number of passes over the cases."""
    learning_rate: float | None = None
    """The peak learning rate. Default: 3e-5 all (less over 1 B), 3e-4 last:N, 2e-4 adapter, 3e-3 head."""
    warmup_ratio: float = 0.1
    """The share of steps of the warm-up. The learning rate rises over them."""
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    """Shape of the learning rate after the warm-up."""
    weight_decay: float = 0.0
    """The weight decay of AdamW."""
    max_grad_norm: float = 1.0
    """The norm to which larger gradients are clipped."""
    loss: Annotated[str, Meta(extra={"names_in": "steelyard.training.losses.LOSSES"})] = "bradley-terry"
    """The loss: bradley-terry reads pairs, plackett-luce choices among many, rao-kupper and davidson also ties;
    mean-squared-error and binary-cross-entropy read ratings."""
    dimensions: str | dict[str, float] | None = None
    """For a loss of ratings: the dimension, or a table of dimensions with weights. Default: the only one of the
    cases."""
    rating_center: RatingCenter = "data"
    """For mean-squared-error: whether targets are ratings less the mean of all (data), or of each prompt's own."""
    pair_weight: float = 0.0
    """The weight of a pair beside a rating of one rater, for a loss of ratings; 0 reads no pairs."""
    reduction: Literal["pair", "prompt"] = "pair"
    """Mean of the loss: over pairs (or ratings), or over prompts of the mean over their pairs."""
    regulariser: float | None = None
    """The weight of the mean of r^2. Default: 0.1, or 0 for an implicit model and for a loss of ratings."""
    centring: float = 0.0
    """The weight of the mean of (r_better + r_worse)^2."""
    tie_learning_rate: float = 0.01
    """The learning rate of the parameter of a loss that reads ties, or pairs beside ratings."""
    label_smoothing: float = 0.0
    """The probability that a label is the wrong way round."""
    batching: Literal["whole", "packed", "greedy"] = "whole"
    """Steps of batch_size prompts (whole), up to tokens_per_step (packed), or of responses_per_step
    answers (greedy)."""
    tokens_per_step: int = 16_384
    """The size of a step in tokens with batching=packed."""
    kernel: Literal["packed", "padded"] | None = None
    """packed computes a prompt once for all its answers, padded one row per answer. Default: packed where exact."""
    responses_per_step: int = 16
    """The size of a step in answers with batching=greedy."""
    pairs: PairChoice | None = None
    """Which pairs count. Default: a case's listed pairs, or else all across tiers."""
    trainable: Annotated[str, Meta(extra={"values": "all, head, or last:N"})] = "all"
    """all weights, the head, or last:N for the last N layers, the final norm and the head."""
    dtype: Literal["float32", "bfloat16"] | None = None
    """The number type of the computation. Default: bfloat16 on a GPU, float32 on a CPU. Trained weights keep a float32
    master copy."""
    adapter: Literal["lora", "dora"] | None = None
    """Train low-rank factors and the head: lora or dora. The factors are beside the linear layers."""
    adapter_rank: int = 16
    """The rank of an adapter."""
    adapter_alpha: float = 32.0
    """An adapter's factors are scaled by alpha / rank."""
    adapter_dropout: float = 0.0
    """The dropout before an adapter."""
    adapter_layers: str | tuple[str, ...] = "all-linear"
    """The names of the linear layers that get an adapter."""
    save_adapter: Literal["merged", "adapter"] = "merged"
    """Save an adapter merged into the weights, or apart, on its base."""
    optimiser: Literal["adamw", "adamw-8bit"] = "adamw"
    """AdamW with moments in float32 or in 8 bits."""
    compile: bool | None = None
    """Compile norms and feed-forward layers. Default: on a GPU, in trainings of two minutes or more."""
    gradient_checkpointing: Literal["auto", "none", "mlp", "layers"] = "auto"
    """Parts that the backward pass recomputes to save memory: none, mlp, layers, auto. With mlp, norms too; auto is as
    little as fits."""
    chat_template: str | None = None
    """plain, or a Jinja file. Default: the model's own."""
    strip: bool = True
    """Remove white space at the very end of a conversation."""
    max_length: int = 2048
    """The length limit in tokens. It is that of a conversation."""
    over_length: OverLength = "unscored"
    """Answers over the limit: unscored, cut on the left or right, or refuse to run. The rule counts in training
    and scoring."""
    deterministic: bool = False
    """Make a training on a GPU give the same bits twice, by an attention that is compiled first and takes a tenth
    longer; on a CPU it always does."""
    tokens_per_forward: int | None = None
    """The bound of a forward pass in tokens; it limits memory and changes no result but by rounding. Default: 8,192, on
    a GPU up to 32,768 where nothing more is recomputed for it."""
    evaluate_every: int = 0
    """Steps between evaluations on held-out cases; 0 evaluates after every epoch."""
    metric: Literal["accuracy", "exact_match", "pearson", "spearman", "mean_squared_error"] = "accuracy"
    """The held-out figure by which evaluations are compared; the last three are those of a loss of ratings."""
    keep: Literal["last", "best"] = "last"
    """Keep the last weights or those of the best evaluation."""
    patience: int = 0
    """Stop after this number of evaluations without a better one; 0 never stops."""
    checkpoint_every: int = 0
    """Steps between checkpoints; 0 writes one every ten minutes."""
    trackers: tuple[Annotated[str, Meta(extra={"kinds_of": "trackers"})] | JsonObject, ...] | None = None
    """Trackers, as kinds or tables with kind. Default: lines, and TensorBoard where tensorboardX is installed."""
    divergence_factor: float = 3.0
    """Stop when the loss exceeds this multiple of its running median."""
    divergence_steps: int = 10
    """The number of consecutive steps for which it must; 0 never stops."""
    calibrate_rewards: Literal["none", "standardise"] = "none"
    """standardise scales the saved head so that the rewards of the reference set have a standard deviation of 1."""
    reward_reference_prompts: int = 128
    """The number of prompts of the reference set where no file is named; 0 for no set."""
    preflight: bool = True
    """Check, before training, the loss of equal scores and that a head alone can learn the first step."""
    allow_overlap: bool = False
    """Accept prompts both trained on and held out."""
    seed: int = 0
    """The random seed."""

    @property
    def number_type(self) -> Literal["float32", "bfloat16"]:
        """The number type of the computation; float32 where the device has not been asked for its own."""
        return self.dtype or "float32"

    @property
    def weight_of_squares(self) -> float:
        """The weight of the mean of r^2."""
        if self.regulariser is None:
            # Ratings fix the level of rewards themselves, and shrunken rewards would miss them.
            return 0.1 if self.kind == "classifier" and not self.reads_ratings else 0.0
        return self.regulariser

    @property
    def reads_ratings(self) -> bool:
        """True for a loss that reads ratings."""
        from steelyard.training.losses import LOSSES  # needs torch, and most readers of settings do not

        return self.loss in LOSSES and LOSSES[self.loss].rating_link is not None


_RANGES: tuple[tuple[str, Callable[[float], bool], str], ...] = (
    ("batch_size tokens_per_step epochs max_length tokens_per_forward adapter_rank",
     lambda value: value >= 1, "1 or more"),
    ("responses_per_step", lambda value: value >= 2, "2 or more: a pair needs both its ends"),
    ("learning_rate tie_learning_rate adapter_alpha beta max_grad_norm", lambda value: value > 0, "above 0"),
    ("weight_decay regulariser centring pair_weight reward_reference_prompts patience checkpoint_every evaluate_every",
     lambda value: value >= 0, "0 or more"),
    ("divergence_steps", lambda value: value >= 0, "0 or more"),
    ("warmup_ratio", lambda value: 0 <= value <= 1, "0 to 1"),
    ("label_smoothing", lambda value: 0 <= value < 0.5, "0 to below 0.5"),
    ("adapter_dropout", lambda value: 0 <= value < 1, "0 to below 1"),
    ("divergence_factor", lambda value: value > 1, "above 1"),
)  # fmt: skip
"""The settings with a range, its test, and its description."""


def check_settings(config: Config) -> None:
    """Raise ConfigError for settings out of range, and for settings that contradict each other."""
    from steelyard.training.losses import LOSSES  # needs torch, and most readers of settings do not

    for names, is_in_range, allowed in _RANGES:
        for name in names.split():
            value = getattr(config, name)
            if value is not None and not (math.isfinite(value) and is_in_range(value)):
                raise ConfigError(
                    f"{name} is {value}", where="train", allowed=f"finite, {allowed}" if math.isinf(value) else allowed
                )
    if config.loss not in LOSSES:
        raise ConfigError(f"loss is {config.loss!r}", where="train", allowed=choices(config.loss, LOSSES))
    if config.label_smoothing and not LOSSES[config.loss].has_smoothing:
        raise ConfigError(
            f"{config.loss} with label_smoothing",
            where="train",
            allowed="label_smoothing=0",
            do="only a pair or a share of a range can be reversed",
        )
    _check_ratings_settings(config)
    if config.calibrate_rewards == "standardise" and not config.reward_reference_prompts:
        raise ConfigError(
            "calibrate_rewards=standardise with reward_reference_prompts=0",
            where="train",
            allowed="reward_reference_prompts above 0",
        )
    if config.adapter is not None and config.trainable != "all":
        raise ConfigError(
            f"adapter={config.adapter} with trainable={config.trainable}",
            where="train",
            do="leave trainable out: adapter_layers says what is trained",
        )
    if config.adapter is None and config.save_adapter == "adapter":
        raise ConfigError(
            "save_adapter=adapter without an adapter", where="train", do=Advice("use ", Remedy("adapter", "lora"))
        )
    if config.kind == "implicit":
        _check_policy(config)
    num_last_layers(config.trainable)


def _check_ratings_settings(config: Config) -> None:
    """Raise ConfigError for settings of ratings without such a loss, and for settings that this loss contradicts."""
    from steelyard.networks.ratings import check_dimensions

    check_dimensions(config.dimensions)
    if not config.reads_ratings:
        is_rating_metric = config.metric not in ("accuracy", "exact_match")
        settings = {
            "dimensions": config.dimensions is not None,
            "rating_center": config.rating_center != "data",
            "pair_weight": bool(config.pair_weight),
            f"metric={config.metric}": is_rating_metric,
        }
        if misplaced := [name for name, is_set in settings.items() if is_set]:
            raise ConfigError(
                f"{', '.join(misplaced)} with loss={config.loss}, which reads pairs",
                where="train",
                do=Advice("use ", Remedy("loss", "mean-squared-error")),
            )
        return
    if config.rating_center == "prompt" and config.loss != "mean-squared-error":
        raise ConfigError(
            f"rating_center=prompt with loss={config.loss}, whose targets are shares of a range",
            where="train",
            do=Advice("use ", Remedy("loss", "mean-squared-error"), " or ", Remedy("rating_center", "data")),
        )
    if config.kind == "implicit" or config.calibrate_rewards != "none":
        raise ConfigError(
            f"kind=implicit or calibrate_rewards with loss={config.loss}",
            where="train",
            allowed="kind=classifier and calibrate_rewards=none",
            do="its rewards have the unit of the ratings, which a policy or another scale would not keep",
        )


def _check_policy(config: Config) -> None:
    if config.over_length in ("left", "right"):
        raise ConfigError(
            f"over_length={config.over_length} with kind=implicit: a cut answer has another probability",
            where="train",
            allowed="unscored, refuse",
        )
    if config.trainable == "head" or config.adapter is not None or config.calibrate_rewards != "none":
        raise ConfigError(
            "trainable=head, an adapter or calibrate_rewards with kind=implicit",
            where="train",
            allowed="trainable all or last:N: a policy has no head of its own to train or scale",
        )


def num_last_layers(trainable: str) -> int | None:
    """Return how many last layers are trained: null for all, 0 for the head alone."""
    if trainable == "all":
        return None
    if trainable == "head":
        return 0
    kind, _, number = trainable.partition(":")
    if kind != "last" or not number.isdigit() or int(number) < 1:
        raise ConfigError(f"trainable is {trainable!r}", where="train", allowed="all, head, or last:N")
    return int(number)


def default_learning_rate(config: Config, num_weights: int) -> tuple[float, str]:
    """Return the highest rate for the part of a model that is trained, and the name of this part."""
    if config.kind == "implicit":
        return _POLICY_RATE, "a policy"
    if config.adapter is not None:
        return _ADAPTER_RATE, f"{config.adapter} on a model"
    if config.trainable == "head":
        return _HEAD_RATE, "the head on a model"
    if config.trainable != "all":
        return _LAST_LAYERS_RATE, f"the last {num_last_layers(config.trainable)} layers"
    return next(rate for bound, rate in _ALL_RATES if num_weights < bound), "all"


def default_batch_size(config: Config, num_prompts: int) -> int:
    """Return 8 prompts, or 4 or 2 where the run would otherwise have fewer than a hundred steps."""
    number = _MOST_PROMPTS
    while number > _FEWEST_PROMPTS and math.ceil(num_prompts / number) * config.epochs < _ENOUGH_STEPS:
        number //= 2
    return number


def with_defaults(config: Config, *, num_weights: int, num_prompts: int) -> Config:
    """Return the settings with every number that training needs, and log those that the user has not set."""
    rate, step = config.learning_rate, config.batch_size
    if rate is None:
        rate, part = default_learning_rate(config, num_weights)
        log_detail(f"learning_rate {rate:g} (the default for {part} of {num_weights / 1e6:,.0f} M weights)")
    if step is None:
        step = default_batch_size(config, num_prompts)
        if config.batching == "whole":
            log_detail(
                f"batch_size {step} (the default for {number_of(config.epochs, 'epoch')} of "
                f"{number_of(num_prompts, 'prompt')})"
            )
    return replace(config, learning_rate=rate, batch_size=step, regulariser=config.weight_of_squares)


class GroupAccuracy(Record, frozen=True):
    """Micro accuracy (over pairs) and exact match (over prompts) of some prompts, with their counts.

    ``interval``: the 95% interval of the accuracy over prompts; null for a single one.
    """

    accuracy: float
    exact_match: float
    num_pairs: int
    num_prompts: int
    interval: tuple[float, float] | None = None


class RatingFit(Record, frozen=True):
    """The agreement of rewards and held-out ratings over responses: correlations and the mean squared error.

    The error is in squared units of the ratings; ``variance`` is that of the held-out ratings around the mean of the
    training data, the error of a model that always predicts it. ``interval``: the 95% interval of Pearson's
    correlation over prompts. Correlations are null where one side does not vary.
    """

    num_ratings: int
    num_prompts: int
    mean_squared_error: float
    variance: float
    pearson: float | None
    spearman: float | None
    interval: tuple[float, float] | None = None


class HeldOutAccuracy(Record, frozen=True):
    """Accuracy and exact match of all held-out prompts, and by category and by language where a case names them.

    ``interval``: the 95% interval of the accuracy over prompts; null for a single one. ``ratings``: for a loss of
    ratings, the agreement with those of the held-out cases.
    """

    accuracy: float
    exact_match: float
    num_pairs: int
    num_prompts: int
    by_category: dict[str, GroupAccuracy]
    by_language: dict[str, GroupAccuracy]
    interval: tuple[float, float] | None = None
    ratings: RatingFit | None = None

    def metric(self, name: str) -> float:
        """Return a figure by its name, so that higher is better: errors are negated. NaN where it is undefined."""
        if name in ("accuracy", "exact_match"):
            return getattr(self, name)
        if self.ratings is None:
            return math.nan
        if name == "mean_squared_error":
            return -self.ratings.mean_squared_error
        value = self.ratings.pearson if name == "pearson" else self.ratings.spearman
        return math.nan if value is None else value

    def sentence(self) -> str:
        """Return the figures in one line: of all prompts, and of the groups with the lowest accuracy."""
        line = f"held-out accuracy {self.accuracy:.3f}, exact match {self.exact_match:.3f}"
        for groups in (self.by_category, self.by_language):
            if len(groups) > 1:
                lowest = sorted(groups.items(), key=lambda item: item[1].accuracy)[:_NUM_LOWEST]
                names = ", ".join(f"{name} {group.accuracy:.3f}" for name, group in lowest)
                line += f"; {'lowest of ' + str(len(groups)) + ': ' if len(groups) > _NUM_LOWEST else ''}{names}"
        return line if self.ratings is None else f"{line}; {_fit_sentence(self.ratings)}"

    def figures(self) -> dict[str, float]:
        """Return accuracy and exact match of all prompts and of each group, by paths such as ``held_out/accuracy``."""
        figures = {"held_out/accuracy": self.accuracy, "held_out/exact_match": self.exact_match}
        if self.ratings is not None:
            for name in ("pearson", "spearman", "mean_squared_error"):
                value = getattr(self.ratings, name)
                figures |= {} if value is None else {f"held_out/{name}": value}
        for kind, groups in (("by_category", self.by_category), ("by_language", self.by_language)):
            for name, group in groups.items():
                figures[f"held_out/{kind}/{name}/accuracy"] = group.accuracy
                figures[f"held_out/{kind}/{name}/exact_match"] = group.exact_match
        return figures


def _fit_sentence(fit: RatingFit) -> str:
    correlation = "" if fit.pearson is None else f"correlation with ratings {fit.pearson:.3f}, "
    return f"{correlation}mean squared error {fit.mean_squared_error:.3f} (always the mean: {fit.variance:.3f})"


class LengthSummary(Record, frozen=True):
    """The effect of the length limit on a file: responses, pairs and prompts over it, cut (``is_cut``) or left out.

    ``by_language`` counts responses (``num_responses``, ``num_too_long``) by language.
    """

    max_length: int
    over_length: OverLength
    longest: int
    num_responses: int
    num_too_long: int
    num_pairs: int
    num_pairs_over: int
    num_prompts: int
    num_prompts_over: int
    is_cut: bool
    by_language: dict[str, dict[str, int]]


class TrainingSummary(Record, frozen=True):
    """The summary of a training in its ``run.json``. ``held_out`` was measured with the weights that are saved."""

    kernel: str
    num_steps: int
    learning_rate: float | None
    prompts_per_step: int | None
    regulariser: float
    num_prompts: int
    num_responses: int
    num_weights: int
    num_pairs: int
    share_of_pairs_kept: float
    length: LengthSummary
    final_loss: float
    held_out: HeldOutAccuracy | None
    last_step: int
    num_ratings: int = 0
