"""The verb `leaderboard`: evaluations of one bench by one protocol in one table, with the ranks that the data allow."""

from steelyard.stages.leaderboard.run import Config, leaderboard

__all__ = ["Config", "leaderboard"]
