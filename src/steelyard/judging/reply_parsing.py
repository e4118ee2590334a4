"""Strict parsers of a judge's reply: a choice, a rating or a ranking. An ambiguous reply is unparsed.

All parsers follow one rule: every verdict in the reply must be the same, and one of them must be in the first or last
line, in a sentence that neither negates it nor reports what an answer says. Marks in quotations do not count; marks
that a response may have written are quotations (`VerdictOrigin`). Before that, characters are normalized, and thinking
and quotations are removed.

Differs from: the published evaluation codes, which take the first mark that they find anywhere in the text, so that
"[[A]] is worse than [[B]]" is a vote for A.

Every parser takes time linear in the reply's length for any content: a reply may be written to stall the run.
"""

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from steelyard.core.comparison import Alternative
from steelyard.core.language_words import fold
from steelyard.judging.json_verdicts import json_values
from steelyard.judging.reply_words import (
    SENTENCE_MARKS,
    VERDICT,
    announces,
    is_refusal,
    negates_verdict,
    normalize_text,
    reports_verdict,
    without_quotations,
    without_quoted_blocks,
    without_thinking,
)
from steelyard.judging.verdict_lines import is_title, label_of_line, rating_of_line, with_letters
from steelyard.judging.verdict_words import matching

Form = Literal[
    "brackets", "letter", "json", "output", "first_token",
    "answer_tag", "thinking_answer_tag", "boxed_name", "boxed_scores", "ranking_score", "result", "bold_result",
    "json_score",
]  # fmt: skip
"""The form of an answer: ``[[A]]``, ``A``, ``{"verdict": "A"}``, ``Output (a)``, or the odds of the first token.

The others are those of published judge models (`published_verdicts`)."""

RATING_RANGE = (1, 10)
RATINGS = tuple(str(number) for number in range(RATING_RANGE[0], RATING_RANGE[1] + 1))
"""The ratings that a reply may hold."""
NO_CODE = "a response holds verdicts, and none has the code of the request"
"""The reason for no verdict where only marks without the code of the request are in the reply."""
_LABELS = ("A", "B", "C", "D")

_BRACKETS = re.compile(r"\[\[([^\[\]\n]*)\]\]")
_RANKING = re.compile(r"\[\[\s*([^\[\]\s](?:[^\[\]\n]*[^\[\]\s])?)\s*\]\]")
_OUTPUT = re.compile(r"\boutput\s*\(\s*(\w+)\s*\)", re.IGNORECASE)
_OBJECT = re.compile("\ue002([^\ue003]*)\ue003")
"""Placeholder of a JSON object while its text is read: its value between private-use characters."""
_DECORATION = re.compile(r"[*_`#~]+")
_TAGS = re.compile(
    r"</?(?:tool_call|answer|verdict|final|score|rating|b|i|em|strong|p|div|span|u|h[1-6]|br)\s?/?>|<\|[a-z_]{1,20}\|>",
    re.IGNORECASE,
)
"""Tags that wrap an answer, and the signs of chat templates for its end; those of quotations are none of them."""
_BOXED = re.compile(
    r"(?:\$|\\[(\[]){0,2}\\boxed\{\s?(?:\\text(?:bf)?\{([^{}\n]{1,40})\}|([^{}\n]{1,40}))\s?\}(?:\$|\\[)\]]){0,2}"
)
_ENDS_OF_LINE = " \t$\u2192\u21d2\u2705\u2714\ufe0f\u2b50\U0001f449"
"""Signs around a verdict: those of a formula, arrows, check marks."""
_OTHER_LETTERS: dict[str, str] = dict(zip("\u0623\u0628\u062c\u062f\u05d0\u05d1\u05d2\u05d3", "ABCDABCD", strict=True))
"""The first four letters of Arabic, in the order of its numerals, and of Hebrew: names of the answers A to D."""
_GREATER = re.compile(r"&gt;|\\(?:succ|gt)(?![a-zA-Z])")
_TIERS = re.compile("[>=]")
_AROUND_LABEL = " \"'“”‘’«»「」『』()[].。*_`"
_AFTER_MARK = " \"'“”«»)*_`"
_LONGEST_DETAIL = 80
_LONGEST_FORGED = 80
"""The longest line of a response in which a verdict in words is looked for."""
_SENTENCE_END = re.compile(rf"[.!?;{SENTENCE_MARKS}](?:\s|$)|[{SENTENCE_MARKS}\n]")


