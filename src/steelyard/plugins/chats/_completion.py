"""The body of a chat completion as a reply: read strictly, since a body of another shape is no answer."""

from typing import Any, Literal

import msgspec

from steelyard.core.asking import Alternative, Failure, Reply, Request


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


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: _Usage | None = None


_decoder = msgspec.json.Decoder(_Completion)


def read_completion(request: Request, body: bytes) -> Reply:
    """The first choice. A body that is no completion, or one without a choice or a text, is a failure."""
    try:
        found = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Reply(request=request.id, failure="failed", detail=f"malformed: {error}")
    if not found.choices:
        return Reply(request=request.id, failure="failed", detail="empty: no choices")
    choice, usage = found.choices[0], found.usage or _Usage()
    failure, detail = _failure(choice, usage, request.question.max_tokens)
    return Reply(
        request=request.id,
        text=choice.message.content,
        failure=failure,
        detail=detail,
        first_token=_first_token(choice.logprobs),
        prompt_tokens=usage.prompt_tokens,
        reply_tokens=usage.completion_tokens,
        model=found.model,
    )


def _failure(choice: _Choice, usage: _Usage, max_tokens: int) -> tuple[Failure | None, str | None]:
    if choice.message.refusal or choice.finish_reason == "content_filter":
        return "refused", choice.message.refusal or "content filter"
    is_full = usage.completion_tokens is not None and usage.completion_tokens >= max_tokens
    # Some servers give no reason for the end; then the number of tokens has to tell.
    if choice.finish_reason == "length" or (choice.finish_reason is None and is_full):
        return "cut off", f"at {max_tokens} tokens"
    if choice.message.content is None:
        return "failed", f"empty: no text ({choice.finish_reason})"
    return None, None


def _first_token(logprobs: _Logprobs | None) -> tuple[Alternative, ...] | None:
    """The likely first tokens, the one that was written among them; a server gives several spellings apart."""
    if logprobs is None or not logprobs.content:
        return None
    first = logprobs.content[0]
    given: list[Any] = [*first.top_logprobs]
    if first.token not in [one.token for one in given]:
        given.append(first)
    return tuple(Alternative(token=one.token, logprob=one.logprob) for one in given)
