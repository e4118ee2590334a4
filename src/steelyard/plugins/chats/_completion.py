"""Reads a chat completion's body strictly: a body of another shape is a failure, never an answer.

Servers count tokens in three forms. OpenAI's ``prompt_tokens`` and DeepSeek's include the tokens read from a cache;
Anthropic's ``input_tokens`` include neither those read from it nor those written to it.
"""

import json
from typing import Any, Literal, NamedTuple

import msgspec

from steelyard.core.comparison import SERVER_LIMIT, Alternative, Failure, Question, Reply, Request
from steelyard.core.types import JsonObject
from steelyard.responses.unfinished import STOPPED

_LONGEST_TOKEN = 128
"""The longest token in characters: public vocabularies have runs of spaces of this length."""
_LONGEST_BODY = 200
_MOST_TEMPLATE, _MOST_OVER = 10_000, 1_000
_FILTERED = frozenset(
    {"content_filter", "safety", "sensitive", "recitation", "blocklist", "prohibited_content", "spii"}
)
_INTERRUPTED = frozenset({"insufficient_system_resource", "network_error", "error", "abort", "aborted", "cancelled"})
"""Names that servers give to the end of a text by a filter of contents, and by a fault, in small letters."""


class _Top(msgspec.Struct):
    token: str
    logprob: float


class _Token(msgspec.Struct):
    token: str
    logprob: float
    top_logprobs: list[_Top] = []


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _ContentPart(msgspec.Struct):
    type: str
    text: str | None = None


class _Message(msgspec.Struct):
    content: str | list[_ContentPart] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    role: Literal["assistant", "model"] | None = "assistant"

    @property
    def text(self) -> str | None:
        """The text of the content; parts of another type, such as reasoning, are none of it."""
        if isinstance(self.content, list):
            return "".join(part.text or "" for part in self.content if part.type in ("text", "output_text"))
        return self.content


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None

    @property
    def end(self) -> str | None:
        """The reason of the end in small letters."""
        return None if self.finish_reason is None else self.finish_reason.lower()


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: Any = None


class _Usage(NamedTuple):
    """Token counts of the server, null where it gives none; ``odd`` names impossible ones."""

    prompt: int | None
    written: int | None
    cached: int | None
    cache_written: int | None
    odd: str | None


def is_empty(body: Any, *, keeps_empty: bool = False) -> bool:
    """Return whether a body lacks an answer that another try may bring.

    It is an error, or a completion without a choice, without a text and a reason for its absence, or with a text that a
    fault of the server ended. Reasoning without a text is not empty: the same question would end so again, at its full
    price. With ``keeps_empty`` a choice without a text is an answer.
    """
    try:
        completion = msgspec.convert(body, _Completion)
    except msgspec.ValidationError:
        return _is_error(body)
    if not completion.choices or completion.choices[0].end in _INTERRUPTED:
        return True
    return not keeps_empty and _is_silent(completion.choices[0]) and not _has_reasoned(completion.choices[0])


def read_completion(request: Request, body: Any, *, keeps_empty: bool = False) -> Reply:
    """Return the first choice as a reply. A body of another shape, or one without a choice or a text, is a failure.

    With ``keeps_empty`` a choice without a text is a reply with an empty one.
    """
    try:
        completion = msgspec.convert(body, _Completion)
    except msgspec.ValidationError as error:
        problem = "error" if _is_error(body) else f"malformed: {error}"
        detail = f"{problem}: {json.dumps(body, ensure_ascii=False)[:_LONGEST_BODY]}"
        return Reply(request=request.id, failure="failed", detail=detail)
    usage = _usage(completion.usage, request.question)
    reply = Reply(
        request=request.id,
        failure="failed",
        detail="empty: no choices",
        prompt_tokens=usage.prompt,
        reply_tokens=usage.written,
        model=completion.model,
        odd_usage=usage.odd,
        cached_tokens=usage.cached,
        cache_write_tokens=usage.cache_written,
    )
    if not completion.choices:
        return reply
    choice = completion.choices[0]
    failure, detail = _failure(choice, usage, request.question.max_tokens)
    is_kept = keeps_empty and failure == "failed" and _is_silent(choice)
    if is_kept:
        failure, detail = None, None
    return msgspec.structs.replace(
        reply,
        # A text of spaces alone is none.
        text="" if is_kept else None if _is_silent(choice) else choice.message.text,
        failure=failure,
        detail=detail,
        first_token=_first_token(choice.logprobs),
        finish_reason=choice.finish_reason,
    )


