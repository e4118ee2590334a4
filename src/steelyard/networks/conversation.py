"""From a conversation with an answer to token ids, in training and scoring alike: template, marks, strip, cut."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from steelyard.core.checks import TOO_LONG
from steelyard.core.config import Config
from steelyard.core.errors import EvidenceError, FileError, ModelError, Place, UserError
from steelyard.core.remedies import FILE, Advice, Remedy
from steelyard.core.types import Case, Message, OverLength, Response
from steelyard.io.encodings import check_utf8
from steelyard.io.lines import check_readable
from steelyard.networks.rendering import TODAY, TemplateFailure, Written, hidden, tokenise_all, write

# Our own plain template, for base models that have none: roles as words, the tokenizer's EOS token at the end.
PLAIN_TEMPLATE = (
    "{% for message in messages %}"
    "{% if not loop.first %}\n\n{% endif %}{{ message.role | capitalize }}:\n{{ message.content }}"
    "{% endfor %}{{ eos_token }}"
)
_BUILT_IN = {"plain": PLAIN_TEMPLATE}


# The empty expression keeps a line break with which a template begins: blocks swallow the one behind them.
_STRIPPED_START = "{% set conversation_text %}{{ '' }}"
_STRIPPED_END = "{% endset %}{{ conversation_text.rstrip() }}"


class Rendering(Config, frozen=True):
    """Protocol by which text becomes tokens: stored with the model, and equal in training, evaluation and serving.

    ``special_tokens``: ``template`` adds nothing to the template's text; ``tokenizer`` adds the tokenizer's marks, for
    templates that write no BOS token. ``max_length`` is in tokens.
    """

    template: str
    """The chat template as Jinja text."""
    special_tokens: Literal["template", "tokenizer"] = "template"
    """Source of special tokens: the template alone, or the tokenizer around its text."""
    strip: bool = True
    """Remove white space at the end of the text."""
    max_length: int = 2048
    """The limit of a text in tokens."""
    over_length: OverLength = "unscored"
    """Answers over the limit: unscored, cut on the left or right, or refuse to run."""
    today: str = TODAY
    """The date for templates that write one; the real date would change scores every night."""

    @property
    def cuts(self) -> bool:
        """Cut a longer conversation, rather than leave it unscored."""
        return self.over_length in ("left", "right")

    @property
    def template_hash(self) -> str:
        """A hash of the template, for manifests."""
        return hashlib.sha256(self.template.encode()).hexdigest()[:16]


class Encoded(NamedTuple):
    """The token ids of a conversation with its answer. ``length`` is their number before the cut.

    ``is_repaired``: the tokenizer alone would have read part of a text as marks of the template.
    """

    ids: tuple[int, ...]
    length: int
    is_repaired: bool = False

    @property
    def is_over_length(self) -> bool:
        """True for a conversation over the limit."""
        return len(self.ids) < self.length


def choose_template(tokenizer: Any, choice: str | None, *, model: str) -> str:
    """Return the chosen template (a built-in name or a Jinja file), or the tokenizer's.

    Raises ModelError for a model without a template when none is chosen: a guess gives wrong scores without warning.
    """
    if choice in _BUILT_IN:
        return _BUILT_IN[str(choice)]
    if choice is not None:
        if not Path(choice).is_file():
            raise FileError("chat template not found", where=choice, allowed=f"a Jinja file, or {', '.join(_BUILT_IN)}")
        check_readable(Path(choice))
        return check_utf8(Path(choice).read_bytes(), Place(file=choice))
    template = tokenizer.chat_template
    if isinstance(template, Mapping):
        # Some models have several by name, as for tools; programs take the one of this name where none is asked for.
        names, template = ", ".join(sorted(template)), template.get("default")
        if template is None:
            problem = f"the model has chat templates for special uses alone: {names}"
            raise ModelError(problem, where=model, do=Advice("name one: ", Remedy("chat_template", FILE)))
    if not isinstance(template, str):
        raise ModelError(
            "the model has no chat template",
            where=model,
            do=Advice("name one: ", Remedy("chat_template", "plain"), ", or a Jinja file"),
        )
    return template


def choose_special_tokens(tokenizer: Any, template: str) -> Literal["template", "tokenizer"]:
    """Return ``tokenizer`` only where the tokenizer adds a BOS token that the template does not write."""
    bos = tokenizer.bos_token
    # Tried and not looked up: many fast tokenizers add the mark in their post-processor, without a setting.
    adds_bos = bool(bos) and tokenizer("a").input_ids[:1] == [tokenizer.bos_token_id]
    # A template writes the mark by its variable or spelt out.
    writes_bos = bool(bos) and ("bos_token" in template or bos in template)
    return "tokenizer" if adds_bos and not writes_bos else "template"


def choose_rendering(
    tokenizer: Any,
    choice: str | None,
    *,
    model: str,
    default: str | None = None,
    strip: bool = False,
    max_length: int = 2048,
    over_length: OverLength = "unscored",
) -> Rendering:
    """Return the rendering of the chosen template, with special tokens by `choose_special_tokens`.

    Without a ``choice`` the template is the ``default`` (Jinja text), or else the tokenizer's. Raises as
    `choose_template` does. Training writes `complete_template` instead.
    """
    template = default if choice is None and default is not None else choose_template(tokenizer, choice, model=model)
    return Rendering(
        template=template,
        special_tokens=choose_special_tokens(tokenizer, template),
        strip=strip,
        max_length=max_length,
        over_length=over_length,
    )


def complete_template(tokenizer: Any, template: str, *, strip: bool) -> str:
    """Return a template that writes the whole text: with the BOS token that the tokenizer would add, and stripped.

    Any program that applies it, without further marks or stripping, then gets the token ids of training.
    """
    is_marked = choose_special_tokens(tokenizer, template) == "template"
    written = template if is_marked else f"{{{{ bos_token }}}}{template}"
    if not strip or template.startswith(_STRIPPED_START):
        return written
    return f"{_STRIPPED_START}{written}{_STRIPPED_END}"


def add_no_marks(tokenizer: Any) -> None:
    """Let the tokenizer add no marks to a text, in place: its template writes every mark."""
    from tokenizers.processors import TemplateProcessing

    for name in ("add_bos_token", "add_eos_token"):
        if name in tokenizer.init_kwargs:
            tokenizer.init_kwargs[name] = False
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        backend.post_processor = TemplateProcessing(single=["$A"], pair=["$A", "$B"], special_tokens=[])


def set_limit(tokenizer: Any, rendering: Rendering) -> None:
    """Let programs that truncate by the tokenizer's own settings do it where the rendering cuts, in place.

    On the left they also cut a BOS token, which the rendering keeps.
    """
    tokenizer.model_max_length = rendering.max_length
    if rendering.cuts:
        # A tokenizer saves the settings that it was made with, and this one's value.
        tokenizer.truncation_side = tokenizer.init_kwargs["truncation_side"] = rendering.over_length


def render(tokenizer: Any, rendering: Rendering, case: Case, response: Response) -> Written:
    """Return one answer to the case's prompt as the template writes it, including white space at the end.

    Raises ModelError when the template refuses the roles, wants too much work, or changes or drops a text.
    """
    answer = response.messages or (Message(role="assistant", content=response.text or ""),)
    messages = (*case.prompt.messages, *answer)
    try:
        written = write(tokenizer, rendering.template, messages, today=rendering.today)
    except TemplateFailure as error:
        roles = ", ".join(message.role for message in messages)
        raise ModelError(
            f"the chat template refuses this conversation ({error}); its roles: {roles}",
            where=case.prompt.id,
            do=Advice("name a template that takes them: ", Remedy("chat_template", FILE), ", or change the case"),
        ) from error
    rest = written.text
    contents = [(hidden(message.content, written.stand_ins), message) for message in messages]
    # Longest first, and each is taken out: a dropped text must not be found inside another one that quotes it.
    for content, message in sorted(contents, key=lambda pair: -len(pair[0])):
        # Templates may trim the white space around a text, and many do; nothing else of it may change.
        core = content.strip()
        if core not in rest:
            raise ModelError(
                f"the chat template changes or drops the {message.role} text {message.content[:40]!r}",
                where=case.prompt.id,
                do=Advice("name a template that keeps every text: ", Remedy("chat_template", FILE)),
            )
        rest = rest.replace(core, "\0", 1) if core else rest
    return written


def encode(tokenizer: Any, rendering: Rendering, case: Case, response: Response) -> Encoded:
    """Return the token ids of one answer to the case's prompt, as `encode_all` does."""
    (encoded,) = encode_all(tokenizer, rendering, [(case, response)])
    return encoded


