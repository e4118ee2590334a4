"""A comparison as messages: instructions with their slots filled, and the material between marks that nobody can fake.

The marks hold a hash of all that is shown: an answer cannot contain the hash of itself, so it cannot close its own
section and speak to the judge from outside.

Differs from: the templates of CHEEMS (figures 11 to 14) and M-RewardBench (figure 6), in wording throughout; that of
M-RewardBench names no criteria by category.
"""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from steelyard.core.comparison import Question
from steelyard.core.config import Config
from steelyard.core.errors import ConfigError
from steelyard.core.identity import content_id
from steelyard.core.types import Message, Prompt, Response
from steelyard.judging.reply_parsing import Form
from steelyard.plugins.judges._texts import (
    FormTexts,
    Texts,
    Tongue,
    criterion_of,
    is_chinese,
    language_name,
    language_of,
    style_named,
    texts_hash,
    texts_in,
)

Task = Literal["pair", "best", "ranking", "rating"]
PromptLanguage = Literal["item", "en", "zh"]
Orders = Literal["both", "one"]
Shown = TypeVar("Shown")
_NUM_ALTERNATIVES = 20


class Wording(Config, frozen=True):
    """How a judge is asked, with nothing left open. `worded` makes it from a judge's settings."""

    style: str
    """The style of the prompt."""
    form: Form
    """The form of the verdict in the reply."""
    reason: bool
    """Whether the judge gives reasons before its verdict."""
    system: bool
    """Whether the instructions are a system message."""
    max_tokens: int
    """The longest reply in tokens."""
    prompt_language: PromptLanguage
    """The language of the prompt."""
    criteria: bool
    """Whether the prompt names criteria."""

    def protocol(self) -> dict[str, Any]:
        """What decides the prompts."""
        return msgspec.to_builtins(self) | {"texts": texts_hash()}


class Asked(Protocol):
    """The settings that every judge has."""

    @property
    def style(self) -> str: ...
    @property
    def form(self) -> Form | None: ...
    @property
    def reason(self) -> bool | None: ...
    @property
    def max_tokens(self) -> int | None: ...
    @property
    def prompt_language(self) -> PromptLanguage: ...
    @property
    def criteria(self) -> bool: ...


def worded(asked: Asked) -> Wording:
    """The style with what the settings change of it.

    Raises ConfigError for a style that there is not, and for reasons in a form that has no place for them.
    """
    own = style_named(asked.style)
    form = asked.form or own.form
    # A form that carries no reasons needs no room for them, and one that does needs it.
    may_reason, is_other = form in ("brackets", "json"), form != own.form
    reason = (may_reason if is_other else own.reason) if asked.reason is None else asked.reason
    if reason and not may_reason:
        raise ConfigError(f"form={form!r} has no place for reasons", where="judge.reason", allowed="false")
    room = {"first_token": 1}.get(form, 2048 if may_reason else 64) if is_other else own.max_tokens
    return Wording(
        style=asked.style,
        form=form,
        reason=reason,
        system=own.system,
        max_tokens=asked.max_tokens or room,
        prompt_language=asked.prompt_language,
        criteria=asked.criteria,
    )


def in_orders(shown: Sequence[Shown], orders: Orders) -> tuple[tuple[Shown, ...], ...]:
    """What is shown in the order given, and for ``both`` in reverse too."""
    both = (tuple(shown), tuple(shown[::-1]))
    return both if orders == "both" else both[:1]


def question(
    task: Task, prompt: Prompt, shown: Sequence[Response], wording: Wording, *, labels: Sequence[str]
) -> Question:
    """What the language model is asked. ``labels`` has one more than ``shown`` where a tie is offered, last."""
    tongue: Tongue = _tongue(prompt, wording)
    texts = texts_in(tongue)
    form = _form_texts(texts, wording)
    mark = content_id({"prompt": _said(prompt.messages, texts), "answers": [_answer(one, texts) for one in shown]})[:8]
    material = _material(prompt, shown, texts, form, mark=mark)
    told = "\n\n".join(
        [
            texts.task[task].format(number=len(shown)),
            *_languages(prompt, texts, tongue),
            *_criteria(prompt, texts, wording),
            *([texts.told["reference"]] if prompt.reference else []),
            texts.told["fair"],
            texts.told["material"].format(mark=mark),
            *_ending(task, texts, wording, labels=labels, num_shown=len(shown)),
        ]
    )
    messages = (
        (Message(role="system", content=told), Message(role="user", content=material))
        if wording.system
        else (Message(role="user", content=f"{told}\n\n{material}"),)
    )
    alternatives = _NUM_ALTERNATIVES if wording.form == "first_token" else 0
    return Question(messages=messages, max_tokens=wording.max_tokens, alternatives=alternatives)


