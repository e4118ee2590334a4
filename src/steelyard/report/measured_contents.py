"""What the report reads of the measures beside accuracy: typed, and tolerant of keys that are absent or new."""

from msgspec import field

from steelyard.report.summary_readers import Estimate, Measured, Seen


class Means(Seen, frozen=True, kw_only=True):
    """A measure as the mean over categories, over everything, and of each group."""

    macro: Estimate = Estimate()
    micro: Estimate = Estimate()
    by_category: dict[str, Estimate] = field(default_factory=dict)
    by_language: dict[str, Estimate] = field(default_factory=dict)


class Tau(Means, frozen=True, kw_only=True):
    """Kendall's tau-b; prompts whose scores are all equal have none, and are counted."""

    constant_as_zero: Means = Means()
    num_constant: int = 0


class FirstChoice(Seen, frozen=True, kw_only=True):
    """Whether the highest score is in the best tier, by how equal scores count; and for any response at random."""

    wrong: Means = Means()
    half: Means = Means()
    right: Means = Means()
    chance: Means = Means()


class Sides(Seen, frozen=True, kw_only=True):
    """The model's regret and that of a choice at random; ``budget`` is the N of best-of-N, null for all responses."""

    model: Means = Means()
    chance: Means = Means()
    budget: int | None = None


class Lost(Seen, frozen=True, kw_only=True):
    """Regret by N, and where all responses are to choose from."""

    curve: tuple[Sides, ...] = ()
    of_all: Sides = Sides()


class Regret(Seen, frozen=True, kw_only=True):
    """Regret in tiers, and in units of each rated dimension."""

    tiers: Lost = Lost()
    ratings: dict[str, Lost] = field(default_factory=dict)


class Length(Seen, frozen=True, kw_only=True):
    """Accuracy beside accuracy that length cannot explain."""

    matched_ratio: float | None = None
    raw: Means = Means()
    matched: Means = Means()
    better_not_longer: Means = Means()
    better_longer: Means = Means()
    adjusted: Estimate = Estimate()


class People(Seen, frozen=True, kw_only=True):
    """Annotators against the ranking of the others, and the model on the same pairs."""

    human: Means = Means()
    model: Means = Means()
    difference: Means = Means()


class Ceiling(Seen, frozen=True, kw_only=True):
    """The same by how the others make one ranking."""

    num_annotators: int = 0
    resolved: People = People()
    majority: People = People()


class Bin(Seen, frozen=True, kw_only=True):
    """Pairs of like confidence, and the share of them that is right."""

    confidence: float
    accuracy: Estimate


class Calibrated(Seen, frozen=True, kw_only=True):
    """How far the sigmoid of a difference of rewards is a probability."""

    brier: Estimate = Estimate()
    log_loss: Estimate = Estimate()
    expected_calibration_error: Estimate = Estimate()
    curve: tuple[Bin, ...] = ()


class Calibration(Calibrated, frozen=True, kw_only=True):
    """The same as it is, and with the temperature that other prompts gave."""

    temperature: Estimate = Estimate()
    cross_validated: Calibrated = Calibrated()


class Spread(Seen, frozen=True, kw_only=True):
    """The rewards of one group of prompts."""

    mean: Estimate = Estimate()
    standard_deviation: Estimate = Estimate()
    quantiles: dict[str, Estimate] = field(default_factory=dict)
    share_unscored: Estimate = Estimate()


class RewardSpreads(Seen, frozen=True, kw_only=True):
    """The rewards of all prompts, and of each category and language."""

    overall: Spread | None = None
    by_category: dict[str, Spread] = field(default_factory=dict)
    by_language: dict[str, Spread] = field(default_factory=dict)


class Measures(Seen, frozen=True, kw_only=True):
    """The measures beside accuracy; null where a model has none of its kind."""

    kendall_tau: Tau | None = None
    top_1: FirstChoice | None = None
    regret: Regret | None = None
    length: Length | None = None
    human_ceiling: Ceiling | None = None
    calibration: Calibration | None = None
    rewards: RewardSpreads | None = None


class Policy(Measured, frozen=True, kw_only=True):
    """The headline with tied scores counted in one way; ``overall`` where the bench counts so."""

    overall: Estimate | None = None
    accuracy_micro: Estimate = Estimate()
    exact_match_micro: Estimate = Estimate()


class MoreMeasured(Seen, frozen=True, kw_only=True):
    """The part of an evaluation's summary that lies beside the headline. ``policies``: wrong, half and right."""

    measures: Measures = Measures()
    policies: dict[str, Policy] = field(default_factory=dict)
    weights: dict[str, dict[str, float]] = field(default_factory=dict)
