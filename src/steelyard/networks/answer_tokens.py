"""The start of an answer among the tokens of a conversation, and the tokens as pieces of text."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from steelyard.core.types import Case, Message, Response
from steelyard.io.terminal_text import visible_line
from steelyard.networks.conversation import Rendering, encode
from steelyard.networks.rendering import marks_of

# Two answers without a common character or byte: the tokens that both rows begin with come before the answer.
PROBE_ANSWERS = ("\ue000", "\uf8ff")
_NO_LIMIT = 10**9
"""A length limit above any conversation: nothing is cut."""
# Beginnings of other answers, of several kinds: a tokenizer may merge some of them with the preceding text.
_PROBE_STARTS = ("a", "Z", "7", ".", '"', "好", "ב", "\ue000")
_REPLACEMENT = "\ufffd"
"""The replacement character, which a decoder writes for the bytes of a broken character."""
_LONGEST_CHARACTER = 16
"""The most tokens that are joined: a text may itself hold replacement characters, one after another."""


class AnswerRow(NamedTuple):
    """Token ids of a conversation, and the position of the first token of its answer."""

    ids: tuple[int, ...]
    start: int


class AnswerTokens:
    """Rows of a case's answers; a token across the boundary of prompt and answer belongs to the answer.

    ``with_header``: the template's text between prompt and answer counts as answer, as in RewardBench.
    """

    def __init__(self, tokenizer: Any, rendering: Rendering, *, with_header: bool) -> None:
        self.tokenizer = tokenizer
        self.rendering = msgspec.structs.replace(rendering, max_length=_NO_LIMIT)
        self.with_header = with_header

    def rows(self, case: Case) -> list[AnswerRow | None]:
        """Return one uncut row for each response; null for an answer of several turns."""
        if not case.responses:
            return []
        prompt = self._before(case)
        return [None if response.text is None else self._row(case, response, prompt) for response in case.responses]

    def _row(self, case: Case, response: Response, prompt: Sequence[int]) -> AnswerRow:
        ids = encode(self.tokenizer, self.rendering, case, response).ids
        return AnswerRow(ids, num_shared(prompt, ids))

    def _before(self, case: Case) -> tuple[int, ...]:
        if self.with_header:
            *before, last = case.prompt.messages
            shorter = msgspec.structs.replace(case, prompt=msgspec.structs.replace(case.prompt, messages=tuple(before)))
            return encode(self.tokenizer, self.rendering, shorter, Response(id="prompt", messages=(last,))).ids
        first, second = (
            encode(self.tokenizer, self.rendering, case, Response(id="unlike", text=text)).ids for text in PROBE_ANSWERS
        )
        return first[: num_shared(first, second)]


def num_shared(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the length of the common beginning of two rows."""
    for place, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return place
    return min(len(first), len(second))


def with_published_marks(row: AnswerRow, *, bos: int | None, eos: int) -> AnswerRow:
    """Return the row with one more BOS token (or the EOS token) and the EOS token, as in RewardBench."""
    return AnswerRow((eos if bos is None else bos, *row.ids, eos), row.start + 1)


def cut_as_published(row: AnswerRow, limit: int) -> AnswerRow:
    """Return the row with the prompt cut to its last 128 tokens, then the answer to the rest (RewardBench's rule).

    Differs from: RewardBench, which cuts an answer's prompt also where only the other answer of the pair is too long.
    """
    prompt, answer = row.ids[: row.start], row.ids[row.start :]
    if len(row.ids) > limit:
        prompt = prompt[-128:]
    if len(prompt) + len(answer) > limit:
        answer = answer[: limit - 128]
    return AnswerRow(prompt + answer, len(prompt))


class Piece(NamedTuple):
    """A piece of text and its tokens: more than one where a character takes several."""

    text: str
    ids: tuple[int, ...]
    is_special: bool
    is_prompt: bool
    is_cut: bool


class ShownAnswer(NamedTuple):
    """All tokens of one conversation with its answer, including those that are cut.

    ``bos`` and ``eos`` are the tokenizer's marks, null where it has none. ``is_refused``: the answer is over the limit
    and not scored; otherwise the model scores the remaining tokens.
    """

    response: str
    pieces: tuple[Piece, ...]
    limit: int
    over_length: str
    is_refused: bool
    bos: str | None
    eos: str | None

    @property
    def num_tokens(self) -> int:
        """The number of tokens before anything is cut."""
        return sum(len(piece.ids) for piece in self.pieces)

    @property
    def num_prompt(self) -> int:
        """The number of tokens before the answer, including the marks of the template."""
        return sum(len(piece.ids) for piece in self.pieces if piece.is_prompt)

    @property
    def num_cut(self) -> int:
        """The number of tokens over the limit."""
        return sum(len(piece.ids) for piece in self.pieces if piece.is_cut)

    @property
    def begins_with_bos(self) -> bool:
        """True where the first token is the tokenizer's BOS token."""
        return bool(self.pieces) and self.pieces[0].is_special and self.pieces[0].text == self.bos

    @property
    def ends_with_eos(self) -> bool:
        """True where the last token that is not cut is the tokenizer's EOS token."""
        last = self._last
        return last is not None and last.is_special and last.text == self.eos

    @property
    def _last(self) -> Piece | None:
        return next((piece for piece in reversed(self.pieces) if not piece.is_cut), None)

    def counted(self) -> list[str]:
        """Return short remarks on lengths, marks and the cut."""
        answer = self.num_tokens - self.num_prompt
        remarks = [f"{self.num_tokens:,} tokens: {self.num_prompt:,} prompt + {answer:,} answer"]
        remarks.append(f"limit {self.limit:,}")
        if self.bos is None:
            remarks.append("the tokenizer has no BOS")
        else:
            remarks.append(f"begins with BOS {self.bos}" if self.begins_with_bos else f"no BOS ({self.bos})")
        last = self._last
        if last is not None and self.ends_with_eos:
            remarks.append(f"ends with EOS {last.text}")
        elif last is not None:
            remarks.append(f"ends with {shown_piece(last)}, not EOS" + (f" ({self.eos})" if self.eos else ""))
        return remarks

    def cut(self) -> str | None:
        """Return a remark on tokens over the limit; null where everything fits."""
        if not self.num_cut:
            return None
        over = f"{self.num_cut:,} tokens over the limit"
        return f"{over}: NOT SCORED" if self.is_refused else f"{over}: cut off at the {self.over_length}, not seen"