def _tongue(prompt: Prompt, wording: Wording) -> Tongue:
    if wording.prompt_language != "item":
        return wording.prompt_language
    return "zh" if is_chinese(prompt.language) else "en"


def _languages(prompt: Prompt, texts: Texts, tongue: Tongue) -> list[str]:
    """The language of the request and the one in which answers are wanted (M-RewardBench, figure 6)."""
    wanted = (prompt.meta or {}).get("answer_language") or prompt.language
    slots = (("question_language", prompt.language), ("answer_language", wanted))
    lines = [texts.told[name].format(language=language_name(str(code), tongue)) for name, code in slots if code]
    if wanted:
        # A code without a script says nothing of the script that is wanted.
        lines += [texts.told["either_script"]] if language_of(str(wanted)) == "chinese" else []
        lines.append(texts.told["native"])
    return [texts.part["space"].join(lines)] if lines else []


def _criteria(prompt: Prompt, texts: Texts, wording: Wording) -> list[str]:
    if not wording.criteria:
        return []
    points = texts.criteria[criterion_of(prompt)]
    # No numbers in front: a reply that repeats "1." would have a line that reads as a rating.
    return ["\n".join([texts.told["criteria"], *(f"- {point}" for point in points)])]


def _form_texts(texts: Texts, wording: Wording) -> FormTexts:
    return texts.form["letter" if wording.form == "first_token" else wording.form]


def _ending(task: Task, texts: Texts, wording: Wording, *, labels: Sequence[str], num_shown: int) -> list[str]:
    """Say whether reasons are wanted, whether one answer must be chosen, and how the verdict is to be written."""
    reason = ("reason_rating" if task == "rating" else "reason") if wording.reason else "no_reason"
    is_forced = task in ("pair", "best") and len(labels) == num_shown
    return [
        texts.told[reason],
        *([texts.told["forced"]] if is_forced else []),
        _wanted(task, texts, wording, labels=labels, num_shown=num_shown),
    ]


def _wanted(task: Task, texts: Texts, wording: Wording, *, labels: Sequence[str], num_shown: int) -> str:
    form = _form_texts(texts, wording)
    reason = form.reason if wording.reason else ""
    if task == "rating":
        assert form.rating is not None, "a form that carries ratings"
        return form.rating.format(reason=reason)
    if task == "ranking":
        assert form.ranking is not None, "a form that carries rankings"
        return form.ranking
    one = form.best if task == "best" else form.one
    choices = [
        (one if place < num_shown else form.tie).format(label=label, small=label.lower())
        for place, label in enumerate(labels)
    ]
    listed = texts.part["comma"].join(choices[:-1]) + texts.part["or"] + choices[-1]
    return form.choice.format(choices=listed, reason=reason)


def _material(prompt: Prompt, shown: Sequence[Response], texts: Texts, form: FormTexts, *, mark: str) -> str:
    parts = [(texts.part["request"], _said(prompt.messages, texts))]
    if prompt.reference:
        parts.append((texts.part["reference"], prompt.reference))
    for place, response in enumerate(shown):
        label = chr(ord("A") + place)
        parts.append((form.answer.format(label=label, small=label.lower()), _answer(response, texts)))
    lines = [f"===== {name} {mark} =====\n{text}" for name, text in parts]
    return "\n\n".join([*lines, f"===== {texts.part['end']} {mark} ====="])


def _said(messages: Sequence[Message], texts: Texts) -> str:
    """The turns of a conversation; a single turn of the user stands by itself."""
    if len(messages) == 1 and messages[0].role == "user":
        return messages[0].content
    turn = texts.part["turn"]
    return "\n\n".join(turn.format(role=texts.part.get(one.role, one.role), text=one.content) for one in messages)


def _answer(response: Response, texts: Texts) -> str:
    if response.text is not None:
        return response.text
    messages = response.messages or ()
    if len(messages) == 1 and messages[0].role == "assistant":
        return messages[0].content
    return _said(messages, texts)
