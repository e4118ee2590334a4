"""The conflicts of judgments on the page: overall and by judge, kind, category, subset and language."""

from collections.abc import Iterator, Mapping, Sequence

from steelyard.evaluation.marks import ALERT, FAINT, Spec, framed, row_axis, share_axis
from steelyard.evaluation.tables import Figure, Grouped, Mark, Panel, Sentence, count, percent, table, word
from steelyard.ranking.conflicts import Conflicts, ConflictTables
from steelyard.ranking.resolution import ResolveSummary
from steelyard.report.sections import Card, Section

_COLUMNS = (
    "group",
    "conflict_ratio",
    "of_strict",
    "mean_per_prompt",
    "prompts_with_conflict",
    "pairs_ordered",
    "judgments",
    "conflicting",
    "ties",
    "unreadable",
    "prompts",
)


def conflict_section(summaries: Mapping[str, ResolveSummary], evidence: Sequence[str]) -> Section:
    """Return the conflicts of each run of ``resolve``."""
    panels = tuple(
        Panel(
            name if len(summaries) > 1 else word("conflict_ratio"),
            conflict_figure(summary.conflicts),
            conflict_tables(summary.conflicts),
            "note_conflicts",
        )
        for name, summary in summaries.items()
        if summary.conflicts.overall.ratio is not None
    )
    return Section("conflicts", tuple(evidence), panels)


def conflict_card(name: str, summary: ResolveSummary) -> Card:
    """Return the conflict ratio and the numbers of judgments that it divides."""
    overall = summary.conflicts.overall
    below = f"{count(overall.num_conflicting)} / {count(overall.num_judgments)} {word('judgments')}"
    return Card(word("conflict_ratio"), percent(overall.ratio), below, "", name)


def conflict_sentences(summary: ResolveSummary) -> tuple[Sentence, ...]:
    """Return the conflict ratio and the shares of prompts and pairs in words."""
    overall = summary.conflicts.overall
    if overall.ratio is None:
        return (Sentence("say_no_judgments"),)
    values = {
        "ratio": percent(overall.ratio),
        "conflicting": count(overall.num_conflicting),
        "judgments": count(overall.num_judgments),
        "prompts": percent(overall.share_of_prompts),
        "ordered": percent(overall.share_of_pairs_ordered),
    }
    ratio = Sentence("say_conflict", values)
    if not summary.unranked_responses:
        return (ratio,)
    return (ratio, Sentence("say_unranked", {"number": count(summary.unranked_responses)}))


def conflict_tables(conflicts: ConflictTables) -> tuple[Grouped, ...]:
    """Return the table of the whole, and one for each division that has rows."""
    whole = Grouped("overall", table(_COLUMNS, [_row(word("overall"), conflicts.overall)]))
    parts = [
        Grouped(by, table(_COLUMNS, [_row(name, group) for name, group in groups.items()]))
        for by, groups in _divisions(conflicts)
        if groups
    ]
    return (whole, *parts)


def conflict_figure(conflicts: ConflictTables) -> Figure:
    """Return conflict ratios as bars, among all judgments in front of among the strict ones, by every division."""
    values: list[Spec] = []
    labels: list[str] = []
    for by, groups in (("overall", {word("overall"): conflicts.overall}), *_divisions(conflicts)):
        if by == "overall" or len(groups) > 1:
            for name, group in sorted(groups.items(), key=lambda pair: -(pair[1].ratio or 0.0)):
                if group.ratio is not None:
                    division = "" if by == "overall" else f"{word(by)} · "
                    labels.append(f"{name}\n{division}n = {count(group.num_judgments)}")
                    values.append(_bar(labels[-1], group))
    rows = {"field": "row", "type": "nominal", "sort": labels, "scale": {"domain": labels}, "axis": row_axis()}
    largest = [0.01, *(value[key] for value in values for key in ("ratio", "strict") if value[key] is not None)]
    across = {
        "type": "quantitative",
        "scale": {"domain": [0, 1.06 * max(largest)]},
        "axis": share_axis("conflict_ratio"),
    }
    tips = [
        {"field": "row", "title": word("group")},
        {"field": "ratio", "title": word("conflict_ratio"), "format": ".1%"},
        {"field": "strict", "title": word("of_strict"), "format": ".1%"},
        {"field": "n", "title": word("judgments"), "format": ","},
    ]
    layers = [
        _bars(FAINT, 14, {"y": rows, "x": {"field": "strict", **across}, "tooltip": tips}),
        _bars(ALERT, 7, {"y": rows, "x": {"field": "ratio", **across}, "tooltip": tips}),
    ]
    legend = (Mark(word("conflict_ratio"), ALERT, "square"), Mark(word("of_strict"), FAINT, "square"))
    spec = {**framed(layers, 36 * max(1, len(labels))), "data": {"values": values}}
    return Figure("figure_conflicts", spec, legend)


def _divisions(conflicts: ConflictTables) -> Iterator[tuple[str, dict[str, Conflicts]]]:
    yield "kind", conflicts.by_kind
    yield "judge", conflicts.by_judge
    yield "category", conflicts.by_category
    yield "subset", conflicts.by_subset
    yield "language", conflicts.by_language


def _bar(label: str, conflicts: Conflicts) -> Spec:
    return {"row": label, "ratio": conflicts.ratio, "strict": conflicts.ratio_of_strict, "n": conflicts.num_judgments}


def _bars(colour: str, size: int, encoding: Spec) -> Spec:
    return {"mark": {"type": "bar", "color": colour, "size": size, "cornerRadiusEnd": 2}, "encoding": encoding}


def _row(name: str, conflicts: Conflicts) -> tuple[str, ...]:
    return (
        name,
        percent(conflicts.ratio),
        percent(conflicts.ratio_of_strict),
        percent(conflicts.ratio_mean_per_prompt),
        percent(conflicts.share_of_prompts),
        percent(conflicts.share_of_pairs_ordered),
        count(conflicts.num_judgments),
        count(conflicts.num_conflicting),
        count(conflicts.num_ties),
        count(conflicts.num_none),
        count(conflicts.num_prompts),
    )
