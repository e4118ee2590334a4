"""Evaluations on the page: cards, the result in words, accuracy with baselines and groups, and all other measures."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import asdict

from steelyard.evaluation.measure import GroupColumn, MeasureRow, measures
from steelyard.evaluation.measures.accuracy import (
    Baseline,
    Named,
    baseline_word,
    bench_table,
    group_figure,
    group_table,
    groups_of,
    overview_figure,
    overview_table,
    shared_table,
)
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.evaluation.tables import (
    DASH,
    Grouped,
    Panel,
    Sentence,
    Table,
    count,
    group_word,
    isolate,
    language_word,
    percent,
    points,
    points_spread,
    reason,
    spread,
    table,
    with_level,
    word,
)
from steelyard.evaluation.tie_policies import policy_table, weight_table
from steelyard.evaluation.vega import CHANCE
from steelyard.report.bench_texts import missing_words
from steelyard.report.page import COMMA, Card, Section
from steelyard.statistics.intervals import Estimate

_READS_THE_ORDER = "first"  # the baseline that takes the answer that the file lists first


def accuracy_section(compared: Sequence[Named], evidence: Sequence[str]) -> Section:
    """Return the models of each bench with its baselines, its parts, categories, and languages if several."""
    benches: dict[str, list[Named]] = {}
    for model in compared:
        benches.setdefault(model.bench, []).append(model)
    panels: list[Panel] = []
    for bench, models in benches.items():
        numbers = overview_table(models[0]) if len(models) == 1 else shared_table(models)
        name = models[0].name if len(models) == 1 else ""
        title = " · ".join(part for part in (name, bench if not name or len(benches) > 1 else "") if part)
        panels.append(Panel(title, overview_figure(models), (Grouped("", numbers),), "note_overview"))
        parts = [(model.name, table) for model in models if (table := bench_table(model.headline)) is not None]
        if parts:
            grouped = tuple(Grouped(name if len(models) > 1 else "", table) for name, table in parts)
            panels.append(Panel(word("bench_parts"), None, grouped))
    for group in ("category", "language"):
        if group == "category" or any(len(model.headline.by_language or {}) > 1 for model in compared):
            panels += _group_panels(benches, group)
    return Section("accuracy", tuple(evidence), tuple(panels))


def _group_panels(benches: Mapping[str, Sequence[Named]], group: str) -> list[Panel]:
    """Return a panel for each bench, with a table of each of its evaluations."""
    shown = {
        bench: with_groups
        for bench, models in benches.items()
        if (with_groups := [model for model in models if groups_of(model.headline, group)])
    }
    panels = []
    for bench, models in shown.items():
        title = word(f"by_{group}") + (f" · {bench}" if len(shown) > 1 else "")
        tables = []
        for model in models:
            baselines = model.headline.baselines.items() if group == "category" else ()
            by_baseline = {name: baseline.by_category for name, baseline in baselines}
            numbers = group_table(group, groups_of(model.headline, group), by_baseline)
            tables.append(Grouped(model.name if len(models) > 1 else "", numbers))
        panels.append(Panel(title, group_figure(models, group), tuple(tables), "note_groups"))
    return panels


def evaluation_cards(name: str, summary: EvaluationSummary) -> tuple[Card, ...]:
    """Return the benchmark's headline if it has one, accuracy, exact match, and the lead over the best baseline.

    Where every prompt has one pair, exact match is accuracy by definition, and has no card. With few human and many
    judge labels, the first card and the lead are from both kinds, and the others are named as from people alone.
    """
    powered = summary.prediction_powered
    accuracy, exact = summary.accuracy, None if _is_accuracy(summary) else summary.exact_match
    values = (
        ("bench_overall", summary.overall, "prompt"),
        ("accuracy", accuracy, "pair"),
        ("exact_match", exact, "prompt"),
    )
    by_people = "" if powered is None else f"{COMMA}{word('card_few_alone')}"
    cards = [
        Card(f"{word(title)}{by_people}", percent(estimate.value), _interval_and_n(estimate, unit), "", name)
        for title, estimate, unit in values
        if estimate is not None
    ]
    if powered is not None:
        both = powered.ranked().estimate
        title = f"{word('accuracy' if summary.overall is None else 'bench_overall')}{COMMA}{word('card_few_both')}"
        cards.insert(0, Card(title, percent(both.value), with_level(both), "", name))
    best, difference = _lead(summary)
    if difference is not None:
        below = f"{word('points')}\n{word('interval_95')} {points_spread(difference)}"
        title = f"{_lead_word(summary)}{'' if powered is None else COMMA + word('card_few_both')}"
        cards.append(Card(title, points(difference.value), below, tone_of(difference), baseline_word(best)))
    return tuple(cards)


def lead_line(summary: EvaluationSummary) -> str:
    """Return the lead over the best baseline in one line; empty without a baseline."""
    _, difference = _lead(summary)
    if difference is None:
        return ""
    interval = f"{word('interval_95')} {points_spread(difference)}"
    return f"{_lead_word(summary)} {points(difference.value)} {word('points')}{COMMA}{interval}"


def headline_estimate(summary: EvaluationSummary) -> Estimate:
    """Return the value by which models are ranked: from both kinds of labels if there are two."""
    powered = summary.prediction_powered
    return summary.overall or summary.accuracy if powered is None else powered.ranked().estimate


def _lead(summary: EvaluationSummary) -> tuple[str, Estimate | None]:
    """Return the best baseline and the model's lead over it, from both kinds of labels if there are two."""
    best = best_baseline(summary.model, summary.baselines)
    if best is None:
        return "", None
    powered = summary.prediction_powered
    difference = summary.baselines[best].difference if powered is None else powered.baselines[best].estimate
    return best, difference if difference.value is not None else None