class ParsedReply(NamedTuple):
    """The value of a reply, or null with the reason."""

    value: str | None
    detail: str | None = None


class VerdictOrigin(NamedTuple):
    """Marks that tell the judge's own verdict from one that a response wrote.

    ``code`` is the word of the request that its verdicts hold, which no response can know; null where the prompt asks
    for none. ``is_contested``: a response that was shown holds a verdict in the form of the request.
    """

    code: str | None = None
    is_contested: bool = False


UNCONTESTED = VerdictOrigin()


def read_choice(text: str, form: Form, labels: Sequence[str], origin: VerdictOrigin = UNCONTESTED) -> ParsedReply:
    """Return the label that the reply names in the form. ``first_token`` is read by `read_first_token`."""
    rest = without_thinking(normalize_text(text))
    if rest is None:
        return ParsedReply(None, "thinking without an end")
    if form == "json":
        return _read_json(rest, "verdict", labels, origin)
    if form == "letter":
        return _read_letter(rest, labels, origin)
    return _read_marks(rest, _OUTPUT if form == "output" else _BRACKETS, labels, origin)


@lru_cache(maxsize=1024)
def has_verdict(text: str, form: Form, task: Literal["choice", "rating", "ranking"], labels: tuple[str, ...]) -> bool:
    """Return whether a text holds a verdict in the form with one of the labels: a response that writes the mark."""
    plain = normalize_text(text)
    if form == "json":
        marks = [
            value
            for block in json_values(plain, "rating" if task == "rating" else "verdict").blocks
            for value in block.values
        ]
    elif form == "letter":
        read = rating_of_line if task == "rating" else label_of_line
        marks = [mark for line in _lines(plain) if len(line) <= _LONGEST_FORGED and (mark := read(line))]
    else:
        marks = (_OUTPUT if form == "output" else _BRACKETS).findall(plain)
    parts = (_TIERS.split(mark) if task == "ranking" else [mark] for mark in marks)
    return any({_spelled(part, labels) for part in names} <= set(labels) for names in parts)


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


def read_rating(text: str, origin: VerdictOrigin = UNCONTESTED) -> ParsedReply:
    """Return a whole number from 1 to 10 in ``[[7]]``, ``{"rating": 7}``, or a line that is nothing but a rating."""
    rest = without_thinking(normalize_text(text))
    if rest is None:
        return ParsedReply(None, "thinking without an end")
    if json_values(rest, "rating").blocks:
        return _read_json(rest, "rating", RATINGS, origin)
    if _BRACKETS.search(without_quotations(rest)):
        return _read_marks(rest, _BRACKETS, RATINGS, origin)
    lines = _lines(without_quotations(rest))
    ratings = [rating for line in lines if (rating := rating_of_line(line))]
    ends = [line for line in (lines[:1] + lines[-1:]) if rating_of_line(line)]
    if not ends:
        return ParsedReply(None, "no rating")
    return ParsedReply(None, NO_CODE) if origin.code and origin.is_contested else _agreed(ratings, RATINGS)


