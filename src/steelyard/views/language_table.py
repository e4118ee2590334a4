"""Models by language: a row a model, agreement with English, means by kind and group, translations, and slips.

The stage is that of `languages` with several runs, or with a published table, whose numbers are shown as printed.
"""

from collections.abc import Callable, Iterator, Mapping

from steelyard.core.types import JsonObject
from steelyard.evaluation.language_table import LEVELS, LanguageTable, TranslationComparison
from steelyard.evaluation.languages import LanguageMean
from steelyard.evaluation.tables import (
    DASH,
    DECIMAL,
    PERCENT,
    POINTS,
    Figure,
    Form,
    Grouped,
    Mark,
    Panel,
    Sentence,
    Table,
    count,
    decimal,
    decimal_interval,
    isolate,
    language_title,
    percent,
    points,
    points_spread,
    spread,
    table,
    word,
)
from steelyard.evaluation.vega import ALERT, FAINT, MODEL_COLOURS, MUTED, Dot, interval_rows, share_axis
from steelyard.report.bars import stacked_bars
from steelyard.report.bench_texts import missing_panels
from steelyard.report.language_figures import HeatCell, ModelPoint, english_and_mean, heat_map
from steelyard.report.page import COMMA, first_names
from steelyard.statistics.correlation import FEWEST_MODELS
from steelyard.statistics.intervals import Estimate
from steelyard.views.languages import chosen_baseline, group_title, missing_parts
from steelyard.views.records import TableHeadline, flat_row, headline, highest_models, isolated_names
from steelyard.views.view import HeadlineRule, PageSources, StageRun, View, report_step

_MOST_NAMED = 6
_MOST_EDGES = 3
"""The most languages with one value that a cell names."""


def _panels(run: StageRun[LanguageTable], sources: PageSources) -> Iterator[Panel]:
    """Yield the models, their values, drops, agreement, kinds, languages and groups, and what is missing or wrong."""
    summary = run.summary
    yield from _model_panels(summary)
    yield from _correlation_panels(summary)
    yield from _kind_panels(summary)
    yield from _column_panels(summary)
    yield from _section_panels(summary)
    yield from _kappa_panels(summary)
    yield from _group_panels(summary)
    if summary.translation is not None:
        yield from _translation_panels(summary.translation)
    yield from _missing_panels(summary)


def _model_panels(summary: LanguageTable) -> Iterator[Panel]:
    """Yield a row for each model, and its value in each column: those of a published table as printed."""
    if summary.of != "sections":
        yield Panel(
            f"{word('language_models')} · {summary.bench}", None, (Grouped("", _model_table(summary)),),
            "note_published_table" if summary.is_published else "note_language_table",
        )  # fmt: skip
    title_of = _column_title(summary)
    cells = [
        HeatCell(row.model, title_of(name), estimate.value)
        for row in summary.models
        for name, estimate in row.values.items()
    ]
    is_change = summary.of == "sections"
    form = "+.1%" if is_change else ".1%"
    about = "figure_changes_by_section" if is_change else f"figure_values_by_{_column_word(summary)}"
    figure = heat_map(about, cells, columns=_column_word(summary), form=form)
    names = list(summary.columns)
    edges = () if is_change else ("best_language", "worst_language") if summary.of == "languages" else ()
    has_kinds = any(row.kind is not None for row in summary.models)
    rows = [
        (
            row.model,
            *((_kind_word(row.kind),) if has_kinds else ()),
            *((first_names(each, _MOST_EDGES) or DASH for each in (row.best, row.worst)) if edges else ()),
            *(_value(row.values[name].value, summary) for name in names),
        )
        for row in summary.models
    ]
    title = word("changes_by_section") if is_change else word(f"values_by_{_column_word(summary)}")
    numbers = Table((*map(word, ("scorer", *(("model_kind",) if has_kinds else ()), *edges)), *names), tuple(rows))
    note = "note_changes_by_section" if is_change else ""
    yield Panel(title, figure, (Grouped("", numbers),), note)