def _usage(usage: Any, question: Question) -> _Usage:
    """Return the plausible counts; an implausible one is left out, since counts are summed over all replies.

    A prompt has at least one token, and at most as many as bytes, plus the template's; servers may write some tokens
    over the limit. Where the prompt has none, a reply of none is not counted either.
    """
    counts = usage if isinstance(usage, dict) else {}
    odd = [] if usage is None or isinstance(usage, dict) else [f"usage: {str(usage)[:40]}"]
    num_bytes = sum(len(message.content.encode(errors="replace")) for message in question.messages)
    most_written = 2 * question.max_tokens + _MOST_OVER

    def checked(name: str, value: Any, most: int) -> int | None:
        is_count = type(value) is int and 0 <= value <= most
        if value is not None and not is_count:
            odd.append(f"{name}: {str(value)[:40]}")
        return value if is_count else None

    prompt, cached, cache_written = _prompt_counts(counts)
    written = _first(counts, "completion_tokens", "output_tokens")
    if prompt == 0:
        odd.append("prompt_tokens: 0")
        prompt, written = None, written or None
    num_prompt = checked("prompt_tokens", prompt, num_bytes + _MOST_TEMPLATE)
    num_written = checked("completion_tokens", written, most_written)
    # Parts of a prompt whose length is not known cannot be billed.
    room = num_prompt or 0
    num_cached = checked("cached tokens", cached, room) if num_prompt is not None else None
    num_cache_written = checked("tokens written to a cache", cache_written, room - (num_cached or 0))
    return _Usage(num_prompt, num_written, num_cached, num_cache_written, ", ".join(odd) or None)


def _prompt_counts(counts: JsonObject) -> tuple[Any, Any, Any]:
    """Return the tokens of the whole prompt, those read from a cache and those written to it, unchecked."""
    details = _first(counts, "prompt_tokens_details", "input_tokens_details")
    parts = details if isinstance(details, dict) else {}
    read = _first(counts, "cache_read_input_tokens")
    written = _first(counts, "cache_creation_input_tokens")
    cached = _first(parts, "cached_tokens")
    if cached is None:
        cached = _first(counts, "prompt_cache_hit_tokens", "cached_tokens") if read is None else read
    if written is None:
        written = _first(parts, "cache_write_tokens", "cache_creation_tokens")
    prompt = counts.get("prompt_tokens")
    missed = counts.get("prompt_cache_miss_tokens")
    if prompt is None and type(missed) is int and type(cached) is int:
        prompt = missed + cached
    if prompt is not None:
        return prompt, cached, written
    prompt = counts.get("input_tokens")
    is_apart = read is not None or counts.get("cache_creation_input_tokens") is not None
    if is_apart and type(prompt) is int:
        prompt += sum(number for number in (read, written) if type(number) is int and number > 0)
    return prompt, cached, written


def _first(counts: JsonObject, *names: str) -> Any:
    """Return the value of the first of the names that has one."""
    return next((counts[name] for name in names if counts.get(name) is not None), None)


def _failure(choice: _Choice, usage: _Usage, max_tokens: int) -> tuple[Failure | None, str | None]:
    if choice.message.refusal or choice.end in _FILTERED:
        return "refused", choice.message.refusal or "content filter"
    is_full = usage.written is not None and usage.written >= max_tokens
    # Some servers give no reason for the end; then the number of tokens has to tell.
    if choice.end in STOPPED or (choice.finish_reason is None and is_full):
        if usage.written is None or is_full:
            return "cut off", f"at {max_tokens} tokens"
        # A full context ends a reply before its own limit.
        return "cut off", f"at {usage.written} tokens, fewer than the {max_tokens} asked for, {SERVER_LIMIT}"
    if _is_silent(choice) or choice.end in _INTERRUPTED:
        missing = "empty: reasoning without a reply" if _has_reasoned(choice) else "empty: no text"
        what = missing if _is_silent(choice) else "interrupted: a part of a text"
        return "failed", f"{what} ({choice.finish_reason})"
    if (length := len(choice.message.text or "")) > _LONGEST_TOKEN * (max_tokens + 1):
        return "failed", f"too_large: {length:,} characters for {max_tokens} tokens"
    return None, None


def _is_error(body: Any) -> bool:
    """Return whether a body states a fault of the server in place of a completion."""
    return isinstance(body, dict) and bool(body.get("error"))


def _is_silent(choice: _Choice) -> bool:
    """Return whether the text is missing without a reason; a first token can be read without it."""
    is_explained = choice.message.refusal or choice.end in {*STOPPED, *_FILTERED} or choice.logprobs
    return not (choice.message.text or "").strip() and not is_explained


def _has_reasoned(choice: _Choice) -> bool:
    # Parts without a text are reasoning.
    is_parted = isinstance(choice.message.content, list) and bool(choice.message.content)
    return bool(choice.message.reasoning_content or choice.message.reasoning or is_parted)


def _first_token(logprobs: _Logprobs | None) -> tuple[Alternative, ...] | None:
    """Return the likely first tokens, including the written one; spellings of one word are separate tokens."""
    if logprobs is None or not logprobs.content:
        return None
    first = logprobs.content[0]
    tokens: list[Any] = [*first.top_logprobs]
    if first.token not in [token.token for token in tokens]:
        tokens.append(first)
    return tuple(Alternative(token=token.token, logprob=token.logprob) for token in tokens)
