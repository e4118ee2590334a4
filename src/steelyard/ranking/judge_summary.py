"""Quality and agreement of judges as ``run.json`` holds them: shares with intervals, from tables of all batches."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from steelyard.core.numerics import Floats, Integers
from steelyard.core.types import JsonObject, Record
from steelyard.ranking.annotation_features import (
    LENGTH_EDGES,
    MOST_SHOWN,
    POSITION_PAIRS,
    PreferenceCounts,
    count_by_place,
    count_earlier,
    count_equal_length,
    count_longer,
    sum_pairs,
)
from steelyard.ranking.conflicts import SPELLED, Conflicts, ConflictTables
from steelyard.ranking.judge_quality import (
    AGAINST,
    AGREES,
    AUTHOR_WIDTH,
    CONFLICTING,
    GRAPH_WIDTH,
    KEPT,
    RATER,
    RATER_WIDTH,
    UNDECIDED,
    UNORDERED,
    JudgeQualityCounts,
)
from steelyard.ranking.judge_reliability import agreement_shares, kappa_of
from steelyard.statistics import agreement
from steelyard.statistics.agreement import NUM_CELLS
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.unit_bootstrap import (
    MOST_UNITS,
    Draws,
    Group,
    Tally,
    UnitSums,
    agreement_beyond_chance,
    estimate_shares,
)

MOST_PAIRS = 100
"""Number of pairs of judges that are listed."""


class PairAgreement(Record, frozen=True, kw_only=True):
    """Agreement of two judges, or of two kinds, on the items that both labelled; ``kappa`` is Cohen's."""

    judges: tuple[str, str] | None = None
    kinds: tuple[str, str] | None = None
    agreement: Estimate
    agreement_of_strict: Estimate
    kappa: Estimate


class Alpha(Record, frozen=True, kw_only=True):
    """Krippendorff's nominal alpha of all judges, and of the judges of each kind."""

    all: Estimate
    by_kind: dict[str, Estimate]


class AgreementSummary(Record, frozen=True, kw_only=True):
    """Agreement of every two judges, of every two kinds, and of all judges."""

    judges: tuple[PairAgreement, ...]
    num_pairs_of_judges_not_listed: int
    kinds: tuple[PairAgreement, ...]
    alpha: Alpha
    num_verdicts_of_pairs_not_counted_apart: int


def agreement_summary(draws: Draws) -> AgreementSummary:
    """Return observed agreement and kappa of every two judges and kinds, and alpha of all judges and by kind."""
    pairs = [group for group in draws.groups if group[0] == "judges"]
    number = dict(zip(pairs, draws.point(pairs).sum(axis=-1).tolist(), strict=True))
    listed = sorted(pairs, key=lambda group: (-number[group], group))[:MOST_PAIRS]
    kinds = sorted(group for group in draws.groups if group[0] == "kinds")
    alphas = {
        group[1:]: agreement_beyond_chance(draws.totals([group]), agreement.alpha)
        for group in draws.groups
        if group[0] == "alpha"
    }
    return AgreementSummary(
        judges=tuple(
            _pair_agreement(totals, judges=(first, second))
            for (_, first, second), totals in zip(listed, draws.totals_each([[group] for group in listed]), strict=True)
        ),
        num_pairs_of_judges_not_listed=len(pairs) - len(listed),
        kinds=tuple(_pair_agreement(draws.totals([group]), kinds=(group[1], group[2])) for group in kinds),
        alpha=Alpha(
            all=alphas.get((), Estimate(None, None, None, 0)),
            by_kind={kind[0]: alphas[kind] for kind in sorted(alphas) if kind},
        ),
        num_verdicts_of_pairs_not_counted_apart=draws.num_rest,
    )


def _pair_agreement(
    totals: UnitSums, *, judges: tuple[str, str] | None = None, kinds: tuple[str, str] | None = None
) -> PairAgreement:
    same, strict = agreement_shares(totals)
    return PairAgreement(judges=judges, kinds=kinds, agreement=same, agreement_of_strict=strict, kappa=kappa_of(totals))


