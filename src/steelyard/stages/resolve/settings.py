"""The settings of `resolve`."""

from steelyard.core.config import Config as BaseConfig
from steelyard.methods.ranking.evidence import EVERYTHING, Only
from steelyard.methods.ranking.graph import Aggregate
from steelyard.methods.ranking.strength import Ties


class Config(BaseConfig, frozen=True):
    """``only`` picks the judgments that count; ``aggregate`` says whether those on one pair vote before the graph.

    ``quality`` measures judges and authors from the same pass, which costs a fifth to a third of the speed;
    ``author_ties`` says how ties count for the authors' strength; ``seed`` draws the resamples of its intervals.
    """

    only: Only = EVERYTHING
    aggregate: Aggregate = "none"
    quality: bool = True
    author_ties: Ties = "half"
    seed: int = 0
