"""Distant supervision: a reward model's scores decide which verdicts of a cheaper judge are kept (CHEEMS, section 4.2).

The policies take verdicts as integer columns (`Verdicts`) and return for each entry the rule that dropped it. The paper
names the step and not its rule; three policies are readings of it. The fourth is a control for them, which keeps as
many verdicts by the least difference of scores: with lengths for scores, a filter by length that needs no model.
"""

import math
from typing import Literal

import msgspec
import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError
from steelyard.core.numerics import Floats, Integers
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Meta
from steelyard.ranking.judgment_table import NONE, TIE, Only, Verdicts

Policy = Literal["agree", "cycles", "weight", "closest"]

RULES = (
    "kept",
    "unparsed",
    "tie",
    "unscored",
    "disagrees",
    "below min_margin",
    "farther apart",
    "inside a tie",
    "least supported in a cycle",
)
KEPT, UNPARSED, TIED, UNSCORED, DISAGREES, BELOW_MIN_MARGIN, FARTHER_APART, INSIDE_TIE, LEAST_SUPPORTED = range(
    len(RULES)
)
"""Positions in ``RULES``, as a policy returns them for each judgment."""
SUPERVISED = Only(kind=("llm", "model"))
DEFAULT_CONFIDENCE = 0.95
HumanTies = Literal["leave_out", "wrong"]


class SupervisionRule(BaseConfig, frozen=True):
    """A policy with its settings and the judgments that it filters.

    ``min_margin`` and ``keep_ties`` are of ``agree``, ``scale`` of ``weight``, ``max_difference`` of ``closest``.
    """

    policy: Policy = "agree"
    """Verdicts that are dropped: see the settings of `supervise`."""
    min_margin: float = 0.0
    """With agree: the least margin for a verdict."""
    keep_ties: bool = False
    """With agree: whether ties are kept."""
    scale: float = 1.0
    """With weight: the divisor of margins."""
    max_difference: float = math.inf
    """With closest: the largest difference of the two scores."""
    only: Only = SUPERVISED
    """The judgments that are filtered."""


class Config(BaseConfig, frozen=True):
    """``policy`` is the rule; ``only`` picks the judgments that it filters: those of LLMs and models.

    ``min_margin`` and ``keep_ties`` are of ``agree``; null is 0 for ``min_margin``. ``min_precision`` and
    ``confidence`` (null is 0.95) are the targets of a calibrated threshold; ``human_ties`` is how a verdict counts on a
    pair without a strict majority of people. ``scale`` divides margins in ``weight`` (null is 1). ``closest`` keeps the
    verdicts of least margin either way, as many as another file has: with lengths for scores, a control.
    ``compare_ids``: an equal prompt id alone makes a prompt one that the model was trained on.
    ``allow_other_languages`` lets a model judge languages that it was not trained on. ``model``: settings of the reward
    model's own Config. ``seed`` draws intervals only.
    """

    policy: Policy = "agree"
    """Drop low margins (agree), what closes a cycle (cycles), nothing (weight), or high margins (closest)."""
    min_margin: float | None = None
    """With agree: the least margin. Default: 0."""
    keep_ties: bool = False
    """With agree: keep ties too."""
    min_precision: float | None = None
    """With --calibration-cases: the share of kept verdicts that must be right."""
    confidence: float | None = None
    """With --calibration-cases: the confidence in that share. Default: 0.95."""
    human_ties: HumanTies = "leave_out"
    """Weight of a verdict on a pair without a strict majority of people."""
    scale: float | None = None
    """With weight: the divisor of margins. Default: 1."""
    only: Only = SUPERVISED
    """The judgments that are filtered."""
    compare_ids: bool = True
    """Take an equal prompt id alone as a prompt that the model was trained on."""
    allow_other_languages: bool = False
    """Judge languages that the model was not trained on."""
    model: Meta = msgspec.field(default_factory=dict)
    """Settings of the model's kind."""
    seed: int = 0
    """The seed of the intervals."""

    @property
    def confidence_level(self) -> float:
        """Return ``confidence``, or its default."""
        return DEFAULT_CONFIDENCE if self.confidence is None else self.confidence

    def rule(self, min_margin: float) -> SupervisionRule:
        """Return the rule with a chosen threshold: of ``closest`` minus the largest difference."""
        scale = 1.0 if self.scale is None else self.scale
        rule = SupervisionRule(policy=self.policy, keep_ties=self.keep_ties, scale=scale, only=self.only)
        if self.policy == "closest":
            return msgspec.structs.replace(rule, max_difference=-min_margin)
        return msgspec.structs.replace(rule, min_margin=min_margin)


