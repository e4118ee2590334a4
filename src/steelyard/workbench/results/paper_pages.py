"""The methods paragraph and the tables of a paper as text: Markdown and LaTeX, in English and Chinese.

Every number is one of `paper_figures`. Where the data lack what a sentence states (gold tasks, guidelines), another one
says so.
"""

import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from steelyard.annotation.task_kinds import kinds_of
from steelyard.evaluation.tables import DASH
from steelyard.report.text_tables import TextTable, escape_latex, escape_markdown, latex_table, markdown_table
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.label_error import complement_of, person_error
from steelyard.workbench.results.paper_figures import PaperFigures
from steelyard.workbench.views.pages import LANGUAGES

_PACKAGES = {
    "en": "% Needs \\usepackage{booktabs,graphicx}; names in other scripts than Latin: XeLaTeX or LuaLaTeX and a font.",
    "zh": "% Needs \\usepackage{booktabs,graphicx} and \\usepackage{ctex}, and XeLaTeX or LuaLaTeX.",
}


def paper_pages(figures: PaperFigures) -> dict[str, str]:
    """Return the text of each file by name: ``paper.en.md``, ``paper.en.tex``, their Chinese ones, ``figures.json``."""
    pages = {"figures.json": msgspec.json.format(msgspec.json.encode(figures), indent=2).decode() + "\n"}
    for language in LANGUAGES:
        text, tables = methods_paragraph(figures, language), paper_tables(figures, language)
        title = _words(language)["paragraph"].format(project=figures.project)
        markdown = [f"# {escape_markdown(title)}", "", escape_markdown(text), "", *map(markdown_table, tables)]
        pages[f"paper.{language}.md"] = "\n".join(markdown)
        latex = [_PACKAGES[language], rf"\paragraph{{{escape_latex(title)}}}", escape_latex(text), ""]
        pages[f"paper.{language}.tex"] = "\n".join([*latex, *map(latex_table, tables)])
    return pages


CARDS = {"README.md": "en", "README.zh.md": "zh"}
"""The files of a release's card, with their languages."""


def release_card(
    figures: PaperFigures, facts: Mapping[str, str], languages: Mapping[str, int], language: str, *, is_bench: bool
) -> str:
    """Return the card of a release for its readers: contents, how to use it, and how it was annotated.

    ``facts`` are the values of the card's sentences; ``languages`` the number of prompts by language; ``is_bench``:
    the release has the settings of a benchmark.
    """
    texts = _texts("card", language)
    values = {"project": figures.project, **facts}
    counts = ", ".join(f"{name or texts['no language']} {number:,}" for name, number in sorted(languages.items()))
    parts = [f"# {escape_markdown(texts['head'].format(**values))}", texts["about"], f"## {texts['contents']}"]
    parts += [texts["counts"].format(**values), texts["languages"].format(counts=escape_markdown(counts))]
    parts += [texts["files"].format(**values), texts["missing"], f"## {texts['use']}", texts["commands"]]
    parts += [texts["bench"], texts["evaluate"]] if is_bench else []
    parts += [f"## {texts['annotation']}", escape_markdown(methods_paragraph(figures, language))]
    parts += [markdown_table(table).rstrip("\n") for table in paper_tables(figures, language)]
    return "\n\n".join(parts) + "\n"


def methods_paragraph(figures: PaperFigures, language: str) -> str:
    """Return the paragraph in a language of the pages, as plain text on one line."""
    texts = _texts("sentences", language)
    separator = "" if language == "zh" else " "
    return separator.join(texts[key].format(**values) for key, values in _sentences(figures))


def paper_tables(figures: PaperFigures, language: str) -> tuple[TextTable, ...]:
    """Return the tables by category, layer, person, reviewer and version of the guidelines; the last two if any."""
    tables = [_categories(figures, language), _layers(figures, language), _people(figures, language)]
    tables += [_reviewers(figures, language)] if figures.reviewers else []
    return (*tables, _guidelines(figures, language)) if figures.guidelines else tuple(tables)


