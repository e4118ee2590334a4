"""Replies from a file: to read recorded ones again without a model, and to try judging out."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from steelyard.core.comparison import Alternative, Failure, Reply, Request
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import Place, RecordError
from steelyard.core.identity import content_id
from steelyard.core.protocols import Chat
from steelyard.core.types import Record
from steelyard.io.lines import read_batches


class Config(BaseConfig, frozen=True):
    """``path`` is a file of recorded replies, a line each; ``name`` signs the verdicts."""

    path: str
    """The file of recorded replies, one a line."""
    name: str = "recorded"
    """The name in the judgments."""


class Recording(Record, frozen=True, kw_only=True):
    """A line. It answers the question whose messages hash to ``question``, or whose last message has every text of
    ``contains``; with neither it answers whatever no other line does. Of several that fit, the first is taken.
    """

    question: str | None = None
    contains: tuple[str, ...] = ()
    text: str | None = None
    failure: Failure | None = None
    detail: str | None = None
    first_token: tuple[Alternative, ...] | None = None
    prompt_tokens: int | None = None
    reply_tokens: int | None = None

    def reply(self, request: Request) -> Reply:
        """The recorded reply to that request."""
        return Reply(
            request=request.id,
            text=self.text,
            failure=self.failure,
            detail=self.detail,
            first_token=self.first_token,
            prompt_tokens=self.prompt_tokens,
            reply_tokens=self.reply_tokens,
        )


class Recorded:
    """A Chat. A question that no line answers fails, with ``not recorded``."""

    def __init__(self, config: Config) -> None:
        self.name = config.name
        lines = list(_read(Path(config.path)))
        self._named = {line.question: line for line in reversed(lines) if line.question is not None}
        self._containing = [line for line in lines if line.question is None and line.contains]
        self._others = next((line for line in lines if line.question is None and not line.contains), None)
        self._hash = content_id(msgspec.json.encode(lines).decode())

    def ask(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """One reply a request, in order."""
        for request in requests:
            found = self._recording(request)
            missing = Reply(request=request.id, failure="failed", detail=f"not recorded: {question_id(request)}")
            yield missing if found is None else found.reply(request)

    def protocol(self) -> dict[str, Any]:
        """The hash of what was recorded."""
        return {"chat": "recorded", "model": self.name, "recordings": self._hash}

    def _recording(self, request: Request) -> Recording | None:
        named = self._named.get(question_id(request))
        if named is not None:
            return named
        asked = request.question.messages[-1].content
        fitting = (line for line in self._containing if all(text in asked for text in line.contains))
        return next(fitting, self._others)


def question_id(request: Request) -> str:
    """The hash of a question's messages, by which a recorded line names it."""
    return content_id(msgspec.json.encode(request.question.messages).decode())


def build(config: Config) -> Chat:
    """The recorded chat. Raises RecordError for a line that is no recording."""
    return Recorded(config)


def _read(path: Path) -> Iterator[Recording]:
    for batch in read_batches(path):
        for number, line in zip(batch.numbers, batch.lines, strict=True):
            try:
                given = msgspec.json.decode(line, type=Recording)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                place = Place(batch.file, number)
                raise RecordError(f"no recorded reply ({error})", where=place, allowed='{"text": "[[A]]"}') from error
            if given.text is None and given.failure is None:
                found = "neither a text nor a failure"
                raise RecordError(found, where=Place(batch.file, number), allowed='"text", or "failure"')
            yield given