def check_policy(config: Config, *, is_calibrated: bool) -> None:
    """Check the settings.

    Raises ConfigError for settings that contradict each other or the policy, or are outside their range.
    """
    if config.policy != "agree":
        of_agree = {
            "min_margin": config.min_margin is not None,
            "keep_ties": config.keep_ties,
            "calibration_cases": is_calibrated,
        }
        wrong = [name for name, is_set in of_agree.items() if is_set]
        if wrong:
            raise ConfigError(
                f"{', '.join(wrong)} with the policy {config.policy}",
                do=Advice("they belong to ", Remedy("policy", "agree")),
            )
    if config.scale is not None and config.policy != "weight":
        raise ConfigError(
            f"scale with the policy {config.policy}", do=Advice("it belongs to ", Remedy("policy", "weight"))
        )
    if config.min_margin is not None and is_calibrated:
        raise ConfigError("min_margin with calibration_cases", do="set the margin, or have it calibrated")
    if (config.min_precision is None) == is_calibrated:
        raise ConfigError("calibration_cases and min_precision go together", do="set both, or neither")
    if config.confidence is not None and not is_calibrated:
        raise ConfigError("confidence without calibration_cases", do="it is the confidence of a calibrated threshold")
    _check_ranges(config)


def _check_ranges(config: Config) -> None:
    if config.min_margin is not None and not 0 <= config.min_margin < math.inf:
        raise ConfigError(f"min_margin is {config.min_margin}", allowed="0 or more: a margin of scores")
    for name, share in (("min_precision", config.min_precision), ("confidence", config.confidence)):
        if share is not None and not 0 < share < 1:
            raise ConfigError(f"{name} is {share}", allowed="above 0 and below 1")
    if config.scale is not None and not 0 < config.scale < math.inf:
        raise ConfigError(f"scale is {config.scale}", allowed="above 0")


def margins_of(verdicts: Verdicts, scores: Floats, first: Integers) -> Floats:
    """Return the model's margin for each strict verdict: its preferred response's score minus the other's.

    ``scores`` are flat, NaN where a response has none; ``first`` is where each graph's scores begin. NaN for ties and
    unparsed verdicts, and where either score is missing.
    """
    start = first[verdicts.graph]
    margin = scores[start + verdicts.better] - scores[start + verdicts.worse]
    return np.where(verdicts.is_strict, margin, np.nan)


def agree(verdicts: Verdicts, margin: Floats, *, min_margin: float, keep_ties: bool = False) -> Integers:
    """Return the rule for each verdict: a strict one stays if its margin is above 0 and at least ``min_margin``.

    A ``min_margin`` below 0 keeps margins from it on. Strict verdicts that stay have no cycle where it is not below 0:
    scores fall along every edge. Kept ties can close cycles, which the ranking resolves like any other.
    """
    rule = np.full(len(verdicts.graph), KEPT)
    # Later assignments take precedence: NaN compares as false, and ties and unparsed verdicts have no margin.
    rule[margin < min_margin] = BELOW_MIN_MARGIN
    rule[(margin <= 0) & (margin < min_margin if min_margin < 0 else True)] = DISAGREES
    rule[np.isnan(margin)] = UNSCORED
    rule[verdicts.verdict == TIE] = KEPT if keep_ties else TIED
    rule[verdicts.verdict == NONE] = UNPARSED
    return rule


