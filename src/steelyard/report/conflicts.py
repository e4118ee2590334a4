"""The conflict report: how far judgments contradict each other, overall and by judge, kind, category and language."""

from collections.abc import Iterator
from typing import NamedTuple

from steelyard.evaluation.marks import ALERT, FAINT, Spec, framed, row_axis, share_axis
from steelyard.evaluation.tables import Figure, Mark, Table, count, percent, table, word
from steelyard.report.summary_readers import Conflict, Conflicts

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


class Grouped(NamedTuple):
    """One way to divide the judgments: ``by`` is a word (``judge``, ``kind`` …), and its table."""

    by: str
    table: Table


def conflict_tables(conflicts: Conflicts) -> tuple[Grouped, ...]:
    """The table of the whole, and one for each division that has rows."""
    whole = Grouped("overall", table(_COLUMNS, [_row(word("overall"), conflicts.overall)]))
    parts = [
        Grouped(by, table(_COLUMNS, [_row(name, own) for name, own in groups.items()]))
        for by, groups in _divisions(conflicts)
        if groups
    ]
    return (whole, *parts)


def conflict_figure(conflicts: Conflicts) -> Figure:
    """Conflict ratio as bars: conflicting judgments in front of all judgments, by every division; n under each name."""
    values: list[Spec] = []
    labels: list[str] = []
    for by, groups in (("overall", {word("overall"): conflicts.overall}), *_divisions(conflicts)):
        if by == "overall" or len(groups) > 1:
            for name, own in sorted(groups.items(), key=lambda pair: -(pair[1].ratio or 0.0)):
                if own.ratio is not None:
                    labels.append(
                        f"{name}\n{'' if by == 'overall' else word(by) + ' · '}n = {count(own.num_judgments)}"
                    )
                    values.append(_bar(labels[-1], own))
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


def _divisions(conflicts: Conflicts) -> Iterator[tuple[str, dict[str, Conflict]]]:
    yield "kind", conflicts.by_kind
    yield "judge", conflicts.by_judge
    yield "category", conflicts.by_category
    yield "subset", conflicts.by_subset
    yield "language", conflicts.by_language


def _bar(label: str, own: Conflict) -> Spec:
    return {"row": label, "ratio": own.ratio, "strict": own.ratio_of_strict, "n": own.num_judgments}


def _bars(colour: str, size: int, encoding: Spec) -> Spec:
    return {"mark": {"type": "bar", "color": colour, "size": size, "cornerRadiusEnd": 2}, "encoding": encoding}


def _row(name: str, own: Conflict) -> tuple[str, ...]:
    return (
        name,
        percent(own.ratio),
        percent(own.ratio_of_strict),
        percent(own.ratio_mean_per_prompt),
        percent(own.share_of_prompts),
        percent(own.share_of_pairs_ordered),
        count(own.num_judgments),
        count(own.num_conflicting),
        count(own.num_ties),
        count(own.num_none),
        count(own.num_prompts),
    )
