"""The verb `debias`: pairs that a feature such as length favours are downsampled to as many as it does not favour."""

from steelyard.stages.debias.run import debias
from steelyard.stages.debias.settings import Config

__all__ = ["Config", "debias"]
