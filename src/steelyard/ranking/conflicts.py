"""Conflicts: how much of the evidence the rankings contradict (CHEEMS, table 5).

A strict judgment *conflicts* when the ranking does not put its better response into a higher tier than its worse one.
Where every judgment is an edge, this means that both ends lie in one cycle of the graph, since an edge outside every
cycle leads from a higher tier to a lower one. Under a majority vote the raw judgments are compared with the ranking of
the voted graph: a conflict then is an outvoted judgment, or one whose ends share a tier.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from steelyard.core.languages import language_key
from steelyard.core.numerics import Integers
from steelyard.core.text import common_spellings, name_form
from steelyard.core.types import Record
from steelyard.ranking.judgment_table import NONE, TIE, Aggregate, JudgmentTable, Verdicts, edges_of
from steelyard.ranking.tiers import tiers_of
from steelyard.statistics.unique_rows import unique_codes


class ConflictSums(NamedTuple):
    """The sums behind the conflicts of one group of judgments; all of them add up over prompts.

    ``num_prompts`` and ``num_pairs`` count prompts with a judgment other than none, and all pairs of their responses;
    ``conflict_ratios`` is the sum over those prompts of each prompt's conflict ratio.
    """

    num_judgments: float = 0
    num_strict: float = 0
    num_conflicting: float = 0
    num_ties: float = 0
    num_none: float = 0
    num_prompts: float = 0
    num_prompts_in_conflict: float = 0
    num_pairs: float = 0
    num_pairs_ordered: float = 0
    conflict_ratios: float = 0


Additive = TypeVar("Additive", bound=tuple[Any, ...])
"""A named tuple of numbers that add up over prompts, or of tables of such tuples by name."""
SumTable = dict[str, ConflictSums]


class GroupedSums(NamedTuple):
    """The sums of all judgments (under the name ``all``) and by group; groups have the names of the cases."""

    overall: SumTable
    by_judge: SumTable
    by_kind: SumTable
    by_category: SumTable
    by_subset: SumTable
    by_language: SumTable


SPELLED: Mapping[str, Callable[[str], str]] = {"by_category": name_form, "by_language": language_key}
"""Groups whose names have several spellings, with the identity of a name."""
NO_SUMS = GroupedSums({}, {}, {}, {}, {}, {})


class Conflicts(Record, frozen=True, kw_only=True):
    """Contradictions of one group of judgments to the ranking. A ratio is null where its denominator is 0.

    ``ratio``: conflicting judgments among the readable ones; ``ratio_of_strict``: among the strict ones;
    ``ratio_mean_per_prompt``: the mean of the prompts' ratios; ``share_of_prompts``: prompts with a conflict;
    ``share_of_pairs_ordered``: response pairs that the ranking orders. The ends of the 95% intervals are unset where
    the quality of judges was not measured.
    """

    ratio: float | None
    ratio_of_strict: float | None
    ratio_mean_per_prompt: float | None
    share_of_prompts: float | None
    share_of_pairs_ordered: float | None
    num_judgments: int
    num_strict: int
    num_conflicting: int
    num_ties: int
    num_none: int
    num_prompts: int
    num_pairs: int
    ratio_low: float | UnsetType | None = UNSET
    ratio_high: float | UnsetType | None = UNSET
    ratio_of_strict_low: float | UnsetType | None = UNSET
    ratio_of_strict_high: float | UnsetType | None = UNSET


class ConflictTables(Record, frozen=True, kw_only=True):
    """The conflicts of all judgments and by group.

    Categories, subsets and languages are measured on the full graph, judges and kinds each on their own graph.
    """

    overall: Conflicts
    by_judge: dict[str, Conflicts]
    by_kind: dict[str, Conflicts]
    by_category: dict[str, Conflicts]
    by_subset: dict[str, Conflicts]
    by_language: dict[str, Conflicts]


class RankedGraphs(NamedTuple):
    """Judgments with the ranking of their graph: ``verdicts.graph`` is a graph's number, ``tiers`` has a row a graph.

    ``owner`` is for each graph the case's position times the number of owners (judges or kinds), plus the owner.
    ``is_kept``: whether the ranking of its graph puts a strict judgment's better response above the worse.
    """

    verdicts: Verdicts
    owner: Integers
    num_responses: Integers
    tiers: NDArray[np.int32]
    is_kept: NDArray[np.bool_]


class ConflictGraphs(NamedTuple):
    """The judgments on three kinds of graphs: the full graph, each judge's own, and each kind's own."""

    full: RankedGraphs
    by_judge: RankedGraphs
    by_kind: RankedGraphs


def add_sums(mine: Additive, theirs: Additive) -> Additive:
    """Return the sums of both, field by field, and tables by name. The two must share no prompt."""
    return type(mine)(*map(_add, mine, theirs))


def _add(mine: Any, theirs: Any) -> Any:
    if not isinstance(mine, dict):
        return mine + theirs
    return mine | {name: add_sums(mine[name], sums) if name in mine else sums for name, sums in theirs.items()}


def compare_with_tiers(table: JudgmentTable, tiers: NDArray[np.int32], aggregate: Aggregate) -> ConflictGraphs:
    """Compare the judgments with ``tiers``, the ranking of the full graphs, and with judges' and kinds' rankings."""
    owner = np.arange(len(table.cases))
    full = RankedGraphs(table.verdicts, owner, table.num_responses, tiers, _is_kept(table.verdicts, tiers))
    return ConflictGraphs(
        full,
        _owner_graphs(table, table.judge, len(table.judges), aggregate, full=full),
        _owner_graphs(table, table.kind, len(table.kinds), aggregate, full=full),
    )


def conflict_sums(table: JudgmentTable, graphs: ConflictGraphs) -> GroupedSums:
    """Sum the conflicts of the judgments, overall and by group."""
    full = _sums(graphs.full)
    return GroupedSums(
        _sum_by_name(full, ["all"] * len(table.cases)),
        _sum_by_owner(graphs.by_judge, table.judges),
        _sum_by_owner(graphs.by_kind, table.kinds),
        _sum_by_name(full, [case.category for case in table.cases]),
        _sum_by_name(full, [case.subset for case in table.cases]),
        _sum_by_name(full, [case.language for case in table.cases]),
    )


def conflict_tables(sums: GroupedSums) -> ConflictTables:
    """Return the sums as ratios and counts, the groups in the order of their names."""
    groups = {name: table for name, table in sums._asdict().items() if name != "overall"}
    for by, identity in SPELLED.items():
        groups[by] = _join_spellings(groups[by], identity)
    return ConflictTables(
        overall=_ratios(sums.overall.get("all", ConflictSums())),
        **{name: {group: _ratios(table[group]) for group in sorted(table)} for name, table in groups.items()},
    )


def _join_spellings(table: SumTable, identity: Callable[[str], str]) -> SumTable:
    """Return the table with the sums of all spellings of a name under the most frequent one."""
    spelling = common_spellings({name: int(sums.num_prompts) for name, sums in table.items()}, identity)
    joined: SumTable = {}
    for name, sums in table.items():
        common = spelling[name]
        joined[common] = add_sums(joined[common], sums) if common in joined else sums
    return joined


def _is_kept(verdicts: Verdicts, tiers: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which verdicts' better response is in a higher tier (a lower number). Meaningless unless strict."""
    return tiers[verdicts.graph, verdicts.better] < tiers[verdicts.graph, verdicts.worse]