def read_ranking(
    text: str, labels: Sequence[str], origin: VerdictOrigin = UNCONTESTED
) -> tuple[tuple[str, ...], ...] | ParsedReply:
    """Return tiers of labels, best first, from ``[[B > A = C]]``; without one the reason as a ParsedReply."""
    rest = without_thinking(normalize_text(text))
    if rest is None:
        return ParsedReply(None, "thinking without an end")
    # A mark may stand on several lines: it becomes one of a single line, as the other marks are.
    rest = _RANKING.sub(lambda mark: f"[[{' '.join(_GREATER.sub('>', mark[1]).split())}]]", rest)
    reading = _read_marks(rest, _BRACKETS, labels, origin, is_ranking=True)
    if reading.value is None:
        return reading._replace(detail={"no verdict": "no ranking"}.get(reading.detail or "", reading.detail))
    tiers = tuple(tuple(sorted(tier.split("="))) for tier in reading.value.split(">"))
    if sorted(label for tier in tiers for label in tier) != sorted(labels):
        return ParsedReply(None, "not every answer is ranked once")
    return tiers


def _read_marks(
    text: str,
    mark: re.Pattern[str],
    labels: Sequence[str],
    origin: VerdictOrigin,
    *,
    rest: str | None = None,
    is_ranking: bool = False,
) -> ParsedReply:
    """Return the label that all marks name, if one is in the first or last line and none is negated or reported.

    A mark with the code of the request makes all marks without it quotations. Where a response holds marks and the
    reply has none with the code, no mark counts; where the prompt asks for none, only the last line, if it is nothing
    but a verdict.
    """
    lines = _lines(without_quotations(text) if rest is None else rest)
    lines, is_coded = _own_marks(lines, mark, origin.code)
    if origin.is_contested and not is_coded:
        if origin.code is not None:
            return ParsedReply(None, NO_CODE)
        lines = [*(mark.sub(" ", line) for line in lines[:-1]), *lines[-1:]]
        if lines and not announces(mark.sub(" ", lines[-1])):
            return ParsedReply(None, "a response holds this mark")
        if is_refusal(text.strip()):
            return ParsedReply(None, "a response holds this mark")
    matches = [match for line in lines for match in mark.findall(line)]
    agreed = _agreed(matches, labels, is_ranking=is_ranking)
    if agreed.value is None:
        return agreed
    at_ends = [line for line in dict.fromkeys(lines[:1] + lines[-1:]) if mark.search(line)]
    if not at_ends:
        return ParsedReply(None, "the verdict stands inside the text")
    return _spoilt(lines, mark, agreed)


def _spoilt(lines: Sequence[str], mark: re.Pattern[str], agreed: ParsedReply) -> ParsedReply:
    """Return the verdict, or why it is none: a sentence that holds it negates it, or reports it of an answer.

    A line that ends with a colon is part of the sentence after it.
    """
    label = agreed.value if agreed.value in _LABELS else None
    for place, line in enumerate(lines):
        lead = (
            lines[place - 1] if place and lines[place - 1].endswith(":") and not mark.search(lines[place - 1]) else ""
        )
        ends = [0, *(end.end() for end in _SENTENCE_END.finditer(line)), len(line)]
        for number, sentence in enumerate(line[start:end] for start, end in pairwise(ends)):
            if not mark.search(sentence):
                continue
            if sentence.rstrip(_AFTER_MARK).endswith(("?", "؟")):
                return ParsedReply(None, "the verdict is a question")
            whole = with_letters(mark.sub(VERDICT, f"{lead if not number else ''} {sentence}"))
            if negates_verdict(whole, label):
                return ParsedReply(None, "the verdict is negated")
            if reports_verdict(whole):
                return ParsedReply(None, "the verdict is someone else's")
    return agreed


def _own_marks(lines: Sequence[str], mark: re.Pattern[str], code: str | None) -> tuple[list[str], bool]:
    """Return the lines with the marks that hold the code, without it, and whether there are any; else all marks."""
    if code is None or not any(code in content.casefold() for line in lines for content in mark.findall(line)):
        return list(lines), False
    pattern = re.compile(rf"[\s:,;|@#(-]*{code}[\s:,;|)-]*", re.IGNORECASE)

    def without_code(match: re.Match[str]) -> str:
        return pattern.sub("", match[0]) if code in match[0].casefold() else " "

    return [mark.sub(without_code, line) for line in lines], True


