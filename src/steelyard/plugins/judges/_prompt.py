"""A comparison as messages: instructions with their slots filled, and the material between marks.

The marks hold a word that occurs in no response of the prompt (`separating_mark`), so that an answer cannot close its
own section and address the judge from outside. The same word is the code of the request, which a verdict holds: no
answer can write one. A request begins with the instructions, which name no mark; then come the prompt, its reference,
the first answer and the second, and last the verdicts with their code. What two requests share stands first, where
servers cache it.

Differs from: the templates of CHEEMS (figures 11 to 14) and M-RewardBench (figure 6), in wording throughout; that of
M-RewardBench names no criteria by category.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from steelyard.core.comparison import Question
from steelyard.core.config import Config
from steelyard.core.errors import ConfigError
from steelyard.core.text import answer_language
from steelyard.core.types import JsonObject, Message, Prompt, Response
from steelyard.judging.reply_parsing import Form
from steelyard.plugins.judges._texts import (
    FormTexts,
    TextLanguage,
    Texts,
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
_NUM_ALTERNATIVES = 20
_WITHOUT_REASONS = ("letter", "output", "first_token")
_CODED = ("brackets", "json")
"""The forms of a verdict that may hold the code of its request."""


class JudgeConfig(Config, frozen=True):
    """Settings that every judge has. ``form``, ``reason`` and ``max_tokens`` change those of the style.

    ``prompt_language``: ``item`` asks about Chinese items in Chinese and about all others in English.
    """

    style: Annotated[str, msgspec.Meta(extra={"tables_in": "plugins/judges/styles.toml"})] = "plain"
    """The prompt's style: plain, a model's family (gpt, qwen, rm_r1, …), cheems or mt_bench."""
    form: Form | None = None
    """The form of the verdict in the reply. Default: the style's."""
    reason: bool | None = None
    """Let the judge give reasons before its verdict. Default: the style's."""
    max_tokens: int | None = None
    """The longest reply in tokens. Default: the style's."""
    prompt_language: PromptLanguage = "item"
    """The language of the prompt; item is Chinese for Chinese items and English for all others."""
    criteria: bool | None = None
    """Name criteria in the prompt, by the item's category. Default: the style's."""
    own_marks: bool | None = None
    """Let a verdict hold the code of its request, which no response can know. Default: the style's; forms other
    than brackets and json hold none."""


class Wording(Config, frozen=True):
    """The complete wording of a judge's questions, as `wording_of` makes it from a judge's settings."""

    style: str
    """The style of the prompt."""
    form: Form
    """The form of the verdict in the reply."""
    reason: bool
    """Let the judge give reasons before its verdict."""
    system: bool
    """Write the instructions as a system message."""
    max_tokens: int
    """The longest reply in tokens."""
    prompt_language: PromptLanguage
    """The language of the prompt."""
    criteria: bool
    """Name criteria in the prompt."""
    own_marks: bool
    """Let a verdict hold the code of its request."""

    def protocol(self) -> JsonObject:
        """Return what determines the prompts: these settings, and a hash of all texts."""
        return msgspec.to_builtins(self) | {"texts": texts_hash()}


def wording_of(config: JudgeConfig) -> Wording:
    """Return the style with the changes of the settings.

    Raises ConfigError for an unknown style, and for reasons or a code in a form that has no place for them.
    """
    style = style_named(config.style)
    form = config.form or style.form
    # Only forms with reasons need room for them.
    may_reason, is_other = form not in _WITHOUT_REASONS, form != style.form
    reason = (may_reason if is_other else style.reason) if config.reason is None else config.reason
    if reason and not may_reason:
        raise ConfigError(f"form={form!r} has no place for reasons", where="judge.reason", allowed="false")
    may_code = form in _CODED
    if config.own_marks and not may_code:
        problem = f"form={form!r} has no place for a code"
        raise ConfigError(problem, where="judge.own_marks", allowed=f"false, or a form of {', '.join(_CODED)}")
    usual_tokens = {"first_token": 1}.get(form, 2048 if may_reason else 64) if is_other else style.max_tokens
    return Wording(
        style=config.style,
        form=form,
        reason=reason,
        system=style.system,
        max_tokens=config.max_tokens or usual_tokens,
        prompt_language=config.prompt_language,
        criteria=style.criteria if config.criteria is None else config.criteria,
        own_marks=may_code and (style.own_marks if config.own_marks is None else config.own_marks),
    )


def question(
    task: Task, prompt: Prompt, shown: Sequence[Response], wording: Wording, *, labels: Sequence[str], mark: str
) -> Question:
    """Return a question about the responses shown, between lines with the mark.

    ``labels`` has one more than ``shown`` where a tie is offered.
    """
    text_language: TextLanguage = "zh" if is_chinese(prompt.language) else "en"
    if wording.prompt_language != "item":
        text_language = wording.prompt_language
    texts = texts_in(text_language)
    form = _form_texts(texts, wording)
    material = "\n\n".join(
        [
            texts.instructions["material"].format(mark=mark),
            _material(prompt, shown, texts, form, mark=mark),
            *([_coded(task, texts, form, labels, code=mark)] if wording.own_marks else []),
        ]
    )
    instructions = "\n\n".join(
        [
            texts.task[task].format(number=len(shown)),
            *_languages(prompt, texts, text_language),
            *_criteria(prompt, texts, wording),
            *([texts.instructions["reference"]] if prompt.reference else []),
            texts.instructions["fair"],
            *_ending(task, texts, wording, labels=labels, num_shown=len(shown)),
        ]
    )
    messages = (
        (Message(role="system", content=instructions), Message(role="user", content=material))
        if wording.system
        else (Message(role="user", content=f"{instructions}\n\n{material}"),)
    )
    question = Question(messages=messages, max_tokens=wording.max_tokens)
    if wording.form != "first_token":
        return question
    return msgspec.structs.replace(question, alternatives=_NUM_ALTERNATIVES, labels=tuple(labels))