def _lead_word(summary: EvaluationSummary) -> str:
    """Return the title of the lead over the best baseline; for a baseline, over the best of the others."""
    return word("lead_over_best_other" if summary.model in summary.baselines else "lead_over_best")


def _is_accuracy(summary: EvaluationSummary) -> bool:
    """Return whether exact match is accuracy by definition: every prompt has one pair."""
    accuracy, exact = summary.accuracy, summary.exact_match
    return exact is not None and (exact.n, exact.value) == (accuracy.n, accuracy.value)


def best_baseline(model: str, baselines: Mapping[str, Baseline]) -> str | None:
    """Return the baseline with the highest accuracy that is not the ``model`` itself, None where none was measured.

    The baseline ``first`` reads the order in which the file lists the answers, which no model sees. It shows that the
    file lists better answers first (`say_order_leak`) and is not compared with a model.
    """
    measured = {
        name: baseline.accuracy.value
        for name, baseline in baselines.items()
        if baseline.accuracy.value is not None and name not in (_READS_THE_ORDER, model)
    }
    return max(measured, key=lambda name: measured[name]) if measured else None


def tone_of(difference: Estimate) -> str:
    """Return ``good`` if the whole interval lies above zero, ``bad`` if below, empty where it includes zero."""
    if difference.low is None or difference.high is None:
        return ""
    return "good" if difference.low > 0 else "bad" if difference.high < 0 else ""


def evaluation_sentences(name: str, summary: EvaluationSummary) -> tuple[Sentence, ...]:
    """Return the result of an evaluation in words; without a headline (most pairs unscored) only that."""
    if summary.accuracy.value is None:
        return _without_headline(name, summary)
    sentences = [*_value_sentences(name, summary), *_outcomes(summary), *_coverage_sentences(summary)]
    best = best_baseline(summary.model, summary.baselines)
    if best is not None and summary.model in summary.baselines:
        sentences.append(Sentence("say_is_baseline", {"model": name, "baseline": baseline_word(summary.model)}))
    if best is not None:
        sentences.append(_lead_sentence(best, summary))
    first = summary.baselines.get(_READS_THE_ORDER)
    if first is not None and first.accuracy.low is not None and first.accuracy.low > CHANCE:
        sentences.append(Sentence("say_order_leak", {"accuracy": percent(first.accuracy.value)}))
    if summary.missing:
        sentences.append(Sentence("say_missing", {"missing": missing_words(summary.missing)}))
    if summary.tied.num_pairs:
        sentences.append(
            Sentence("say_tied", {"pairs": count(summary.tied.num_pairs), "share": percent(summary.tied.share)})
        )
    sentences += [each for measure, value in summary.measured() for each in measure.sentences(name, value)]
    return tuple(sentences)


