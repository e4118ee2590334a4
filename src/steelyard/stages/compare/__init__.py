"""The verb `compare`: evaluations of one bench beside each other, pair by pair, with what chance would give."""

from steelyard.stages.compare.run import Config, compare

__all__ = ["Config", "compare"]
