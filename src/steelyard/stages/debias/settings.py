"""Every setting of debiasing, and which of them contradict each other."""

from typing import Literal

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError
from steelyard.methods.curation.debiasing import Within
from steelyard.methods.ranking.pairs import PairChoice


class Config(BaseConfig, frozen=True):
    """``by`` is the feature, ``within`` what it is balanced within, ``pairs`` which pairs of a case are meant.

    ``tokenizer`` (a folder or hub name) counts length in its tokens rather than in characters. Pairs whose lengths
    differ by at most ``matched`` of the longer one are length-matched: accuracy on them is measured before and after.
    """

    by: Literal["length", "markdown", "author"] = "length"
    within: Within = "overall"
    tokenizer: str | None = None
    pairs: PairChoice | None = None
    matched: float = 0.1
    seed: int = 0


def check_settings(config: Config) -> None:
    """Raises ConfigError for a tokenizer where nothing is measured in tokens, and for a share that is none."""
    if config.tokenizer is not None and config.by == "author":
        raise ConfigError("--tokenizer with --by author", do="a tokenizer measures length")
    if not 0 <= config.matched < 1:
        raise ConfigError(f"matched is {config.matched}", where="debias", allowed="0 or more, and below 1")