def _value_sentences(name: str, summary: EvaluationSummary) -> Iterator[Sentence]:
    """Yield the benchmark's headline, accuracy and exact match; of two kinds of labels, those from people alone."""
    gaps, num_categories = {"model": name, **_gaps(summary.accuracy)}, len(summary.by_category)
    if summary.overall is not None:
        yield Sentence("say_overall", {"model": name, **_gaps(summary.overall)})
    if summary.prediction_powered is not None:
        yield Sentence("say_accuracy_of_people", gaps | {"categories": count(num_categories)})
    elif num_categories > 1:
        yield Sentence("say_accuracy", gaps | {"categories": count(num_categories)})
    else:
        yield Sentence("say_accuracy_of_all", gaps)
    if summary.exact_match is not None and summary.exact_match.value is not None and not _is_accuracy(summary):
        yield Sentence("say_exact_match", _gaps(summary.exact_match))


def _coverage_sentences(summary: EvaluationSummary) -> list[Sentence]:
    """Return the responses that were cut or have no score, by language, and the bounds of accuracy."""
    sentences: list[Sentence] = []
    coverage = summary.coverage
    for key, name in (("say_cut", "num_cut"), ("say_unscored", "num_unscored")):
        number = 0 if coverage is None else getattr(coverage, name)
        if coverage is None or not number:
            continue
        shares = {
            language: getattr(counts, name) / counts.num_responses for language, counts in coverage.by_language.items()
        }
        highest = sorted(shares.items(), key=lambda item: -item[1])
        values = {
            "number": count(number),
            "total": count(coverage.num_responses),
            "share": percent(number / coverage.num_responses),
            "languages": COMMA.join(
                f"{language_word(language)} {percent(share)}" for language, share in highest if share
            ),
        }
        sentences.append(Sentence(key, values))
    return [*sentences, *_bounds_sentence(summary)]


def _bounds_sentence(summary: EvaluationSummary) -> Sequence[Sentence]:
    ends = None if summary.bounds is None else summary.bounds.accuracy
    if ends is None or ends.low is None:
        return ()
    return (Sentence("say_bounds", {"low": percent(ends.low), "high": percent(ends.high)}),)


def _outcomes(summary: EvaluationSummary) -> Sequence[Sentence]:
    """Return the verdicts of a model that compares answers, by outcome; nothing for a model that gives scores."""
    if summary.outcomes is None:
        return ()
    outcomes = asdict(summary.outcomes)
    pairs, _ = outcomes.pop("num_pairs"), outcomes.pop("by_language")
    listed = COMMA.join(
        f"{word(f'rule_{name}', name.replace('_', ' '))} {number:,}" for name, number in outcomes.items() if number
    )
    return (Sentence("say_outcomes", {"pairs": count(pairs), "outcomes": listed}),)


def _without_headline(name: str, summary: EvaluationSummary) -> tuple[Sentence, ...]:
    if summary.outcomes is not None and summary.policies:
        low, high = (percent(summary.policies[ties].accuracy.value) for ties in ("wrong", "right"))
        return (Sentence("say_no_verdict_headline", {"model": name, "low": low, "high": high}), *_outcomes(summary))
    reasons = summary.unscored.by_reason if summary.unscored else {}
    values = {
        "model": name,
        "number": count(summary.unscored.num_responses if summary.unscored else None),
        "reasons": COMMA.join(f"{reason} {number:,}" for reason, number in reasons.items()) or DASH,
    }
    return (Sentence("say_no_headline", values), *_bounds_sentence(summary))


def _lead_sentence(name: str, summary: EvaluationSummary) -> Sentence:
    """Return the lead over a baseline; with two kinds of labels that from both, and that from people alone."""
    baseline, powered = summary.baselines[name], summary.prediction_powered
    difference = baseline.difference
    if powered is not None:
        both, alone = powered.baselines[name].estimate, powered.baselines[name].human_only
        numbers = {"points": points(both.value), "interval": points_spread(both)}
        numbers |= {"alone": points(alone.value), "alone_interval": points_spread(alone)}
        return Sentence("say_few_lead", {"baseline": baseline_word(name)} | numbers)
    values = {
        "baseline": baseline_word(name),
        "accuracy": percent(baseline.accuracy.value),
        "points": points(difference.value),
        "interval": points_spread(difference),
    }
    if difference.low is None or difference.high is None:
        return Sentence("say_best_baseline", values)
    return Sentence({"good": "say_ahead", "bad": "say_behind", "": "say_undecided"}[tone_of(difference)], values)


def _gaps(estimate: Estimate) -> dict[str, str]:
    return {"value": percent(estimate.value), "interval": spread(estimate), "n": count(estimate.n)}


