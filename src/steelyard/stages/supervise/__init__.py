"""The verb `supervise`: a reward model decides which of a cheaper judge's verdicts are kept (CHEEMS, section 4.2)."""

from steelyard.stages.supervise.run import supervise
from steelyard.stages.supervise.settings import Config, Files

__all__ = ["Config", "Files", "supervise"]