def _read_letter(text: str, labels: Sequence[str], origin: VerdictOrigin) -> ParsedReply:
    """Return the label of all lines that are nothing but a verdict if they agree, and one is the first or the last.

    The title of a part of the reply, such as "### Answer B" above its assessment, does not count, nor do block quotes
    and code beside other text. Where a response holds such a line, only the last one counts.
    """
    unquoted = without_quoted_blocks(text)
    lines = [line for line in unquoted.splitlines() if _bare(line)]
    verdicts = [
        (place, label)
        for place, line in enumerate(lines)
        if (label := label_of_line(_bare(line)))
        and (place == len(lines) - 1 or not (line.lstrip().startswith("#") or is_title(_bare(line))))
    ]
    if origin.is_contested:
        verdicts = [] if is_refusal(text.strip()) else [each for each in verdicts if each[0] == len(lines) - 1]
    ends = [(place, label) for place, label in verdicts if place in (0, len(lines) - 1)]
    if not ends:
        return ParsedReply(None, "no verdict")
    agreed = _agreed([label for _, label in verdicts], labels)
    leads = [_bare(lines[place - 1]) for place, _ in ends if place]
    if agreed.value and any(lead.endswith(":") and reports_verdict(lead + VERDICT) for lead in leads):
        return ParsedReply(None, "the verdict is someone else's")
    if verdicts[-1][0] < len(lines) - 1 and matching("undecided").search(fold(lines[-1])):
        return ParsedReply(None, "the verdict is withdrawn")
    return agreed


def _read_json(text: str, key: str, labels: Sequence[str], origin: VerdictOrigin) -> ParsedReply:
    """Return the value of the key in the JSON objects of the text, read as marks in the place of the objects."""
    reading = json_values(text, key)
    parts, end = list[str](), 0
    for block in reading.blocks:
        parts += [reading.text[end : block.start], "".join(f"\ue002{value}\ue003" for value in block.values)]
        end = block.end
    rest = "".join([*parts, reading.text[end:]])
    # Fences around an object are no quotation: it is how most models write JSON.
    unfenced = re.sub(r"^[ \t]*(?:```|~~~)[^\n\ue002]*$", "", rest, flags=re.MULTILINE)
    return _read_marks(text, _OBJECT, labels, origin, rest=without_quotations(unfenced))


def _lines(text: str) -> list[str]:
    """Return the lines without Markdown decoration, without empty ones."""
    return [bare for line in text.splitlines() if (bare := _bare(line))]


def _bare(line: str) -> str:
    plain = _BOXED.sub(lambda boxed: boxed[1] or boxed[2], _TAGS.sub("", line))
    return _DECORATION.sub("", plain).strip(_ENDS_OF_LINE).strip()


def _agreed(marks: Sequence[str], labels: Sequence[str], *, is_ranking: bool = False) -> ParsedReply:
    """Return the one label that all marks name, or the ranking of labels.

    Null for none, several, or one that is not allowed.
    """
    distinct = {re.sub("[^>=]+", lambda part: _spelled(part[0], labels), mark) for mark in marks}
    if not distinct:
        return ParsedReply(None, "no verdict")
    if len(distinct) > 1:
        return ParsedReply(None, f"several verdicts: {', '.join(sorted(distinct))}"[:_LONGEST_DETAIL])
    only = distinct.pop()
    if is_ranking or only in labels:
        return ParsedReply(only)
    return ParsedReply(None, f"{only[:20]!r} is none of {', '.join(labels)}")


def _spelled(name: str, labels: Sequence[str]) -> str:
    """Return the label that the content of a mark names, such as "answer A" or "8/10"; else the content in capitals."""
    plain = " ".join(name.split()).strip(_AROUND_LABEL).removesuffix(".0")
    plain = _OTHER_LETTERS.get(plain, plain) if labels != RATINGS else plain
    if plain.upper() in labels:
        return plain.upper()
    read = rating_of_line if labels == RATINGS else label_of_line
    return read(plain) or plain.upper()