def _model_table(summary: LanguageTable) -> Table:
    """Return English, mean, variance and drop of each model; columns without a value in any row are left out."""
    has_english = any(row.english is not None for row in summary.models)
    has_variance = any(row.variance is not None for row in summary.models)
    form = Form(lambda value: _value(value, summary), spread)
    # A mean of whole numbers is none; a printed one is shown with its digits.
    has_digits = not summary.is_published or summary.decimals > 0
    mean_form = form if has_digits else Form(lambda value: _value(value, summary, decimals=1), spread)
    rows = [
        (
            row.model,
            *(_cells(form, row.english, summary)[:1] if has_english else ()),
            *_cells(mean_form, row.mean, summary),
            *((decimal(row.variance, 1),) if has_variance else ()),
            *(_cells(POINTS, None if row.drop is None else row.drop.absolute, summary) if has_english else ()),
        )
        for row in summary.models
    ]
    columns = (
        "scorer",
        *((_baseline_word(summary),) if has_english else ()),
        *_heads(_mean_word(summary), summary),
        *(("variance_points",) if has_variance else ()),
        *(_heads("drop", summary) if has_english else ()),
    )
    return table(columns, rows)


def _mean_word(summary: LanguageTable) -> str:
    return "mean_over_languages" if summary.of == "languages" else "mean_over_subsets"


def _value(value: float | None, summary: LanguageTable, *, decimals: int | None = None) -> str:
    """Format a value: of evaluations as a percentage, of a published table with its digits, changes with a sign."""
    if value is None or not summary.is_published:
        return percent(value)
    return decimal(100 * value, summary.decimals if decimals is None else decimals)


def _column_title(summary: LanguageTable) -> Callable[[str], str]:
    """Return what names a column in figures and rows: a language by its name."""
    return language_title if summary.of == "languages" else str


def _kind_word(kind: str | None) -> str:
    return word(f"kind_of_model_{kind or 'unknown'}", kind or "unknown")


def _column_word(summary: LanguageTable) -> str:
    return {"languages": "language", "subsets": "subset_of_bench", "sections": "section_of_bench"}[summary.of]


def _correlation_panels(summary: LanguageTable) -> Iterator[Panel]:
    """Yield English against the mean over languages, with the correlation over models; nothing without English."""
    if summary.pearson is None or summary.spearman is None:
        return
    dots = [
        ModelPoint(row.model, _kind_word(row.kind), row.english, row.mean)
        for row in summary.models
        if row.english is not None and row.mean is not None
    ]
    rows = [
        (word(name), *DECIMAL.cells(estimate), count(estimate.n))
        for name, estimate in (("pearson", summary.pearson), ("spearman", summary.spearman))
    ]
    numbers = table(("coefficient", "ranked_value", "interval", "number_of_models"), rows)
    figure = english_and_mean("figure_english_and_mean", dots, baseline=_baseline_word(summary))
    yield Panel(
        f"{_baseline_word(summary)} · {word('mean_over_languages')}",
        figure,
        (Grouped("", numbers),),
        "note_english_and_languages",
    )


def _kind_panels(summary: LanguageTable) -> Iterator[Panel]:
    """Yield the means over the models of each kind, without columns that no kind has."""
    if not summary.kinds:
        return
    kinds = summary.kinds.values()
    has_english = any(means.english is not None for means in kinds)
    has_variance, has_kappa = (
        any(getattr(means, name) is not None for means in kinds) for name in ("variance", "kappa")
    )
    rows = [
        (
            _kind_word(kind),
            count(len(means.models)),
            *_cells(PERCENT, means.mean, summary),
            *((decimal(means.variance, 1),) if has_variance else ()),
            *((percent(None if means.english is None else means.english.value),) if has_english else ()),
            *((*_cells(POINTS, means.drop, summary), points(means.largest_drop)) if has_english else ()),
            *((decimal(means.kappa),) if has_kappa else ()),
        )
        for kind, means in summary.kinds.items()
    ]
    columns = (
        *("model_kind", "number_of_models"),
        *_heads(_mean_word(summary), summary),
        *(("variance_points",) if has_variance else ()),
        *((_baseline_word(summary), *_heads("drop", summary), "largest_drop") if has_english else ()),
        *(("kappa",) if has_kappa else ()),
    )
    yield Panel(word("kinds_of_models"), None, (Grouped("", table(columns, rows)),), "note_kinds_of_models")


def _cells(form: Form, estimate: Estimate | None, summary: LanguageTable) -> tuple[str, ...]:
    """Return value and interval; of published numbers, which have none, the value alone."""
    return form.cells(estimate)[: 1 if summary.is_published else 2]


