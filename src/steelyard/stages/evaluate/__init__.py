"""The verb `evaluate`: a reward model, or scores made elsewhere, against the orderings of a benchmark."""

from steelyard.stages.evaluate.run import evaluate
from steelyard.stages.evaluate.settings import Config

__all__ = ["Config", "evaluate"]