def _interval_and_n(estimate: Estimate, unit: str) -> str:
    interval = "" if estimate.low is None else f"{with_level(estimate)}\n"
    noun = word(f"card_{unit}" if estimate.n == 1 else f"card_{unit}s")
    return f"{interval}n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{count(estimate.n)}\N{NO-BREAK SPACE}{noun}"


def measures_section(evaluations: Mapping[str, EvaluationSummary], evidence: Sequence[str]) -> Section:
    """Return the tables and figures of the models, those of equal columns in one panel, and the panels of all models.

    With several models the section begins with the lead of each over every baseline.
    """
    panels = [panel for summary in evaluations.values() for panel in _panels(summary)]
    if len(evaluations) > 1:
        leads = tuple(
            Grouped(name, overview_table(Named(name, summary)))
            for name, summary in evaluations.items()
            if summary.baselines
        )
        panels = [Panel(word("leads"), None, leads)] if leads else []
        panels += _shared_panels({name: _panels(summary) for name, summary in evaluations.items()})
    for name, measure in measures().items():
        summaries = {model: getattr(summary.measures, name) for model, summary in evaluations.items()}
        shared = measure.shared_panel({model: value for model, value in summaries.items() if value is not None})
        panels += [] if shared is None else [shared]
    return Section("more_measures", tuple(evidence), tuple(panels))


def _shared_panels(by_model: Mapping[str, Sequence[Panel]]) -> list[Panel]:
    """Join the panels of one title that have one table of the same columns and no figure; others name their model."""
    joined: dict[object, Panel] = {}
    for name, panels in by_model.items():
        for panel in panels:
            if panel.figure is None and len(panel.tables) == 1:
                key = (panel.title, panel.tables[0].table.columns)
                earlier = joined.get(key, panel._replace(tables=()))
                joined[key] = earlier._replace(tables=(*earlier.tables, Grouped(name, panel.tables[0].table)))
            else:
                joined[name, len(joined)] = panel._replace(title=f"{isolate(name)} · {panel.title}")
    return list(joined.values())


def _panels(summary: EvaluationSummary) -> list[Panel]:
    rows = [row for measure, value in summary.measured() for row in measure.rows(value)]
    columns = [column for measure, value in summary.measured() if (column := measure.group_column(value)) is not None]
    policies = None if summary.policies is None else policy_table(summary.policies)
    tables = {
        "other_measures": {"": measure_table(rows)},
        "choices_by_group": {
            "category": group_means_table("category", columns, [column.means.by_category for column in columns]),
            "language": group_means_table("language", columns, [column.means.by_language for column in columns]),
        },
        "tie_policies": {"": policies},
        "weights": {"": weight_table(summary.weights)},
    }
    panels = [
        Panel(word(title), None, grouped)
        for title, group in tables.items()
        if (grouped := tuple(Grouped(by, part) for by, part in group.items() if part is not None))
    ]
    return [*panels, *(panel for measure, value in summary.measured() for panel in measure.panels(value))]


def measure_table(rows: Sequence[MeasureRow]) -> Table | None:
    """Return a row a measure: the mean over categories and over everything, with intervals; null if all are empty."""
    filled = [row for row in map(_cells, rows) if row[1] != DASH or row[3] != DASH]
    columns = ("measure", "mean_of_categories", "interval", "mean_of_all", "interval", "at_random", "n")
    return table(columns, filled) if filled else None


def _cells(row: MeasureRow) -> tuple[str, ...]:
    value, interval = row.form.cells(row.micro)
    if row.micro is not None and row.micro.value is None:
        value = reason(row.micro)
    chance = DASH if row.chance is None else row.form.value(row.chance.value)
    n = count(None if row.micro is None else row.micro.n)
    return (row.title, *row.form.cells(row.macro), value, interval, chance, n)


def group_means_table(
    by: str, columns: Sequence[GroupColumn], groups: Sequence[Mapping[str, Estimate]]
) -> Table | None:
    """Return the means of each ``by``, category or language, with the number of prompts. Null below two groups.

    ``groups`` has the means of each column by the group's name.
    """
    names = sorted({name for group in groups for name in group})
    rows = [
        (
            group_word(by, name),
            *(
                cell
                for column, group in zip(columns, groups, strict=True)
                for cell in column.form.cells(group.get(name))
            ),
            count(max(group[name].n for group in groups if name in group)),
        )
        for name in names
    ]
    titles = [title for column in columns for title in (column.title, "interval")]
    return table(("group", *titles, "prompts"), rows) if len(rows) > 1 else None
