"""Strict parsers of a judge's reply: a choice, a rating or a ranking. An ambiguous reply is unreadable.

All parsers follow one rule: every verdict in the reply must be the same, and one of them must be in the first or last
line, in a sentence that neither negates it nor reports what an answer says. Marks in quotations do not count. Before
that, characters are normalized, and thinking and quotations are removed.

Differs from: the published evaluation codes, which take the first mark that they find anywhere in the text, so that
"[[A]] is worse than [[B]]" is a vote for A.

Every parser takes time linear in the reply's length for any content: a reply may be written to stall the run.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from steelyard.core.comparison import Alternative
from steelyard.core.types import JsonObject
from steelyard.judging.reply_words import (
    negates,
    normalize_text,
    reports,
    without_quotations,
    without_quoted_blocks,
    without_thinking,
)

Form = Literal[
    "brackets", "letter", "json", "output", "first_token",
    "answer_tag", "thinking_answer_tag", "boxed_name", "boxed_scores", "ranking_score", "result", "bold_result",
    "json_score",
]  # fmt: skip
"""The form of an answer: ``[[A]]``, ``A``, ``{"verdict": "A"}``, ``Output (a)``, or the odds of the first token.

The others are those of published judge models (`published_verdicts`)."""

RATING_RANGE = (1, 10)

_BRACKETS = re.compile(r"\[\[([^\[\]\n]*)\]\]")
_RANKING = re.compile(r"\[\[\s*([^\[\]\s](?:[^\[\]\n]*[^\[\]\s])?)\s*\]\]")
_OUTPUT = re.compile(r"\boutput\s*\(\s*(\w+)\s*\)", re.IGNORECASE)
_DECORATION = re.compile(r"[*_`#~]+")
_LONGEST_VERDICT_LINE = 200
"""A line that is nothing but a verdict is short; a limit keeps nested repetitions of its pattern cheap."""
_JSON_START = re.compile(r'\{\s*"')
_WORK_PER_CHARACTER = 20
"""The decoder's work for each character of a reply, beyond which JSON is no longer sought: it bounds the time."""
_LONGEST_DETAIL = 80
_SENTENCE_END = re.compile(r"[.!?。！？;](?:\s|$)|[。！？；\n]")
_NAMED = (
    r"(?:(?:final|my|the|overall)\s+)*(?:answer|verdict|choice|decision|judge?ment|winner|preference|best|better)"
    r"(?:\s+(?:answer|response|one|is))*|(?:最终)?(?:答案|结论|裁决|选择|判断|判决|胜者)(?:是|为)?|选|更好的是"
)
_BEARER = r"assistant|response|answer|option|output|model|助手|回答|回复|选项|答案"
_LETTER = re.compile(
    rf"(?:(?:{_NAMED})\s*(?:[::]|is)?\s*)?(?:(?:{_BEARER})\s*)?[\[(\"'“]*\s*([A-Z])\s*[\])\"'”]*"
    r"(?:\s*(?:is\s+(?:the\s+)?(?:better|best|winner)(?:\s+\w+)?|更好|胜出?|较好))?\s*[.。!]?",
    re.IGNORECASE,
)
_TITLE = re.compile(rf"(?:{_BEARER})\s*[A-Z]\s*[::.]?", re.IGNORECASE)
_RATING = re.compile(
    r"(?:(?:final|my|the|overall)\s+)*(?:rating|score|评分|得分|分数|打分)?\s*(?::|is|为|是)?\s*"
    r"\[*\s*(\d+)\s*\]*\s*(?:/\s*10|out\s+of\s+10|分)?\s*[.。]?",
    re.IGNORECASE,
)


class ParsedReply(NamedTuple):
    """The value of a reply, or null with the reason."""

    value: str | None
    detail: str | None = None


