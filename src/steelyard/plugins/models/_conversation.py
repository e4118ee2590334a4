"""From a conversation and an answer to token ids, one place for trainer and scorer: template, specials, strip, cut."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from steelyard.core.config import Config
from steelyard.core.errors import FileError, ModelError
from steelyard.core.types import Case, Message, Response

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
    own, for templates that write no beginning-of-text mark. ``max_length`` is in tokens.
    """

    template: str
    special_tokens: Literal["template", "tokenizer"] = "template"
    strip: bool = True
    max_length: int = 2048
    over_length: OverLength = "refuse"

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
        return Path(named).read_text(encoding="utf-8")
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
    text = _render(tokenizer, rendering, messages, case.prompt.id)
    if rendering.strip:
        text = text.rstrip()
    ids = _tokenise(tokenizer, rendering, text, [message.content for message in messages])
    bos = tokenizer.bos_token_id
    if bos is not None and ids[:2] == [bos, bos]:
        raise ModelError("two beginning-of-text marks", where=case.prompt.id, do="set special_tokens='template'")
    return Encoded(_cut(ids, rendering, bos), len(ids))


def _render(tokenizer: Any, rendering: Rendering, messages: Sequence[Message], where: str) -> str:
    import jinja2

    turns = [{"role": message.role, "content": message.content} for message in messages]
    try:
        text = tokenizer.apply_chat_template(turns, tokenize=False, chat_template=rendering.template)
    except jinja2.TemplateError as error:
        raise ModelError(f"the chat template refuses this conversation ({error})", where=where) from error
    for message in messages:
        # Templates may trim the white space around a text, and many do; nothing else of it may change.
        if message.content.strip() not in text:
            raise ModelError(
                f"the chat template changes or drops the {message.role} text {message.content[:40]!r}",
                where=where,
                do="name a template that keeps every text: --chat-template",
            )
    return text


def _tokenise(tokenizer: Any, rendering: Rendering, text: str, contents: Sequence[str]) -> list[int]:
    add = rendering.special_tokens == "tokenizer"
    marks = [mark for mark in tokenizer.all_special_tokens if any(mark in content for content in contents)]
    if not marks:
        return tokenizer(text, add_special_tokens=add, truncation=False).input_ids
    # A text that spells out a special token is text: it is tokenised apart, so that no mark in it takes effect.
    ids: list[int] = tokenizer("", add_special_tokens=True).input_ids[:1] if add else []
    position = 0
    for content in (content.strip() for content in contents):
        start = text.find(content, position)
        if start < 0:
            raise ModelError("the chat template changes the order of the texts", do="name another: --chat-template")
        ids += tokenizer(text[position:start], add_special_tokens=False).input_ids
        ids += tokenizer(content, add_special_tokens=False, split_special_tokens=True).input_ids
        position = start + len(content)
    return ids + tokenizer(text[position:], add_special_tokens=False).input_ids


def _cut(ids: list[int], rendering: Rendering, bos: int | None) -> tuple[int, ...]:
    limit = rendering.max_length
    if len(ids) <= limit:
        return tuple(ids)
    if rendering.over_length == "left":
        head = ids[:1] if bos is not None and ids[0] == bos else []
        return tuple(head + ids[len(ids) - limit + len(head) :])
    return tuple(ids[:limit])