def _sentences(figures: PaperFigures) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the key of each sentence with the values of its places."""
    if figures.is_simulated:
        yield "simulated", {}
    if figures.first_day is None or figures.last_day is None:
        yield "nothing", {"project": figures.project}
        return
    yield (
        "who",
        {
            "annotators": str(len(figures.people)),
            "answers": _count(figures.answers),
            "tasks": _count(figures.tasks),
            "items": _count(figures.items.total),
            "finished": _count(figures.items.finished),
            "version": figures.version,
            "first": _date(figures.first_day),
            "last": _date(figures.last_day),
        },
    )
    tasks = figures.settings.tasks
    yield f"kind {tasks.kind}", {}
    qualification = figures.settings.qualification
    if qualification.num_tasks:
        least = _setting(qualification.least_accuracy)
        yield "qualification", {"number": str(qualification.num_tasks), "least": least}
    yield "blind", {}
    if kinds_of(tasks)[0].is_shuffled:
        yield "order", {}
    yield from _double_sentences(figures)
    yield from _quality_sentences(figures)
    if figures.seconds is not None:
        low, median, high = (f"{seconds:,.0f}" for seconds in figures.seconds)
        pace, hours = _estimate(figures.pace, "{:,.1f}"), f"{figures.hours:,.1f}"
        yield "time", {"median": median, "low": low, "high": high, "pace": pace, "hours": hours}
        layers = sum(layer.hours for layer in figures.layers)
        if figures.alignment_hours or layers:
            yield "adjudication time", {"aligned": f"{figures.alignment_hours:,.1f}", "layers": f"{layers:,.1f}"}
    if figures.guidelines:
        latest = _date(max(version.at for version in figures.guidelines))
        yield "guidelines", {"number": str(len(figures.guidelines)), "date": latest}
    else:
        yield "no guidelines", {}
    yield "seed", {"seed": str(figures.settings.seed)}
    yield "intervals", {}


def _double_sentences(figures: PaperFigures) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the sentences on how many people answer, the gate, and what became of items behind it."""
    rules = figures.settings.rules
    least, most = figures.people_a_task or (rules.num_annotators, rules.num_annotators)
    if most == 1:
        yield "single", {}
    elif least < most:
        yield "double range", {"least": str(least), "most": str(most)}
    else:
        yield "double", {"number": str(most)}
    if figures.uncompared and most > 1:
        yield "uncompared", {"number": _count(figures.uncompared)}
    if figures.gates:
        yield (
            f"gate {rules.gate}",
            {"least": _setting(rules.least_agreement), "gate": _share(figures.gate)},
        )
        climbed = {layer.name: _percent(layer.passed_on.value) for layer in figures.layers}
        yield "climb", {"aligned": _percent(figures.aligned.value), **climbed}
    review: dict[str, str] = {}
    for layer in figures.layers:
        review[f"{layer.name}_drawn"] = _setting(layer.drawn)
        review[f"{layer.name}_reviewed"] = _count(layer.reviewed)
        review[f"{layer.name}_people"] = str(layer.people)
        review[f"{layer.name}_rejected"] = _share(layer.rejected)
    yield "review", review
    if (discards := figures.discards).responses:
        numbers = (discards.responses, discards.items, discards.tasks_ended, discards.tasks_added)
        yield "discards", dict(zip(("responses", "items", "ended", "added"), map(_count, numbers), strict=True))


