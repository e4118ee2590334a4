"""What every room does when it renders a conversation: special tokens that a text spells out stay text, and templates
that ask for the date are told a fixed one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from itertools import chain
from typing import Any

TODAY = "2024-07-26"
"""What the templates that ask for the date write themselves where they get none."""


@lru_cache(maxsize=4)
def _special_marks(tokenizer: Any) -> re.Pattern[str] | None:
    """Finds every token that would take effect by being spelt out; many of them have no name in the tokenizer."""
    marks = {mark.content for mark in tokenizer.added_tokens_decoder.values() if mark.special}
    longest_first = sorted(marks | set(tokenizer.all_special_tokens), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def stand_ins(tokenizer: Any, texts: Sequence[str]) -> dict[str, str]:
    """For each special token that a text spells out, a private character that no text has, by mark.

    So the mark cannot be mistaken for one that the template writes, until it is tokenised as plain characters.
    """
    marks, joined = _special_marks(tokenizer), "\0".join(texts)
    found = dict.fromkeys(marks.findall(joined)) if marks else {}
    free = (character for character in map(chr, range(0xF0000, 0xFFFFE)) if character not in joined)
    return dict(zip(found, free, strict=False))


def hidden(text: str, instead: Mapping[str, str]) -> str:
    """The text with the stand-in for each mark."""
    for mark in sorted(instead, key=len, reverse=True):
        text = text.replace(mark, instead[mark])
    return text


def tokenise(tokenizer: Any, text: str, instead: Mapping[str, str], *, add: bool) -> list[int]:
    """Token ids of a rendered text whose stand-ins are plain text again; ``add``: with the tokenizer's own marks."""
    if not instead:
        return tokenizer(text, add_special_tokens=add, truncation=False).input_ids
    ids = list(chain.from_iterable(_parts(tokenizer, text, instead)))
    if not add:
        return ids
    around, inside = tokenizer("a").input_ids, tokenizer("a", add_special_tokens=False).input_ids
    start = around.index(inside[0])
    return around[:start] + ids + around[start + len(inside) :]


def _parts(tokenizer: Any, text: str, instead: Mapping[str, str]) -> Iterator[list[int]]:
    marks = {character: mark for mark, character in instead.items()}
    for part in re.split(f"([{''.join(marks)}])", text):
        plain = marks.get(part)
        yield tokenizer(plain or part, add_special_tokens=False, split_special_tokens=plain is not None).input_ids


def without_clock(template: str, today: str) -> str:
    """The template, told ``today`` whenever it asks for the date.

    Differs from: transformers, which tells it the day on which it is rendered. A macro of the same name goes before
    the template's own text, since functions cannot be handed to it.
    """
    if "strftime_now" not in template:
        return template
    day = date.fromisoformat(today)
    told = "".join(f"|replace('%{letter}', '{day.strftime('%' + letter)}')" for letter in "aAbBdjmyYFDHIMSp")
    return f"{{% macro strftime_now(pattern) %}}{{{{ pattern{told} }}}}{{% endmacro %}}{{{{ '' }}}}{template}"