MOST_JUDGES = 500
MOST_PAIRS_OF_JUDGES = 2000
MOST_PAIRS_OF_AUTHORS = 5000
_MOST_GRAPHS = 5000
_SHOWN = tuple(range(2, MOST_SHOWN + 1))


class RankingAgreement(Record, frozen=True, kw_only=True):
    """Agreement of a judge's strict verdicts with a ranking, and the share of them whose pair the ranking orders."""

    agreement: Estimate
    coverage: Estimate


class PlacedPair(Estimate, frozen=True, kw_only=True):
    """The share of strict verdicts for the earlier shown of two places, counted from 1.

    All three are null for pairs among more answers than are counted separately.
    """

    num_shown: int | None
    earlier: int | None
    later: int | None


class PlaceShare(Estimate, frozen=True, kw_only=True):
    """The share of strict verdicts for the answer at one place, counted from 1."""

    num_shown: int
    place: int


class PositionBias(Record, frozen=True, kw_only=True):
    """Preference for places: the earlier of two in all, by pair of places, and by place."""

    earlier: Estimate
    pairs: tuple[PlacedPair, ...]
    places: tuple[PlaceShare, ...]


class LengthShare(Estimate, frozen=True, kw_only=True):
    """The share of strict verdicts for the longer answer, at a relative difference of lengths in (above, up_to]."""

    above: float
    up_to: float


class LengthBias(Record, frozen=True, kw_only=True):
    """Preference for the longer answer, overall and by difference; ``num_equal`` verdicts are on equal lengths."""

    longer: Estimate
    bins: tuple[LengthShare, ...]
    num_equal: int


class JudgeQuality(Record, frozen=True, kw_only=True):
    """The measures of one judge or kind of judges.

    The conflict ratios are taken on the graph of its judgments alone, among the readable and among the strict ones.
    ``ranking`` is the agreement with the ranking of all judgments, ``others`` with that of all other judges.
    ``kinds`` lists the kinds under which a judge judged; null for a kind.
    """

    num_judgments: int
    num_strict: int
    conflict_ratio: Estimate
    conflict_ratio_of_strict: Estimate
    ranking: RankingAgreement
    others: RankingAgreement
    position: PositionBias
    length: LengthBias
    kinds: tuple[str, ...] | None = None


class JudgeSummary(Record, frozen=True, kw_only=True):
    """The quality of every judge and kind. Judges beyond `MOST_JUDGES` are only counted."""

    by_judge: dict[str, JudgeQuality]
    by_kind: dict[str, JudgeQuality]
    num_entries_of_judges_not_listed: int


class QualityDraws(NamedTuple):
    """The resamples of the tables of `JudgeQualityCounts`, drawn alike."""

    raters: Draws
    graphs: Draws
    agreement: Draws
    authors: Draws


class QualityTables:
    """The counts of all batches, in memory that does not grow with the number of prompts.

    Judges, pairs of judges and pairs of authors beyond the bounds are counted together, in the order of the file.
    """

    def __init__(self) -> None:
        self._tables = (
            Tally(RATER_WIDTH, most_groups=MOST_JUDGES, rest=lambda group: ("rest", "", group[-1])),
            Tally(GRAPH_WIDTH, most_groups=_MOST_GRAPHS, rest=lambda _: ("place", "others", "others")),
            Tally(NUM_CELLS, most_groups=MOST_PAIRS_OF_JUDGES, rest=lambda _: ("rest",)),
            Tally(AUTHOR_WIDTH, most_groups=MOST_PAIRS_OF_AUTHORS, rest=lambda _: ("rest",)),
        )

    def add(self, counts: JudgeQualityCounts, unit: Integers) -> None:
        """Add a batch; ``unit`` has shape (case,)."""
        row = unit % MOST_UNITS
        for table, entries in zip(self._tables, counts, strict=True):
            table.add(entries._replace(unit=row[entries.unit]))

    def draw(self, *, seed: int) -> QualityDraws:
        """Draw the bootstrap over prompts, the same for all tables."""
        return QualityDraws(*(table.draw(seed=seed) for table in self._tables))


