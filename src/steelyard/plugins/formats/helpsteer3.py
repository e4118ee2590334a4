"""HelpSteer3's preferences: a conversation, two answers to its last turn, and how much better which one is.

Written from the card of the data set nvidia/HelpSteer3 (its preference part) and the features that its copies list:
``domain``, ``language``, ``context`` as turns, ``response1``, ``response2``, ``overall_preference`` and up to three
``individual_preference`` of ``score``, ``reasoning``, ``feedback1``, ``feedback2``; numbers go from -3 (the first is
much better) to 3. In the domain ``code`` the language is a programming language: it is the category's second tier.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Response
from steelyard.plugins.formats._fields import (
    PromptIds,
    as_read,
    as_turns,
    count_other_keys,
    form_of,
    optional_text,
    rest,
    text_field,
    turns_of,
    with_meta,
    with_prompt,
)
from steelyard.plugins.formats._helpsteer import (
    Preferences,
    count_unsaid,
    preferences_in,
    said_of,
    said_row,
    without_said,
)
from steelyard.plugins.formats._languages import code_of, name_of
from steelyard.plugins.formats._parts import carrying, count_lost
from steelyard.plugins.formats._plain import answer_or_none
from steelyard.plugins.formats._sides import OTHER_SHAPE

_KIND = "helpsteer3"
_SIDES = ("response1", "response2")
_NAMES = Preferences("overall_preference", "", "individual_preference", "score", "reasoning")
_OPTIONAL = ("domain", "language", _NAMES.individual)
_KEYS = ("context", *_SIDES, _NAMES.overall, *_OPTIONAL)


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class HelpSteer3:
    """One row two answers."""

    keys = _KEYS
    carries = carrying("system turns", "earlier turns", "language", "prompt meta", "judgments")

    def recognises(self, row: dict[str, Any]) -> bool:
        """Turns, two answers, and the overall preference."""
        return isinstance(row.get("context"), list) and {*_SIDES, _NAMES.overall} <= row.keys()

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two responses with the overall judgment and those of annotators."""
        ids = PromptIds(noted)
        for row in rows:
            turns = turns_of(row.value.get("context"), row.place, "context", role="user")
            if not isinstance(row.value.get("context"), list):
                raise RecordError("a context that is no list of turns", where=row.place._replace(path="context"))
            count_other_keys(row.value["context"], ("role", "content"), noted)
            language, domain = optional_text(row, "language"), optional_text(row, "domain")
            category, code = _read(domain, language)
            meta = as_read(
                _KIND,
                # A list makes sure that a name is kept whatever it is.
                said=[[domain, language]] if _said(category, code) != (domain, language) else [],
                null=[key for key in (*_OPTIONAL, _NAMES.overall) if row.value.get(key, ...) is None],
                empty=row.value.get(_NAMES.individual) == [],
            )
            yield Case(
                prompt=with_prompt(turns, id=ids.made(row), language=code, category=category, meta=rest(row, _KEYS)),
                responses=tuple(Response(id=side, text=text_field(row, side)) for side in _SIDES),
                judgments=preferences_in(row, _NAMES, _SIDES),
                meta=meta,
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a case of two answers of one turn; one without a verdict has null for it."""
        for case in cases:
            form, said = form_of(case, _KIND), said_of(case)
            texts = [answer_or_none(response) for response in case.responses]
            is_said = said.overall is not None or _NAMES.overall in form.get("null", ())
            if len(texts) != 2 or None in texts or not case.prompt.messages or not is_said:
                lost[OTHER_SHAPE] += 1
                continue
            category, language = case.prompt.category, case.prompt.language
            wanted = _said(category, language)
            kept = form.get("said") or [wanted]
            domain, name = kept[0] if _said(*_read(*kept[0])) == wanted else wanted
            own_category = _read(domain, name) == (category, language)
            shown = replace(case, prompt=replace(case.prompt, category=())) if own_category else case
            count_lost(without_said(shown, said), lost, self.carries)
            count_unsaid(case, said, _NAMES, lost)
            row = {"domain": domain, "language": name, "context": as_turns(case.prompt.messages)}
            row = {key: value for key, value in row.items() if value is not None}
            row |= dict(zip(_SIDES, texts, strict=True)) | said_row(case, said, _NAMES)
            row |= {key: None for key in form.get("null", ()) if key not in row}
            row |= {_NAMES.individual: []} if form.get("empty") and _NAMES.individual not in row else {}
            yield with_meta(row, case, _KEYS, lost)


def build(config: Config) -> HelpSteer3:
    """The format."""
    return HelpSteer3()


def _said(category: tuple[str, ...], language: str | None) -> tuple[str | None, str | None]:
    """The domain and the language of a row: a language's name in lower case, or else the category's second tier."""
    domain, second = (*category, None, None)[:2]
    return domain, second if language is None else name_of(language).lower()


def _read(domain: str | None, language: str | None) -> tuple[tuple[str, ...], str | None]:
    """The category and the code of a domain and a language."""
    code = code_of(language) if language is not None and domain != "code" else None
    return tuple(name for name in (domain, None if code else language) if name is not None), code
