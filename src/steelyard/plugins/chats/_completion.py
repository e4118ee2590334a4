"""The body of a chat completion as a reply: read strictly, since a body of another shape is no answer."""

from typing import Any, Literal, NamedTuple

import msgspec

from steelyard.core.comparison import Alternative, Failure, Question, Reply, Request

_LONGEST_TOKEN = 128
"""Characters: the longest tokens of public vocabularies are runs of so many spaces."""
_MOST_TEMPLATE, _MOST_OVER = 10_000, 1_000


class _Top(msgspec.Struct):
    token: str
    logprob: float


class _Token(msgspec.Struct):
    token: str
    logprob: float
    top_logprobs: list[_Top] = []


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    role: Literal["assistant"] = "assistant"


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: Any = None


class _Usage(NamedTuple):
    """Tokens as the server counts them, null where it gives none; ``odd`` names numbers that cannot be."""

    prompt: int | None
    written: int | None
    odd: str | None


def is_empty(body: Any) -> bool:
    """Return whether a body is a completion that says nothing at all: no choice, or no text and no reason for that."""
    try:
        found = msgspec.convert(body, _Completion)
    except msgspec.ValidationError:
        return False
    return not found.choices or _is_silent(found.choices[0])


def read_completion(request: Request, body: Any) -> Reply:
    """Read the first choice. A body that is no completion, or one without a choice or a text, is a failure."""
    try:
        found = msgspec.convert(body, _Completion)
    except msgspec.ValidationError as error:
        return Reply(request=request.id, failure="failed", detail=f"malformed: {error}")
    if not found.choices:
        return Reply(request=request.id, failure="failed", detail="empty: no choices")
    choice, usage = found.choices[0], _usage(found.usage, request.question)
    failure, detail = _failure(choice, usage, request.question.max_tokens)
    return Reply(
        request=request.id,
        text=choice.message.content,
        failure=failure,
        detail=detail,
        first_token=_first_token(choice.logprobs),
        prompt_tokens=usage.prompt,
        reply_tokens=usage.written,
        model=found.model,
        odd_usage=usage.odd,
    )


def _usage(given: Any, question: Question) -> _Usage:
    """Take whole numbers that can be; a count that is none is left out, since it would be added to all others.

    A prompt has no more tokens than bytes, but for what a template adds; servers may write some tokens over the limit.
    """
    counts = given if isinstance(given, dict) else {}
    num_bytes = sum(len(message.content.encode(errors="replace")) for message in question.messages)
    most = {"prompt_tokens": num_bytes + _MOST_TEMPLATE, "completion_tokens": 2 * question.max_tokens + _MOST_OVER}
    odd = [] if given is None or isinstance(given, dict) else [f"usage: {str(given)[:40]}"]
    found: list[int | None] = []
    for name, limit in most.items():
        value = counts.get(name)
        is_count = type(value) is int and 0 <= value <= limit
        found.append(value if is_count else None)
        if value is not None and not is_count:
            odd.append(f"{name}: {str(value)[:40]}")
    return _Usage(found[0], found[1], ", ".join(odd) or None)


def _failure(choice: _Choice, usage: _Usage, max_tokens: int) -> tuple[Failure | None, str | None]:
    if choice.message.refusal or choice.finish_reason == "content_filter":
        return "refused", choice.message.refusal or "content filter"
    is_full = usage.written is not None and usage.written >= max_tokens
    # Some servers give no reason for the end; then the number of tokens has to tell.
    if choice.finish_reason == "length" or (choice.finish_reason is None and is_full):
        return "cut off", f"at {max_tokens} tokens"
    if _is_silent(choice):
        return "failed", f"empty: no text ({choice.finish_reason})"
    if choice.message.content is not None and len(choice.message.content) > _LONGEST_TOKEN * (max_tokens + 1):
        return "failed", f"too_large: {len(choice.message.content):,} characters for {max_tokens} tokens"
    return None, None


def _is_silent(choice: _Choice) -> bool:
    """Return whether there is no text where there should be one; a first token can be read without it."""
    is_explained = choice.message.refusal or choice.finish_reason in ("length", "content_filter") or choice.logprobs
    return not (choice.message.content or "").strip() and not is_explained


def _first_token(logprobs: _Logprobs | None) -> tuple[Alternative, ...] | None:
    """The likely first tokens, the one that was written among them; a server gives several spellings apart."""
    if logprobs is None or not logprobs.content:
        return None
    first = logprobs.content[0]
    given: list[Any] = [*first.top_logprobs]
    if first.token not in [one.token for one in given]:
        given.append(first)
    return tuple(Alternative(token=one.token, logprob=one.logprob) for one in given)
