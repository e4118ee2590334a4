"""The quality of judges and authors, summed over the batches as they come back."""

from typing import Any

from steelyard.methods.measures.agreement import NUM_CELLS
from steelyard.methods.measures.tallies import Group, Tally
from steelyard.methods.ranking.author_report import authors_report
from steelyard.methods.ranking.quality import AUTHOR_WIDTH, GRAPH_WIDTH, RATER_WIDTH, Quality
from steelyard.methods.ranking.quality_report import Drawn, agreement_report, conflict_intervals, judges_report
from steelyard.methods.ranking.strength import Ties

MOST_JUDGES = 500
MOST_PAIRS_OF_JUDGES = 2000
MOST_PAIRS_OF_AUTHORS = 5000
_MOST_GRAPHS = 5000


def _rest_of_kind(group: Group) -> Group:
    return ("rest", "", group[-1])


def _rest(_: Group) -> Group:
    return ("rest",)


class Gathered:
    """The tables of all batches, in memory that does not grow with the number of prompts.

    Judges, pairs of judges and pairs of authors beyond the bounds are counted together, in the order of the file.
    """

    def __init__(self) -> None:
        self._raters = Tally(RATER_WIDTH, most_groups=MOST_JUDGES, rest=_rest_of_kind)
        self._graphs = Tally(GRAPH_WIDTH, most_groups=_MOST_GRAPHS, rest=lambda _: ("place", "others", "others"))
        self._agreement = Tally(NUM_CELLS, most_groups=MOST_PAIRS_OF_JUDGES, rest=_rest)
        self._authors = Tally(AUTHOR_WIDTH, most_groups=MOST_PAIRS_OF_AUTHORS, rest=_rest)

    def add(self, quality: Quality) -> None:
        """Adds a batch."""
        self._raters.add(quality.raters)
        self._graphs.add(quality.graphs)
        self._agreement.add(quality.agreement)
        self._authors.add(quality.authors)

    def summary(self, *, seed: int, author_ties: Ties, conflicts: dict[str, Any]) -> dict[str, Any]:
        """The sections of ``run.json``: ``judges``, ``agreement``, ``authors``; ``conflicts`` with its intervals."""
        tables = (self._raters, self._graphs, self._agreement, self._authors)
        drawn = Drawn(*(table.drawn(seed=seed) for table in tables))
        judges = judges_report(drawn)
        intervals = conflict_intervals(drawn) | {
            by: {name: {key: found[key] for key in _RATIOS} for name, found in judges[by].items()}
            for by in ("by_judge", "by_kind")
        }
        return {
            "conflicts": with_intervals(conflicts, intervals),
            "judges": judges | {"num_entries_of_judges_not_listed": self._raters.num_rest},
            "agreement": agreement_report(drawn.agreement)
            | {"num_verdicts_of_pairs_not_counted_apart": self._agreement.num_rest},
            "authors": authors_report(drawn.authors, ties=author_ties),
        }


_RATIOS = {"conflict_ratio": "ratio", "conflict_ratio_of_strict": "ratio_of_strict"}


def with_intervals(conflicts: dict[str, Any], intervals: dict[str, Any]) -> dict[str, Any]:
    """The conflict report with ``low`` and ``high`` ends of the two ratios of every group that has them."""

    def extended(record: dict[str, Any], found: dict[str, Any] | None) -> dict[str, Any]:
        ends = {
            f"{name}_{end}": found[key][end]
            for key, name in _RATIOS.items()
            for end in ("low", "high")
            if found is not None
        }
        return record | ends

    overall = {"overall": extended(conflicts["overall"], intervals.get("overall", {}).get("all"))}
    return overall | {
        by: {name: extended(record, intervals.get(by, {}).get(name)) for name, record in groups.items()}
        for by, groups in conflicts.items()
        if by != "overall"
    }
