"""What a reply says as an outcome: a label that was offered, or the reason why there is none."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from steelyard.core.comparison import Outcome, Reply
from steelyard.judging.reply_parsing import (
    Form,
    ParsedReply,
    is_refusal,
    normalize_text,
    read_choice,
    read_first_token,
    without_thinking,
)

LABELS = ("A", "B", "C", "D")
# A heading of the material, which names an answer as a verdict does: "===== Output (a) 7005b1ed =====".
_HEADING = re.compile(r"^[ \t]*=====.*$", re.MULTILINE)


class Said(NamedTuple):
    """The place of the label among those offered, or null with the outcome that says why."""

    place: int | None
    outcome: Outcome | None = None
    detail: str | None = None


def choice_of(reply: Reply, form: Form, labels: Sequence[str], *, least_odds: float = 0.5) -> Said:
    """The choice that a reply makes; for a first token all labels together must have ``least_odds`` of probability."""
    if form == "first_token":
        # The reply is as short as it can be: that it was cut off says nothing here.
        if reply.failure in ("refused", "failed"):
            return Said(None, reply.failure, reply.detail)
        return _placed(read_first_token(reply.first_token, labels, least=least_odds), labels, text="")
    missing = why_missing(reply)
    if missing is not None:
        return missing
    text = _HEADING.sub("", reply.text or "")
    return _placed(read_choice(text, form, labels), labels, text=text)


def odds_asked(form: Form, least_odds: float) -> dict[str, float]:
    """What a protocol says of odds: nothing for a form that has none."""
    return {"least_odds": least_odds} if form == "first_token" else {}


def why_missing(reply: Reply) -> Said | None:
    """Why the reply has no whole text; null where it has one."""
    return None if reply.failure is None else Said(None, reply.failure, reply.detail)


def unread(text: str, detail: str | None) -> Said:
    """A whole text without a verdict: a refusal, or unreadable."""
    if is_refusal((without_thinking(normalize_text(text)) or "").strip()):
        return Said(None, "refused", "declines in words")
    return Said(None, "unreadable", detail)


def _placed(reading: ParsedReply, labels: Sequence[str], *, text: str) -> Said:
    if reading.value is None:
        return unread(text, reading.detail)
    return Said(labels.index(reading.value))