def _sums(graphs: RankedGraphs) -> NDArray[np.float64]:
    """Return the fields of `ConflictSums` of each graph: (field, graph)."""
    verdicts, num_responses = graphs.verdicts, graphs.num_responses
    graph, num_graphs = verdicts.graph, len(num_responses)

    def count(mask: NDArray[np.bool_]) -> Integers:
        return np.bincount(graph[mask], minlength=num_graphs)

    judged, conflicting = count(verdicts.verdict != NONE), count(verdicts.is_strict & ~graphs.is_kept)
    is_judged = judged > 0
    rows = {
        "num_judgments": judged,
        "num_strict": count(verdicts.is_strict),
        "num_conflicting": conflicting,
        "num_ties": count(verdicts.verdict == TIE),
        "num_none": count(verdicts.verdict == NONE),
        "num_prompts": is_judged,
        "num_prompts_in_conflict": conflicting > 0,
        "num_pairs": is_judged * _choose_two(num_responses),
        "num_pairs_ordered": num_ordered(graphs.tiers),
        # A prompt without a readable judgment has no ratio: it adds 0, and is not in the denominator either.
        "conflict_ratios": conflicting / np.maximum(judged, 1),
    }
    return np.array([rows[field] for field in ConflictSums._fields], np.float64)


def _owner_graphs(
    table: JudgmentTable, code: Integers, num_codes: int, aggregate: Aggregate, *, full: RankedGraphs
) -> RankedGraphs:
    """Return for each judge or kind its judgments on graphs without the judgments of others."""
    # The graphs of a single judge or kind are the full graphs.
    if num_codes <= 1:
        return full
    owner, graph = unique_codes(table.verdicts.graph * num_codes + code, len(table.cases) * num_codes)
    verdicts = table.verdicts._replace(graph=graph)
    num_responses = table.num_responses[owner // num_codes]
    tiers = tiers_of(edges_of(verdicts, aggregate), num_responses)
    return RankedGraphs(verdicts, owner, num_responses, tiers, _is_kept(verdicts, tiers))


def _sum_by_owner(graphs: RankedGraphs, names: Sequence[str]) -> SumTable:
    return _sum_groups(_sums(graphs), graphs.owner % len(names), names) if names else {}


def _sum_by_name(sums: NDArray[np.float64], names: Sequence[str | None]) -> SumTable:
    """Add the columns up by name; a column without a name belongs to no group."""
    groups = sorted({name for name in names if name is not None})
    code = {name: index for index, name in enumerate(groups)}
    place = np.array([code[name] for name in names if name is not None], np.int64)
    if len(place) < len(names):
        sums = sums[:, [name is not None for name in names]]
    return _sum_groups(sums, place, groups)


def _sum_groups(sums: NDArray[np.float64], group: Integers, names: Sequence[str]) -> SumTable:
    """Add the columns up by group, a position in ``names``. Groups without a judgment are left out."""
    totals = np.array([np.bincount(group, row, len(names)) for row in sums]).T.tolist()
    table = {name: ConflictSums(*row) for name, row in zip(names, totals, strict=True)}
    return {name: row for name, row in table.items() if row.num_judgments or row.num_none}


def num_ordered(tiers: NDArray[np.int32]) -> Integers:
    """Count the pairs of ranked responses in different tiers, by graph: all pairs minus those within a tier."""
    num_graphs, width = tiers.shape
    graph, response = np.nonzero(tiers >= 0)
    in_tier = np.bincount(graph * width + tiers[graph, response], minlength=num_graphs * width)
    in_tier = in_tier.reshape(num_graphs, width)
    return _choose_two(in_tier.sum(1)) - _choose_two(in_tier).sum(1)


def _choose_two(number: Integers) -> Integers:
    return number * (number - 1) // 2


def _ratios(sums: ConflictSums) -> Conflicts:
    """Divide the sums; null for a denominator of 0. Sums are floats of whole numbers, and written as integers."""

    def ratio(part: float, whole: float) -> float | None:
        return part / whole if whole else None

    return Conflicts(
        ratio=ratio(sums.num_conflicting, sums.num_judgments),
        ratio_of_strict=ratio(sums.num_conflicting, sums.num_strict),
        ratio_mean_per_prompt=ratio(sums.conflict_ratios, sums.num_prompts),
        share_of_prompts=ratio(sums.num_prompts_in_conflict, sums.num_prompts),
        share_of_pairs_ordered=ratio(sums.num_pairs_ordered, sums.num_pairs),
        **{name: int(number) for name, number in sums._asdict().items() if name in Conflicts.__struct_fields__},
    )
