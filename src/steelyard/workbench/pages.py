"""Pages: templates filled with a visitor, words of the visitor's language, and texts of people and models as safe HTML.

Markdown of a response is rendered with HTML off and cleaned afterwards. LaTeX stays as text between its marks: a script
of the page sets it with KaTeX. Nothing that came from a file reaches a page in another way.
"""

import re
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import nh3
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from steelyard.workbench.people import Visitor
from steelyard.workbench.permissions import ALLOWED
from steelyard.workbench.question_words import choice_label, label_of, question_in_words

FOLDER = Path(__file__).parent
LANGUAGES = ("en", "zh")
_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_MATH = re.compile(r"\$\$.+?\$\$|\\\[.+?\\\]|\\\(.+?\\\)|(?<![\\$\w])\$(?! )[^$\n]+?(?<! )\$(?![\w$])", re.DOTALL)
_markdown = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])


def page(request: Request, template: str, visitor: Visitor | None, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page from a template of ``templates/``. Every template knows ``visitor``, ``words`` and ``may``."""
    language = language_of(request, visitor)
    words = words_of(language)
    text = (
        _environment()
        .get_template(template)
        .render(
            visitor=visitor,
            language=language,
            words=words,
            may=frozenset() if visitor is None else ALLOWED[visitor.role],
            is_simulated=request.app.state.is_simulated,
            path=request.url.path,
            **values,
        )
    )
    return HTMLResponse(text, status)


def language_of(request: Request, visitor: Visitor | None) -> str:
    """Return the language of the pages: the visitor's own, or for nobody the browser's."""
    if visitor is not None and visitor.language in LANGUAGES:
        return visitor.language
    return "zh" if request.headers.get("accept-language", "").lower().startswith("zh") else "en"


@cache
def words_of(language: str) -> Mapping[str, str]:
    """Return the words of the pages in a language; a word that is not there is an error of the template."""
    table = tomllib.loads((FOLDER / "words.toml").read_text(encoding="utf-8"))
    return {key: entry[language] for key, entry in table.items()}


def safe_markdown(text: str) -> Markup:
    """Return the text as HTML of harmless tags. LaTeX is kept as it was written, as the text of ``span.math``."""
    formulas: list[str] = []

    def keep(match: re.Match[str]) -> str:
        formulas.append(match.group())
        # Letters of the private use area: neither Markdown nor the text itself gives them a meaning.
        return f"\ue000{len(formulas) - 1}\ue001"

    plain = re.sub("[\ue000\ue001]", "", text)
    parts = re.split(r"(```.*?```|`[^`\n]+`)", plain, flags=re.DOTALL)
    marked = "".join(part if place % 2 else _MATH.sub(keep, part) for place, part in enumerate(parts))
    html = nh3.clean(_markdown.render(marked), tags=_TAGS, attributes={"a": {"href"}}, url_schemes={"http", "https"})
    escaped = [str(Markup.escape(formula)) for formula in formulas]
    return Markup(
        re.sub("\ue000(\\d+)\ue001", lambda match: f'<span class="math">{escaped[int(match[1])]}</span>', html)
    )


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def _date(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def _compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["markdown"] = safe_markdown
    environment.filters["moment"] = _moment
    environment.filters["date"] = _date
    environment.filters["compact"] = _compact
    environment.filters["question"] = label_of
    environment.filters["choice"] = lambda value, question, language: choice_label(question, value, language)
    environment.filters["in_words"] = lambda question, letters, language: question_in_words(question, language, letters)
    return environment
