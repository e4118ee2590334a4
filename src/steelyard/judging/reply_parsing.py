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
from steelyard.judging.answer_letters import with_latin_letters
from steelyard.judging.json_verdicts import json_values
from steelyard.judging.reply_lines import plain_line, plain_lines
from steelyard.judging.reply_orders import Tiers, label_of_name, leader_by_scores, tiers_in_words
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
from steelyard.judging.verdict_lines import is_tie, is_title, label_of_line, rating_of_line, with_letters
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
_TIE = "tie"
"""The value of words that say that the answers are equal, where the question offers no tie."""

_BRACKETS = re.compile(r"\[\[([^\[\]\n]*)\]\]")
_RANKING = re.compile(r"\[\[\s*([^\[\]\s](?:[^\[\]\n]*[^\[\]\s])?)\s*\]\]")
_OUTPUT = re.compile(r"\boutput\s*\(\s*(\w+)\s*\)", re.IGNORECASE)
_OBJECT = re.compile("\ue002([^\ue003]*)\ue003")
"""Placeholder of a JSON object while its text is read: its value between private-use characters."""
_ONE_OBJECT = re.compile(r"(?:```\w*\s*)?\{[^{}]*\}\s*(?:```)?")
_GREATER = re.compile(r"&gt;|\\(?:succ|gt)(?![a-zA-Z])|-{1,3}>|>>+|[→⇒]")
_TIERS = re.compile("[>=]")
# E is a word in Romanian, Italian and Portuguese.
_NAMES_ANSWER = re.compile(r"(?<![A-Za-z])[A-D](?![A-Za-z'’])")
_WHOLE = re.compile(r"(?<=\d)[.,]0{1,2}(?!\d)")
"""The decimals of a whole number."""
_AROUND_LABEL = " \"'“”‘’«»「」『』()[].。*_`"
_AFTER_MARK = " \"'“”«»)*_`"
_LONGEST_DETAIL = 80
_LONGEST_SIDE = 2000
"""The most characters of a sentence on each side of a mark in which a negation or a report is looked for."""
_LONGEST_FORGED = 80
"""The longest line of a response in which a verdict in words is looked for."""
# The Greek question mark is a semicolon.
_QUESTION = re.compile(r"[?؟]\Z|[\u0370-\u03ff].*;\Z", re.DOTALL)
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


def read_choice(
    text: str, form: Form, labels: Sequence[str], origin: VerdictOrigin = UNCONTESTED, *, tie: str | None = None
) -> ParsedReply:
    """Return the label that the reply names in the form; ``tie`` is the label of a tie, which words may name too.

    ``first_token`` is read by `read_first_token`.
    """
    rest = without_thinking(normalize_text(text))
    if rest is None:
        return ParsedReply(None, "thinking without an end")
    answers = [label for label in labels if label != tie]
    rest = with_latin_letters(rest, answers)
    if form == "json":
        return _read_json(rest, "verdict", labels, origin, tie=tie or _TIE)
    if form == "letter":
        return _read_letter(rest, labels, origin, tie=tie or _TIE)
    return _read_marks(rest, _OUTPUT if form == "output" else _BRACKETS, labels, origin, tie=tie or _TIE)


@lru_cache(maxsize=1024)
def has_verdict(text: str, form: Form, task: Literal["choice", "rating", "ranking"], labels: tuple[str, ...]) -> bool:
    """Return whether a text holds a verdict in the form with one of the labels: a response that writes the mark."""
    plain = normalize_text(text)
    if task != "rating":
        plain = with_latin_letters(plain, labels)
    if task == "ranking" and tiers_in_words(plain_lines(plain), labels):
        return True
    if form == "json":
        marks = [
            value
            for block in json_values(plain, "rating" if task == "rating" else "verdict").blocks
            for value in block.values
        ]
    elif form == "letter":
        read = rating_of_line if task == "rating" else label_of_line
        marks = [mark for line in plain_lines(plain) if len(line) <= _LONGEST_FORGED and (mark := read(line))]
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
    lines = plain_lines(without_quotations(rest))
    ratings = [rating for line in lines if (rating := rating_of_line(line))]
    ends = [line for line in (lines[:1] + lines[-1:]) if rating_of_line(line)]
    if not ends:
        return ParsedReply(None, "no rating")
    return ParsedReply(None, NO_CODE) if origin.code and origin.is_contested else _agreed(ratings, RATINGS)


