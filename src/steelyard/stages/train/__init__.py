"""The train verb: a scalar-head reward model from a case file, on any Hugging Face decoder."""

from steelyard.stages.train.processes import joined
from steelyard.stages.train.run import train
from steelyard.stages.train.settings import Config

__all__ = ["Config", "joined", "train"]
