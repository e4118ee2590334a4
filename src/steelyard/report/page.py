"""The page: values in, one self-contained HTML text out. Everything that is a user's own is escaped or packed."""

import base64
import functools
import hashlib
import html
import json
import re
import tomllib
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

from steelyard.evaluation.tables import Sentence, count
from steelyard.report.packing import Packed, packed_text
from steelyard.report.sections import Protocol, Section
from steelyard.report.summary_text import CardGroup

LANGUAGES = ("en", "zh")
_WORD = re.compile(r"@@([a-z0-9_]+)\|(.*?)@@", re.DOTALL)
_FOLDER = files("steelyard.report") / "templates"


class Page(NamedTuple):
    """All that the page shows, in its order."""

    title: str
    language: str
    models: tuple[str, ...]
    is_simulated: bool
    cards: tuple[CardGroup, ...]
    sentences: tuple[Sentence, ...]
    sections: tuple[Section, ...]
    packed: Packed
    protocols: tuple[Protocol, ...]
    version: str


class Strings:
    """The words of the interface in every language, and texts made of them."""

    def __init__(self) -> None:
        self.table: dict[str, dict[str, str]] = tomllib.loads(_read("strings.toml"))

    def resolved(self, text: str, language: str) -> str:
        """The text with its words in one language; a word without translation is what stands for it."""
        return _WORD.sub(lambda found: self.table.get(found[1], {}).get(language, found[2]), text)

    def shown(self, text: str) -> Any:
        """The text as safe HTML in all languages, of which the page shows one."""
        from markupsafe import Markup

        own = {language: self.resolved(text, language) for language in LANGUAGES}
        if len(set(own.values())) == 1:
            return Markup("<bdi>{}</bdi>").format(text if text == own["en"] else own["en"])
        spans = [Markup('<span class="t" lang="{}">{}</span>').format(language, said) for language, said in own.items()]
        return Markup("").join(spans)

    def say(self, sentence: Sentence) -> Any:
        """The sentence as safe HTML in all languages, the values in its gaps marked."""
        from markupsafe import Markup

        spans = []
        for language in LANGUAGES:
            gaps = {
                key: Markup("<b><bdi>{}</bdi></b>").format(self.resolved(value, language))
                for key, value in sentence.values.items()
            }
            template = Markup(html.escape(self.table[sentence.key][language], quote=False))
            spans.append(Markup('<span class="t" lang="{}">{}</span>').format(language, template.format_map(gaps)))
        return Markup("").join(spans)


def render(page: Page) -> str:
    """The HTML text. No script, style, font or picture of it comes from elsewhere, and its policy forbids any to."""
    import jinja2

    strings = Strings()
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["shown"] = strings.shown
    environment.filters["say"] = strings.say
    environment.filters["plain"] = strings.resolved
    figures = [panel.figure.spec for section in page.sections for panel in section.panels if panel.figure]
    scripts = [*([_vega()] if figures else []), *(_read(name) for name in ("page.js", "graph.js", "items.js"))]
    return environment.from_string(_read("page.html")).render(
        page=page,
        left_out=_left_out(page.packed),
        styles=_safe(_read("page.css")),
        scripts=[_safe(script) for script in scripts],
        hashes=[_script_hash(script) for script in scripts],
        figures=_json_inside_html(figures),
        strings=_json_inside_html(strings.table),
        index=packed_text([msgspec.Raw(line) for line in page.packed.lines]),
        pages=page.packed.pages,
    )


def _left_out(packed: Packed) -> Sentence | None:
    if packed.num_whole == len(packed.lines):
        return None
    return Sentence("say_left_out", {"whole": count(packed.num_whole), "all": count(len(packed.lines))})


def _json_inside_html(value: Any) -> Any:
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    escaped = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(escaped.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def _safe(own: str) -> Any:
    from markupsafe import Markup

    assert not re.search("</(script|style)", own), "our own code would end its element"
    return Markup(own)


def _script_hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


@functools.cache  # the bundle is the same for every page, and takes seconds to make
def _vega() -> str:
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