def read_ranking(text: str, labels: Sequence[str], origin: VerdictOrigin = UNCONTESTED) -> Tiers | ParsedReply:
    """Return tiers of labels, best first, from ``[[B > A = C]]``; without one the reason as a ParsedReply.

    A reply without brackets is read by `tiers_in_words`, unless a response holds a ranking.
    """
    rest = without_thinking(normalize_text(text))
    if rest is None:
        return ParsedReply(None, "thinking without an end")
    rest = with_latin_letters(rest, labels)
    # A mark may stand on several lines: it becomes one of a single line, as the other marks are.
    rest = _RANKING.sub(lambda mark: f"[[{' '.join(_GREATER.sub('>', mark[1]).split())}]]", rest)
    reading = _read_marks(rest, _BRACKETS, labels, origin, is_ranking=True)
    if reading.value is None:
        is_bare = reading.detail == "no verdict" and not origin.is_contested
        lines = plain_lines(without_quotations(_GREATER.sub(">", rest))) if is_bare else []
        tiers = None if is_refusal(rest.strip()) else tiers_in_words(lines, labels)
        return tiers or reading._replace(detail="no ranking" if reading.detail == "no verdict" else reading.detail)
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
    tie: str = _TIE,
) -> ParsedReply:
    """Return the label that all marks name, if one is in the first or last line and none is negated or reported.

    A mark with the code of the request makes all marks without it quotations. Where a response holds marks and the
    reply has none with the code, no mark counts; where the prompt asks for none, only the last line, if it is nothing
    but a verdict.
    """
    lines = plain_lines(without_quotations(text) if rest is None else rest)
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
    agreed = _agreed(matches, labels, is_ranking=is_ranking, tie=tie)
    if agreed.value is None:
        return agreed
    at_ends = [line for line in dict.fromkeys(lines[:1] + lines[-1:]) if mark.search(line)]
    return _spoilt(lines, mark, agreed) if at_ends else ParsedReply(None, "the verdict stands inside the text")


def _is_withdrawn(lines: Sequence[str], mark: re.Pattern[str]) -> bool:
    """Return whether words of indecision stand behind the last mark: in its line or the last one, before any reason.

    A sentence that names an answer speaks of that answer's doubts.
    """
    place, match = [(place, match) for place, line in enumerate(lines) for match in mark.finditer(line)][-1]
    tails = [lines[place][match.end() :], *(lines[-1:] if place < len(lines) - 1 else ())]
    for tail in tails:
        for sentence in _SENTENCE_END.split(tail):
            doubt = matching("undecided").search(fold(sentence))
            reason = matching("because").search(sentence)
            if doubt and not _NAMES_ANSWER.search(sentence) and (reason is None or doubt.start() < reason.start()):
                return True
    return False


def _spoilt(lines: Sequence[str], mark: re.Pattern[str], agreed: ParsedReply) -> ParsedReply:
    """Return the verdict, or why it is none: it is withdrawn, or a sentence that holds it negates or reports it.

    A line that ends with a colon is part of the sentence after it.
    """
    if _is_withdrawn(lines, mark):
        return ParsedReply(None, "the verdict is withdrawn")
    label = agreed.value if agreed.value in _LABELS else None
    for place, line in enumerate(lines):
        lead = (
            lines[place - 1] if place and lines[place - 1].endswith(":") and not mark.search(lines[place - 1]) else ""
        )
        ends = [0, *(end.end() for end in _SENTENCE_END.finditer(line)), len(line)]
        for number, sentence in enumerate(line[start:end] for start, end in pairwise(ends)):
            if not mark.search(sentence):
                continue
            if _QUESTION.search(sentence.rstrip(_AFTER_MARK)):
                return ParsedReply(None, "the verdict is a question")
            whole = mark.sub(VERDICT, f"{lead if not number else ''} {sentence}")
            # Words far before the first mark and behind the last one say nothing about it.
            whole = whole[max(0, whole.find(VERDICT) - _LONGEST_SIDE) : whole.rfind(VERDICT) + _LONGEST_SIDE]
            if len(whole) > 3 * _LONGEST_SIDE:
                return ParsedReply(None, "the verdict stands inside the text")
            lettered = with_letters(whole)
            if negates_verdict(lettered, label):
                return ParsedReply(None, "the verdict is negated")
            # A word for a place may be one of a report: "secondo".
            if any(map(reports_verdict, {whole, lettered})):
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


