"""Translations that professionals assessed: MAPLE's scores and the MQM annotations of WMT, several rows a case.

MAPLE is written from the README of the repository amazon-science/preference-driven-mt: one JSON line a translation,
five to a source sentence; scores go from 1 to 6 on a continuous slider. Consecutive lines of one source make one case.
Both translators' scores are ratings; ``score`` is their mean, and not a rating. The rows do not name the direction, and
they lack the request to the systems, so a prompt is the bare source.

MQM is written from the README of the repository google/wmt-mqm-human-evaluation and the look of its files: columns
``system``, ``doc``, ``docSegId`` and ``globalSegId`` (in older files ``doc_id`` and ``seg_id``), ``rater``, ``source``,
``target``, ``category``, ``severity`` and ``metadata``, with ``<v>`` and ``</v>`` around the error. Consecutive rows of
one segment make one case: a response for each system, a rating for each rater of it.

An MQM rating's value is minus the sum of the README's weights: 5 a major error, 1 a minor one, 0.1 minor punctuation,
25 a non-translation, 0 anything else (neutral, no error, the test of attention ``HOTW-test``); 0 is best. A value has
no lower limit: the newer files have no limit of five errors a segment. The README exempts no other category, so an
issue of the source weighs as much as any error. Spans are those in the translation, with the category as label and the
severity as reason; the rest of a row stays in the rating's ``meta``.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Rating, Response
from steelyard.curation.format_support import carrying
from steelyard.plugins.formats._rating_scales import RatingScale, rating_of
from steelyard.plugins.formats._row_format import (
    CaseReader,
    PromptIds,
    group_id,
    groups_of,
    split_meta,
)

_SCALES = {f"score_{rater}": RatingScale("score", (1, 6), rater, "human") for rater in ("annotator_a", "annotator_b")}


class Maple:
    """One row per translation."""

    _kind = "maple"
    keys = (*_SCALES, "score", "system", "source", "translation")
    has_evidence_rows = False
    is_written = False
    supports = carrying("prompt meta", "authors", "response meta", "more than two responses")

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has a source and a translation with both translators' scores."""
        return {*_SCALES, "source", "translation"} <= row.keys()

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases with two ratings a response."""
        ids = PromptIds(warnings)
        for group in groups_of(rows, lambda row: row.text("source")):
            reader = CaseReader(self._kind, self.keys, group, ids, warnings)
            texts = [row.text("translation") for row in group]
            authors = [row.optional_text("system") for row in group]
            meta, metas = split_meta(group, self.keys)
            responses = reader.responses(texts, authors=authors, metas=metas)
            yield Case(
                prompt=reader.prompt(group[0].text("source"), id=group_id(group, ids), meta=meta),
                responses=responses,
                ratings=tuple(
                    rating_of(response.id, value, scale, warnings)
                    for response, row in zip(responses, group, strict=True)
                    for key, scale in _SCALES.items()
                    if (value := row.number(key)) is not None
                ),
            )


_DIMENSION = "mqm"
_MARKED = ("source", "target")
_MARKS = re.compile(r"</?v>")
_WEIGHTS = {"major": 5.0, "minor": 1.0}
_PUNCTUATION, _PUNCTUATION_WEIGHT = "fluency/punctuation", 0.1
_NON_TRANSLATION, _NON_TRANSLATION_WEIGHT = "non-translation", 25.0
_SEGMENTS = ("globalSegId", "seg_id")
_ERROR = ("category", "severity")
_NEEDED = ("system", "doc", "rater", "source", "target", *_ERROR)


class MarkedText(NamedTuple):
    """A text without its marks, and the spans between them in its code points."""

    text: str
    spans: tuple[tuple[int, int], ...]
    is_whole: bool


class Mqm:
    """One row per error."""

    _kind = "mqm"
    keys = (*_NEEDED, *_SEGMENTS, "metadata")
    has_evidence_rows = False
    is_written = False
    supports = carrying("source", "prompt meta", "authors", "more than two responses")

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has a translation with the rater, and the category and severity of an error."""
        return set(_NEEDED) <= row.keys() and any(key in row for key in _SEGMENTS)

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases with a rating for each rater of each translation."""
        ids, seen = PromptIds(warnings), dict[str, Place]()
        for group in groups_of(rows, lambda row: (row.text("doc"), _segment(row))):
            first = group[0]
            name = f"{first.value['doc']}/{_segment(first)}"
            if name in seen:
                problem = f"segment {name!r} is already used at {seen[name]}"
                raise RecordError(problem, where=first.place, do="sort the rows by document and segment")
            seen[name] = first.place
            yield _segment_case(name, CaseReader(self._kind, self.keys, group, ids, warnings))


def _segment_case(name: str, reader: CaseReader) -> Case:
    group, first = reader.rows, reader.row.value
    for row in group:
        for key in _NEEDED:
            row.text(key)
    source = unmarked(first["source"]).text
    targets: dict[str, str] = {}
    for row in group:
        targets.setdefault(row.value["system"], unmarked(row.value["target"]).text)
    meta, metas = split_meta(group, reader.keys)
    errors: dict[tuple[str, str], list[JsonObject]] = {}
    for row, other in zip(group, metas, strict=True):
        key = (row.value["system"], row.value["rater"])
        fields = {name: row.value[name] for name in (*_ERROR, "metadata") if name in row.value} | (other or {})
        texts = {"source": source, "target": targets[key[0]]}
        errors.setdefault(key, []).append(_error(row.value, fields, texts, reader.warnings))
    return Case(
        prompt=reader.prompt(source, id=name, source=first["doc"], meta=meta),
        responses=tuple(Response(id=system, text=text, author=system) for system, text in targets.items()),
        ratings=tuple(_rating(*key, errors_of_rating) for key, errors_of_rating in errors.items()),
    )


def _segment(row: Row) -> Any:
    key = next((key for key in _SEGMENTS if key in row.value), _SEGMENTS[0])
    value = row.value.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RecordError("the row names no segment", where=row.at(key), allowed="a number or a text")
    return value


def unmarked(marked: str) -> MarkedText:
    """Return the text and its spans; ``is_whole`` is false where a mark has no partner."""
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
    return MarkedText(text + marked[at:], tuple(spans), is_whole and start is None)


def marked(text: str, spans: Sequence[Sequence[int]]) -> str:
    """Return the text with marks around its spans."""
    for start, end in sorted(map(tuple, spans), reverse=True):
        text = f"{text[:start]}<v>{text[start:end]}</v>{text[end:]}"
    return text


def weight(category: str, severity: str) -> float:
    """Return the penalty of one error: 25 for a non-translation, 5 major, 1 minor, 0.1 minor punctuation, else 0."""
    kind, degree = category.lower(), severity.lower()
    if degree not in _WEIGHTS:
        return 0.0
    if kind.startswith(_NON_TRANSLATION):
        return _NON_TRANSLATION_WEIGHT
    return _PUNCTUATION_WEIGHT if (kind, degree) == (_PUNCTUATION, "minor") else _WEIGHTS[degree]


def _error(row: JsonObject, fields: JsonObject, texts: Mapping[str, str], warnings: Counter[str]) -> JsonObject:
    """Return an error: the row's fields, its spans, and its texts where marks do not restore them."""
    error: JsonObject = {"row": dict(fields)}
    for key, text in {key: unmarked(row[key]) for key in _MARKED}.items():
        warnings["marks without a partner"] += not text.is_whole
        fits = all(text.text[start:end] == texts[key][start:end] for start, end in text.spans)
        if text.spans and fits:
            error[f"{key}_spans"] = [list(span) for span in text.spans]
        if marked(texts[key], error.get(f"{key}_spans", ())) != row[key]:
            error[key] = row[key]
            warnings[f"{key} texts that differ between the rows of one"] += text.text != texts[key]
    return error


def _rating(response: str, rater: str, errors: Sequence[JsonObject]) -> Rating:
    """Return a rating from all errors that one rater marked: minus the sum of their weights, and their spans."""
    labels = [(error["row"]["category"], error["row"]["severity"]) for error in errors]
    spans = tuple(
        (start, end, category, severity)
        for error, (category, severity) in zip(errors, labels, strict=True)
        for start, end in error.get("target_spans", ())
    )
    return Rating(
        response=response,
        rater=rater,
        kind="human",
        dimension=_DIMENSION,
        # Added to zero, so that a translation without errors has 0 and not -0.
        value=0.0 - round(sum(weight(*label) for label in labels), 6),
        spans=spans or None,
        meta={"errors": list(errors)},
    )


KINDS = {
    "maple": without_settings(
        Maple(),
        "MAPLE: translations of one sentence by several systems, each with the scores of two professional translators.",
    ),
    "mqm": without_settings(
        Mqm(),
        "MQM annotations of WMT: a row for each error that a rater marked in a translation, with its category and"
        " severity.",
    ),
}