def _heads(name: str, summary: LanguageTable) -> tuple[str, ...]:
    """Return the columns of a value and its interval; of published numbers the first alone."""
    return (name,) if summary.is_published else (name, "interval")


def _column_panels(summary: LanguageTable) -> Iterator[Panel]:
    """Yield the mean over models of each language, subset or section."""
    if summary.of == "sections":
        rows = [(name, _value(means.mean.value, summary)) for name, means in summary.columns.items()]
        numbers = table((_column_word(summary), "mean_change"), rows)
        yield Panel(word("means_over_models"), None, (Grouped("", numbers),))
        return
    has_drop, has_kappa = (
        any(getattr(means, name) is not None for means in summary.columns.values()) for name in ("drop", "kappa")
    )
    title_of = _column_title(summary)
    ordered = sorted(summary.columns.items(), key=lambda item: -(item[1].mean.value or 0.0))
    rows = [
        (
            title_of(name),
            *_cells(PERCENT, means.mean, summary),
            percent(means.standard_deviation),
            *(_cells(POINTS, means.drop, summary) if has_drop else ()),
            *((decimal(means.kappa),) if has_kappa else ()),
        )
        for name, means in ordered
    ]
    columns = (
        _column_word(summary),
        *_heads("mean_over_models", summary),
        "deviation_over_models",
        *(_heads("drop", summary) if has_drop else ()),
        *(("kappa",) if has_kappa else ()),
    )
    about = "figure_printed_means" if summary.is_published else "figure_means_of_languages"
    figure = _means_figure(about, {title_of(name): means.mean for name, means in ordered})
    note = "" if summary.is_published else "note_means_over_models"
    yield Panel(word("means_over_models"), figure, (Grouped("", table(columns, rows)),), note)


def _means_figure(about: str, means: Mapping[str, Estimate]) -> Figure:
    dots = [Dot(name, name, mean) for name, mean in means.items()]
    channel = {"axis": share_axis("mean_over_models"), "scale": {"zero": False}}
    return Figure(about, interval_rows(dots, channel, row="group", form=".1%", line=None))


def _section_panels(summary: LanguageTable) -> Iterator[Panel]:
    """Yield the drop of each model in each section (M-RewardBench, Table 3), relative drops, and means over models."""
    # One section is the whole bench, whose drop is the overall one.
    if len(summary.sections) < 2:
        return
    names = list(summary.sections)
    drops = {row.model: row.drop for row in summary.models if row.drop is not None}
    cells = [
        HeatCell(model, name, drop.sections[name].absolute.value) for model, drop in drops.items() for name in names
    ]
    absolute = [
        (model, *(points(drop.sections[name].absolute.value) for name in names)) for model, drop in drops.items()
    ]
    figure = heat_map("figure_drops_by_section", cells, columns="section_of_bench", form="+.1%")
    numbers = Table((word("scorer"), *names), tuple(absolute))
    yield Panel(word("language_sections"), figure, (Grouped("", numbers),), "note_drops_by_section")
    relative = [
        (model, *(percent(each.relative.value) for each in (drop, *(drop.sections[name] for name in names))))
        for model, drop in drops.items()
    ]
    numbers = Table((word("scorer"), word("relative_drop"), *names), tuple(relative))
    yield Panel(word("relative_drops_by_section"), None, (Grouped("", numbers),), "note_relative_drops")
    means = [(name, *POINTS.cells(estimate)) for name, estimate in summary.sections.items()]
    numbers = table(("section_of_bench", "drop", "interval"), means)
    yield Panel(word("mean_drops_by_section"), None, (Grouped("", numbers),))


