"""The verb `resolve`: judgments into conflict-free rankings, with a report of the conflicts and of the judges."""

from steelyard.stages.resolve.run import resolve
from steelyard.stages.resolve.settings import Config

__all__ = ["Config", "resolve"]
