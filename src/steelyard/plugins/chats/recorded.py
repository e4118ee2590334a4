"""Replies from a file: recorded ones are read again without a model, and judging can be tried out."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import asdict

from steelyard.core.checks import content_id
from steelyard.core.comparison import Alternative, Failure, Reply, Request
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Chat
from steelyard.core.types import JsonObject, Record
from steelyard.io.json_text import decode_json
from steelyard.io.lines import read_lines


class Config(BaseConfig, frozen=True):
    """``path`` is a file of recorded replies, a line each; ``name`` signs the verdicts."""

    path: str
    """The file of recorded replies, one per line."""
    name: str = "recorded"
    """The name in the judgments."""


class Recording(Record, frozen=True, kw_only=True):
    """A line of recorded replies.

    It answers the question whose messages hash to ``question``, or whose last message has every text of ``contains``;
    with neither it answers every question that no other line does. Of several that fit, the first is taken.
    """

    question: str | None = None
    contains: tuple[str, ...] = ()
    text: str | None = None
    failure: Failure | None = None
    detail: str | None = None
    first_token: tuple[Alternative, ...] | None = None
    prompt_tokens: int | None = None
    reply_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None

    def reply(self, request: Request) -> Reply:
        """Return the recorded reply to a request."""
        fields = {name: value for name, value in asdict(self).items() if name not in ("question", "contains")}
        return Reply(request=request.id, **fields)


class Recorded:
    """A Chat. A question that no line answers fails, with ``not recorded``."""

    def __init__(self, config: Config) -> None:
        self.name = config.name
        lines: list[Recording] = []
        for place, text in read_lines(Path(config.path)):
            try:
                line = decode_json(text, place, Recording)
            except msgspec.ValidationError as error:
                raise RecordError(f"no recorded reply ({error})", where=place, allowed='{"text": "[[A]]"}') from error
            if line.text is None and line.failure is None:
                raise RecordError("neither a text nor a failure", where=place, allowed='"text", or "failure"')
            lines.append(line)
        self._by_question = {line.question: line for line in reversed(lines) if line.question is not None}
        self._containing = [line for line in lines if line.question is None and line.contains]
        self._others = next((line for line in lines if line.question is None and not line.contains), None)
        self._hash = content_id(msgspec.json.encode(lines).decode())

    def ask(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Yield a reply for each request, in order."""
        for request in requests:
            recording = self._recording(request)
            missing = Reply(request=request.id, failure="failed", detail=f"not recorded: {question_id(request)}")
            yield missing if recording is None else recording.reply(request)

    def protocol(self) -> JsonObject:
        """Return the name and the hash of the recordings."""
        return {"chat": "recorded", "model": self.name, "recordings": self._hash}

    def _recording(self, request: Request) -> Recording | None:
        recording = self._by_question.get(question_id(request))
        if recording is not None:
            return recording
        message = request.question.messages[-1].content
        fitting = (line for line in self._containing if all(text in message for text in line.contains))
        return next(fitting, self._others)


def question_id(request: Request) -> str:
    """Return the hash of a question's messages, by which a recorded line names it."""
    return content_id(msgspec.json.encode(request.question.messages).decode())


def build(config: Config) -> Chat:
    """Return the recorded chat. Raises RecordError for a line of another form."""
    return Recorded(config)
