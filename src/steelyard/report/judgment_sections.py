"""Resolved judgments on the page: conflicts, length and position bias (CHEEMS, figure 15), agreement, and authors."""

from collections.abc import Mapping, Sequence

from steelyard.evaluation.tables import (
    DECIMAL,
    PERCENT,
    Figure,
    Grouped,
    Mark,
    Panel,
    Sentence,
    Table,
    category_word,
    count,
    language_word,
    percent,
    table,
    word,
)
from steelyard.evaluation.vega import (
    ALERT,
    CHANCE,
    FAINT,
    Dot,
    Spec,
    framed,
    interval_rows,
    row_axis,
    share_axis,
)
from steelyard.ranking.author_strength import AuthorStrengths
from steelyard.ranking.conflicts import Conflicts, ConflictTables
from steelyard.ranking.judge_summary import AgreementSummary, JudgeQuality, LengthBias, PositionBias
from steelyard.ranking.resolution import ResolveSummary
from steelyard.report.page import Card


def conflict_panels(summary: ResolveSummary) -> tuple[Panel, ...]:
    """Return the conflicts of a run of ``resolve``; nothing without judgments."""
    if summary.conflicts.overall.ratio is None:
        return ()
    figure = conflict_figure(summary.conflicts)
    note = "note_conflicts" if figure else "note_conflict_table"
    return (Panel(word("conflict_ratio"), figure, conflict_tables(summary.conflicts), note),)


def kind_word(kind: str) -> str:
    """Return the word for a kind of judge (human, llm, model); another name is its own word."""
    return word(f"kind_{kind}", kind)


def conflict_card(name: str, summary: ResolveSummary) -> Card:
    """Return the conflict ratio and the numbers of judgments that it divides."""
    overall = summary.conflicts.overall
    below = f"{count(overall.num_conflicting)} / {count(overall.num_judgments)} {word('judgments')}"
    return Card(word("conflict_ratio"), percent(overall.ratio), below, "", name)


def conflict_sentences(summary: ResolveSummary) -> tuple[Sentence, ...]:
    """Return the conflict ratio and the shares of prompts and pairs in words."""
    overall = summary.conflicts.overall
    if overall.ratio is None and overall.num_none:
        return (Sentence("say_unparsed_judgments", {"number": count(overall.num_none)}),)
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
    whole = Grouped("overall", _conflict_table({word("overall"): conflicts.overall}))
    return (whole, *(Grouped(by, _conflict_table(groups)) for by, groups in _divisions(conflicts).items() if groups))


def conflict_figure(conflicts: ConflictTables) -> Figure | None:
    """Return conflict ratios as bars, among all judgments in front of among the strict ones, by every division.

    A division without a conflict has no bars, and conflicts without a division with bars no figure.
    """
    values: list[Spec] = []
    several = {
        by: groups
        for by, groups in _divisions(conflicts).items()
        if len(groups) > 1 and any(group.ratio for group in groups.values())
    }
    if not several:
        return None
    for by, groups in {"overall": {word("overall"): conflicts.overall}, **several}.items():
        division = "" if by == "overall" else f"{word(by)} · "
        for name, group in sorted(groups.items(), key=lambda pair: -(pair[1].ratio or 0.0)):
            if group.ratio is not None:
                label = f"{name}\n{division}n = {count(group.num_judgments)}"
                bars = {"ratio": group.ratio, "strict": group.ratio_of_strict}
                values.append({"row": label, **bars, "n": group.num_judgments})
    labels = [value["row"] for value in values]
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
        {"field": "n", "title": word("judged"), "format": ","},
    ]
    layers = [
        {
            "mark": {"type": "bar", "color": colour, "size": size, "cornerRadiusEnd": 2},
            "encoding": {"y": rows, "x": {"field": field, **across}, "tooltip": tips},
        }
        for field, colour, size in (("strict", FAINT, 14), ("ratio", ALERT, 7))
    ]
    legend = (Mark(word("conflict_ratio"), ALERT, "square"), Mark(word("of_strict"), FAINT, "square"))
    spec = {**framed(layers, 36 * max(1, len(labels))), "data": {"values": values}}
    return Figure("figure_conflicts", spec, legend)


def _divisions(conflicts: ConflictTables) -> dict[str, dict[str, Conflicts]]:
    return {
        "kind": {kind_word(kind): group for kind, group in conflicts.by_kind.items()},
        "judge": conflicts.by_judge,
        "category": {category_word(name): group for name, group in conflicts.by_category.items()},
        "subset": conflicts.by_subset,
        "language": {language_word(name): group for name, group in conflicts.by_language.items()},
    }


