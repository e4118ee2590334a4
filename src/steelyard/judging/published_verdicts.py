"""The verdicts of published judge models, in the forms that their model cards and evaluation codes document.

One table, `FORMATS`, has a row for each form: where the model writes a verdict, its form, and which tags hold
its reasons. All rows are read by one rule. Thinking is removed, then the text in tags of reasons, then quotations.
Every verdict that is left must be valid, and all must be the same. Nothing may follow the last one but the end of its
section. A sentence that leads up to a verdict may only announce it (`announces`), and names no label of another answer:
reports of what an answer says, negations and conditions are not read as verdicts, in any language.

Differs from: the published codes, which take the first or the last mark that they find, thinking and quotations
included, and guess a verdict where none is found.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from steelyard.core.types import JsonObject
from steelyard.judging.json_verdicts import json_values
from steelyard.judging.reply_parsing import ParsedReply
from steelyard.judging.reply_words import (
    announces,
    is_refusal,
    last_sentence,
    normalize_text,
    without_quotations,
    without_thinking,
)

_TIE = "tie"
_MOST_OBJECTS = 64
"""The JSON objects that are tried at most: it bounds the time for any content."""


class _Mark(NamedTuple):
    """The place of a verdict: its span, and its value: the position of an answer, `_TIE`, or null."""

    start: int
    end: int
    value: int | str | None


class PublishedFormat(NamedTuple):
    """A row of the table. ``marks`` yields every verdict of a text, valid or not, for a number of answers.

    ``reasons`` are the tags whose content is reasoning; ``most_answers`` is the number of answers that the form can
    compare.
    """

    about: str
    marks: Callable[[str, int], Iterator[_Mark]]
    reasons: tuple[str, ...] = ()
    most_answers: int = 4


def read_published(
    text: str, form: str, labels: Sequence[str], *, num_shown: int, is_contested: bool = False
) -> ParsedReply:
    """Return the label of the answer that the reply prefers; the label after those of the answers is the tie.

    ``is_contested``: a response that was shown holds such a verdict, so that only the last one of the reply counts, and
    none of a reply that begins by declining. Null, with the reason, where the reply has no verdict or an ambiguous one.
    """
    row = FORMATS[form]
    rest = _final_part(text, row)
    if isinstance(rest, ParsedReply):
        return rest
    marks = list(row.marks(rest, num_shown))
    if is_contested:
        marks = [] if is_refusal(rest.strip()) else marks[-1:]
    problem = _problem(rest, marks, has_tie=len(labels) > num_shown)
    if problem is not None:
        return ParsedReply(None, problem)
    value = marks[0].value
    # A tie has the position after all answers.
    place = value if isinstance(value, int) else num_shown
    if not all(_leads_up(rest[: mark.start], place) for mark in marks):
        return ParsedReply(None, "the verdict is part of a sentence")
    return ParsedReply(labels[place])


def has_published(text: str, form: str, num_shown: int) -> bool:
    """Return whether a text holds a verdict in the form: a response that writes the mark."""
    return any(mark.value is not None for mark in FORMATS[form].marks(normalize_text(text), num_shown))


def _final_part(text: str, row: PublishedFormat) -> str | ParsedReply:
    """Return the text without thinking, reasons and quotations; the reason where one of these has no end."""
    rest = without_thinking(normalize_text(text))
    if rest is None:
        return ParsedReply(None, "thinking without an end")
    for tag in row.reasons:
        outside = _outside(rest, f"<{tag}>", f"</{tag}>")
        if outside is None:
            return ParsedReply(None, "reasons without an end")
        rest = outside
    # The quotation marks of JSON are part of the verdict.
    return json_values(rest, "score").text if row.marks is _json_marks else without_quotations(rest)


def _problem(text: str, marks: Sequence[_Mark], *, has_tie: bool) -> str | None:
    """Return the reason why these marks give none; null where they are all the same, and the last one ends the text."""
    values = {mark.value for mark in marks}
    if not marks:
        return "no verdict"
    if None in values:
        return "a verdict of another form"
    if len(values) > 1:
        return "several verdicts"
    if _SECTION.sub("", text[marks[-1].end :]).strip(" \t\r\n*_`.。।\"'$"):
        return "text follows the verdict"
    return "equal scores, and no tie is offered" if _TIE in values and not has_tie else None


def _outside(text: str, start: str, end: str) -> str | None:
    """Return the text without its sections, each replaced by a line break; null where one has no end."""
    folded, parts, place = text.lower(), list[str](), 0
    if len(folded) != len(text):  # a letter whose small form has two code points: positions would differ
        folded = text
    while (opening := folded.find(start, place)) >= 0:
        closing = folded.find(end, opening)
        if closing < 0:
            return None
        parts.append(text[place:opening])
        place = closing + len(end)
    return "\n".join([*parts, text[place:]])


_SECTION = re.compile(
    r"\[the (?:begin|end) of [a-z ]{1,40}\]|</?answer>|```|\\[\])]|<\|[a-z_]{1,20}\|>|</s>", re.IGNORECASE
)
"""Texts that may follow a verdict: the ends of sections, of formulas, and of the text as templates mark it."""
_LABEL = re.compile(r"(?<![A-Za-z0-9])([A-D]|[1-4])(?![A-Za-z0-9])")


_FORMULA = ("$$", "$", "\\[", "\\(")
"""The openings of a formula, in which models put a box."""


def _leads_up(before: str, place: int) -> bool:
    """Return whether the sentence before a verdict only announces it, and names no other answer."""
    opening = next((sign for sign in _FORMULA if before.rstrip().endswith(sign)), None)
    lead = last_sentence(before if opening is None else before.rstrip().removesuffix(opening))
    allowed = {chr(ord("A") + place), str(place + 1)}
    return all(label in allowed for label in _LABEL.findall(lead)) and announces(_LABEL.sub(" ", lead))


def _tag_marks(text: str, num_shown: int) -> Iterator[_Mark]:
    """RM-R1 and J1: ``<answer>[[A]]</answer>``."""
    for match in re.finditer(r"<answer>((?:(?!</?answer>).)*)</answer>", text, re.DOTALL | re.IGNORECASE):
        inner = re.fullmatch(r"\s*\[\[\s*([A-D])\s*\]\]\s*", match[1], re.IGNORECASE)
        yield _Mark(match.start(), match.end(), _letter(inner[1] if inner else "", num_shown))


def _name_marks(text: str, num_shown: int) -> Iterator[_Mark]:
    r"""RRM: ``\boxed{Assistant 1}``."""
    for match in re.finditer(r"\\boxed\{([^{}\n]*(?:\{[^{}\n]*\}[^{}\n]*)?)\}", text):
        name = re.sub(r"\\(?:text(?:bf)?|math(?:rm|bf))\{([^{}]*)\}", r"\1", match[1]).replace("\\ ", " ")
        if "assistant" in name.casefold():
            number = re.fullmatch(r"\s*assistant\s*([1-4])\s*", name, re.IGNORECASE)
            place = int(number[1]) - 1 if number else num_shown
            yield _Mark(match.start(), match.end(), place if place < num_shown else None)


def _score_marks(text: str, num_shown: int) -> Iterator[_Mark]:
    r"""DeepSeek-GRM: ``Scores: \boxed{7, 4}``, whole numbers from 1 to 10, in the order of the answers.

    A box of one value that is not called scores is a result of the analysis.
    """
    for match in re.finditer(r"(scores?[\s:*$]*)?\\boxed\{([^{}\n]*)\}", text, re.IGNORECASE):
        if match[1] or "," in match[2]:
            yield _Mark(match.start(), match.end(), _highest(match[2], num_shown, most=10))


def _section_marks(text: str, num_shown: int) -> Iterator[_Mark]:
    r"""GenRM: ``\boxed{2, 4}`` in the section of individual scores, 1 to 5, and ``\boxed{6}`` in that of the ranking.

    A ranking score of 1 to 3 prefers the first answer, one of 4 to 6 the second. It decides between equal scores.
    """
    blocks = list(_blocks(text, "Individual Scores"))
    scores = [_highest(_only_box(text[start:end]), num_shown, most=5) for start, end in blocks]
    for start, end in _blocks(text, "Ranking Score"):
        ranking = re.fullmatch(r"\s*([1-6])\s*", _only_box(text[start:end]))
        value = None if ranking is None or num_shown != 2 else int(int(ranking[1]) > 3)
        agrees = bool(scores) and all(score in (value, _TIE) for score in scores)
        yield _Mark(start, end, value if agrees else None)


def _blocks(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of the content of each section of a name."""
    opening, closing, place = f"[The Begin of {name}]", f"[The End of {name}]", 0
    while (start := text.find(opening, place)) >= 0 and (end := text.find(closing, start)) >= 0:
        yield start + len(opening), end
        place = end + len(closing)


