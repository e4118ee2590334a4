"""The page: sections, cards and protocols in, one self-contained HTML text out, whose words are in two languages.

Text from the files of a user is escaped or packed; the scripts are those that the policy of the page allows by hash.
"""

import base64
import functools
import hashlib
import html
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from steelyard.core.types import JsonObject
from steelyard.evaluation.measure import measure_texts
from steelyard.evaluation.tables import DASH, WORD, Grouped, Panel, Sentence, Table, count, language_word, word
from steelyard.report.items import Packed, packed_text
from steelyard.report.text_libraries import library_scripts, library_styles

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

LANGUAGES = ("en", "zh")
_RANGE = re.compile(r"[+−-]?\d[\d.,]*%?(?:–| … )[+−-]?\d[\d.,]*%?")
"""An interval of shares, of points or of other numbers."""
_WORD = re.compile(r"@@([a-z0-9_]+)\|(.*?)@@", re.DOTALL)
_FOLDER = files("steelyard.report") / "templates"
_DEFINITION = "define_"
_SCRIPTS = (
    "page.js",
    "markdown_dialect.js",
    "answer_text.js",
    "graph.js",
    "downloads.js",
    "item_window.js",
    "items.js",
    "failures.js",
)
_STYLES = ("page.css", "answer_text.css", "downloads.css")
COLON, COMMA = word("colon", ": "), word("comma", ", ")


def first_names(names: Sequence[str], most: int = 6) -> str:
    """Return the first names of a list, and how many more there are."""
    more = len(names) - most
    return COMMA.join(names[:most]) + (f" … +{count(more)}" if more > 0 else "")


"""Punctuation between values: full-width in Chinese."""


class Section(NamedTuple):
    """A part of the page: its anchor, whose word is the title, the runs that it rests on, and its panels.

    ``sentences`` state its result above the panels. A folded section opens by a press, a link to it, or in print.
    """

    anchor: str
    evidence: tuple[str, ...]
    panels: tuple[Panel, ...]
    sentences: tuple[Sentence, ...] = ()
    is_folded: bool = False


class Card(NamedTuple):
    """One number at the top of the page: its word, the number, a line below, and what it is about.

    ``tone`` is ``good``, ``bad`` or empty; it colours a small mark.
    """

    title: str
    number: str
    below: str
    tone: str = ""
    about: str = ""


class CardGroup(NamedTuple):
    """The cards of one run, under a title, and its result in words.

    ``headline`` is the value of the first card, ``lead`` a line below it where it stands for the run.
    """

    title: str
    cards: tuple[Card, ...]
    sentences: tuple[Sentence, ...] = ()
    headline: float | None = None
    lead: str = ""


class Protocol(NamedTuple):
    """The record of one run: settings, files, versions and counts."""

    name: str
    stage: str
    tables: tuple[Grouped, ...]


class ErrorCell(NamedTuple):
    """The error rate of one group of pairs with interval and n; ``heat`` is the percentage of its colour.

    ``stands_out``: 1 above the rate of all pairs, -1 below; ``is_small``: too few prompts for a
    test. The last three name the group, null for all of a division.
    """

    rate: str
    interval: str
    n: str
    heat: int
    stands_out: int
    is_small: bool
    category: str | None
    length: str | None
    language: str | None


class ErrorRow(NamedTuple):
    """One row of a map of errors; a cell is null where it has no pair."""

    title: str
    cells: tuple[ErrorCell | None, ...]


class ErrorMap(NamedTuple):
    """The error rates of one model by group: sentences about them, a map, and a table of all groups, worst first."""

    model: str
    number: int
    columns: tuple[str, ...]
    rows: tuple[ErrorRow, ...]
    about: tuple[Sentence, ...]
    groups: Table


class DisagreementTable(NamedTuple):
    """A row for every two models, and the numbers of the two models of each row."""

    table: Table
    models: tuple[tuple[int, int], ...]


class FailureSection(NamedTuple):
    """Where models fail: their most confident errors and largest disagreements as a record, and tables."""

    evidence: tuple[str, ...]
    maps: tuple[ErrorMap, ...]
    disagreements: DisagreementTable | None
    record: JsonObject