def judge_summary(draws: QualityDraws) -> JudgeSummary:
    """Return conflict, agreement with the ranking and with others, and biases of every judge and every kind."""
    judges: dict[str, list[Group]] = {}
    kinds: dict[str, list[Group]] = {}
    for group in draws.raters.groups:
        if group[0] == "judge":
            judges.setdefault(group[1], []).append(group)
        kinds.setdefault(group[2], []).append(group)
    by_kind = {}
    for kind, quality in _qualities(draws.raters, kinds).items():
        # A kind's conflicts are those on its own graph, not those on its judges' graphs.
        ratio, ratio_of_strict = _conflict_ratios(draws.graphs.totals([("kind", kind)]))
        by_kind[kind] = msgspec.structs.replace(quality, conflict_ratio=ratio, conflict_ratio_of_strict=ratio_of_strict)
    by_judge = {
        judge: msgspec.structs.replace(quality, kinds=tuple(sorted(group[2] for group in judges[judge])))
        for judge, quality in _qualities(draws.raters, judges).items()
    }
    return JudgeSummary(by_judge=by_judge, by_kind=by_kind, num_entries_of_judges_not_listed=draws.raters.num_rest)


def add_intervals(conflicts: ConflictTables, judges: JudgeSummary, graphs: Draws) -> ConflictTables:
    """Return the conflicts with the intervals of both ratios, for every group that was resampled."""
    places = [group for group in graphs.groups if group[0] == "place"]
    ratios: dict[str, dict[str, tuple[Estimate, Estimate]]] = {
        by: {name: (quality.conflict_ratio, quality.conflict_ratio_of_strict) for name, quality in qualities.items()}
        for by, qualities in (("by_judge", judges.by_judge), ("by_kind", judges.by_kind))
    }
    for by, position in (("by_category", 1), ("by_language", 2)):
        identity, members = SPELLED[by], dict[str, list[Group]]()
        spelling = {identity(name): name for name in getattr(conflicts, by)}
        for group in places:
            members.setdefault(spelling.get(identity(group[position]), group[position]), []).append(group)
        ratios[by] = {name: _conflict_ratios(graphs.totals(members[name])) for name in sorted(members)}
    groups = {
        by: {name: _with_ends(table, ratios[by].get(name)) for name, table in getattr(conflicts, by).items()}
        for by in ratios
    }
    overall = _conflict_ratios(graphs.totals(places)) if places else None
    return msgspec.structs.replace(conflicts, overall=_with_ends(conflicts.overall, overall), **groups)


def _with_ends(conflicts: Conflicts, ratios: tuple[Estimate, Estimate] | None) -> Conflicts:
    if ratios is None:
        return conflicts
    ratio, of_strict = ratios
    return msgspec.structs.replace(
        conflicts,
        ratio_low=ratio.low,
        ratio_high=ratio.high,
        ratio_of_strict_low=of_strict.low,
        ratio_of_strict_high=of_strict.high,
    )


def _conflict_ratios(totals: UnitSums) -> tuple[Estimate, Estimate]:
    """Return the conflict ratio over all readable judgments and over the strict ones, from `conflict_states`."""
    ratio, of_strict = estimate_shares(totals, _conflicts)
    return ratio, of_strict


def _qualities(draws: Draws, members: Mapping[str, list[Group]]) -> dict[str, JudgeQuality]:
    names = sorted(members)
    each = draws.totals_each([members[name] for name in names])
    return {name: _quality(totals) for name, totals in zip(names, each, strict=True)}


# Each maps sums to the numerators and denominators of one measure, all of shape (…, value).
_MEASURES: Mapping[str, Callable[[Floats], PreferenceCounts]] = {
    "conflict": lambda sums: _conflicts(sums[..., RATER["conflict"]]),
    "ranking": lambda sums: _standing(sums[..., RATER["ranking"]]),
    "others": lambda sums: _standing(sums[..., RATER["others"]]),
    "earlier": lambda sums: sum_pairs(count_earlier(_position(sums))),
    "position": lambda sums: count_earlier(_position(sums)),
    "places": lambda sums: _concatenate([count_by_place(_position(sums), size) for size in _SHOWN]),
    "longer": lambda sums: sum_pairs(count_longer(_length(sums))),
    "length": lambda sums: count_longer(_length(sums)),
}


