"""The texts of one opened case as lines: what was asked, what was answered, and what raters said of each answer."""

from collections.abc import Iterable, Sequence

from steelyard.core.types import Case, Message, Rating, Response
from steelyard.io.terminal_text import EMPTY, INDENT, Line, Span, Style, heading, joined_lines, text_lines
from steelyard.report.opened import Opened

_NOTHING = "(empty)"
_ROLE_STYLES: dict[str, Style] = {"user": "special", "assistant": "good"}


def prompt_lines(case: Case, width: int) -> list[Line]:
    """The conversation that is to be answered, and the reference answer where there is one."""
    lines = [*heading("PROMPT", width), *_turns(case.prompt.messages, width)]
    if case.prompt.reference is not None:
        lines += [*heading("REFERENCE", width), *_text(case.prompt.reference, width)]
    return lines


def response_lines(opened: Opened, width: int, *, beside: Sequence[Sequence[str]]) -> list[Line]:
    """Every answer under its label, with its id, tier, author and ratings; ``beside`` has further remarks on each."""
    lines = heading("RESPONSES", width)
    for response, remarks in zip(opened.case.responses, beside, strict=True):
        lines += _response(opened, response, width, remarks=remarks)
    return lines if opened.case.responses else [*lines, *text_lines("none", width, style="quiet", indent=INDENT)]


def _response(opened: Opened, response: Response, width: int, *, remarks: Sequence[str]) -> list[Line]:
    label = opened.labels[response.id]
    tier = opened.tier_of(response.id)
    parts = [
        f"id {response.id}",
        f"tier {tier}" if tier else "not ranked" if opened.ranking is not None else "",
        f"by {response.author}" if response.author is not None else "",
        *remarks,
    ]
    first, *rest = joined_lines(parts, width - len(label) - len(INDENT), style="quiet")
    indent = Span(" " * (len(label) + len(INDENT)))
    lines: list[Line] = [EMPTY, (Span(label + INDENT, "title"), *first), *((indent, *line) for line in rest)]
    ratings = [one for one in opened.case.ratings if one.response == response.id]
    lines += [line for one in ratings for line in joined_lines(_rated(one), width, style="quiet", indent=INDENT)]
    if response.text is not None:
        return [*lines, *_text(response.text, width)]
    return [*lines, *_turns(response.messages or (), width)]


def _rated(rating: Rating) -> list[str]:
    scale = f" of {rating.range[0]:g} to {rating.range[1]:g}" if rating.range else ""
    spans = [
        f"{label} at {start} to {end}" + (f" ({reason})" if reason else "")
        for start, end, label, reason in rating.spans or ()
    ]
    return [f"rated {rating.dimension} {rating.value:g}{scale}", f"{rating.rater} ({rating.kind})", *spans]


def _turns(messages: Iterable[Message], width: int) -> list[Line]:
    lines: list[Line] = []
    for message in messages:
        lines += text_lines(f"{message.role}:", width, style=_ROLE_STYLES.get(message.role, "quiet"), indent=INDENT)
        lines += _text(message.content, width)
    return lines


def _text(text: str, width: int) -> list[Line]:
    if not text:
        return text_lines(_NOTHING, width, style="quiet", indent=INDENT * 2)
    return text_lines(text, width, indent=INDENT * 2)
