"""Reasons for missing verdicts and failed requests, in words of the page."""

import re
from collections.abc import Iterator, Mapping

from steelyard.core.comparison import OUTCOMES
from steelyard.evaluation.tables import Grouped, Panel, count, table, word

_SLUG = re.compile(r"[^a-z0-9]+")
_STATUS = re.compile(r"http_(\d{3})")
_COLON = word("colon", ": ")
_DETAILS = {
    r"the labels have (\d\.\d\d) of the probability": "detail_probability",
    r"at (\d+) tokens": "detail_at_tokens",
    r"at (\d+) tokens, fewer than the \d+ asked for.*": "detail_below_the_limit",
    r"several verdicts: (.*)": "detail_these_verdicts",
    r"(['\"].*['\"]) is none of .*": "detail_unknown_label",
    r"content filter: (.*)": "detail_filtered",
}


def failure_word(reason: str) -> str:
    """Return the word of the reason of failed requests; a status of the server keeps its number."""
    status = _STATUS.fullmatch(reason)
    if status is None:
        return word(f"failed_{text_key(reason)}", reason)
    return f"{word('failed_http', 'the server answered')} {status[1]}"


def failed_panels(failed: Mapping[str, int]) -> Iterator[Panel]:
    """Yield the failed requests by reason, where there are any."""
    if failed:
        rows = [(failure_word(reason), count(number)) for reason, number in failed.items()]
        yield Panel(word("failed_requests"), None, (Grouped("", table(("reason", "n"), rows)),))


def detail_word(detail: str) -> str:
    """Return why a reply has no verdict, in words of the page where it has them; numbers, labels and messages stay."""
    for pattern, key in _DETAILS.items():
        if match := re.fullmatch(pattern, detail, re.DOTALL):
            return f"{word(key)} {match[1]}"
    reason, mark, message = detail.partition(": ")
    if mark:
        return f"{failure_word(reason)}{_COLON}{message}"
    return word(f"detail_{text_key(detail)}", detail)


def no_verdict_word(reason: str) -> str:
    """Return the reason of a judgment without a verdict, ``OUTCOME`` or ``OUTCOME: DETAIL``, in words of the page.

    A reason that people or other tools wrote stays as it is.
    """
    outcome, mark, detail = reason.partition(": ")
    if outcome not in OUTCOMES:
        return reason
    shown = word(f"outcome_{text_key(outcome)}", outcome)
    return f"{shown}{_COLON}{detail_word(detail)}" if mark else shown


def text_key(text: str) -> str:
    """Return the key of a text among the words of the page: its letters and digits, joined by underscores."""
    return _SLUG.sub("_", text.lower()).strip("_")
