"""Translations: how many items each language has, what is damaged in them with examples, and what it took."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from steelyard.core.languages import english_name, writing_direction
from steelyard.core.remedies import Command, Placeholder, Remedy
from steelyard.core.types import JsonObject, Run
from steelyard.evaluation.tables import (
    Grouped,
    Panel,
    Sentence,
    ShownItem,
    Table,
    count,
    isolate,
    language_word,
    percent,
    table,
    word,
)
from steelyard.evaluation.vega import ALERT, STRONG
from steelyard.judging.forecast import Forecast
from steelyard.judging.translation_summary import DamageExample, LanguageTranslation, TranslateSummary
from steelyard.report.bars import CountBar, count_bars
from steelyard.report.missing_verdicts import text_key
from steelyard.report.page import COLON, section_texts
from steelyard.report.token_tables import token_panel
from steelyard.translation.damage_kinds import DAMAGE_KINDS
from steelyard.views.forecasts import model_lines
from steelyard.views.view import HeadlineRule, NextStep, PageSources, RunHeadline, StageRun, View, report_step


def _sentences(run: StageRun[TranslateSummary]) -> Iterator[Sentence]:
    summary = run.summary
    languages = summary.languages.values()
    number = {"run": run.name, "languages": count(len(summary.languages))}
    items, failed = (
        sum(numbers) for numbers in zip(*((each.num_items, _failed(each)) for each in languages), strict=True)
    )
    if summary.translator is None:
        yield Sentence("say_examined", number | {"items": count(items)})
    else:
        translated = sum(each.num_translated for each in languages)
        about = {"translated": count(translated), "failed": count(failed), "translator": isolate(summary.translator)}
        yield Sentence("say_translated", number | about)
    damaged = sum(each.num_damaged for each in languages)
    examined = max(1, sum(each.num_translated + each.num_present for each in languages))
    about = {"damaged": count(damaged), "share": percent(damaged / examined)}
    about |= {"kept": count(summary.num_kept), "sources": count(summary.num_sources)}
    yield Sentence("say_damaged", {"run": run.name, **about})
    if num_equal := sum(each.num_equal for each in languages):
        yield Sentence("say_made_equal", {"run": run.name, "equal": count(num_equal)})


def _failed(counts: LanguageTranslation) -> int:
    return sum(counts.failed.values())


def _panels(run: StageRun[TranslateSummary], sources: PageSources) -> Iterator[Panel]:
    summary = run.summary
    by_language = Grouped("language", _language_table(summary))
    yield Panel(word("translated_items"), None, (by_language,), "note_translated_items")
    kinds = Counter[str](dict.fromkeys(DAMAGE_KINDS, 0))
    for counts in summary.languages.values():
        kinds.update(counts.damage)
    kinds = +kinds
    if kinds:
        languages = summary.languages.values()
        total = sum(each.num_translated + each.num_present for each in languages)
        undamaged = total - sum(each.num_damaged for each in languages)
        bars = [CountBar(word("undamaged"), undamaged, STRONG)]
        bars += [CountBar(_kind(kind), number, ALERT) for kind, number in kinds.most_common()]
        figure = count_bars("damage_by_kind", bars, total=total)
        tables = (Grouped("language", _damage_table(summary, [kind for kind, _ in kinds.most_common()])),)
        yield Panel(word("damage_by_kind"), figure, tables, "note_damage")
    for kind, _ in kinds.most_common():
        items = tuple(_example(each, summary.source) for each in summary.examples[kind])
        yield Panel(f"{word('examples')} · {_kind(kind)}", None, (), f"means_{_key(kind)}", items)
    failed = Counter[str]()
    for counts in summary.languages.values():
        failed.update(counts.failed)
    if failed:
        rows = [(_reason(name), count(number)) for name, number in failed.most_common()]
        yield Panel(word("not_translated"), None, (Grouped("", table(("reason", "n"), rows)),), "note_not_translated")
    if summary.tokens is not None and summary.translator is not None and summary.tokens.prompt:
        yield token_panel({summary.translator: summary.tokens}, "translator")


def _key(kind: str) -> str:
    return kind.replace(" ", "_")


def _reason(name: str) -> str:
    """Return why items have no translation; a request that failed has the server's reason behind a comma."""
    problem, _, reason = name.partition(", ")
    return word(f"not_translated_{_key(problem)}", problem) + (f" · {reason}" if reason else "")


def _kind(kind: str) -> str:
    return word(f"damage_{_key(kind)}", kind)


