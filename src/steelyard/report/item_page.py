"""One case as a page for a terminal, and as one JSON object: texts, judgments, cycles, tiers, scores and tokens."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from steelyard.core.remedies import Wording, worded
from steelyard.core.text import number_of
from steelyard.core.types import Case, JsonObject, Message, Rating, Response
from steelyard.io.terminal_text import (
    EMPTY,
    INDENT,
    Line,
    Span,
    Style,
    folded,
    heading,
    joined_lines,
    text_lines,
    width_of,
)
from steelyard.networks.answer_tokens import Piece, ShownAnswer, shown_piece
from steelyard.ranking.judgment_table import NO_LANGUAGE
from steelyard.report.case_analysis import CaseAnalysis
from steelyard.report.case_scores import CaseScores
from steelyard.report.item_judgments import (
    cycle_lines,
    judgment_lines,
    pair_lines,
    score_lines,
    tier_lines,
)

_EMPTY_TEXT = "(empty)"
_ROLE_STYLES: dict[str, Style] = {"user": "special", "assistant": "good"}
_DIVIDER = "│"


class ItemPage(NamedTuple):
    """The contents of a case's page.

    ``looked_up`` names the files that were read, in sentences; ``rule`` is how the tiers come from the judgments.
    ``tokens`` are those that ``model`` reads; ``model`` is null where none are shown.
    """

    analysis: CaseAnalysis
    looked_up: tuple[str, ...]
    rule: str
    scored: tuple[CaseScores, ...] = ()
    model: str | None = None
    tokens: tuple[ShownAnswer, ...] = ()


def page_lines(page: ItemPage, width: int, *, with_ids: bool = False, wording: Wording = str) -> list[Line]:
    """Return the page in lines of at most ``width`` cells; ``with_ids`` adds its id to every token."""
    analysis = page.analysis
    lines = [
        *_head(analysis, width),
        *(line for text in page.looked_up for line in text_lines(worded(text, wording), width, style="quiet")),
        *prompt_lines(analysis.case, width),
        *response_lines(analysis, width, remarks=_score_remarks(page)),
        *judgment_lines(analysis, width),
        *cycle_lines(analysis, width),
        *tier_lines(analysis, width, rule=page.rule),
        *pair_lines(analysis, width),
        *(line for scores in page.scored for line in score_lines(analysis, scores, width)),
    ]
    if page.model is not None:
        lines += heading("TOKENS", width, remark=page.model)
        lines += joined_lines(["⟦special⟧", "│ between tokens", "‹id›" if with_ids else ""], width, style="quiet")
        lines += token_lines(page.tokens, analysis.labels, width, with_ids=with_ids)
    return lines


def _head(analysis: CaseAnalysis, width: int) -> list[Line]:
    case = analysis.case
    kinds = Counter(judgment.kind for judgment in case.judgments)
    counted = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    about = [
        case.prompt.language or f"language {NO_LANGUAGE}",
        " › ".join(case.prompt.category),
        f"source {case.prompt.source}" if case.prompt.source else "",
        f"subset {case.prompt.subset}" if case.prompt.subset else "",
    ]
    sizes = [
        number_of(len(case.responses), "response"),
        number_of(len(case.judgments), "judgment") + (f" ({counted})" if counted else ""),
        f"{analysis.num_conflicting} in conflict" if case.judgments else "",
        number_of(len(analysis.ranking), "tier") if analysis.ranking else "no ranking",
    ]
    return [*text_lines(case.prompt.id, width, style="title"), *joined_lines(about, width), *joined_lines(sizes, width)]


def _score_remarks(page: ItemPage) -> list[list[str]]:
    """Return the scores of each response, with the name of their file where there are several."""
    several = len(page.scored) > 1
    return [
        [
            f"{scored.name if several else 'score'} {_number(scored.scores.scores.get(response.id))}"
            for scored in page.scored
        ]
        for response in page.analysis.case.responses
    ]


def _number(score: float | None) -> str:
    return "none" if score is None else f"{score:z.4f}"


def prompt_lines(case: Case, width: int) -> list[Line]:
    """Return the conversation to be answered, and the reference answer where there is one."""
    lines = [*heading("PROMPT", width), *_turns(case.prompt.messages, width)]
    if case.prompt.reference is not None:
        lines += [*heading("REFERENCE", width), *_text(case.prompt.reference, width)]
    return lines


def response_lines(analysis: CaseAnalysis, width: int, *, remarks: Sequence[Sequence[str]]) -> list[Line]:
    """Return every response under its label, with its id, tier, author and ratings, and further ``remarks`` on it."""
    lines = heading("RESPONSES", width)
    for response, own_remarks in zip(analysis.case.responses, remarks, strict=True):
        lines += _response(analysis, response, width, remarks=own_remarks)
    return lines if analysis.case.responses else [*lines, *text_lines("none", width, style="quiet", indent=INDENT)]


def _response(analysis: CaseAnalysis, response: Response, width: int, *, remarks: Sequence[str]) -> list[Line]:
    label = analysis.labels[response.id]
    tier = analysis.tier_of(response.id)
    parts = [
        f"id {response.id}",
        f"tier {tier}" if tier else "not ranked" if analysis.ranking is not None else "",
        f"by {response.author}" if response.author is not None else "",
        *remarks,
    ]
    first, *rest = joined_lines(parts, width - len(label) - len(INDENT), style="quiet")
    indent = Span(" " * (len(label) + len(INDENT)))
    lines: list[Line] = [EMPTY, (Span(label + INDENT, "title"), *first), *((indent, *line) for line in rest)]
    for rating in analysis.case.ratings:
        if rating.response == response.id:
            lines += joined_lines(_rating_parts(rating), width, style="quiet", indent=INDENT)
    if response.text is not None:
        return [*lines, *_text(response.text, width)]
    return [*lines, *_turns(response.messages or (), width)]


def _rating_parts(rating: Rating) -> list[str]:
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
        return text_lines(_EMPTY_TEXT, width, style="quiet", indent=INDENT * 2)
    return text_lines(text, width, indent=INDENT * 2)


def token_lines(answers: Sequence[ShownAnswer], labels: dict[str, str], width: int, *, with_ids: bool) -> list[Line]:
    """Return each response's tokens in lines of at most ``width`` cells; a prompt that all share is shown once."""
    prompts = {tuple(piece for piece in answer.pieces if piece.is_prompt) for answer in answers}
    is_shared = len(prompts) == 1 and len(answers) > 1
    lines: list[Line] = []
    if is_shared:
        lines += [(Span("prompt", "quiet"), Span(", the same for all answers:", "quiet"))]
        lines += _segments(next(iter(prompts)), width, with_ids=with_ids)
    for answer in answers:
        lines += [EMPTY, (Span(labels[answer.response], "title"),)]
        lines += joined_lines(answer.counted(), width, indent=INDENT)
        if cut := answer.cut():
            lines += joined_lines([cut], width, style="bad", indent=INDENT)
        pieces = [piece for piece in answer.pieces if not (is_shared and piece.is_prompt)]
        lines += _segments(pieces, width, with_ids=with_ids)
    return lines


