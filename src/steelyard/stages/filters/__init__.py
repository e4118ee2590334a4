"""Does distant supervision pay: what a filter of a judge's verdicts keeps, and what is learnt from it."""

from steelyard.stages.filters.run import filters
from steelyard.stages.filters.settings import Config

__all__ = ["Config", "filters"]
