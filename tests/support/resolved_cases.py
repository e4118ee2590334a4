"""The cases of a test with their rankings, as the stage gets them from its tables."""

from collections.abc import Sequence

import msgspec

from steelyard.core.types import Case
from steelyard.ranking.dawid_skene import VoteCollector, vote_columns
from steelyard.ranking.judgment_table import EVERYTHING, Only, judgment_table
from steelyard.ranking.resolution import Resolution, resolve_table


def resolve_cases(
    cases: Sequence[Case], *, only: Only = EVERYTHING, aggregate: str = "none"
) -> tuple[tuple[Case, ...], Resolution]:
    """Return the checked cases, in which only ``ranking`` is new, and the whole resolution.

    With ``dawid-skene`` the confusions are fitted to these cases, and the graphs of single judges use the majority.
    """
    table = judgment_table(cases, only)
    if aggregate == "dawid-skene":
        votes = VoteCollector()
        votes.add(vote_columns(table))
        resolution = resolve_table(table, "majority", votes.fit())
    else:
        resolution = resolve_table(table, aggregate)
    resolved = tuple(
        msgspec.structs.replace(case, ranking=ranking) for case, ranking in zip(cases, resolution.rankings, strict=True)
    )
    return resolved, resolution