def _kappa_panels(summary: LanguageTable) -> Iterator[Panel]:
    """Yield the agreement of each model with itself in English, by language, and the levels of agreement."""
    agreement = {row.model: row.kappa for row in summary.models if row.kappa is not None}
    if not agreement:
        return
    cells = [
        HeatCell(model, language_title(name), value)
        for model, kappa in agreement.items()
        for name, value in kappa.by_language.items()
    ]
    rows = [
        (
            model,
            *DECIMAL.cells(kappa.mean),
            decimal(kappa.spread),
            percent(kappa.agreement),
            percent(kappa.majority_share),
        )
        for model, kappa in agreement.items()
    ]
    columns = ("scorer", "kappa", "interval", "deviation_over_languages", "equal_labels", "majority_share")
    figure = heat_map("figure_kappa_by_language", cells, columns="language", form=".3f")
    yield Panel(
        f"{word('kappa_of_models')} · {_baseline_word(summary)}",
        figure,
        (Grouped("", table(columns, rows)),),
        "note_kappa_of_models",
    )
    shades = (ALERT, *MODEL_COLOURS[1:], MODEL_COLOURS[0], MUTED)
    marks = [Mark(word(f"level_{name}"), shade, "square") for name, shade in zip(LEVELS, shades, strict=True)]
    undefined = Mark(word("kappa_undefined"), FAINT, "square")
    numbers = {
        model: {
            **{mark.name: kappa.levels[name] for mark, name in zip(marks, LEVELS, strict=True)},
            undefined.name: len(kappa.by_language) - sum(kappa.levels.values()),
        }
        for model, kappa in agreement.items()
    }
    heads = (word("scorer"), *(mark.name for mark in (*marks, undefined)))
    levels = Table(heads, tuple((model, *map(count, by_level.values())) for model, by_level in numbers.items()))
    figure = stacked_bars("figure_levels_of_agreement", numbers, [*marks, undefined])
    yield Panel(word("levels_of_agreement"), figure, (Grouped("", levels),), "note_levels_of_agreement")


def _group_panels(summary: LanguageTable) -> Iterator[Panel]:
    """Yield the mean over models of each family, branch, script and class of languages (M-RewardBench, Figure 5)."""
    groups: dict[str, LanguageMean] = {
        group_title(field, name): mean for field, of_field in summary.kin.items() for name, mean in of_field.items()
    }
    if not groups:
        return
    rows = [
        (name, *_cells(PERCENT, group.mean, summary), COMMA.join(map(language_title, group.languages)))
        for name, group in groups.items()
    ]
    numbers = table(("language_group", *_heads("mean_over_models", summary), "members_of_group"), rows)
    about = "figure_printed_groups" if summary.is_published else "figure_language_groups"
    note = "note_groups_of_printed" if summary.is_published else "note_groups_of_models"
    figure = _means_figure(about, {name: group.mean for name, group in groups.items()})
    yield Panel(word("language_groups"), figure, (Grouped("", numbers),), note)


def _translation_panels(translation: TranslationComparison) -> Iterator[Panel]:
    """Yield the difference of two translations for each model, kind and language (M-RewardBench, Figure 4)."""
    rows = [
        (name, *PERCENT.cells(model.first), *PERCENT.cells(model.second), *POINTS.cells(model.difference))
        for name, model in translation.models.items()
    ]
    heads = (
        word("scorer"), translation.first, word("interval"), translation.second, word("interval"),
        word("difference_of_translations"), word("interval"),
    )  # fmt: skip
    dots = [Dot(name, name, model.difference) for name, model in translation.models.items()]
    axis = {"axis": {"title": word("difference_of_translations"), "format": "+.1%", "tickCount": 6}}
    figure = Figure("figure_translations", interval_rows(dots, axis, row="scorer", form="+.1%", line=0.0))
    title = f"{word('two_translations')} · {translation.first} {DASH} {translation.second}"
    yield Panel(title, figure, (Grouped("", Table(heads, tuple(rows))),), "note_translations")
    groups = {_kind_word(kind): difference for kind, difference in translation.by_kind.items()}
    groups |= {language_title(name): each for name, each in translation.languages.items()}
    means = [(name, *POINTS.cells(each)) for name, each in groups.items()]
    numbers = table(("group", "difference_of_translations", "interval"), means)
    yield Panel(word("translations_by_language"), None, (Grouped("", numbers),))


def _missing_panels(summary: LanguageTable) -> Iterator[Panel]:
    """Yield what models and the benchmark lack, and the printed numbers that do not follow from their row."""
    if summary.lacking:
        rows = [
            (name, COMMA.join(map(language_title, lacking.languages)) or DASH, count(lacking.num_items))
            for name, lacking in summary.lacking.items()
        ]
        numbers = table(("scorer", "languages_lacking", "items_lacking"), rows)
        yield Panel(word("lacking_models"), None, (Grouped("", numbers),))
    yield from missing_panels(summary.missing)
    if summary.slips:
        rows = [
            (slip.model, slip.column, decimal(slip.printed, 2), decimal(slip.computed, 2)) for slip in summary.slips
        ]
        numbers = table(("scorer", "printed_column", "printed", "computed"), rows)
        yield Panel(word("printed_slips"), None, (Grouped("", numbers),), "note_printed_slips")


