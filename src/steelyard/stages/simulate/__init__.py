"""The verb `simulate`: the built-in corpus as raw verdicts of simulated annotators, with an answer key apart."""

from steelyard.stages.simulate.run import simulate
from steelyard.stages.simulate.settings import Config

__all__ = ["Config", "simulate"]
