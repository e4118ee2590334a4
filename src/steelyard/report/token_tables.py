"""Tokens and cost of every stage that asks models: in a headline, and a panel by model."""

from collections.abc import Iterator, Mapping

from steelyard.evaluation.tables import DASH, Grouped, Panel, count, decimal, isolate, table, word
from steelyard.judging.token_use import TokenUse


def token_panel(tokens: Mapping[str, TokenUse], role: str) -> Panel:
    """Return the tokens, the cost and the oddities of each model's replies. ``role`` is the word for the models.

    Tries without an answer have a column where there are any.
    """
    has_unanswered = any(use.unanswered_tries for use in tokens.values())
    rows = [
        (
            name,
            count(use.num_replies),
            count(use.prompt),
            count(use.reply),
            count(use.uncounted),
            *((count(use.unanswered_tries),) if has_unanswered else ()),
            DASH if use.cost is None else decimal(use.cost, 4),
            ", ".join(f"{isolate(model)} {number:,}" for model, number in use.other_models.items()) or DASH,
        )
        for name, use in tokens.items()
    ]
    unanswered = ("unanswered_tries",) if has_unanswered else ()
    columns = ("replies", "prompt_tokens", "reply_tokens", "uncounted_replies", *unanswered, "cost", "other_models")
    numbers = table((role, *columns), rows)
    return Panel(word("tokens_and_cost"), None, (Grouped("", numbers),), "note_tokens_and_cost")


def tokens_and_cost(tokens: Mapping[str, TokenUse]) -> Iterator[str]:
    """Yield the numbers of tokens in and out, and their cost where every chat has a price."""
    costs = [use.cost for use in tokens.values()]
    yield f"{count(sum(use.prompt for use in tokens.values()))} {word('view_tokens_in')}"
    yield f"{count(sum(use.reply for use in tokens.values()))} {word('view_tokens_out')}"
    if costs and all(cost is not None for cost in costs):
        yield f"{word('view_cost')} {decimal(sum(cost or 0.0 for cost in costs), 4)}"