def closest(verdicts: Verdicts, margin: Floats, *, max_difference: float) -> Integers:
    """Return the rule for each verdict: a strict one stays if the two scores differ by at most ``max_difference``."""
    rule = np.full(len(verdicts.graph), KEPT)
    rule[np.abs(margin) > max_difference] = FARTHER_APART
    rule[np.isnan(margin)] = UNSCORED
    rule[verdicts.verdict == TIE] = TIED
    rule[verdicts.verdict == NONE] = UNPARSED
    return rule


def cut_cycles(verdicts: Verdicts, margin: Floats, num_responses: Integers) -> Integers:
    """Return the rule for each verdict: in every cycle the least supported verdicts are dropped, until none is left.

    Tied responses, and those tied to them, are first merged into one; a strict verdict between merged responses is
    dropped. Then each strongly connected component loses the pair (a preferred response and the other, with all
    repeats) of smallest margin, and so again while it has a cycle. An unscored pair has margin 0: no evidence for or
    against it. Of equal margins the pair of lowest positions is dropped.
    """
    rule = np.where(verdicts.verdict == NONE, UNPARSED, KEPT)
    first = np.concatenate([[0], np.cumsum(num_responses)])
    start, num_nodes = first[verdicts.graph], int(first[-1])
    tied = verdicts.verdict == TIE
    merged = _components(start[tied] + verdicts.left[tied], start[tied] + verdicts.right[tied], num_nodes, "weak")
    better, worse = start + verdicts.better, start + verdicts.worse
    rule[verdicts.is_strict & (merged[better] == merged[worse])] = INSIDE_TIE
    pair = better * (num_nodes + 1) + worse
    support = np.nan_to_num(margin, nan=0.0)
    active = np.flatnonzero(verdicts.is_strict & (rule == KEPT))
    while len(active):
        label = _components(merged[better[active]], merged[worse[active]], num_nodes, "strong")
        component = label[merged[better[active]]]
        is_inside = component == label[merged[worse[active]]]
        active, component = active[is_inside], component[is_inside]
        # The first of each component: least support, then lowest positions. One cut in every component a round.
        order = np.lexsort((pair[active], support[active], component))
        _, leading = np.unique(component[order], return_index=True)
        is_cut = np.isin(pair[active], pair[active][order[leading]])
        rule[active[is_cut]] = LEAST_SUPPORTED
        active = active[~is_cut]
    return rule


def pair_weights(
    verdicts: Verdicts, margin: Floats, *, scale: float = 1.0
) -> tuple[Integers, Integers, Integers, Floats]:
    """Return each pair of a strict verdict, as columns of graph, better, worse and weight: sigmoid(margin / ``scale``).

    Under Bradley-Terry that is the model's probability that the verdict is right. Repeats of a verdict add up; a pair
    with verdicts both ways is listed both ways. An unscored verdict counts a half. A tie gives no pair.
    """
    chosen = np.flatnonzero(verdicts.is_strict)
    strict = verdicts.where(verdicts.is_strict)
    # sigmoid(x) = (1 + tanh(x / 2)) / 2, which does not overflow.
    belief = 0.5 + 0.5 * np.tanh(np.nan_to_num(margin[chosen], nan=0.0) / (2 * scale))
    span = int(max(strict.left.max(initial=0), strict.right.max(initial=0))) + 1
    key = (strict.graph.astype(np.int64) * span + strict.better) * span + strict.worse
    pairs, place = np.unique(key, return_inverse=True)
    weight = np.bincount(place, belief, minlength=len(pairs)).astype(np.float64)
    return pairs // span**2, pairs // span % span, pairs % span, weight


def _components(start: Integers, end: Integers, num_nodes: int, connection: Literal["weak", "strong"]) -> Integers:
    """Return the number of the weakly or strongly connected component of every node."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(start), np.int8), (start, end)), shape=(num_nodes, num_nodes)).tocsr()
    return connected_components(edges, directed=True, connection=connection)[1]