def _read_letter(text: str, labels: Sequence[str], origin: VerdictOrigin, *, tie: str) -> ParsedReply:
    """Return the label of all lines that are nothing but a verdict if they agree, and one is the first or the last.

    The title of a part of the reply, such as "### Answer B" above its assessment, does not count, nor do block quotes
    and code beside other text. Where a response holds such a line, only the last one counts. Without any such line,
    a reply of one JSON object is read as such, and scores of all answers at the end are the verdict
    (`leader_by_scores`).
    """
    unquoted = without_quoted_blocks(text)
    lines = [(line, plain) for line in unquoted.splitlines() if (plain := plain_line(line))]
    last = len(lines) - 1
    verdicts = [
        (place, label)
        for place, (line, plain) in enumerate(lines)
        if (label := label_of_line(plain) or (tie if place in (0, last) and is_tie(plain) else None))
        and (place == last or not (line.lstrip().startswith("#") or is_title(plain)))
    ]
    if origin.is_contested:
        verdicts = [] if is_refusal(text.strip()) else [each for each in verdicts if each[0] == last]
    ends = [(place, label) for place, label in verdicts if place in (0, last)]
    if not ends and not origin.is_contested and _ONE_OBJECT.fullmatch(text.strip()):
        return _read_json(text, "verdict", labels, origin, tie=tie)
    if not ends:
        answers = [label for label in labels if label != tie]
        leader = None if verdicts or origin.is_contested else leader_by_scores([plain for _, plain in lines], answers)
        return ParsedReply(None, "no verdict") if leader is None else _agreed([leader or tie], labels, tie=tie)
    agreed = _agreed([label for _, label in verdicts], labels, tie=tie)
    leads = [lines[place - 1][1] for place, _ in ends if place]
    if agreed.value and any(lead.endswith(":") and reports_verdict(lead + VERDICT) for lead in leads):
        return ParsedReply(None, "the verdict is someone else's")
    if verdicts[-1][0] < last and matching("undecided").search(fold(lines[-1][1])):
        return ParsedReply(None, "the verdict is withdrawn")
    return agreed


def _read_json(text: str, key: str, labels: Sequence[str], origin: VerdictOrigin, *, tie: str = _TIE) -> ParsedReply:
    """Return the value of the key in the JSON objects of the text, read as marks in the place of the objects."""
    reading = json_values(text, key)
    if not (reading.blocks or origin.is_contested):
        reading = json_values(text, key, is_named_freely=True)
    parts, end = list[str](), 0
    for block in reading.blocks:
        parts += [reading.text[end : block.start], "".join(f"\ue002{value}\ue003" for value in block.values)]
        end = block.end
    rest = "".join([*parts, reading.text[end:]])
    # Fences around an object are no quotation: it is how most models write JSON.
    unfenced = re.sub(r"^[ \t]*(?:```|~~~)[^\n\ue002]*$", "", rest, flags=re.MULTILINE)
    return _read_marks(text, _OBJECT, labels, origin, rest=without_quotations(unfenced), tie=tie)


def _agreed(marks: Sequence[str], labels: Sequence[str], *, is_ranking: bool = False, tie: str = _TIE) -> ParsedReply:
    """Return the one label that all marks name, or the ranking of labels.

    Null for none, several, or one that is not allowed.
    """
    distinct = {re.sub("[^>=]+", lambda part: _spelled(part[0], labels, tie), mark) for mark in marks}
    if not distinct:
        return ParsedReply(None, "no verdict")
    if len(distinct) > 1:
        return ParsedReply(None, f"several verdicts: {', '.join(sorted(distinct))}"[:_LONGEST_DETAIL])
    only = distinct.pop()
    if is_ranking or only in labels:
        return ParsedReply(only)
    problem = "a tie, and none is offered" if only == _TIE else f"{only[:20]!r} is none of {', '.join(labels)}"
    return ParsedReply(None, problem)


def _spelled(name: str, labels: Sequence[str], tie: str = _TIE) -> str:
    """Return the label that the content of a mark names, such as "answer A" or "8/10"; else the content in capitals."""
    plain = _WHOLE.sub("", " ".join(name.split()).strip(_AROUND_LABEL))
    if plain.upper() in labels:
        return plain.upper()
    if labels == RATINGS:
        return rating_of_line(plain) or plain.upper()
    return label_of_name(plain) or label_of_line(plain) or (tie if plain == _TIE or is_tie(plain) else plain.upper())