def _language_table(summary: TranslateSummary) -> Table:
    rows = [
        (
            language_word(name),
            count(each.num_items),
            count(each.num_damaged),
            percent(each.num_damaged / max(1, each.num_translated + each.num_present)),
            count(each.num_equal),
            count(_failed(each)),
            count(each.num_translated),
            count(each.num_present),
        )
        for name, each in summary.languages.items()
    ]
    columns = ("language", "items", "damaged", "share", "made_equal", "not_translated", "translated", "present_before")
    return table(columns, rows)


def _damage_table(summary: TranslateSummary, kinds: Iterable[str]) -> Table:
    kinds = list(kinds)
    rows = [
        (language_word(name), *(count(each.damage.get(kind, 0)) for kind in kinds))
        for name, each in summary.languages.items()
    ]
    numbers = table(("language", *kinds), rows)
    return numbers._replace(columns=(numbers.columns[0], *map(_kind, kinds)))


def _example(example: DamageExample, source: str) -> ShownItem:
    finding = example.finding
    kind, _, answer = finding.place.partition(" ")
    where = word(f"damage_in_{kind}", kind) + (f" {isolate(answer)}" if answer else "")
    place = {"place": where, "language": language_word(example.language)}
    is_of_language = finding.kind in ("wrong_language", "wrong_script")
    titles = word("damage_expected" if is_of_language else "damage_before"), word("damage_after")
    texts = finding.before, finding.after
    if is_of_language:
        code, _, text = finding.after.partition(": ")
        # The language that was identified stands before the text.
        is_named = finding.kind == "wrong_language" and english_name(code) is not None
        after = f"{titles[1]}{COLON}{language_word(code)}" if is_named else titles[1]
        titles = f"{titles[0]}{COLON}{language_word(finding.before)}", after
        texts = "", text if is_named else finding.after
    if finding.kind == "structure":
        titles = tuple(f"{title}{COLON}{_counted(text)}" for title, text in zip(titles, texts, strict=True))
        texts = ("", "")
    # Excerpts are parts of texts and of code: as they are written, they keep their signs and their direction.
    marks: tuple[tuple[tuple[int, int], ...], ...] = ((), ())
    if finding.sentences is not None:
        texts = tuple(each.text for each in finding.sentences)
        marks = tuple(each.marks for each in finding.sentences)
    # An excerpt that begins with a number or a Latin name is still of its language.
    directions = writing_direction(source), writing_direction(example.language)
    if finding.kind == "code":
        directions = "ltr", "ltr"
    elif is_of_language or finding.kind in ("structure", "responses"):
        directions = ()
    about = Sentence("say_damage_place", place)
    answers = tuple(zip(titles, texts, strict=True))
    return ShownItem(example.prompt, example.language, about, "", answers, marks, directions)


def _counted(text: str) -> str:
    """Return a count of parts of a text, as ``2 paragraphs``, with the noun as a word of the page if it has one."""
    number, _, noun = text.partition(" ")
    key = f"structure_{text_key(noun)}"
    return f"{number} {word(key)}" if key in section_texts() else isolate(text)


def _rows(summary: TranslateSummary) -> Iterator[JsonObject]:
    for name, each in summary.languages.items():
        yield {
            "language": name,
            "items": each.num_items,
            "translated": each.num_translated,
            "present": each.num_present,
            "failed": _failed(each),
            "damaged": each.num_damaged,
            "made_equal": each.num_equal,
            "damage": dict(each.damage),
        }


class _LanguageCounts(msgspec.Struct):
    num_items: int
    num_damaged: int = 0


class _Translated(msgspec.Struct):
    languages: dict[str, _LanguageCounts]
    num_sources: int
    num_kept: int


def _headline(run: _Translated) -> RunHeadline:
    return RunHeadline(f"{count(run.num_kept)} / {count(run.num_sources)}", word("view_undamaged"))


def _evaluating(run: Run[TranslateSummary], out: Path) -> NextStep:
    if not run.summary.num_kept:
        return report_step("shows why no item is left")(run, out)
    cases = str(out / "cases.jsonl") if run.summary.translator is not None else next(iter(run.inputs.values())).path
    undamaged = Remedy("kept", str(out / "kept.json"))
    changes = (Remedy("bench", cases), Remedy("model", Placeholder("MODEL")), undamaged, Remedy("out", "evaluated"))
    return NextStep(Command("evaluate", (), changes), "on the undamaged items, the same in all languages")


def _forecast(forecast: Forecast, out: Path) -> Iterator[str]:
    yield "each item is asked once; what comes back damaged is asked again, twice, and then block by block"
    yield from model_lines(forecast)


VIEW = View(
    86,
    "translate",
    TranslateSummary,
    "translations",
    _sentences,
    _panels,
    _rows,
    HeadlineRule(_Translated, _headline),
    lead=1,
    next_step=_evaluating,
    unrecorded=_forecast,
)
