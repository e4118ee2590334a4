"""From a conversation and an answer to token ids, one place for trainer and scorer: template, specials, strip, cut."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

from steelyard.core.config import Config
from steelyard.core.errors import FileError, ModelError, Place
from steelyard.core.types import Case, Message, Response
from steelyard.files.lines import check_readable, check_utf8

OverLength = Literal["refuse", "left", "right"]

# Our own plain template, for base models that have none: roles as words, the tokenizer's end-of-text mark at the end.
PLAIN_TEMPLATE = (
    "{% for message in messages %}"
    "{% if not loop.first %}\n\n{% endif %}{{ message.role | capitalize }}:\n{{ message.content }}"
    "{% endfor %}{{ eos_token }}"
)
_BUILT_IN = {"plain": PLAIN_TEMPLATE}


class Rendering(Config, frozen=True):
    """How text becomes tokens: stored with the model, and the same in training, evaluation and serving.

    ``special_tokens``: ``template`` adds nothing to what the template writes; ``tokenizer`` lets the tokenizer add its
    own, for templates that write no beginning-of-text mark. ``max_length`` is in tokens. ``today`` is the date that a
    template which writes the date is told: the real one would change every score overnight.
    """

    template: str
    special_tokens: Literal["template", "tokenizer"] = "template"
    strip: bool = True
    max_length: int = 2048
    over_length: OverLength = "refuse"
    today: str = "2024-07-26"  # what the templates that ask for the date write themselves where they get none

    @property
    def template_hash(self) -> str:
        """What tells two templates apart in a manifest."""
        return hashlib.sha256(self.template.encode()).hexdigest()[:16]


class Encoded(NamedTuple):
    """The token ids of a conversation with its answer. ``length`` is what it was before it was cut."""

    ids: tuple[int, ...]
    length: int

    @property
    def is_over_length(self) -> bool:
        """Whether the ids are fewer than the text's."""
        return len(self.ids) < self.length


def choose_template(tokenizer: Any, named: str | None, *, model: str) -> str:
    """The template that is named (a built-in name or a Jinja file), or the tokenizer's own.

    Raises ModelError for a model without a template when none is named: guessing one gives silently wrong scores.
    """
    if named in _BUILT_IN:
        return _BUILT_IN[str(named)]
    if named is not None:
        if not Path(named).is_file():
            raise FileError(
                "there is no such chat template", where=named, allowed=f"a Jinja file, or {', '.join(_BUILT_IN)}"
            )
        check_readable(Path(named))
        return check_utf8(Path(named).read_bytes(), Place(file=named))
    own = tokenizer.chat_template
    if not isinstance(own, str):
        raise ModelError(
            "the model has no chat template", where=model, do="name one: --chat-template plain, or a Jinja file"
        )
    return own


def choose_special_tokens(tokenizer: Any, template: str) -> Literal["template", "tokenizer"]:
    """``tokenizer`` only where the tokenizer would begin with a mark of its own that the template does not write."""
    bos = tokenizer.bos_token
    adds_bos = bool(bos) and tokenizer("a").input_ids[:1] == [tokenizer.bos_token_id]
    writes_bos = bool(bos) and ("bos_token" in template or bos in template)
    return "tokenizer" if adds_bos and not writes_bos else "template"


def encode(tokenizer: Any, rendering: Rendering, case: Case, response: Response) -> Encoded:
    """The token ids of one answer to the case's prompt. Neither the case nor its messages are changed.

    Raises ModelError when the template refuses the roles, changes or drops a text, or doubles the beginning mark.
    """
    answer = response.messages or (Message(role="assistant", content=response.text or ""),)
    messages = (*case.prompt.messages, *answer)
    stand_ins = _stand_ins(messages, _special_marks(tokenizer))
    text = _render(tokenizer, rendering, messages, stand_ins, where=case.prompt.id)
    if rendering.strip:
        text = text.rstrip()
    ids = _tokenise(tokenizer, text, stand_ins, add=rendering.special_tokens == "tokenizer")
    bos = tokenizer.bos_token_id
    if not ids:
        raise ModelError("the conversation has no tokens", where=case.prompt.id, do="name another: --chat-template")
    if bos is not None and ids[:2] == [bos, bos]:
        raise ModelError("two beginning-of-text marks", where=case.prompt.id, do="set special_tokens='template'")
    return Encoded(_cut(ids, rendering, bos), len(ids))