def read_choice(text: str, form: Form, labels: Sequence[str]) -> ParsedReply:
    """Return the label that the reply names in the form. ``first_token`` is read by `read_first_token`."""
    rest = without_thinking(normalize_text(text))
    if rest is None:
        return ParsedReply(None, "thinking without an end")
    if form == "json":
        return _agreed(_values(rest, "verdict"), labels)
    if form == "letter":
        return _read_letter(rest, labels)
    return _read_marks(rest, _OUTPUT if form == "output" else _BRACKETS, labels)


def read_first_token(
    alternatives: Sequence[Alternative] | None, labels: Sequence[str], *, least: float = 0.5
) -> ParsedReply:
    """Return the likelier label as the first token. Null where the labels' total probability is below ``least``."""
    if not alternatives:
        return ParsedReply(None, "no log-probabilities")
    odds = label_probabilities(alternatives, labels)
    if sum(odds.values()) < least or not any(odds.values()):
        return ParsedReply(None, f"the labels have {sum(odds.values()):.2f} of the probability")
    best = max(odds.values())
    likeliest = [label for label, value in odds.items() if value == best]
    return ParsedReply(likeliest[0]) if len(likeliest) == 1 else ParsedReply(None, "two labels are equally likely")


def label_probabilities(alternatives: Sequence[Alternative], labels: Sequence[str]) -> dict[str, float]:
    """Return each label's probability: the sum over the tokens that equal it apart from spaces, case and width."""
    odds = dict.fromkeys(labels, 0.0)
    for alternative in alternatives:
        # Two kinds of tokenizers mark a space before the token, with U+2581 or U+0120.
        token = normalize_text(alternative.token).strip("\u2581\u0120 \t\n").upper()
        if token in odds:
            odds[token] += math.exp(alternative.logprob)
    return odds


def read_rating(text: str) -> ParsedReply:
    """Return a whole number from 1 to 10 in ``[[7]]``, ``{"rating": 7}``, or a line that is nothing but a rating."""
    rest = without_thinking(normalize_text(text))
    if rest is None:
        return ParsedReply(None, "thinking without an end")
    allowed = [str(number) for number in range(RATING_RANGE[0], RATING_RANGE[1] + 1)]
    values = _values(rest, "rating")
    if values:
        return _agreed(values, allowed)
    if _BRACKETS.search(without_quotations(rest)):
        return _read_marks(rest, _BRACKETS, allowed)
    lines = _lines(without_quotations(rest))
    ratings = [match.group(1) for line in lines if (match := _verdict_line(_RATING, line))]
    ends = [line for line in (lines[:1] + lines[-1:]) if _verdict_line(_RATING, line)]
    return _agreed(ratings, allowed) if ends else ParsedReply(None, "no rating")


def read_ranking(text: str, labels: Sequence[str]) -> tuple[tuple[str, ...], ...] | ParsedReply:
    """Return tiers of labels, best first, from ``[[B > A = C]]``; without one the reason as a ParsedReply."""
    rest = without_thinking(normalize_text(text))
    if rest is None:
        return ParsedReply(None, "thinking without an end")
    marks = {re.sub(r"\s", "", mark).upper() for mark in _RANKING.findall(without_quotations(rest))}
    if len(marks) != 1:
        return ParsedReply(None, "several rankings" if marks else "no ranking")
    tiers = tuple(tuple(sorted(tier.split("="))) for tier in marks.pop().split(">"))
    if sorted(label for tier in tiers for label in tier) != sorted(labels):
        return ParsedReply(None, "not every answer is ranked once")
    return tiers


def _read_marks(text: str, mark: re.Pattern[str], labels: Sequence[str]) -> ParsedReply:
    """Return the label that all marks name, if one is in the first or last line and none is negated or reported."""
    lines = _lines(without_quotations(text))
    matches = [match for line in lines for match in mark.findall(line)]
    agreed = _agreed(matches, labels)
    if agreed.value is None:
        return agreed
    at_ends = [line for line in dict.fromkeys(lines[:1] + lines[-1:]) if mark.search(line)]
    if not at_ends:
        return ParsedReply(None, "the verdict stands inside the text")
    for is_spoilt, detail in (
        (negates, "the verdict is negated"),
        (reports, "the verdict is someone else's"),
    ):
        if any(_has_spoilt_mark(line, mark, is_spoilt) for line in lines):
            return ParsedReply(None, detail)
    return agreed


