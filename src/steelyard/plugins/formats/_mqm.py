"""Errors marked in translations: their weights, marks in a text as spans, and rows of them as ratings and back."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.core.types import Case, Rating

DIMENSION = "mqm"
MARKED = ("source", "target")
NO_ERROR = {"category": "No-error", "severity": "No-error"}
_MARKS = re.compile(r"</?v>")
_WEIGHTS = {"major": 5.0, "minor": 1.0}
_PUNCTUATION, _PUNCTUATION_WEIGHT = "fluency/punctuation", 0.1
_NON_TRANSLATION, _NON_TRANSLATION_WEIGHT = "non-translation", 25.0

Spans = tuple[tuple[int, int], ...]


class Marked(NamedTuple):
    """A text without its marks, and the spans between them in its code points."""

    text: str
    spans: Spans
    is_whole: bool


def unmarked(marked: str) -> Marked:
    """The text and its spans; ``is_whole`` is false where a mark has no partner."""
    text, spans, start, at, is_whole = "", [], None, 0, True
    for mark in _MARKS.finditer(marked):
        text += marked[at : mark.start()]
        at = mark.end()
        if mark[0] == "<v>":
            is_whole &= start is None
            start = len(text)
        elif start is None:
            is_whole = False
        else:
            spans.append((start, len(text)))
            start = None
    return Marked(text + marked[at:], tuple(spans), is_whole and start is None)


def marked(text: str, spans: Sequence[Sequence[int]]) -> str:
    """The text with marks around its spans."""
    for start, end in sorted(map(tuple, spans), reverse=True):
        text = f"{text[:start]}<v>{text[start:end]}</v>{text[end:]}"
    return text


def weight(category: str, severity: str) -> float:
    """The penalty of one error: 25 for what is no translation, 5 major, 1 minor, 0.1 minor punctuation, else 0."""
    kind, degree = category.lower(), severity.lower()
    if degree not in _WEIGHTS:
        return 0.0
    if kind.startswith(_NON_TRANSLATION):
        return _NON_TRANSLATION_WEIGHT
    return _PUNCTUATION_WEIGHT if (kind, degree) == (_PUNCTUATION, "minor") else _WEIGHTS[degree]


def error_of(row: Mapping[str, Any], own: Mapping[str, Any], texts: Mapping[str, str], noted: Counter[str]) -> Any:
    """What a row says of one error: its own keys, its spans, and its texts where marks do not give them back."""
    found = {key: unmarked(row[key]) for key in MARKED}
    error: dict[str, Any] = {"row": dict(own)}
    for key, one in found.items():
        noted["marks without a partner"] += not one.is_whole
        fits = all(one.text[start:end] == texts[key][start:end] for start, end in one.spans)
        if one.spans and fits:
            error[f"{key}_spans"] = [list(span) for span in one.spans]
        if marked(texts[key], error.get(f"{key}_spans", ())) != row[key]:
            error[key] = row[key]
            noted[f"{key} texts that differ between the rows of one"] += one.text != texts[key]
    return error


def rating_of_errors(response: str, rater: str, errors: Sequence[Any]) -> Rating:
    """A rating from all errors that one rater marked: minus the sum of their weights, and their spans."""
    said = [(error["row"]["category"], error["row"]["severity"]) for error in errors]
    spans = tuple(
        (start, end, category, severity)
        for error, (category, severity) in zip(errors, said, strict=True)
        for start, end in error.get("target_spans", ())
    )
    # Added to zero, so that a translation without errors has 0 and not -0.
    value = 0.0 - round(sum(weight(*one) for one in said), 6)
    return Rating(
        response=response,
        rater=rater,
        kind="human",
        dimension=DIMENSION,
        value=value,
        spans=spans or None,
        meta={"errors": list(errors)},
    )


def errors_in(rating: Rating) -> list[Any]:
    """The errors of a rating as they were read; else from its spans; none where a number stands alone."""
    kept = (rating.meta or {}).get("errors")
    if isinstance(kept, list):
        return kept
    if rating.spans:
        return [
            {"row": {"category": label, "severity": reason or ""}, "target_spans": [[start, end]]}
            for start, end, label, reason in rating.spans
        ]
    return [{"row": dict(NO_ERROR)}] if rating.value == 0 else []


def error_rows(case: Case, texts: Mapping[str, str], names: Mapping[str, str], source: str) -> Iterator[dict[str, Any]]:
    """A row an error, of the ratings in their order."""
    for rating in case.ratings:
        for error in errors_in(rating) if rating.dimension == DIMENSION else ():
            plain = {"source": source, "target": texts[rating.response]}
            said = {key: error.get(key, marked(text, error.get(f"{key}_spans", ()))) for key, text in plain.items()}
            yield {"system": names[rating.response], "rater": rating.rater, **said, **error["row"]}
