"""The tokens that a reward model reads for an answer as lines: special ones marked, the prompt apart, the cut shown."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from steelyard.io.terminal_text import EMPTY, INDENT, Line, Span, Style, folded, joined_lines, width_of
from steelyard.networks.answer_tokens import Piece, ShownAnswer, shown_piece

_DIVIDER = "│"


def token_lines(answers: Sequence[ShownAnswer], labels: dict[str, str], width: int, *, with_ids: bool) -> list[Line]:
    """Every answer's tokens in lines of at most ``width`` cells; a prompt that all have in common stands once."""
    prompts = {tuple(piece for piece in one.pieces if piece.is_prompt) for one in answers}
    is_shared = len(prompts) == 1 and len(answers) > 1
    lines: list[Line] = []
    if is_shared:
        lines += [(Span("prompt", "quiet"), Span(", the same for all answers:", "quiet"))]
        lines += _segments(next(iter(prompts)), width, with_ids=with_ids)
    for one in answers:
        lines += [EMPTY, (Span(labels[one.response], "title"),)]
        lines += joined_lines(one.counted(), width, indent=INDENT)
        if cut := one.cut():
            lines += joined_lines([cut], width, style="bad", indent=INDENT)
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
        text = shown_piece(piece) + (f"‹{','.join(map(str, piece.ids))}›" if with_ids else "")
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
