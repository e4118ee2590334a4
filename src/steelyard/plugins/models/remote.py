"""A reward model behind an HTTP server (vLLM, SGLang, TEI, OpenRLHF, LLaMA-Factory, slime), each in its dialect."""

from typing import Any, Literal

from steelyard.core.config import Config as BaseConfig
from steelyard.io.credentials import check_address

DialectName = Literal[
    "vllm_classify",
    "vllm_pooling",
    "sglang",
    "sglang_embeddings",
    "tei_predict",
    "tei_rerank",
    "openrlhf",
    "llamafactory",
    "slime",
]


class Config(BaseConfig, frozen=True):
    """``url`` is the server's address, with or without the dialect's path; ``model`` the name it serves the model by.

    ``tokenizer`` is the folder of the model's own tokenizer: with it, conversations are rendered here, by the rules of
    a local model, and sent as ``tokens`` where the dialect can, which no server can render otherwise; else as ``text``.
    Without it, as ``messages`` (vLLM), rendered there, or as prompt and answer apart (``tei_rerank``, ``slime``).
    ``label`` says which number is the reward where a server gives several (-1: the last, for a model pooled at every
    token); ``task`` is vLLM's pooling task. ``secret`` names the environment variable with the server's key.
    ``batch_size``, ``workers`` and the times change no score: ``timeout_seconds`` bounds a silence of the server,
    ``total_seconds`` a question with all its tries.
    """

    url: str
    """The address of the server, with or without the path of the dialect."""
    dialect: DialectName
    """The protocol of the server."""
    model: str | None = None
    """The name of the model on the server."""
    tokenizer: str | None = None
    """The folder of the model's tokenizer, to render conversations here and not on the server."""
    chat_template: str | None = None
    """With tokenizer: how a conversation becomes text; none takes the tokenizer's own."""
    strip: bool = False
    """Whether white space at the end of the text is removed."""
    max_length: int = 2048
    """The limit of a text in tokens."""
    send: Literal["tokens", "text", "messages", "pair"] | None = None
    """What is sent; none takes tokens, text, messages or pair by what the dialect and the settings allow."""
    label: int | None = None
    """Which number is the reward where a server gives several; -1 is the last."""
    task: str | None = None
    """The pooling task of vLLM."""
    secret: str | None = None
    """The NAME of the environment variable that holds the key; the key is never written."""
    batch_size: int = 16
    """The number of answers in a request."""
    workers: int = 4
    """The number of requests at a time."""
    timeout_seconds: float = 60.0
    """The longest silence of the server, in seconds."""
    total_seconds: float = 600.0
    """The longest time for one request with all its tries, in seconds."""
    num_tries: int = 4
    """How often a request that failed is tried in all."""
    wait_seconds: float = 1.0
    """The wait before the second try, in seconds; it doubles with each further try."""

    def __post_init__(self) -> None:
        check_address(self.url, where="model.url")


def build(config: Config) -> Any:
    """The client; nothing is sent yet. Raises ConfigError for what the dialect cannot be sent."""
    from steelyard.plugins.models._remote import Remote

    return Remote(config)