def _only_box(block: str) -> str:
    """Return the content of the one box that a section holds; empty where it holds anything else."""
    match = re.fullmatch(r"[\s*$]*\\boxed\{([^{}\n]*)\}[\s*$]*", block)
    return "" if match is None else match[1]


def _result_marks(text: str, num_shown: int) -> Iterator[_Mark]:
    """Prometheus 2: ``[RESULT] A`` after the feedback. Selene: ``**Result:** A`` after the reasoning."""
    pattern = r"(?:\[\s*result\s*:?\s*\]|\*\*\s*result\s*:?\s*\*\*|^[ \t]*result(?=[ \t]*:))[ \t]*:?\s*([^\n]*)"
    for match in re.finditer(pattern, text, re.IGNORECASE | re.MULTILINE):
        inner = re.fullmatch(
            r"[\s(\[*]*(?:(?:response|assistant|answer)\s+)?([A-D])[\s)\]*.]*", match[1], re.IGNORECASE
        )
        yield _Mark(match.start(), match.end(), _letter(inner[1] if inner else "", num_shown))


def _json_marks(text: str, num_shown: int) -> Iterator[_Mark]:
    """MR3: one JSON object with ``"score": "Assistant A"`` after its explanation, at the start of a line."""
    decoder, end = json.JSONDecoder(object_pairs_hook=_scores_of, strict=False), 0
    for number, match in enumerate(re.finditer(r"\{", text)):
        if match.start() < end:
            continue
        if number >= _MOST_OBJECTS:
            yield _Mark(match.start(), len(text), None)
            return
        try:
            value, end = decoder.raw_decode(text, match.start())
        except (json.JSONDecodeError, RecursionError, ValueError):
            continue
        for score in value["scores"]:
            inner = re.fullmatch(r"\s*(?:(?:assistant|response|answer)\s+)?([A-D])\s*", str(score), re.IGNORECASE)
            yield _Mark(match.start(), end, _letter(inner[1] if inner else "", num_shown))