class Page(NamedTuple):
    """The contents of the page, in their order. ``home`` is the address of the list of runs, where a server has one.

    ``cards`` and ``sentences`` are those of a stage's only run, or the first of each of its runs; ``groups`` have all
    of these runs, folded, one line for each. ``is_folded``: items and records of runs are folded.
    """

    title: str
    language: str
    models: tuple[str, ...]
    is_simulated: bool
    cards: tuple[Card, ...]
    sentences: tuple[Sentence, ...]
    sections: tuple[Section, ...]
    packed: Packed
    protocols: tuple[Protocol, ...]
    version: str
    failures: FailureSection | None = None
    home: str = ""
    groups: tuple[CardGroup, ...] = ()
    is_folded: bool = False


class Strings:
    """The words of an interface in every language, and HTML made of them; the page shows one language at a time."""

    def __init__(self, name: str, more: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self.table: dict[str, Mapping[str, str]] = {**read_texts(name), **(more or {})}
        self._shown: set[str] = set()

    def mentions(self, key: str) -> bool:
        """Return whether a text that was shown so far has the term, as words of its own, in the first language."""
        term = re.escape(self.table[key][LANGUAGES[0]])
        whole = re.compile(rf"(?<![\w-]){term}s?(?![\w-])", re.IGNORECASE)
        return any(map(whole.search, self._shown))

    def translate(self, text: str, language: str) -> str:
        """Return the text with its words in one language; a word without translation keeps its fallback."""
        translated = _WORD.sub(lambda match: self.table.get(match[1], {}).get(language, match[2]), text)
        if language == LANGUAGES[0]:
            self._shown.add(translated)
        return translated

    def language_names(self, codes: Iterable[str]) -> dict[str, Mapping[str, str]]:
        """Return the names of languages, by the key under which a script looks for that of a code."""
        return {
            f"language {code}": {language: self.translate(language_word(code), language) for language in LANGUAGES}
            for code in codes
        }

    def text(self, text: str) -> "Markup":
        """Return the text as safe HTML in all languages."""
        return _in_all_languages({language: self.translate(text, language) for language in LANGUAGES})

    def word(self, key: str) -> "Markup":
        """Return a word as safe HTML in all languages; a name that is not in the table is unchanged."""
        self._shown.add(self.table.get(key, {}).get(LANGUAGES[0], key))
        return _in_all_languages(self.table.get(key, dict.fromkeys(LANGUAGES, key)))

    def sentence(self, sentence: Sentence) -> "Markup":
        """Return the sentence as safe HTML in all languages, the values in its gaps marked."""
        from markupsafe import Markup

        self._shown.add(self.table[sentence.key][LANGUAGES[0]])
        spans = []
        for language in LANGUAGES:
            texts = {key: (value, self.translate(value, language)) for key, value in sentence.values.items()}
            gaps = {
                key: _Gap(value, Markup("<b><bdi>{}</bdi></b>").format(_whole_intervals(text)))
                for key, (value, text) in texts.items()
            }
            template = Markup(html.escape(self.table[sentence.key][language], quote=False))
            spans.append(Markup('<span class="t" lang="{}">{}</span>').format(language, template.format_map(gaps)))
        return Markup("").join(spans)

    def fill(self, template: str, values: Mapping[str, str], language: str) -> str:
        """Return a text with its placeholders filled, as plain text in one language."""
        gaps = {key: _Gap(value, self.translate(value, language)) for key, value in values.items()}
        return template.format_map(gaps)


class _Gap(NamedTuple):
    """A value in a sentence, as it was formatted and as it is shown.

    ``{n:answer|answers}`` is the number with the word in the form that it needs, ``{n:?is|are}`` that form alone.
    ``{interval:@95% interval}`` is an interval with its level, or the reason alone for a missing one.
    """

    value: str
    shown: str

    def __format__(self, forms: str) -> str:
        is_reason = self.value == DASH or self.value.startswith(f"{WORD}why_")
        if not forms or (is_reason and forms.startswith("@")):
            return self.shown
        if forms.startswith("@"):
            return f"{forms.removeprefix('@')} {self.shown}"
        singular, plural = forms.removeprefix("?").split("|")
        form = singular if self.value == "1" else plural
        return form if forms.startswith("?") else f"{self.shown} {form}"

    def __html_format__(self, forms: str) -> "Markup":
        from markupsafe import Markup

        return Markup(format(self, forms))


def _in_all_languages(texts: Mapping[str, str]) -> "Markup":
    from markupsafe import Markup

    if len(set(texts.values())) == 1:
        return Markup("<bdi>{}</bdi>").format(_whole_intervals(texts[LANGUAGES[0]]))
    spans = [
        Markup('<span class="t" lang="{}">{}</span>').format(language, _whole_intervals(text))
        for language, text in texts.items()
    ]
    return Markup("").join(spans)


def _whole_intervals(text: str) -> "Markup":
    """Return the text as safe HTML in which no line breaks within an interval."""
    from markupsafe import Markup

    return Markup(_RANGE.sub(r'<span class="range">\g<0></span>', html.escape(text, quote=False)))


def template_environment(strings: Strings) -> "Environment":
    """Return the environment in which templates are rendered: values are escaped, undefined names are errors."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(read_template),
    )
    environment.filters["text"] = strings.text
    # A filter of a constant is called as the template is compiled, also where its part is left out: without a context
    # every word would count as shown.
    environment.filters["word"] = jinja2.pass_context(lambda _, key: strings.word(key))
    environment.filters["sentence"] = strings.sentence
    environment.filters["translate"] = strings.translate
    environment.tests["mentioned"] = strings.mentions  # pyrefly: ignore[unsupported-operation] - typed as the tests of Jinja itself
    return environment


def read_template(name: str) -> str:
    """Return the text of a file among the templates."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def read_texts(name: str) -> dict[str, Mapping[str, str]]:
    """Return the words of a file among the templates, by key."""
    return tomllib.loads(read_template(name))


def code_markup(code: str) -> "Markup":
    """Return a script or style of the package for a page, unescaped."""
    from markupsafe import Markup

    assert not re.search("</(script|style)", code, re.IGNORECASE), "the code would end its element"
    assert "<!--" not in code or not re.search(r"<script[\s/>]", code, re.IGNORECASE), "its element would not end"
    return Markup(code)


def script_hash(script: str) -> str:
    """Return the hash by which a page's content security policy allows a script."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def json_markup(value: Any) -> "Markup":
    """Return a value as JSON that is safe inside a script element."""
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    escaped = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(escaped.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def page_strings(more: Mapping[str, Mapping[str, str]] | None = None) -> Strings:
    """Return the words of the page, with those of every measure; ``more`` words replace others of the same key."""
    return Strings("strings.toml", {**section_texts(), **measure_texts(), **(more or {})})


@functools.cache
def section_texts() -> dict[str, Mapping[str, str]]:
    """Return the words of the files in ``templates/sections``, by key."""
    texts: dict[str, Mapping[str, str]] = {}
    for file in sorted((_FOLDER / "sections").iterdir(), key=lambda file: file.name):
        texts |= tomllib.loads(file.read_text(encoding="utf-8"))
    return texts


def render(page: Page) -> str:
    """Return the HTML text. It loads no script, style, font or picture, and its policy forbids to."""
    from markupsafe import Markup

    strings = page_strings()
    is_whole = page.packed.num_whole == len(page.packed.lines)
    sizes = {"whole": count(page.packed.num_whole), "all": count(len(page.packed.lines))}
    defined = [key.removeprefix(_DEFINITION) for key in measure_texts() if key.startswith(_DEFINITION)]
    environment = template_environment(strings)
    failures = None
    if page.failures is not None:
        failures = environment.from_string(read_template("failures.html")).render(page=page, failures=page.failures)
    figures = [panel.figure.spec for section in page.sections for panel in section.panels if panel.figure]
    needs = page.packed.needs.of(_example_texts(page.sections))
    scripts = [*library_scripts(needs, has_figures=bool(figures)), *map(read_template, _SCRIPTS)]
    return environment.from_string(read_template("page.html")).render(
        page=page,
        failures=None if failures is None else Markup(failures),
        errors=packed_text(page.failures.record if page.failures else {}),
        terms=["accuracy", "exact_match", "interval_95", *defined, "conflict_ratio", "tier"],
        left_out=None if is_whole else Sentence("say_left_out", sizes),
        styles=code_markup("".join(map(read_template, _STYLES)) + library_styles(needs)),
        scripts=[code_markup(script) for script in scripts],
        hashes=[script_hash(script) for script in scripts],
        figures=json_markup(figures),
        strings=json_markup(strings.table | strings.language_names(page.packed.languages)),
        index=packed_text([msgspec.Raw(line) for line in page.packed.lines]),
        pages=page.packed.pages,
    )


def _example_texts(sections: Iterable[Section]) -> Iterator[str]:
    """Give the texts of the examples, which are shown as those of items are."""
    for example in (example for section in sections for panel in section.panels for example in panel.examples):
        yield from (example.prompt or "", *(text for _, text in example.answers))
