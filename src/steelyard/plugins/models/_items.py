"""Answers as a reward server is sent them: as tokens, as text, as messages, or prompt and answer apart."""

from typing import Any, NamedTuple

from steelyard.core.errors import ConfigError
from steelyard.core.scores import TOO_LONG
from steelyard.core.text import prompt_text, response_text
from steelyard.core.types import Case, Message, Response
from steelyard.networks.conversation import (
    Rendering,
    choose_special_tokens,
    choose_template,
    encode,
    render,
)
from steelyard.plugins.models._dialects import Content, Dialect, Item, Send


class Wanted(NamedTuple):
    """What is asked of the client: the dialect's name, what to send, and how a conversation is rendered."""

    dialect: str
    tokenizer: str | None = None
    send: Send | None = None
    chat_template: str | None = None
    strip: bool = False
    max_length: int = 2048


class Unsent(NamedTuple):
    """Why an answer is not sent."""

    reason: str


def sending(wanted: Wanted, dialect: Dialect) -> Send:
    """What is sent. Raises ConfigError for what the dialect does not take, and where a tokenizer is needed."""
    usual: Send = dialect.sends[0] if wanted.tokenizer is not None or len(dialect.sends) == 1 else dialect.sends[-1]
    send = wanted.send or usual
    if send not in dialect.sends:
        allowed = ", ".join(dialect.sends)
        raise ConfigError(f"{wanted.dialect} is not sent {send}", where="model.send", allowed=allowed)
    if send in ("tokens", "text") and wanted.tokenizer is None:
        found = f"{wanted.dialect} is sent {send}, and nothing says how a conversation becomes that"
        raise ConfigError(found, where="model.tokenizer", do="name the folder of the model's own tokenizer")
    return send


class Items:
    """Makes items of answers, by the same rules by which a local model reads them."""

    def __init__(self, wanted: Wanted, dialect: Dialect, send: Send) -> None:
        self.send: Send = send
        self.dialect = dialect
        self.tokenizer: Any = None
        self.rendering: Rendering | None = None
        if send in ("tokens", "text"):
            from steelyard.networks.loading import load_tokenizer

            self.tokenizer = load_tokenizer(str(wanted.tokenizer))
            template = choose_template(self.tokenizer, wanted.chat_template, model=str(wanted.tokenizer))
            self.rendering = Rendering(
                template=template,
                special_tokens=choose_special_tokens(self.tokenizer, template),
                strip=wanted.strip,
                max_length=wanted.max_length,
            )

    @property
    def adds_marks(self) -> bool:
        """Whether the server is to put its tokenizer's own marks around a text, where it can be asked."""
        return self.send == "text" and self.rendering is not None and self.rendering.special_tokens == "tokenizer"

    def protocol(self) -> dict[str, Any]:
        """How a conversation is rendered; empty where the server renders it."""
        own = self.rendering
        if own is None:
            return {}
        return {
            "template_hash": own.template_hash,
            "special_tokens": own.special_tokens,
            "strip": own.strip,
            "max_length": own.max_length,
        }

    def of(self, case: Case, response: Response) -> Item | Unsent:
        """The item of one answer, or why it cannot be sent."""
        content = self._content(case, response)
        if isinstance(content, Unsent):
            return content
        return Item(content, prompt_text(case), response_text(response))

    def _content(self, case: Case, response: Response) -> Content | Unsent:
        answer = response.messages or (Message(role="assistant", content=response.text or ""),)
        if self.send == "messages":
            return [{"role": one.role, "content": one.content} for one in (*case.prompt.messages, *answer)]
        if self.send == "pair":
            return Unsent("turns") if response.text is None else response.text
        assert self.rendering is not None
        encoded = encode(self.tokenizer, self.rendering, case, response)
        if encoded.is_over_length:
            return Unsent(TOO_LONG)
        if self.send == "tokens":
            return list(encoded.ids)
        if encoded.is_repaired:
            return Unsent("marks")
        text = render(self.tokenizer, self.rendering, case, response).text
        return self._marked(text.rstrip() if self.rendering.strip else text)

    def _marked(self, text: str) -> str:
        """The text such that the server's tokens have one beginning mark: the template's or the tokenizer's own."""
        bos = self.tokenizer.bos_token
        own_adds = bool(bos) and self.tokenizer("a").input_ids[:1] == [self.tokenizer.bos_token_id]
        assert self.rendering is not None
        if self.dialect.marks == "always" and own_adds and self.rendering.special_tokens == "template":
            return text.removeprefix(bos)
        if self.dialect.marks == "never" and self.rendering.special_tokens == "tokenizer":
            return bos + text
        return text