def encode_all(tokenizer: Any, rendering: Rendering, answers: Iterable[tuple[Case, Response]]) -> list[Encoded]:
    """Return the token ids of each answer with its case's prompt. Neither cases nor their messages are changed.

    The tokenizer reads the texts side by side. Raises ModelError when the template refuses the roles, changes or drops
    a text, or doubles the BOS token; of several faults, that of the first answer.
    """
    cases: list[Case] = []
    written: list[Written] = []
    try:
        for case, response in answers:
            written.append(render(tokenizer, rendering, case, response))
            cases.append(case)
    except UserError:
        _encode_written(tokenizer, rendering, cases, written)  # an earlier answer may have another fault
        raise
    return _encode_written(tokenizer, rendering, cases, written)


def _encode_written(
    tokenizer: Any, rendering: Rendering, cases: Sequence[Case], written: Sequence[Written]
) -> list[Encoded]:
    add = rendering.special_tokens == "tokenizer"
    tokens = tokenise_all(tokenizer, written, add=add, strip=rendering.strip)
    bos = tokenizer.bos_token_id
    encoded: list[Encoded] = []
    for case in cases:
        try:
            ids, is_repaired = next(tokens)
        except ModelError as error:
            raise ModelError(error.problem, where=f"{error.where}, prompt {case.prompt.id}", do=error.do) from error
        if not ids:
            raise ModelError(
                "the conversation has no tokens",
                where=case.prompt.id,
                do=Advice("name another template: ", Remedy("chat_template", FILE)),
            )
        if bos is not None and ids[:2] == [bos, bos]:
            raise ModelError(
                "two BOS tokens",
                where=case.prompt.id,
                do=Advice("name one that writes it once: ", Remedy("chat_template", FILE)),
            )
        limit = rendering.max_length
        if len(ids) <= limit:
            row = tuple(ids)
        elif rendering.over_length == "left":
            # A cut on the left keeps the BOS token, with which every row of training begins.
            head = ids[:1] if bos is not None and ids[0] == bos else []
            row = tuple(head + ids[len(ids) - limit + len(head) :])
        else:
            row = tuple(ids[:limit])
        encoded.append(Encoded(row, len(ids), is_repaired))
    return encoded


