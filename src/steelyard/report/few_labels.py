"""Values from few human and many judge labels on the page, next to those from the human labels alone."""

from collections.abc import Iterator, Mapping, Sequence

from steelyard.evaluation.measure import paired_titles
from steelyard.evaluation.measures.accuracy import baseline_word
from steelyard.evaluation.prediction_powered import PPISummary
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.evaluation.tables import (
    DASH,
    PERCENT,
    Grouped,
    Panel,
    Sentence,
    Table,
    category_word,
    count,
    decimal,
    decimal_interval,
    language_word,
    p_relation,
    percent,
    points,
    points_spread,
    reason,
    spread,
    table,
    word,
)
from steelyard.report.page import COLON, Section
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.prediction_powered import PPIEstimate


def few_labels_section(summaries: Mapping[str, EvaluationSummary], evidence: Sequence[str]) -> Section | None:
    """Return a panel for each evaluation on both kinds of labels; None without any."""
    powered = {
        name: summary.prediction_powered
        for name, summary in summaries.items()
        if summary.prediction_powered is not None
    }
    if not powered:
        return None
    panels = [
        Panel(
            name if len(summaries) > 1 else word("few_labels_values"),
            None,
            (Grouped("", _table(each)),),
            "note_few_labels",
        )
        for name, each in powered.items()
    ]
    sentences = [sentence for name, each in powered.items() for sentence in _sentences(name, each)]
    return Section("few_labels", tuple(evidence), tuple(panels), tuple(sentences))


def few_labels_sentences(name: str, summary: EvaluationSummary) -> tuple[Sentence, ...]:
    """Return the values from both kinds of labels in words; empty for an evaluation on one kind."""
    return () if summary.prediction_powered is None else tuple(_sentences(name, summary.prediction_powered))


def _sentences(name: str, powered: PPISummary) -> Iterator[Sentence]:
    ranked = powered.ranked()
    if ranked.estimate.value is None:
        yield Sentence("say_no_few_labels", {"name": name, "why": reason(ranked.estimate)})
        return
    values = {
        "name": name,
        "labelled": count(powered.num_labelled),
        "judged": count(powered.num_judged),
        "what": word(f"bench_{next(iter(powered.headline))}") if powered.headline else word("accuracy"),
        "value": percent(ranked.estimate.value),
        "interval": spread(ranked.estimate),
        "alone_value": percent(ranked.human_only.value),
        "alone": spread(ranked.human_only),
        "correlation": decimal(ranked.correlation, 2),
        "effective_labels": decimal(ranked.effective_labels, 2),
    }
    yield Sentence("say_few_labels", values)
    if ranked.needed is not None:
        needed = ranked.needed
        width = points(needed.width).lstrip("+")
        numbers = {"width": width, "without": count(needed.without_judge), "more": count(needed.more)}
        if needed.with_judge is None:
            yield Sentence("say_labels_needed_alone", numbers)
        else:
            yield Sentence("say_labels_needed", numbers | {"with": count(needed.with_judge)})
    if powered.population.differs:
        yield Sentence("say_other_population", {"p": p_relation(powered.population.smallest_p)})


def _table(powered: PPISummary) -> Table:
    has_needs = any(estimate.needed is not None for _, estimate in powered.values())
    columns = ("few_value", "few_both", "interval", "few_alone", "interval", "few_correlation", "few_effective_labels")
    rows: list[tuple[str, ...]] = []
    for title, estimate, form in _rows(powered):
        if estimate.human_only.value is not None:
            more = None if estimate.needed is None else estimate.needed.more
            rows.append((title, *_cells(estimate, form), *((count(more),) if has_needs else ())))
    return table((*columns, *(("few_needed",) if has_needs else ())), rows)


def _rows(powered: PPISummary) -> Iterator[tuple[str, PPIEstimate, str]]:
    yield from ((word(f"bench_{name}", name), estimate, "share") for name, estimate in powered.headline.items())
    for name in ("accuracy", "exact_match", "accuracy_micro", "exact_match_micro"):
        yield word(name), getattr(powered, name), "share"
    for name, estimate in powered.by_category.items() if len(powered.by_category) > 1 else ():
        yield category_word(name), estimate, "share"
    yield from ((language_word(name), estimate, "share") for name, estimate in powered.by_language.items())
    for name, estimate in powered.baselines.items():
        yield f"{word('few_lead')}{COLON}{baseline_word(name)}", estimate, "points"
    titles = paired_titles()
    yield from (
        (word(f"few_measure_{name}", titles.get(name, name)), estimate, "decimal")
        for name, estimate in powered.measures.items()
    )
    yield from ((f"{word('few_win_rate')} {name}", estimate, "share") for name, estimate in powered.win_rates.items())


def _cells(estimate: PPIEstimate, form: str) -> tuple[str, ...]:
    both, alone = (_pair(part, form) for part in (estimate.estimate, estimate.human_only))
    effective = decimal(estimate.effective_labels, 2) if estimate.weight else DASH
    return (*both, *alone, decimal(estimate.correlation, 2), effective)


def _pair(estimate: Estimate, form: str) -> tuple[str, str]:
    if form == "points":
        return points(estimate.value), points_spread(estimate)
    if form == "decimal":
        return decimal(estimate.value), decimal_interval(estimate)
    value, interval = PERCENT.cells(estimate)
    return value, interval