def _read_letter(text: str, labels: Sequence[str]) -> ParsedReply:
    """Return the label of all lines that are nothing but a verdict if they agree, and one is the first or the last.

    The title of a part of the reply, such as "### Answer B" above its assessment, does not count, nor do block quotes
    and code beside other text.
    """
    unquoted = without_quoted_blocks(text)
    lines = [line for line in unquoted.splitlines() if _bare(line)]
    verdicts = [
        (place, match.group(1))
        for place, line in enumerate(lines)
        if (match := _verdict_line(_LETTER, _bare(line))) and (place == len(lines) - 1 or not _is_title(line))
    ]
    ends = [label for place, label in verdicts if place in (0, len(lines) - 1)]
    return _agreed([label for _, label in verdicts], labels) if ends else ParsedReply(None, "no verdict")


def _is_title(line: str) -> bool:
    return line.lstrip().startswith("#") or _verdict_line(_TITLE, _bare(line)) is not None


def _lines(text: str) -> list[str]:
    """Return the lines without Markdown decoration, without empty ones."""
    return [bare for line in text.splitlines() if (bare := _bare(line))]


def _bare(line: str) -> str:
    return _DECORATION.sub("", line).strip()


def _verdict_line(pattern: re.Pattern[str], line: str) -> re.Match[str] | None:
    """Match a whole line, each run of white space as one space."""
    words = " ".join(line.split())
    return pattern.fullmatch(words) if len(words) <= _LONGEST_VERDICT_LINE else None


def _has_spoilt_mark(line: str, mark: re.Pattern[str], is_spoilt: Callable[[str], object]) -> bool:
    """Return whether a sentence that holds a mark also holds words that make it no plain verdict."""
    start = 0
    sentences = []
    for end in _SENTENCE_END.finditer(line):
        sentences.append(line[start : end.end()])
        start = end.end()
    sentences.append(line[start:])
    return any(mark.search(sentence) and is_spoilt(mark.sub("", sentence)) for sentence in sentences)


def _agreed(marks: Sequence[str], labels: Sequence[str]) -> ParsedReply:
    """Return the one label that all marks name; null for none, several, or one that is not allowed."""
    distinct = {mark.strip().upper() for mark in marks}
    if not distinct:
        return ParsedReply(None, "no verdict")
    if len(distinct) > 1:
        return ParsedReply(None, f"several verdicts: {', '.join(sorted(distinct))}"[:_LONGEST_DETAIL])
    only = distinct.pop()
    return ParsedReply(only) if only in labels else ParsedReply(None, f"{only[:20]!r} is none of {', '.join(labels)}")


def _values(text: str, key: str) -> list[str]:
    """Return the key's value in every JSON object of the text, twice from an object that repeats it."""
    values: list[str] = []

    def values_of_key(pairs: list[tuple[str, Any]]) -> JsonObject:
        return {"": [value for name, value in pairs if name.strip().casefold() == key]}

    decoder, end, work = json.JSONDecoder(object_pairs_hook=values_of_key, strict=False), 0, 0
    while start := _JSON_START.search(text, end):
        try:
            value, end = decoder.raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            end = start.start() + 1
            # The characters read in vain, and those that the error's line number makes the decoder count again.
            work += 1 + error.pos - start.start() + error.pos // 16
        except (RecursionError, ValueError):
            return []  # nested too deeply, or a number of thousands of digits
        else:
            values += [_label(item) for item in value[""]]
        if work > _WORK_PER_CHARACTER * len(text):
            return []
    return values


def _label(value: Any) -> str:
    """Return the label in a JSON value, such as "Answer A"; other values as JSON, for the message."""
    # bool is a subclass of int: `true` is no rating.
    if isinstance(value, bool) or not isinstance(value, str | int):
        return json.dumps(value)[:20]
    match = _verdict_line(_LETTER, str(value))
    return match.group(1) if match else str(value)
