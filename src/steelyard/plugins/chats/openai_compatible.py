"""Any server that speaks OpenAI's chat completions: OpenAI itself, vLLM, SGLang, llama.cpp, Ollama, and most others."""

from typing import Any, Literal

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import MissingPartError
from steelyard.core.protocols import Chat
from steelyard.core.types import Meta


class Config(BaseConfig, frozen=True):
    """``base_url`` is the address up to ``/v1``; ``model`` the name by which the server knows the model.

    ``secret`` is the NAME of the environment variable that holds the key; the key itself is never written anywhere.
    ``name`` signs the verdicts, the model's name where it is null. ``token_limit`` is what the server calls the longest
    reply: newer models of OpenAI refuse the old word. ``extra`` goes into every request as it is, for example
    ``{chat_template_kwargs = {enable_thinking = false}}``. ``workers``, the time and the tries change no reply.
    """

    base_url: str
    model: str
    secret: str | None = None
    name: str | None = None
    temperature: float | None = 0.0
    token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    extra: Meta = msgspec.field(default_factory=dict)
    workers: int = 8
    timeout_seconds: float = 120.0
    num_tries: int = 5


def build(config: Config) -> Chat:
    """The client; nothing is sent yet. Raises MissingPartError without the client, ConfigError without the key."""
    try:
        from steelyard.plugins.chats._openai_compatible import OpenAICompatible
    except ModuleNotFoundError as error:
        found = f"chats need a package that is not installed ({error.name})"
        raise MissingPartError(found, do="pip install 'steelyard[chat]'") from error
    return OpenAICompatible(config)


def described(config: Config) -> dict[str, Any]:
    """What decides the replies."""
    return {
        "chat": "openai_compatible",
        "model": config.model,
        "base_url": config.base_url.rstrip("/"),
        "temperature": config.temperature,
        "extra": config.extra,
    }