def _scores_of(pairs: list[tuple[str, object]]) -> JsonObject:
    """Return the values of all keys that are called score, those of inner objects too."""
    scores: list[object] = []
    for name, value in pairs:
        if name.strip().casefold() == "score":
            scores.append(value)
        scores += _inner_scores(value)
    return {"scores": scores}


def _inner_scores(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value["scores"])  # an object that `_scores_of` made
    return [score for item in value for score in _inner_scores(item)] if isinstance(value, list) else []


def _letter(letter: str, num_shown: int) -> int | None:
    place = ord(letter.upper()) - ord("A") if letter else num_shown
    return place if place < num_shown else None


def _highest(content: str, num_shown: int, *, most: int) -> int | str | None:
    """Return the position of the highest of the scores, one for each answer; `_TIE` where the highest is shared."""
    parts = [part.strip().removesuffix(f"/{most}") for part in re.split("[,、،]", content)]
    if len(parts) != num_shown or not all(re.fullmatch(r"\d{1,2}(?:\.\d{1,3})?", part) for part in parts):
        return None
    scores = [float(part) for part in parts]
    if not all(1 <= score <= most for score in scores):
        return None
    best = max(scores)
    return scores.index(best) if scores.count(best) == 1 else _TIE


FORMATS: dict[str, PublishedFormat] = {
    "answer_tag": PublishedFormat(
        "RM-R1", _tag_marks, ("type", "rubric", "justify", "solution", "eval", "quote_a", "quote_b")
    ),
    "thinking_answer_tag": PublishedFormat("J1", _tag_marks),
    "boxed_name": PublishedFormat("RRM", _name_marks),
    "boxed_scores": PublishedFormat("DeepSeek-GRM", _score_marks),
    "ranking_score": PublishedFormat("GenRM (Nemotron)", _section_marks, most_answers=2),
    "result": PublishedFormat("Prometheus 2", _result_marks),
    "bold_result": PublishedFormat("Selene", _result_marks),
    "json_score": PublishedFormat("mR3", _json_marks),
}
"""The published forms by name, in the order of ``styles.toml``. Those with ``[[A]]`` are read by `read_choice`."""
