"""Google's translation service, version 2, and servers that speak its REST interface.

One request is one text: `POST /language/translate/v2` with ``q``, ``source``, ``target`` and ``format``: ``text``
keeps a service from writing entities of HTML. The key goes into a header, so that no address holds it. The
interface is written from the public reference of the service.
"""

from typing import Any

from steelyard.core.comparison import TOO_LONG, Reply, Request
from steelyard.core.errors import ConfigError
from steelyard.core.languages import english_name, language_key, nearest_languages
from steelyard.core.protocols import Chat
from steelyard.core.types import JsonObject
from steelyard.io.addresses import read_key
from steelyard.io.connections import Connections
from steelyard.io.http import Attempt, HttpReply, attempt
from steelyard.plugins.chats._served import ServedChat, ServedConfig

_PATH = "/language/translate/v2"
_CODES = {"zh": "zh-CN", "zh-Hant": "zh-TW"}
"""Codes of the service that differ from those of BCP 47."""
_BYTES_ALWAYS, _BYTES_PER_CHARACTER = 1 << 16, 64
"""The size limit of a reply: a translation is some times as long as its text."""


class Config(ServedConfig, frozen=True):
    """``base_url`` is the address of the service without its path; ``model`` the service's name of its own model."""

    base_url: str = "https://translation.googleapis.com"
    """The address of the service."""
    model: str = "nmt"
    """The model of the service: nmt, or the full name of one of your own."""


def build(config: Config) -> Chat:
    """Return the client; nothing is sent yet. Raises ConfigError without the key."""
    return GoogleTranslate(config)


class GoogleTranslate(ServedChat):
    """A TranslationEngine behind a server."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.name = config.name or "google_translate"
        key = read_key(config.secret, where="chat.secret", header="X-Goog-Api-Key")
        self.limits = self.limits._replace(key=key)

    def check_languages(self, source: str, target: str) -> None:
        """Raise ConfigError for a text that names no language; which ones it translates the service says itself."""
        for code in (source, target):
            if english_name(code) is None:
                allowed = f"a code such as {', '.join(nearest_languages(code))}"
                raise ConfigError(f"{code!r} is no known language", where=self.name, allowed=allowed)

    def protocol(self) -> JsonObject:
        """Return the service and its model."""
        return {"chat": "google_translate", "model": self.server.model, "base_url": self.address}

    def send(self, request: Request, connections: Connections, deadline: float) -> Attempt:
        """Send the last message as one text."""
        question = request.question
        if question.languages is None:
            return Attempt(HttpReply(None, "languages", "the request names no languages"))
        text = question.messages[-1].content
        source, target = (_CODES.get(key, key) for key in map(language_key, question.languages))
        body = {"q": text, "source": source, "target": target, "format": "text", "model": self.server.model}
        limits = self.limits._replace(max_bytes=_BYTES_ALWAYS + _BYTES_PER_CHARACTER * len(text))
        return attempt(f"{self.address}{_PATH}", body, limits, connections, deadline=deadline)

    def read(self, request: Request, response: HttpReply) -> Reply | None:
        """Return the one translation of a response; null for a failure without more to say than its reason."""
        if response.reason is None:
            text = _translation(response.value)
            if text is None:
                return Reply(request=request.id, failure="failed", detail="malformed: not one translation of a text")
            return Reply(request=request.id, text=text, model=self.server.model)
        if response.reason == "http_400" and "too long" in response.detail.casefold():
            return Reply(request=request.id, failure="failed", detail=f"{TOO_LONG}: {response.detail[:300]}")
        return None


def _translation(value: Any) -> str | None:
    data = value.get("data") if isinstance(value, dict) else None
    translations = data.get("translations") if isinstance(data, dict) else None
    if not isinstance(translations, list) or len(translations) != 1 or not isinstance(translations[0], dict):
        return None
    text = translations[0].get("translatedText")
    return text if isinstance(text, str) else None