ShareRecord = TypeVar("ShareRecord", bound=Estimate)
_PLACED_PAIRS = (
    *({"num_shown": size, "earlier": low + 1, "later": high + 1} for size, low, high in POSITION_PAIRS),
    {"num_shown": None, "earlier": None, "later": None},
)
_PLACES = tuple({"num_shown": size, "place": place + 1} for size in _SHOWN for place in range(size))
_LENGTHS = tuple({"above": low, "up_to": high} for low, high in pairwise((0.0, *LENGTH_EDGES)))


def _quality(totals: UnitSums) -> JudgeQuality:
    sums = totals.point
    # All measures in one call: the resamples are summed once.
    flat = estimate_shares(totals, lambda columns: _concatenate([measure(columns) for measure in _MEASURES.values()]))
    ends = np.cumsum([measure(sums).total.shape[-1] for measure in _MEASURES.values()]).tolist()
    starts = [0, *ends[:-1]]
    estimates = {name: flat[start:end] for name, start, end in zip(_MEASURES, starts, ends, strict=True)}
    conflict_ratio, conflict_ratio_of_strict = estimates["conflict"]
    states = sums[RATER["conflict"]]
    return JudgeQuality(
        num_judgments=int(states[[UNDECIDED, KEPT, CONFLICTING]].sum()),
        num_strict=int(states[[KEPT, CONFLICTING]].sum()),
        conflict_ratio=conflict_ratio,
        conflict_ratio_of_strict=conflict_ratio_of_strict,
        ranking=RankingAgreement(agreement=estimates["ranking"][0], coverage=estimates["ranking"][1]),
        others=RankingAgreement(agreement=estimates["others"][0], coverage=estimates["others"][1]),
        position=PositionBias(
            earlier=estimates["earlier"][0],
            pairs=_shares(PlacedPair, _PLACED_PAIRS, estimates["position"]),
            places=_shares(PlaceShare, _PLACES, estimates["places"]),
        ),
        length=LengthBias(
            longer=estimates["longer"][0],
            bins=_shares(LengthShare, _LENGTHS, estimates["length"]),
            num_equal=int(count_equal_length(_length(sums))),
        ),
    )


def _shares(
    kind: type[ShareRecord], places: Sequence[JsonObject], estimates: Sequence[Estimate]
) -> tuple[ShareRecord, ...]:
    """Return the shares that have a verdict; ``places`` are the fields that tell them apart."""
    return tuple(
        kind(**place, **msgspec.structs.asdict(estimate))
        for place, estimate in zip(places, estimates, strict=True)
        if estimate.n
    )


def _conflicts(states: Floats) -> PreferenceCounts:
    """Count conflicting judgments, among the readable ones and among the strict ones."""
    conflicting, consistent, tied = (states[..., state] for state in (CONFLICTING, KEPT, UNDECIDED))
    strict = conflicting + consistent
    return PreferenceCounts(np.stack([conflicting, conflicting], axis=-1), np.stack([strict + tied, strict], axis=-1))


def _standing(states: Floats) -> PreferenceCounts:
    """Count strict verdicts that agree, among those whose pair is ordered; and the ordered, among all."""
    agrees, against, unordered = (states[..., state] for state in (AGREES, AGAINST, UNORDERED))
    ordered = agrees + against
    return PreferenceCounts(np.stack([agrees, ordered], axis=-1), np.stack([ordered, ordered + unordered], axis=-1))


def _position(sums: Floats) -> Floats:
    return sums[..., RATER["position"]]


def _length(sums: Floats) -> Floats:
    return sums[..., RATER["length"]]


def _concatenate(counts: Sequence[PreferenceCounts]) -> PreferenceCounts:
    return PreferenceCounts(*(np.concatenate(columns, axis=-1) for columns in zip(*counts, strict=True)))