def _conflict_table(groups: Mapping[str, Conflicts]) -> Table:
    columns = (
        *("group", "conflict_ratio", "of_strict", "mean_per_prompt", "prompts_with_conflict", "pairs_ordered"),
        *("judged", "conflicting", "ties", "unparsed", "prompts"),
    )
    rows = [
        (
            name,
            percent(group.ratio),
            percent(group.ratio_of_strict),
            percent(group.ratio_mean_per_prompt),
            percent(group.share_of_prompts),
            percent(group.share_of_pairs_ordered),
            count(group.num_judgments),
            count(group.num_conflicting),
            count(group.num_ties),
            count(group.num_none),
            count(group.num_prompts),
        )
        for name, group in groups.items()
    ]
    return table(columns, rows)


def bias_panels(kinds: Mapping[str, JudgeQuality]) -> list[Panel]:
    """Return length and position bias of each kind, the panels of figure 15, where there are values to compare.

    A bias at one difference of lengths, or at one pair of places, is a row of the table of preferences.
    """
    panels = []
    for name, quality in kinds.items():
        if len(quality.length.bins) > 1:
            title = f"{kind_word(name)} · {word('length_bias')}"
            panels.append(Panel(title, length_figure(quality.length), (), "note_length_bias"))
        if len(quality.position.pairs) > 1:
            title = f"{kind_word(name)} · {word('position_bias')}"
            panels.append(Panel(title, position_figure(quality.position), (), "note_position_bias"))
    return panels


def length_figure(length: LengthBias) -> Figure:
    """Return how often the longer response is preferred, by how much longer it is."""
    dots = [Dot(word("all"), "longer", length.longer)]
    for share in length.bins:
        row = f"{share.above * 100:.0f} {word('to')} {share.up_to * 100:.0f}%"
        dots.append(Dot(row, "longer", share))
    return Figure("figure_length_bias", _preference_rows(dots, "longer_preferred", row="length_difference"))


def position_figure(position: PositionBias) -> Figure:
    """Return how often the earlier shown response is preferred, overall and by the two places."""
    dots = [Dot(word("all"), "earlier", position.earlier)]
    for pair in position.pairs:
        places = f"{pair.earlier} | {pair.later} {word('of')} {pair.num_shown}"
        dots.append(Dot(places if pair.num_shown is not None else word("more_shown", "more shown"), "earlier", pair))
    return Figure("figure_position_bias", _preference_rows(dots, "earlier_preferred", row="places"))


def _preference_rows(dots: list[Dot], axis: str, *, row: str) -> Spec:
    """Return rows of shares with intervals next to the line of chance."""
    channel = {"axis": share_axis(axis), "scale": {"zero": False}}
    return interval_rows(dots, channel, row=row, form=".1%", line=CHANCE, height=26)


def author_figure(authors: AuthorStrengths) -> Figure:
    """Return the strength of each author with its interval, the strongest first."""
    dots = [Dot(strength.author, "strength", strength) for strength in authors.strengths]
    axis = {"title": word("strength", "strength (log odds)"), "tickCount": 6}
    return Figure(
        "figure_authors",
        _rows(dots, axis, row="author", form=".2f", line=0.0),
    )


def judge_table(judges: Mapping[str, JudgeQuality]) -> Table:
    """Return a row for each judge or kind: judgments, conflicts, agreement with the others' ranking, both biases."""
    columns = (
        *("judge", "judged", "conflict_ratio", "interval", "agreement_with_ranking_of_others", "coverage_of_others"),
        *("coverage_of_ranking", "earlier_preferred", "interval", "longer_preferred", "interval"),
    )
    rows = [
        (
            name,
            count(quality.num_judgments),
            *PERCENT.cells(quality.conflict_ratio),
            percent(quality.others.agreement.value),
            percent(quality.others.coverage.value),
            percent(quality.ranking.coverage.value),
            *PERCENT.cells(quality.position.earlier),
            *PERCENT.cells(quality.length.longer),
        )
        for name, quality in judges.items()
    ]
    return table(columns, rows)


def agreement_table(agreement: AgreementSummary, *, most: int | None = None) -> Table:
    """Return a row for every two kinds, and for the ``most`` that share most pairs of every two judges."""
    columns = ("two_judges", "agreement", "interval", "of_strict", "kappa", "interval", "pairs")
    rows = [
        (
            " · ".join(pair.judges or map(kind_word, pair.kinds or ())),
            *PERCENT.cells(pair.agreement),
            percent(pair.agreement_of_strict.value),
            *DECIMAL.cells(pair.kappa),
            count(pair.agreement.n),
        )
        for pair in (*agreement.kinds, *agreement.judges[:most])
    ]
    return table(columns, rows)


def _rows(dots: Sequence[Dot], axis: Spec, *, row: str, form: str, line: float) -> Spec:
    x: Spec = {"axis": axis, "scale": {"zero": False}}
    return interval_rows(dots, x, row=row, form=form, line=line, height=26)
