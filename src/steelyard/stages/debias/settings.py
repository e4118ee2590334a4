"""Every setting of debiasing, and which of them contradict each other."""

from typing import Literal

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError
from steelyard.curation.debiasing import Within
from steelyard.ranking.pairs import PairChoice

DEFAULT_MATCHED = 0.1


class Config(BaseConfig, frozen=True):
    """``by`` is the feature, ``within`` what it is balanced within, ``pairs`` which pairs of a case are meant.

    ``tokenizer`` (a folder or hub name) counts length in its tokens rather than in characters. Pairs whose lengths
    differ by at most ``matched`` of the longer one (null is 0.1) are length-matched: a model's accuracy on them is
    measured before and after, where its scores are given.
    """

    by: Literal["length", "markdown", "author"] = "length"
    """What to balance."""
    within: Within = "overall"
    """Balance overall, or within each category, each language, or both."""
    tokenizer: str | None = None
    """Measure length in the tokens of this tokenizer (a folder or hub name), not in characters."""
    pairs: PairChoice | None = None
    """Which pairs count; none takes the pairs that a case lists, or else every pair across tiers."""
    matched: float | None = None
    """With scores: the largest difference of lengths, as a share of the longer, that counts as equal; none: 0.1."""
    seed: int = 0
    """The seed of the pairs that are dropped."""

    @property
    def closeness(self) -> float:
        """``matched``, or what it is where nobody says."""
        return DEFAULT_MATCHED if self.matched is None else self.matched


def check_settings(config: Config, *, with_scores: bool) -> None:
    """Raises ConfigError for a setting that could do nothing, and for a share that is none."""
    if config.tokenizer is not None and config.by == "author":
        raise ConfigError("--tokenizer with --by author", do="a tokenizer measures length")
    if config.matched is None:
        return
    if not with_scores:
        raise ConfigError(
            f"matched is {config.matched}, and there are no scores",
            where="debias",
            do="give --scores FILE: matched says on which pairs their accuracy is measured",
        )
    if not 0 <= config.matched < 1:
        raise ConfigError(f"matched is {config.matched}", where="debias", allowed="0 or more, and below 1")
