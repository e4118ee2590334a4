"""The tokens that a reward model reads for an answer as lines: special ones marked, the prompt apart, the cut shown."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from steelyard.methods.reporting.cells import folded, visible_line, width_of
from steelyard.methods.reporting.spans import EMPTY, INDENT, Line, Span, Style, listed

_DIVIDER = "│"


class Piece(NamedTuple):
    """A piece of text and the tokens that make it: more than one where a character takes several."""

    text: str
    ids: tuple[int, ...]
    is_special: bool
    is_prompt: bool
    is_cut: bool


class AnswerTokens(NamedTuple):
    """All tokens of one conversation with its answer, those included that are cut off.

    ``bos`` and ``eos`` are the tokenizer's marks, null where it has none. ``is_refused``: the answer is over the limit
    and the model gives it no score; otherwise what is cut is not seen.
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
        """How many tokens there are before anything is cut."""
        return sum(len(piece.ids) for piece in self.pieces)

    @property
    def num_prompt(self) -> int:
        """How many of them come before the answer, the marks of the template included."""
        return sum(len(piece.ids) for piece in self.pieces if piece.is_prompt)

    @property
    def num_cut(self) -> int:
        """How many are over the limit."""
        return sum(len(piece.ids) for piece in self.pieces if piece.is_cut)

    @property
    def begins_with_bos(self) -> bool:
        """Whether the first token is the tokenizer's mark of a beginning."""
        return bool(self.pieces) and self.pieces[0].is_special and self.pieces[0].text == self.bos

    @property
    def ends_with_eos(self) -> bool:
        """Whether the last token that is not cut is the tokenizer's mark of an end."""
        last = self._last
        return last is not None and last.is_special and last.text == self.eos

    @property
    def _last(self) -> Piece | None:
        return next((piece for piece in reversed(self.pieces) if not piece.is_cut), None)

    def counted(self) -> list[str]:
        """The lengths, the marks and the cut in short remarks."""
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
            remarks.append(f"ends with {_shown(last)}, not EOS" + (f" ({self.eos})" if self.eos else ""))
        return remarks

    def cut(self) -> str | None:
        """What happens to what is over the limit; null where everything fits."""
        if not self.num_cut:
            return None
        over = f"{self.num_cut:,} tokens over the limit"
        return f"{over}: NOT SCORED" if self.is_refused else f"{over}: cut off at the {self.over_length}, not seen"


def token_lines(answers: Sequence[AnswerTokens], labels: dict[str, str], width: int, *, with_ids: bool) -> list[Line]:
    """Every answer's tokens in lines of at most ``width`` cells; a prompt that all have in common stands once."""
    prompts = {tuple(piece for piece in one.pieces if piece.is_prompt) for one in answers}
    is_shared = len(prompts) == 1 and len(answers) > 1
    lines: list[Line] = []
    if is_shared:
        lines += [(Span("prompt", "quiet"), Span(", the same for all answers:", "quiet"))]
        lines += _segments(next(iter(prompts)), width, with_ids=with_ids)
    for one in answers:
        lines += [EMPTY, (Span(labels[one.response], "title"),)]
        lines += listed(one.counted(), width, indent=INDENT)
        if cut := one.cut():
            lines += listed([cut], width, style="bad", indent=INDENT)
        pieces = [piece for piece in one.pieces if not (is_shared and piece.is_prompt)]
        lines += _segments(pieces, width, with_ids=with_ids)
    return lines


def _segments(pieces: Iterable[Piece], width: int, *, with_ids: bool) -> list[Line]:
    """The pieces part by part, each part under its name."""
    lines: list[Line] = []
    for (is_prompt, is_cut), group in groupby(pieces, key=lambda piece: (piece.is_prompt, piece.is_cut)):
        name = "prompt" if is_prompt else "answer"
        title = f"{name}, over the limit:" if is_cut else f"{name}:"
        lines.append((Span(INDENT + title, "bad" if is_cut else "quiet"),))
        lines += _flow(group, width, is_cut=is_cut, with_ids=with_ids)
    return lines


def _flow(pieces: Iterable[Piece], width: int, *, is_cut: bool, with_ids: bool) -> list[Line]:
    """Pieces one behind the other; a new line in the text ends the line here too."""
    indent = Span(INDENT * 2)
    lines: list[Line] = []
    current: list[Span] = []
    used = len(indent.text)
    for piece in pieces:
        text = _shown(piece) + (f"‹{','.join(map(str, piece.ids))}›" if with_ids else "")
        style: Style = "special" if piece.is_special else "bad" if is_cut else "plain"
        for part in folded(text, width - len(indent.text) - 1):
            taken = width_of(part) + (1 if current else 0)
            if current and used + taken > width:
                lines.append((indent, *current))
                current, used = [], len(indent.text)
            if current:
                current.append(Span(_DIVIDER, "quiet"))
            current.append(Span(part, style))
            used += taken
        if piece.text.endswith("\n"):
            lines.append((indent, *current))
            current, used = [], len(indent.text)
    return [*lines, (indent, *current)] if current else lines


def _shown(piece: Piece) -> str:
    text = visible_line(piece.text)
    return f"⟦{text}⟧" if piece.is_special else text