def _sentences(run: StageRun[LanguageTable]) -> Iterator[Sentence]:
    """Yield the best model, the drop from English, what correlates, and what is missing or does not add up."""
    summary = run.summary
    best, highest = highest_models(summary.models)
    values = {
        "models": count(len(summary.models)),
        "columns": count(len(summary.columns)),
        "items": count(summary.num_shared),
        "bench": summary.bench,
        "best": isolated_names(best),
        "mean": percent(highest),
        "baseline": _baseline_word(summary),
    }
    if summary.is_published:
        yield Sentence(f"say_published_{summary.of}", values)
    else:
        yield Sentence("say_language_table", values)
        yield from chosen_baseline(run, summary.baseline_language)
        yield from missing_parts(summary.missing)
    if summary.translation is not None:
        yield _translation_sentence(summary.translation)
        if summary.translation.unmatched:
            yield Sentence("say_unmatched_models", {"models": isolated_names(summary.translation.unmatched)})
    yield from _drop_sentences(summary)
    if summary.lacking:
        yield Sentence("say_lacking_models", {"models": isolated_names(summary.lacking)})
    if summary.incomplete:
        rows = [
            f"{isolate(name)} ({COMMA.join(map(isolate, columns[:_MOST_NAMED]))})"
            for name, columns in summary.incomplete.items()
        ]
        yield Sentence("say_incomplete_rows", {"rows": first_names(rows)})
    if summary.num_checked:
        slips = first_names([f"{isolate(slip.model)} ({isolate(slip.column)})" for slip in summary.slips], _MOST_NAMED)
        values = {"rows": slips, "number": count(summary.num_checked)}
        yield Sentence("say_printed_slips" if slips else "say_no_slips", values)
    if summary.averaged_over != "columns":
        yield Sentence("say_averaged_over", {"languages": word(f"averaged_over_{summary.averaged_over}")})
    if summary.not_read_alike:
        yield Sentence("say_models_not_alike", {"models": isolated_names(summary.not_read_alike)})


def _drop_sentences(summary: LanguageTable) -> Iterator[Sentence]:
    """Yield the mean drop of each kind, and the correlation of English with the other languages."""
    drops = {_kind_word(kind): means.drop for kind, means in summary.kinds.items() if means.drop is not None}
    if drops:
        kinds = [
            f"{kind} {points(drop.value)}" + ("" if summary.is_published else f" [{points_spread(drop)}]")
            for kind, drop in drops.items()
        ]
        sentence = "say_published_drop_by_kind" if summary.is_published else "say_drop_by_kind"
        yield Sentence(sentence, {"kinds": COMMA.join(kinds), "baseline": _baseline_word(summary)})
    if summary.pearson is None or summary.spearman is None:
        return
    values = {
        "pearson": decimal(summary.pearson.value),
        "spearman": decimal(summary.spearman.value),
        "models": count(summary.pearson.n),
        "fewest": count(FEWEST_MODELS),
        "baseline": _baseline_word(summary),
    }
    if summary.pearson.n < FEWEST_MODELS:
        yield Sentence("say_few_models", values)
    elif summary.pearson.low is not None and summary.pearson.high is not None:
        spreads = {"spread": decimal_interval(summary.pearson), "rank_spread": decimal_interval(summary.spearman)}
        yield Sentence("say_correlation", values | spreads)
    elif summary.pearson.value is None:
        yield Sentence("say_no_correlation", values)


def _translation_sentence(translation: TranslationComparison) -> Sentence:
    values = {
        "models": count(len(translation.models)),
        "first": translation.first,
        "second": translation.second,
        "difference": points(translation.difference.value),
        "spread": points_spread(translation.difference),
    }
    return Sentence("say_translations", values)


def _baseline_word(summary: LanguageTable) -> str:
    return DASH if summary.baseline_language is None else language_title(summary.baseline_language)


def _records(summary: LanguageTable) -> Iterator[JsonObject]:
    return map(flat_row, summary.models)


VIEW = View(
    41, "language_table", LanguageTable, "language_table", _sentences, _panels,
    records=_records, headline=HeadlineRule(TableHeadline, headline), lead=1,
    next_step=report_step("shows languages, kinds and groups"),
)  # fmt: skip
