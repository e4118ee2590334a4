"""Pages: templates filled with a visitor, words of the visitor's language, and texts of people and models as safe HTML.

Nothing that came from a file reaches a page but escaped, or through `safe_markdown`, whose formulas a script of the
page sets with KaTeX.
"""

import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from steelyard.core.errors import FileError, Place, RecordError, UserError
from steelyard.core.names import escape_unseen, mark_unseen
from steelyard.core.text import name_hidden
from steelyard.io.encodings import EncodingError
from steelyard.workbench.accounts.people import Visitor
from steelyard.workbench.accounts.permissions import ALLOWED
from steelyard.workbench.pipeline.projects import case_of
from steelyard.workbench.pipeline.question_words import (
    category_name,
    choice_label,
    label_of,
    question_in_words,
    reason_label,
)
from steelyard.workbench.pipeline.waiting import count_waiting
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import StoredItem
from steelyard.workbench.views.answer_markdown import LONGEST_RENDERED, safe_markdown

FOLDER = Path(__file__).parents[1]
LANGUAGES = ("en", "zh")
_LONGEST_TITLE = 80


def page(request: Request, template: str, visitor: Visitor | None, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page from a template of ``templates/``. Every template knows ``visitor``, ``words`` and ``may``."""
    language = language_of(request, visitor)
    words = words_of(language)
    num_waiting = 0
    # An error page asks nothing of the database, which may be the cause.
    if visitor is not None and status == 200 and {"align", "adjudicate"} & ALLOWED[visitor.role]:
        database: Database = request.app.state.database
        with database.looking_up() as session:
            num_waiting = count_waiting(session, visitor.person, visitor.role)
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
            num_waiting=num_waiting,
            **values,
        )
    )
    return HTMLResponse(text, status)


def form_version(*values: object) -> str:
    """Return a hash of the values that a form shows: sent back, it tells whether they have changed since."""
    return sha256(msgspec.json.encode(values, order="sorted")).hexdigest()[:32]


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


def shown_text(text: str, language: str) -> Markup:
    """Return a text of people or models as HTML; one that is too long is as it was written, and the page says so."""
    words = words_of(language if language in LANGUAGES else LANGUAGES[0])
    return safe_markdown(text, words["as_written"].format(limit=f"{LONGEST_RENDERED:,}"))


def refusal_text(error: UserError, language: str) -> str:
    """Return why a request was refused, in the words of a page.

    The errors of the core have English words alone: in another language their kind and place make the sentence.
    """
    words, where = words_of(language), error.where
    if isinstance(error, RefusedError) and error.words:
        sentence = words[f"refused {error.words}"].format(**error.values)
        if isinstance(where, Place) and where.line is not None:
            at = words["refused at"]
            sentence = at.format(file=where.file, line=where.line, field=where.path or "", text=sentence)
        return sentence
    if language == "en":
        return str(error)
    if error.parts:
        return "\n".join(dict.fromkeys(refusal_text(part, language) for part in error.parts))
    is_encoding = isinstance(error, EncodingError)
    if not is_encoding and isinstance(where, Place) and where.line is not None:
        field = words["in_brackets"].format(text=where.path) if where.path else ""
        return words["refused line"].format(file=where.file, line=where.line, field=field)
    if isinstance(error, FileError | RecordError):
        return words["refused encoding" if is_encoding else "refused file"].format(file=where or "")
    label = words.get(f"setting {where}", words.get(f"setting {str(where).rpartition('.')[2]}"))
    return words["refused other"] if label is None else words["refused setting"].format(label=label)


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def _date(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def _compact(value: Any) -> str:
    """Return a value as JSON whose unseen characters are written out: a log has to be read as it is."""
    return escape_unseen(msgspec.json.encode(value).decode())


def _beginning(item: StoredItem) -> str:
    """Return the first words of the last turn of a prompt; the number of the item where there are none."""
    turns = case_of(item).prompt.messages
    words = " ".join(turns[-1].content.split()) if turns else ""
    shown = words[: _LONGEST_TITLE - 1] + "…" if len(words) > _LONGEST_TITLE else words or str(item.id)
    return name_hidden(shown)


def _filled(words: str, **values: str) -> Markup:
    """Fill texts of people into a sentence, each of them isolated: its direction is not that of the sentence."""
    return escape(words).format(**{name: Markup("<bdi>{}</bdi>").format(value) for name, value in values.items()})


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["markdown"] = shown_text
    environment.filters["moment"] = _moment
    environment.filters["date"] = _date
    environment.filters["seen"] = mark_unseen
    environment.filters["named_hidden"] = name_hidden
    environment.filters["compact"] = _compact
    environment.filters["filled"] = _filled
    environment.filters["beginning"] = _beginning
    environment.filters["question"] = label_of
    environment.filters["reason"] = reason_label
    environment.filters["choice"] = lambda value, question, language: choice_label(question, value, language)
    environment.filters["category"] = category_name
    environment.filters["in_words"] = lambda question, letters, language: question_in_words(question, language, letters)
    return environment
