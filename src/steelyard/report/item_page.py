"""One case as a page for a terminal, and as one JSON object: texts, judgments, cycles, tiers, scores and tokens."""

from collections import Counter
from typing import Any, NamedTuple

import msgspec

from steelyard.io.terminal_text import Line, heading, joined_lines, number_of, text_lines
from steelyard.networks.answer_tokens import ShownAnswer
from steelyard.ranking.judgment_table import NO_LANGUAGE
from steelyard.report.item_texts import prompt_lines, response_lines
from steelyard.report.item_verdicts import (
    Scored,
    cycle_lines,
    judgment_lines,
    pair_lines,
    score_lines,
    tier_lines,
)
from steelyard.report.opened import Opened
from steelyard.report.token_view import token_lines


class ItemPage(NamedTuple):
    """All that is shown of one case.

    ``looked_up`` says in sentences what was read where; ``rule`` how the tiers come from the judgments. ``tokens`` are
    those that ``model`` reads; ``model`` is null where none is shown.
    """

    opened: Opened
    looked_up: tuple[str, ...]
    rule: str
    scored: tuple[Scored, ...] = ()
    model: str | None = None
    tokens: tuple[ShownAnswer, ...] = ()


def page_lines(page: ItemPage, width: int, *, with_ids: bool = False) -> list[Line]:
    """The page in lines of at most ``width`` cells; ``with_ids`` puts the id behind every token."""
    opened = page.opened
    lines = [
        *_head(opened, width),
        *(line for one in page.looked_up for line in text_lines(one, width, style="quiet")),
        *prompt_lines(opened.case, width),
        *response_lines(opened, width, beside=_scores_beside(page)),
        *judgment_lines(opened, width),
        *cycle_lines(opened, width),
        *tier_lines(opened, width, rule=page.rule),
        *pair_lines(opened, width),
        *(line for one in page.scored for line in score_lines(opened, one, width)),
    ]
    if page.model is not None:
        lines += heading("TOKENS", width, remark=page.model)
        lines += joined_lines(["⟦special⟧", "│ between tokens", "‹id›" if with_ids else ""], width, style="quiet")
        lines += token_lines(page.tokens, opened.labels, width, with_ids=with_ids)
    return lines


def page_record(page: ItemPage) -> dict[str, Any]:
    """The page as one record, everything in it, with the ids instead of labels."""
    opened, case = page.opened, page.opened.case
    in_cycle = {place: number for number, cycle in enumerate(opened.cycles, 1) for place in cycle.judgments}
    return {
        "looked_up": list(page.looked_up),
        "labels": opened.labels,
        "case": msgspec.to_builtins(case),
        "num_conflicting": opened.num_conflicting,
        "judgments": [
            {"position": place, "is_admitted": admitted, "is_conflicting": bad, "cycle": in_cycle.get(place)}
            for place, (admitted, bad) in enumerate(zip(opened.admitted, opened.conflicting, strict=True))
        ],
        "graph": [arrow._asdict() for arrow in opened.arrows],
        "cycles": [cycle._asdict() for cycle in opened.cycles],
        "tiers": opened.tiers,
        "rule": page.rule,
        "scores": [_scored_record(one) for one in page.scored],
        "tokens": [_tokens_record(one, page.model) for one in page.tokens],
    }


def _head(opened: Opened, width: int) -> list[Line]:
    case = opened.case
    kinds = Counter(one.kind for one in case.judgments)
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
        f"{opened.num_conflicting} in conflict" if case.judgments else "",
        number_of(len(opened.ranking), "tier") if opened.ranking else "no ranking",
    ]
    return [*text_lines(case.prompt.id, width, style="title"), *joined_lines(about, width), *joined_lines(sizes, width)]


def _scores_beside(page: ItemPage) -> list[list[str]]:
    """The scores of each response, named only where there are several files of them."""
    several = len(page.scored) > 1
    return [
        [
            f"{one.name} {_number(one.scores.scores.get(response.id))}"
            if several
            else f"score {_number(one.scores.scores.get(response.id))}"
            for one in page.scored
        ]
        for response in page.opened.case.responses
    ]


def _number(score: float | None) -> str:
    return "none" if score is None else f"{score:.4f}"


def _scored_record(scored: Scored) -> dict[str, Any]:
    outcome = None if scored.outcome is None else msgspec.to_builtins(scored.outcome)
    return {"name": scored.name, **msgspec.to_builtins(scored.scores), "outcome": outcome}


def _tokens_record(tokens: ShownAnswer, model: str | None) -> dict[str, Any]:
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
        "ids": [one for piece in tokens.pieces for one in piece.ids],
        "pieces": [piece._asdict() for piece in tokens.pieces],
    }