@lru_cache(maxsize=16)
def _special_marks(tokenizer: Any) -> re.Pattern[str] | None:
    """Finds every token that would take effect by being spelt out; many of them have no name in the tokenizer."""
    marks = {mark.content for mark in tokenizer.added_tokens_decoder.values() if mark.special}
    longest_first = sorted(marks | set(tokenizer.all_special_tokens), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def _stand_ins(messages: Sequence[Message], marks: re.Pattern[str] | None) -> dict[str, str]:
    """For each special token that a text spells out, a private character that no text has, by mark.

    A text that spells out a special token is text: the mark is hidden from the template's own marks until it is
    tokenised as plain characters.
    """
    texts = "".join(message.content for message in messages)
    found = dict.fromkeys(marks.findall(texts)) if marks else {}
    free = (character for character in map(chr, range(0xF0000, 0xFFFFE)) if character not in texts)
    return dict(zip(found, free, strict=False))


def _hidden(text: str, stand_ins: Mapping[str, str]) -> str:
    for mark in sorted(stand_ins, key=len, reverse=True):
        text = text.replace(mark, stand_ins[mark])
    return text


def _render(
    tokenizer: Any, rendering: Rendering, messages: Sequence[Message], stand_ins: Mapping[str, str], *, where: str
) -> str:
    import jinja2

    turns = [{"role": message.role, "content": _hidden(message.content, stand_ins)} for message in messages]
    # Differs from: transformers, which tells templates the day on which they are rendered.
    today = date.fromisoformat(rendering.today).strftime
    try:
        text = tokenizer.apply_chat_template(
            turns, tokenize=False, chat_template=rendering.template, strftime_now=today
        )
    except jinja2.TemplateError as error:
        raise ModelError(f"the chat template refuses this conversation ({error})", where=where) from error
    rest = text
    # Longest first, and each is taken out: a dropped text must not be found inside another one that quotes it.
    for turn, message in sorted(zip(turns, messages, strict=True), key=lambda both: -len(both[0]["content"])):
        # Templates may trim the white space around a text, and many do; nothing else of it may change.
        content = turn["content"].strip()
        if content not in rest:
            raise ModelError(
                f"the chat template changes or drops the {message.role} text {message.content[:40]!r}",
                where=where,
                do="name a template that keeps every text: --chat-template",
            )
        rest = rest.replace(content, "\0", 1) if content else rest
    return text


def _tokenise(tokenizer: Any, text: str, stand_ins: Mapping[str, str], *, add: bool) -> list[int]:
    if not stand_ins:
        return tokenizer(text, add_special_tokens=add, truncation=False).input_ids
    ids = list(chain.from_iterable(_parts(tokenizer, text, stand_ins)))
    if not add:
        return ids
    around, inside = tokenizer("a").input_ids, tokenizer("a", add_special_tokens=False).input_ids
    start = around.index(inside[0])
    return around[:start] + ids + around[start + len(inside) :]


def _parts(tokenizer: Any, text: str, stand_ins: Mapping[str, str]) -> Iterator[list[int]]:
    marks = {character: mark for mark, character in stand_ins.items()}
    for part in re.split(f"([{''.join(marks)}])", text):
        plain = marks.get(part)
        yield tokenizer(plain or part, add_special_tokens=False, split_special_tokens=plain is not None).input_ids


def _cut(ids: list[int], rendering: Rendering, bos: int | None) -> tuple[int, ...]:
    limit = rendering.max_length
    if len(ids) <= limit:
        return tuple(ids)
    if rendering.over_length == "left":
        head = ids[:1] if bos is not None and ids[0] == bos else []
        return tuple(head + ids[len(ids) - limit + len(head) :])
    return tuple(ids[:limit])
