"""Resolved judgments on the page: conflicts, length and position bias (CHEEMS, figure 15), agreement, and authors."""

from collections.abc import Iterator, Mapping, Sequence

from steelyard.evaluation.marks import (
    ALERT,
    CHANCE,
    FAINT,
    STRONG,
    Dot,
    Spec,
    framed,
    records,
    row_axis,
    share_axis,
    tooltip,
    vertical_line,
)
from steelyard.evaluation.tables import (
    Figure,
    Grouped,
    Mark,
    Panel,
    Sentence,
    Table,
    count,
    decimal,
    percent,
    spread,
    table,
    word,
)
from steelyard.ranking.author_strength import AuthorStrengths
from steelyard.ranking.conflicts import Conflicts, ConflictTables
from steelyard.ranking.judge_summary import AgreementSummary, JudgeQuality, LengthBias, PlacedPair, PositionBias
from steelyard.ranking.resolution import ResolveSummary
from steelyard.report.page import Card, Section
from steelyard.statistics.intervals import Estimate

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


def judges_section(summaries: Mapping[str, ResolveSummary], evidence: Sequence[str]) -> Section:
    """Return biases by kind, a table of all judges, their agreement, and the authors, for each run of ``resolve``."""
    panels: list[Panel] = []
    for name, summary in summaries.items():
        prefix = f"{name} · " if len(summaries) > 1 else ""
        panels += [panel._replace(title=prefix + panel.title) for panel in _panels(summary)]
    return Section("judges", tuple(evidence), tuple(panels))


def _panels(summary: ResolveSummary) -> list[Panel]:
    panels: list[Panel] = []
    if summary.judges is not None:
        panels += bias_panels(summary.judges.by_kind)
    if summary.judges is not None and summary.judges.by_judge:
        tables = (
            Grouped("kind", judge_table(summary.judges.by_kind)),
            Grouped("judge", judge_table(summary.judges.by_judge)),
        )
        panels.append(Panel(word("judges_table"), None, tables))
    if summary.agreement is not None and (summary.agreement.judges or summary.agreement.kinds):
        panels.append(Panel(word("agreement"), None, (Grouped("", agreement_table(summary.agreement)),)))
    if summary.authors and summary.authors.strengths:
        panels.append(Panel(word("authors"), author_figure(summary.authors), (), "note_authors"))
    return panels


def bias_panels(kinds: Mapping[str, JudgeQuality]) -> list[Panel]:
    """Return length and position bias of each kind, the panels of figure 15; one without a verdict is left out."""
    panels = []
    for name, quality in kinds.items():
        if quality.length.longer.n:
            title = f"{name} · {word('length_bias')}"
            panels.append(Panel(title, length_figure(quality.length), (), "note_length_bias"))
        if quality.position.earlier.n:
            title = f"{name} · {word('position_bias')}"
            panels.append(Panel(title, position_figure(quality.position), (), "note_position_bias"))
    return panels


def length_figure(length: LengthBias) -> Figure:
    """Return how often the longer response is preferred, by how much longer it is."""
    dots = [Dot(word("all"), "longer", length.longer)]
    dots += [Dot(percent_range(share.above, share.up_to), "longer", share) for share in length.bins]
    return Figure("figure_length_bias", _shares(dots, "longer_preferred", "length_difference"))


def position_figure(position: PositionBias) -> Figure:
    """Return how often the earlier shown response is preferred, overall and by the two places."""
    dots = [Dot(word("all"), "earlier", position.earlier)]
    dots += [Dot(_places(pair), "earlier", pair) for pair in position.pairs]
    return Figure("figure_position_bias", _shares(dots, "earlier_preferred", "places"))


def author_figure(authors: AuthorStrengths) -> Figure:
    """Return the strength of each author with its interval, the strongest first."""
    dots = [Dot(strength.author, "strength", strength) for strength in authors.strengths]
    axis = {"title": word("strength", "strength (log odds)"), "tickCount": 6}
    return Figure("figure_authors", _intervals(dots, axis, middle=0.0, form=".2f", row="author"))


def judge_table(judges: Mapping[str, JudgeQuality]) -> Table:
    """Return a row for each judge or kind: judgments, conflicts, agreement with others, and both biases."""
    columns = ("judge", "judgments", "conflict_ratio", "interval", "agreement_with_others", "coverage_of_others")
    columns = (*columns, "coverage_of_ranking", "earlier_preferred", "interval", "longer_preferred", "interval")
    rows = [
        (
            name,
            count(quality.num_judgments),
            percent(quality.conflict_ratio.value),
            spread(quality.conflict_ratio),
            percent(quality.others.agreement.value),
            percent(quality.others.coverage.value),
            percent(quality.ranking.coverage.value),
            percent(quality.position.earlier.value),
            spread(quality.position.earlier),
            percent(quality.length.longer.value),
            spread(quality.length.longer),
        )
        for name, quality in judges.items()
    ]
    return table(columns, rows)


def agreement_table(agreement: AgreementSummary) -> Table:
    """Return a row for every two judges and kinds: agreement, also of strict verdicts, kappa, and pairs."""
    columns = ("raters", "agreement", "interval", "of_strict", "kappa", "interval", "pairs")
    rows = [
        (
            " · ".join(pair.judges or pair.kinds or ()),
            percent(pair.agreement.value),
            spread(pair.agreement),
            percent(pair.agreement_of_strict.value),
            decimal(pair.kappa.value),
            _ends(pair.kappa),
            count(pair.agreement.n),
        )
        for pair in (*agreement.judges, *agreement.kinds)
    ]
    return table(columns, rows)


def percent_range(above: float, up_to: float) -> str:
    """Return ``5 to 10%``."""
    return f"{above * 100:.0f} {word('to')} {up_to * 100:.0f}%"


def _places(pair: PlacedPair) -> str:
    if pair.num_shown is None:
        return word("more_shown", "more shown")
    return f"{pair.earlier} | {pair.later} {word('of')} {pair.num_shown}"


def _ends(estimate: Estimate) -> str:
    return f"{decimal(estimate.low)} … {decimal(estimate.high)}" if estimate.low is not None else decimal(None)


def _shares(dots: Sequence[Dot], title: str, row: str) -> Spec:
    return _intervals(dots, share_axis(title), middle=CHANCE, form=".1%", row=row)


def _intervals(dots: Sequence[Dot], axis: Spec, *, middle: float, form: str, row: str) -> Spec:
    """Return values with intervals in rows, as Vega-Lite: a dashed line at the middle, a rule and a point a row."""
    values = records(dots)
    rows = {
        "field": "row",
        "type": "nominal",
        "sort": [value["row"] for value in values],
        "axis": row_axis(num_lines=1),
    }
    across = {"type": "quantitative", "scale": {"zero": False}, "axis": axis}
    shown = {"y": rows, "tooltip": tooltip(row, form=form)}
    rule = {"type": "rule", "strokeWidth": 2, "color": STRONG, "opacity": 0.6}
    point = {"type": "point", "filled": True, "size": 70, "color": STRONG, "opacity": 1}
    layers = [
        vertical_line(middle),
        {"mark": rule, "encoding": {**shown, "x": {"field": "low", **across}, "x2": {"field": "high"}}},
        {"mark": point, "encoding": {**shown, "x": {"field": "value", **across}}},
    ]
    return {**framed(layers, 26 * max(1, len(values))), "data": {"values": values}}
