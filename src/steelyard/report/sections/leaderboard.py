"""Leaderboards: ranks with their ranges, and what the models read where that differs."""

from collections.abc import Sequence

from steelyard.evaluation.leaderboard import LeaderboardSummary
from steelyard.report.leaderboard import leaderboard_section
from steelyard.report.stage_section import PageSources, StageContents, StageRun, StageSection


def _contents(runs: Sequence[StageRun[LeaderboardSummary]], sources: PageSources) -> StageContents:
    return StageContents((leaderboard_section([run.summary for run in runs], [run.evidence for run in runs]),))


SECTION = StageSection(30, "leaderboard", LeaderboardSummary, _contents)
