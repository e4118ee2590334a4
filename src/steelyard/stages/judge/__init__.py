"""The verb `judge`: language models compare the responses of a case file, and their verdicts join the evidence."""

from steelyard.stages.judge.run import judge
from steelyard.stages.judge.settings import Config

__all__ = ["Config", "judge"]