def _quality_sentences(figures: PaperFigures) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the sentences on agreement and gold tasks."""
    row = figures.agreement
    if row.tau.value is not None:
        yield "agreement", {"same": _share(row.same), "alpha": _decimal(row.alpha), "tau": _decimal(row.tau)}
        if sample := figures.alpha_sample:
            yield "alpha sample", {"read": _count(sample.num_read), "answers": _count(sample.num_answers)}
    elif row.same.value is not None:
        yield "agreement without order", {"same": _share(row.same)}
    if row.contradicted.value is not None:
        error = row.contradicted.transformed(lambda share: float(person_error(np.array(share))))
        shares = (row.contradicted, error, complement_of(row.contradicted), complement_of(error))
        yield "label error", dict(zip(("contradicted", "error", "least", "most"), map(_share, shares), strict=True))
    kappas = [row.kappa.value for row in figures.people if row.kappa is not None and row.kappa.value is not None]
    if kappas:
        least, most, median = f"{min(kappas):.2f}", f"{max(kappas):.2f}", f"{np.median(kappas):.2f}"
        yield "kappa", {"median": median, "number": str(len(kappas)), "least": least, "most": most}
    if figures.gold.value is None:
        yield "no gold", {}
    else:
        number = _count(sum(person.gold_answers for person in figures.people))
        share = _setting(figures.settings.rules.gold_share)
        yield "gold", {"share": share, "number": number, "gold": _share(figures.gold)}
    if not figures.reviewers:
        yield "no review gold", {}
    else:
        total = figures.reviewers[0]
        yield (
            "review gold",
            {
                "share": _setting(figures.settings.rules.review_gold_share),
                "number": _count(total.planted),
                "right": _share(total.right),
                "accepted": _share(total.truths_accepted),
                "rejected": _share(total.wrong_rejected),
            },
        )


def _categories(figures: PaperFigures, language: str) -> TextTable:
    heads = ("category", "items", "finished", "double tasks", "gate", "same", "alpha", "tau")
    words = _words(language)
    rows = tuple(
        (
            row.name or words["no category"],
            _count(row.items),
            _count(row.finished),
            _count(row.double_tasks),
            _share_cell(row.gate),
            _share_cell(row.same),
            _decimal_cell(row.alpha),
            _decimal_cell(row.tau),
        )
        for row in figures.categories
    )
    return _table("categories", language, heads, rows)


def _layers(figures: PaperFigures, language: str) -> TextTable:
    heads = ("layer", "people", "hours", "drawn", "reviewed", "rejected", "passed on", "settled tasks")
    words = _words(language)
    people, hours = str(len(figures.people)), f"{figures.alignment_hours:,.1f}"
    aligned = (words["layer alignment"], people, hours, *[DASH] * 4, _count(figures.aligned_tasks))
    rows = tuple(
        (
            words[f"layer {layer.name}"],
            str(layer.people),
            f"{layer.hours:,.1f}",
            _setting(layer.drawn),
            _count(layer.reviewed),
            _share_cell(layer.rejected),
            _share_cell(layer.passed_on),
            _count(layer.settled_tasks),
        )
        for layer in figures.layers
    )
    return _table("layers", language, heads, (aligned, *rows))


def _people(figures: PaperFigures, language: str) -> TextTable:
    heads = ("annotator", "answers", "hours", "seconds", "same", "kappa", "tau", "gold answers", "gold")
    rows = tuple(
        (
            person.pseudonym,
            _count(person.answers),
            f"{person.hours:,.1f}",
            DASH if person.median_seconds is None else f"{person.median_seconds:,.0f}",
            _share_cell(person.same),
            _decimal_cell(person.kappa),
            _decimal_cell(person.tau),
            _count(person.gold_answers),
            _share_cell(person.gold),
        )
        for person in figures.people
    )
    return _table("people", language, heads, rows)


def _reviewers(figures: PaperFigures, language: str) -> TextTable:
    words = _words(language)
    rows = tuple(
        (
            words[f"layer {row.layer}"],
            row.pseudonym or words["everybody"],
            _count(row.planted),
            _share_cell(row.right),
            _share_cell(row.truths_accepted),
            _share_cell(row.wrong_rejected),
        )
        for row in figures.reviewers
    )
    heads = ("layer", "reviewer", "planted", "right", "truths accepted", "wrong rejected")
    return _table("reviewers", language, heads, rows)


def _guidelines(figures: PaperFigures, language: str) -> TextTable:
    every = _words(language)["all categories"]
    rows = tuple(
        (row.category or every, row.language, str(row.version), _date(row.at), _count(row.answers))
        for row in figures.guidelines
    )
    return _table("guidelines", language, ("category", "language", "version", "date", "answers"), rows)


def _table(name: str, language: str, heads: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> TextTable:
    words = _words(language)
    caption = _texts("tables", language)[name]
    return TextTable(f"annotation-{name}", caption, tuple(words[head] for head in heads), rows)


def _share(share: Estimate) -> str:
    return _estimate(share, "{:.1%}")


def _decimal(value: Estimate) -> str:
    return _estimate(value, "{:.2f}")


def _estimate(estimate: Estimate, form: str) -> str:
    """Return ``85.1% [80.0%, 89.2%; n = 1,234]``, and a dash without a value."""
    if estimate.value is None:
        return DASH
    number = f"n = {estimate.n:,}"
    if estimate.low is None or estimate.high is None:
        return f"{form.format(estimate.value)} [{number}]"
    return f"{form.format(estimate.value)} [{form.format(estimate.low)}, {form.format(estimate.high)}; {number}]"


def _share_cell(share: Estimate | None) -> str:
    return _cell(share, "{:.1%}")


def _decimal_cell(value: Estimate | None) -> str:
    return _cell(value, "{:.2f}")


def _cell(estimate: Estimate | None, form: str) -> str:
    """Return a value with its interval for a table, whose columns have the numbers."""
    if estimate is None or estimate.value is None:
        return DASH
    if estimate.low is None or estimate.high is None:
        return form.format(estimate.value)
    return f"{form.format(estimate.value)} [{form.format(estimate.low)}, {form.format(estimate.high)}]"


def _percent(share: float | None) -> str:
    return DASH if share is None else f"{share:.1%}"


def _setting(share: float) -> str:
    """Return a share that a person chose, as precisely as it was chosen."""
    return f"{100 * share:g}%"


def _count(number: int) -> str:
    return f"{number:,}"


def _date(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def _words(language: str) -> Mapping[str, str]:
    return _texts("words", language)


@cache
def _texts(part: str, language: str) -> Mapping[str, str]:
    table = tomllib.loads(Path(__file__).with_name("paper.toml").read_text(encoding="utf-8"))
    return {key: entry[language] for key, entry in table[part].items()}
