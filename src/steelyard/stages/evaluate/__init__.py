"""The verb `evaluate`: a reward model, or scores made elsewhere, against the orderings of a benchmark."""

from steelyard.evaluation.config import Config
from steelyard.stages.evaluate.run import evaluate

__all__ = ["Config", "evaluate"]
