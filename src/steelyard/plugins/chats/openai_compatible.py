"""Any server that speaks OpenAI's chat completions: OpenAI itself, vLLM, SGLang, llama.cpp, Ollama, and most others."""

from typing import Any, Literal

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.protocols import Chat
from steelyard.core.types import Meta
from steelyard.io.credentials import check_address


class Config(BaseConfig, frozen=True):
    """``base_url`` is the address up to ``/v1``; ``model`` the name by which the server knows the model.

    ``secret`` is the NAME of the environment variable that holds the key; the key itself is never written anywhere,
    also where the server repeats it. ``name`` signs the verdicts, the model's name where it is null. ``token_limit`` is
    what the server calls the longest reply: newer models of OpenAI refuse the old word. ``extra`` goes into every
    request as it is, for example ``{chat_template_kwargs = {enable_thinking = false}}``.

    ``workers``, the times and the tries change no reply. ``timeout_seconds`` bounds a silence of the server,
    ``total_seconds`` a question with all its tries; ``wait_seconds`` is the first wait between two tries.
    """

    base_url: str
    """The address of the server, up to /v1."""
    model: str
    """The name of the model on the server."""
    secret: str | None = None
    """The NAME of the environment variable that holds the key; the key is never written."""
    name: str | None = None
    """The name in the judgments; none takes the model's name."""
    temperature: float | None = 0.0
    """The sampling temperature; none leaves it to the server."""
    token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The server's name for the longest reply; newer models of OpenAI refuse max_tokens."""
    extra: Meta = msgspec.field(default_factory=dict)
    """Keys that are added to every request."""
    workers: int = 8
    """The number of requests at a time."""
    timeout_seconds: float = 120.0
    """The longest silence of the server, in seconds."""
    total_seconds: float = 600.0
    """The longest time for one request with all its tries, in seconds."""
    num_tries: int = 5
    """How often a request that failed is tried in all."""
    wait_seconds: float = 0.5
    """The wait before the second try, in seconds; it doubles with each further try."""

    def __post_init__(self) -> None:
        check_address(self.base_url, where="chat.base_url")


def build(config: Config) -> Chat:
    """The client; nothing is sent yet. Raises ConfigError without the key."""
    from steelyard.plugins.chats._openai_compatible import OpenAICompatible

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
