"""Resolution: conflict-free rankings from judgments, and the summary of a run (CHEEMS, section 3.2 and appendix C)."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from msgspec import UNSET, UnsetType

from steelyard.core.config import Config as BaseConfig
from steelyard.core.types import Ranking, Record
from steelyard.ranking.author_strength import AuthorStrengths, Ties
from steelyard.ranking.conflicts import (
    ConflictGraphs,
    ConflictTables,
    GroupedSums,
    compare_with_tiers,
    conflict_sums,
    num_ordered,
)
from steelyard.ranking.dawid_skene import RaterFit, RaterModelSummary
from steelyard.ranking.judge_reliability import PanelReliability
from steelyard.ranking.judge_summary import AgreementSummary, JudgeSummary
from steelyard.ranking.judgment_table import (
    EVERYTHING,
    NONE,
    REPEATED,
    Aggregate,
    JudgmentTable,
    Only,
    edges_of,
    num_split_votes,
)
from steelyard.ranking.tiers import ranking_of, tiers_of


class Config(BaseConfig, frozen=True):
    """Settings of a resolution.

    ``aggregate="dawid-skene"`` estimates each judge's confusions over the whole file, which is read twice, and gives
    each pair its most probable verdict; the graphs of single judges and kinds then use the majority.
    """

    only: Only = EVERYTHING
    """The judgments that count."""
    aggregate: Literal["none", "majority", "dawid-skene"] = "none"
    """Each verdict counts (none), a majority of them with even votes as ties, or dawid-skene weighs the judges."""
    quality: bool = True
    """Measure judges and authors in the same pass; it costs up to a third of the speed."""
    author_ties: Ties = "half"
    """Weight of ties for the strength of authors."""
    seed: int = 0
    """The seed of the resamples."""

    @property
    def vote(self) -> Aggregate:
        """Return how verdicts are combined where no rater model applies."""
        return "majority" if self.aggregate == "dawid-skene" else self.aggregate


class ResolveSummary(Record, frozen=True, kw_only=True):
    """The summary of a run of ``resolve``; judges, agreement and authors only where their quality is measured.

    ``unranked_responses`` counts responses that nobody compared, in cases that got a ranking. ``authors`` is null where
    no judgment compares answers of two known authors. ``rater_model`` is the fit of ``aggregate`` dawid-skene;
    ``reliability`` compares each judge with the others, null where no two judged the same pair.
    ``share_ordered_by_majority``: response pairs that a majority of the judges would order; null where no pair has
    several judges, or verdicts are combined already.
    """

    conflicts: ConflictTables
    unranked_responses: int
    judges: JudgeSummary | None = None
    agreement: AgreementSummary | None = None
    authors: AuthorStrengths | UnsetType | None = UNSET
    rater_model: RaterModelSummary | None = None
    reliability: PanelReliability | None = None
    share_ordered_by_majority: float | None = None


class ResolveCounts(NamedTuple):
    """Counts of cases, judgments, responses and pairs by what happened to them.

    A case that is in none of the first three counts got a new ranking. ``unchanged``: no judgment counted, the file's
    ranking is kept. ``without_evidence``: no judgment counted, and the file has no ranking. ``unparsed``: all its
    judgments are ``none``, so it has no ranking. ``pairs_kept``: it lists pairs, which are older than its new ranking.
    ``unranked_responses``: responses that nobody compared, in cases that got a ranking. ``split_votes``: pairs of
    responses that a majority vote made a tie because no option had the most votes. ``overruled``: judgments of first
    answers to tasks that people aligned or settled later. ``several_judges``: pairs of responses with several judges;
    ``ordered_by_majority``: the pairs that a majority would order, both 0 where verdicts are combined already.
    ``repeated``: judgments that do not count because an identical one of the same judge does.
    """

    unchanged: int = 0
    without_evidence: int = 0
    unparsed: int = 0
    pairs_kept: int = 0
    unranked_responses: int = 0
    split_votes: int = 0
    overruled: int = 0
    several_judges: int = 0
    ordered_by_majority: int = 0
    repeated: int = 0

    def warnings(self) -> dict[str, int]:
        """Return the counts under the names of ``run.json``. Two are included even if 0."""
        rare = {
            "without evidence": self.without_evidence,
            "only unparsed": self.unparsed,
            "pairs kept": self.pairs_kept,
            "pairs tied by an even vote": self.split_votes,
            "first answers beside aligned ones": self.overruled,
            REPEATED: self.repeated,
        }
        always = {"given": self.unchanged, "unranked_responses": self.unranked_responses}
        return always | {name: number for name, number in rare.items() if number}


class Resolution(NamedTuple):
    """The ranking of every case, in order, with the sums of the conflicts and the graphs that they come from."""

    rankings: tuple[Ranking | None, ...]
    sums: GroupedSums
    counts: ResolveCounts
    graphs: ConflictGraphs


def resolve_table(table: JudgmentTable, aggregate: Aggregate = "none", raters: RaterFit | None = None) -> Resolution:
    """Rank the responses of every case (CHEEMS, algorithm 1). A case to which no judgment counts keeps its ranking.

    ``raters`` gives each pair its most probable verdict. ``aggregate`` then applies only to the graphs of single judges
    and kinds, which the confusions of all judges must not enter.
    """
    edges = edges_of(table.verdicts, aggregate) if raters is None else edges_of(raters.combine(table))
    tiers = tiers_of(edges, table.num_responses)
    new = [ranking_of(case.responses, row) for case, row in zip(table.cases, tiers.tolist(), strict=True)]
    has_evidence = (np.bincount(table.verdicts.graph, minlength=len(new)) > 0).tolist()
    rankings = tuple(
        ranking if counts else case.ranking
        for case, ranking, counts in zip(table.cases, new, has_evidence, strict=True)
    )
    graphs = compare_with_tiers(table, tiers, aggregate)
    counts = _count(table, new, has_evidence)
    if aggregate == "majority" and raters is None:
        counts = counts._replace(split_votes=num_split_votes(table.verdicts))
    if aggregate == "none" and raters is None:
        several = _num_with_several_judges(table)
        voted = tiers_of(edges_of(table.verdicts, "majority"), table.num_responses) if several else tiers
        counts = counts._replace(several_judges=several, ordered_by_majority=int(num_ordered(voted).sum()))
    return Resolution(rankings, conflict_sums(table, graphs), counts, graphs)


def _num_with_several_judges(table: JudgmentTable) -> int:
    """Count the pairs of responses with readable verdicts of several judges."""
    is_readable = table.verdicts.verdict != NONE
    pairs = table.verdicts.where(is_readable).pair_keys(int(table.num_responses.max(initial=0)) + 1)
    by_judge = np.unique(pairs * len(table.judges) + table.judge[is_readable])
    _, num_judges = np.unique(by_judge // max(1, len(table.judges)), return_counts=True)
    return int((num_judges > 1).sum())


def _count(table: JudgmentTable, new: Sequence[Ranking | None], has_evidence: Sequence[bool]) -> ResolveCounts:
    """Count cases by outcome; ``new`` has the ranking of the judgments, null where no judgment is readable."""
    old = [case.ranking for case, counts in zip(table.cases, has_evidence, strict=True) if not counts]
    num_without = old.count(None)
    ranked = [(case, ranking) for case, ranking in zip(table.cases, new, strict=True) if ranking is not None]
    return ResolveCounts(
        unchanged=len(old) - num_without,
        without_evidence=num_without,
        unparsed=len(new) - len(old) - len(ranked),
        overruled=sum(case.num_overruled for case in table.cases),
        repeated=sum(case.num_repeated for case in table.cases),
        pairs_kept=sum(case.has_pairs for case, _ in ranked),
        unranked_responses=sum(len(case.responses) - sum(map(len, ranking)) for case, ranking in ranked),
    )