class EncodedAnswer(NamedTuple):
    """The token ids of a prompt with one answer, or the reason why the answer is not scored.

    ``is_over_length``: the answer is over the length limit; its row is then cut or not scored.
    """

    row: tuple[int, ...]
    unscored: str | None = None
    is_over_length: bool = False


class Encoder(Protocol):
    """Turns cases into rows of token ids for one network."""

    def encode(self, case: Case) -> Sequence[EncodedAnswer]:
        """Return one entry per response. Raises EvidenceError for an answer over the limit where that is refused."""
        ...

    def check(self, rows: Sequence[tuple[int, ...]]) -> None:
        """Raise ModelError for rows that the network cannot compute."""
        ...


class ConversationEncoder:
    """Encodes conversations as they are rendered. ``where`` names the model in errors."""

    def __init__(self, tokenizer: Any, rendering: Rendering, network: Any, *, where: str) -> None:
        self._tokenizer = tokenizer
        self._rendering = rendering
        self._network = network
        self._where = where

    def encode(self, case: Case) -> list[EncodedAnswer]:
        """Return one entry per response, `TOO_LONG` over the limit unless the rendering cuts."""
        pairs = [(case, response) for response in case.responses]
        answers = encode_all(self._tokenizer, self._rendering, pairs)
        check_length(answers, self._rendering, case)
        reason = None if self._rendering.cuts else TOO_LONG
        return [
            EncodedAnswer(answer.ids, reason if answer.is_over_length else None, answer.is_over_length)
            for answer in answers
        ]

    def check(self, rows: Sequence[tuple[int, ...]]) -> None:
        """Raise ModelError for a token id or a position that the network has no embedding for."""
        from steelyard.networks.loading import check_rows  # needs torch, and most readers of conversations do not

        check_rows(rows, self._network, where=self._where)


def check_length(encoded: Sequence[Encoded], rendering: Rendering, case: Case) -> None:
    """Raise EvidenceError for an answer over the limit where the rendering refuses such answers."""
    if rendering.over_length != "refuse":
        return
    for response, answer in zip(case.responses, encoded, strict=True):
        if answer.is_over_length:
            raise EvidenceError(
                f"response {response.id!r} has {answer.length:,} tokens with its prompt, over the limit of "
                f"{rendering.max_length:,}, and over_length is 'refuse'",
                where=f"prompt {case.prompt.id!r}",
                do=Advice(
                    *(
                        "use ",
                        Remedy("over_length", "unscored"),
                        " (no score, counted), left or right (cut, counted), or ",
                    ),
                    Remedy("max_length", answer.length),
                ),
            )