def _languages(prompt: Prompt, texts: Texts, text_language: TextLanguage) -> list[str]:
    """Return the language of the request and the one expected of answers (M-RewardBench, figure 6)."""
    expected = answer_language(prompt)
    slots = (("question_language", prompt.language), ("answer_language", expected))
    lines = [
        texts.instructions[name].format(language=language_name(str(code), text_language))
        for name, code in slots
        if code
    ]
    if expected:
        # A code without a script leaves the script open.
        lines += [texts.instructions["either_script"]] if language_of(str(expected)) == "chinese" else []
        lines.append(texts.instructions["native"])
    return [texts.part["space"].join(lines)] if lines else []


def _criteria(prompt: Prompt, texts: Texts, wording: Wording) -> list[str]:
    factors = [texts.instructions["factors"]] if style_named(wording.style).factors else []
    if not wording.criteria:
        return factors
    points = texts.criteria[criterion_of(prompt)]
    # No numbers in front: a reply that repeats "1." would have a line that reads as a rating.
    return [*factors, "\n".join([texts.instructions["criteria"], *(f"- {point}" for point in points)])]


def _form_texts(texts: Texts, wording: Wording) -> FormTexts:
    return texts.form["letter" if wording.form == "first_token" else wording.form]


def _ending(task: Task, texts: Texts, wording: Wording, *, labels: Sequence[str], num_shown: int) -> list[str]:
    """Return the instructions about reasons, about the duty to choose, and about the form of the verdict."""
    reason = ("reason_rating" if task == "rating" else "reason") if wording.reason else "no_reason"
    is_forced = task in ("pair", "best") and len(labels) == num_shown
    return [
        texts.instructions[reason],
        *([texts.instructions["forced"]] if is_forced else []),
        _verdict_form(task, texts, wording, labels=labels, num_shown=num_shown),
        *([texts.instructions["code"]] if wording.own_marks else []),
    ]


def _verdict_form(task: Task, texts: Texts, wording: Wording, *, labels: Sequence[str], num_shown: int) -> str:
    form = _form_texts(texts, wording)
    reason = form.reason if wording.reason else ""
    if task == "rating":
        assert form.rating is not None, "a form that carries ratings"
        return form.rating.format(reason=reason)
    if task == "ranking":
        assert form.ranking is not None, "a form that carries rankings"
        return form.ranking
    label_text = form.best if task == "best" else form.pair
    choices = [
        (label_text if place < num_shown else form.tie).format(label=label, small=label.lower(), number=place + 1)
        for place, label in enumerate(labels)
    ]
    listed = texts.part["comma"].join(choices[:-1]) + texts.part["or"] + choices[-1]
    return form.choice.format(choices=listed, reason=reason)


def _coded(task: Task, texts: Texts, form: FormTexts, labels: Sequence[str], *, code: str) -> str:
    """Return the last line of the material: the verdicts with the code of the request."""
    assert form.coded is not None, "a form that holds a code"
    verdicts = {"rating": (texts.part["number"],), "ranking": ("X > Y = Z",)}.get(task, labels)
    choices = [form.coded.format(verdict=verdict, code=code) for verdict in verdicts]
    listed = texts.part["comma"].join(choices[:-1]) + (texts.part["or"] if choices[1:] else "") + choices[-1]
    return texts.part["coded"].format(code=code, choices=listed)


def _material(prompt: Prompt, shown: Sequence[Response], texts: Texts, form: FormTexts, *, mark: str) -> str:
    parts = [(texts.part["request"], _conversation(prompt.messages, texts))]
    if prompt.reference:
        parts.append((texts.part["reference"], prompt.reference))
    for place, response in enumerate(shown):
        label = chr(ord("A") + place)
        parts.append((form.answer.format(label=label, small=label.lower(), number=place + 1), _answer(response, texts)))
    lines = [f"===== {name} {mark} =====\n{text}" for name, text in parts]
    return "\n\n".join([*lines, f"===== {texts.part['end']} {mark} ====="])


def _conversation(messages: Sequence[Message], texts: Texts) -> str:
    """Return the turns of a conversation as text; a single turn of the user needs no heading."""
    if len(messages) == 1 and messages[0].role == "user":
        return messages[0].content
    template = texts.part["turn"]
    return "\n\n".join(
        template.format(role=texts.part.get(turn.role, turn.role), text=turn.content) for turn in messages
    )


def _answer(response: Response, texts: Texts) -> str:
    if response.text is not None:
        return response.text
    messages = response.messages or ()
    if len(messages) == 1 and messages[0].role == "assistant":
        return messages[0].content
    return _conversation(messages, texts)