def shown_answers(tokenizer: Any, rendering: Rendering, case: Case) -> tuple[ShownAnswer, ...]:
    """Return the tokens of every response as the scorer makes them; those over the length limit are marked.

    Raises ModelError as scoring does, for a template that refuses the case.
    """
    return tuple(_answer(tokenizer, rendering, case, response) for response in case.responses)


def _answer(tokenizer: Any, rendering: Rendering, case: Case, response: Response) -> ShownAnswer:
    whole = msgspec.structs.replace(rendering, max_length=_NO_LIMIT)
    seen, ids = encode(tokenizer, rendering, case, response), encode(tokenizer, whole, case, response).ids
    num_prompt = _num_prompt(tokenizer, whole, case, response, ids)
    # A cut on the left spares the BOS token.
    num_cut = len(ids) - len(seen.ids)
    if rendering.over_length == "left":
        start = int(seen.ids[:1] == (tokenizer.bos_token_id,) and ids[0] == tokenizer.bos_token_id)
    else:
        start = len(seen.ids)
    cut = range(start, start + num_cut)
    assert tuple(token for place, token in enumerate(ids) if place not in cut) == seen.ids, (
        "the shown cut is the scorer's cut"
    )
    return ShownAnswer(
        response=response.id,
        pieces=tuple(_pieces(tokenizer, ids, num_prompt, cut, template=rendering.template)),
        limit=rendering.max_length,
        over_length=rendering.over_length,
        is_refused=seen.is_over_length and not rendering.cuts,
        bos=tokenizer.bos_token,
        eos=tokenizer.eos_token,
    )


def _num_prompt(tokenizer: Any, rendering: Rendering, case: Case, response: Response, ids: Sequence[int]) -> int:
    """Return the number of tokens before the answer: those shared with answers that begin differently.

    No other answer shares a token that contains text of this one; a token across the boundary belongs to the answer.
    Of several other answers the one that shares most counts, since its beginning may merge with the preceding text.
    """
    text = response.messages[0].content if response.messages else response.text or ""
    begins = {part[:1].encode()[:1] for part in (text, text.lstrip())}
    others = [other for other in _PROBE_STARTS if other.encode()[:1] not in begins]
    rows = (encode(tokenizer, rendering, case, _beginning_with(other, response)).ids for other in others)
    return max(num_shared(ids, row) for row in rows)


def _beginning_with(text: str, response: Response) -> Response:
    if not response.messages:
        return Response(id=response.id, text=text)
    first, *rest = response.messages
    return Response(id=response.id, messages=(Message(role=first.role, content=text), *rest))


def _pieces(tokenizer: Any, ids: Sequence[int], num_prompt: int, cut: range, *, template: str) -> Iterator[Piece]:
    """Yield the tokens as pieces of text, in which only the bytes of one character are joined."""
    special = set(marks_of(tokenizer, template).ids.values())
    borders = {0, num_prompt, cut.start, cut.stop, len(ids)}
    borders |= {place + after for place, token in enumerate(ids) if token in special for after in (0, 1)}
    start = 0
    for end in range(1, len(ids) + 1):
        text = _text(tokenizer, ids, start, end)
        goes_on = end < len(ids) and _REPLACEMENT in _decoded(tokenizer, ids[end : end + 1])
        if text.endswith(_REPLACEMENT) and goes_on and end - start < _LONGEST_CHARACTER and end not in borders:
            continue
        for first, last in pairwise(sorted({start, _whole_from(tokenizer, ids, start, end), end})):
            yield Piece(
                text=_text(tokenizer, ids, first, last),
                ids=tuple(ids[first:last]),
                is_special=ids[first] in special,
                is_prompt=first < num_prompt,
                is_cut=first in cut,
            )
        start = end


def _whole_from(tokenizer: Any, ids: Sequence[int], start: int, end: int) -> int:
    """Return where readable text begins, after the rest of a character that was cut in two; the start if nowhere."""
    places = (place for place in range(start, end) if _REPLACEMENT not in _text(tokenizer, ids, place, end))
    return next(places, start)


def _text(tokenizer: Any, ids: Sequence[int], start: int, end: int) -> str:
    """Return the text of the tokens after the preceding token, which decides whether a space belongs to them."""
    # SentencePiece drops the space at the beginning of a decoded text: the preceding token keeps it.
    before = _decoded(tokenizer, ids[max(start - 1, 0) : start])
    together = _decoded(tokenizer, ids[max(start - 1, 0) : end])
    if _REPLACEMENT not in before and together.startswith(before):
        return together[len(before) :]
    return _decoded(tokenizer, ids[start:end])


def _decoded(tokenizer: Any, ids: Sequence[int]) -> str:
    return tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)


def shown_piece(piece: Piece) -> str:
    """Return a printable piece: control characters visible, special tokens in brackets."""
    text = visible_line(piece.text)
    return f"⟦{text}⟧" if piece.is_special else text