def _segments(pieces: Iterable[Piece], width: int, *, with_ids: bool) -> list[Line]:
    """Return the pieces part by part, each part under its name."""
    lines: list[Line] = []
    for (is_prompt, is_cut), group in groupby(pieces, key=lambda piece: (piece.is_prompt, piece.is_cut)):
        name = "prompt" if is_prompt else "answer"
        title = f"{name}, over the limit:" if is_cut else f"{name}:"
        lines.append((Span(INDENT + title, "bad" if is_cut else "quiet"),))
        lines += _flow(group, width, is_cut=is_cut, with_ids=with_ids)
    return lines


def _flow(pieces: Iterable[Piece], width: int, *, is_cut: bool, with_ids: bool) -> list[Line]:
    """Return pieces one after another; a new line in the text ends the line here too."""
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


def page_record(page: ItemPage) -> JsonObject:
    """Return the page as one record, with ids instead of labels."""
    analysis, case = page.analysis, page.analysis.case
    in_cycle = {place: number for number, cycle in enumerate(analysis.cycles, 1) for place in cycle.judgments}
    return {
        "looked_up": list(map(str, page.looked_up)),
        "labels": analysis.labels,
        "case": msgspec.to_builtins(case),
        "num_conflicting": analysis.num_conflicting,
        "judgments": [
            {"position": place, "is_admitted": admitted, "is_conflicting": bad, "cycle": in_cycle.get(place)}
            for place, (admitted, bad) in enumerate(zip(analysis.admitted, analysis.conflicting, strict=True))
        ],
        "graph": [arrow._asdict() for arrow in analysis.arrows],
        "cycles": [cycle._asdict() for cycle in analysis.cycles],
        "tiers": analysis.tiers,
        "rule": page.rule,
        "scores": [_scores_record(scored) for scored in page.scored],
        "tokens": [_tokens_record(tokens, page.model) for tokens in page.tokens],
    }


def _scores_record(scored: CaseScores) -> JsonObject:
    outcome = None if scored.outcome is None else msgspec.to_builtins(scored.outcome)
    return {"name": scored.name, **msgspec.to_builtins(scored.scores), "outcome": outcome}


def _tokens_record(tokens: ShownAnswer, model: str | None) -> JsonObject:
    return {
        "response": tokens.response,
        "model": model,
        "num_tokens": tokens.num_tokens,
        "num_prompt": tokens.num_prompt,
        "num_cut": tokens.num_cut,
        "limit": tokens.limit,
        "over_length": tokens.over_length,
        "is_refused": tokens.is_refused,
        "begins_with_bos": tokens.begins_with_bos,
        "ends_with_eos": tokens.ends_with_eos,
        "ids": [token for piece in tokens.pieces for token in piece.ids],
        "pieces": [piece._asdict() for piece in tokens.pieces],
    }
