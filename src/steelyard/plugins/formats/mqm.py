"""MQM annotations of WMT: a row for each error that a rater marked in a translation, with its category and severity.

Written from the README of the repository google/wmt-mqm-human-evaluation and the look of its files: columns ``system``,
``doc``, ``docSegId`` and ``globalSegId`` (in older files ``doc_id`` and ``seg_id``), ``rater``, ``source``, ``target``,
``category``, ``severity`` and ``metadata``, with ``<v>`` and ``</v>`` around the error. Consecutive rows of one segment
make one case: a response for each system, a rating for each rater of it.

A rating's value is minus the sum of the README's weights: 5 a major error, 1 a minor one, 0.1 minor punctuation, 25
a non-translation, 0 anything else (neutral, no error, the test of attention ``HOTW-test``); 0 is best. A value has
no lower limit: the newer files have no limit of five errors a segment. The README exempts no other category, so an
issue of the source weighs what any error does. Spans are those in the translation, with the category as label and the
severity as reason; what else a row says stays in the rating's ``meta``.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Message, Rating, Response
from steelyard.curation.format_support import carrying, count_lost
from steelyard.plugins.formats._fields import OTHER_SHAPE, as_read, form_of, with_meta, with_prompt
from steelyard.plugins.formats._grouping import groups_of, split_meta
from steelyard.plugins.formats._pair_rows import PlainTexts, plain_texts

DIMENSION = "mqm"
MARKED = ("source", "target")
NO_ERROR = {"category": "No-error", "severity": "No-error"}
_MARKS = re.compile(r"</?v>")
_WEIGHTS = {"major": 5.0, "minor": 1.0}
_PUNCTUATION, _PUNCTUATION_WEIGHT = "fluency/punctuation", 0.1
_NON_TRANSLATION, _NON_TRANSLATION_WEIGHT = "non-translation", 25.0
Spans = tuple[tuple[int, int], ...]


class MarkedText(NamedTuple):
    """A text without its marks, and the spans between them in its code points."""

    text: str
    spans: Spans
    is_whole: bool


_KIND = "mqm"
_SEGMENTS = ("globalSegId", "seg_id")
_ERROR = ("category", "severity")
_NEEDED = ("system", "doc", "rater", "source", "target", *_ERROR)
_KEYS = (*_NEEDED, *_SEGMENTS, "metadata")


class Mqm:
    """One row an error."""

    keys = _KEYS
    supports = carrying("source", "prompt meta", "authors", "more than two responses")

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has a translation with the rater, and the category and severity of an error."""
        return set(_NEEDED) <= row.keys() and any(key in row for key in _SEGMENTS)

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases with a rating for each rater of each translation."""
        seen: dict[str, Place] = {}
        for group in groups_of(rows, lambda row: (row.text("doc"), _segment(row))):
            first = group[0]
            name = f"{first.value['doc']}/{_segment(first)}"
            if name in seen:
                problem = f"segment {name!r} stands at {seen[name]} already"
                raise RecordError(problem, where=first.place, do="sort the rows by document and segment")
            seen[name] = first.place
            yield _case(name, group, warnings)

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row an error of a case of one source and translations by different systems."""
        for case in cases:
            names = {item.id: item.id if item.author is None else item.author for item in case.responses}
            rated = [item for item in case.ratings if item.dimension == DIMENSION and errors_in(item)]
            plain = plain_texts(case, dropped) if rated else None
            if plain is None or len(set(names.values())) < len(names) or _has_marks(plain):
                dropped[OTHER_SHAPE] += plain is not None or not rated
                continue
            mine = {id(item) for item in rated}
            others = tuple(item for item in case.ratings if id(item) not in mine)
            count_lost(replace(case, ratings=others), dropped, self.supports)
            dropped["responses without a rating"] += len(names.keys() - {item.response for item in rated})
            dropped["raters"] += sum(item.kind != "human" for item in rated)
            form = form_of(case, _KIND)
            key, segment = form.get("segment", (_SEGMENTS[0], case.prompt.id))
            shared = {"doc": case.prompt.source or "", key: segment}
            written = list(error_rows(replace(case, ratings=tuple(rated)), plain.texts, names, plain.question))
            for place in form.get("order") or range(len(written)):
                yield with_meta(shared | written[place], case, _KEYS, dropped)


def _segment(row: Row) -> Any:
    key = next((key for key in _SEGMENTS if key in row.value), _SEGMENTS[0])
    value = row.value.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RecordError("the row names no segment", where=row.at(key), allowed="a number or a text")
    return value


def _case(name: str, group: Sequence[Row], warnings: Counter[str]) -> Case:
    first = group[0]
    for row in group:
        for key in _NEEDED:
            row.text(key)
    source = unmarked(first.value["source"]).text
    targets: dict[str, str] = {}
    for row in group:
        targets.setdefault(row.value["system"], unmarked(row.value["target"]).text)
    meta, metas = split_meta(group, _KEYS)
    errors: dict[tuple[str, str], list[Any]] = {}
    places: dict[tuple[str, str], list[int]] = {}
    for place, (row, other) in enumerate(zip(group, metas, strict=True)):
        key = (row.value["system"], row.value["rater"])
        fields = {name: row.value[name] for name in (*_ERROR, "metadata") if name in row.value} | (other or {})
        texts = {"source": source, "target": targets[key[0]]}
        errors.setdefault(key, []).append(error_of(row.value, fields, texts, warnings))
        places.setdefault(key, []).append(place)
    segment_key = next(key for key in _SEGMENTS if key in first.value)
    return Case(
        prompt=with_prompt((Message(role="user", content=source),), id=name, source=first.value["doc"], meta=meta),
        responses=tuple(Response(id=system, text=text, author=system) for system, text in targets.items()),
        ratings=tuple(rating_of_errors(*key, errors_of_rating) for key, errors_of_rating in errors.items()),
        meta=as_read(_KIND, segment=[segment_key, first.value[segment_key]], order=_order(places)),
    )


def _order(places: Mapping[tuple[str, str], Sequence[int]]) -> list[int]:
    """Return the position of each row of the file among the rows by rating; empty where it is the same order."""
    by_rating = [place for rating_places in places.values() for place in rating_places]
    order = sorted(range(len(by_rating)), key=by_rating.__getitem__)
    return order if order != list(range(len(order))) else []


def _has_marks(plain: PlainTexts) -> bool:
    return any(unmarked(text).text != text for text in (plain.question, *plain.texts.values()))


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


def error_of(row: JsonObject, fields: JsonObject, texts: Mapping[str, str], warnings: Counter[str]) -> Any:
    """Return an error: the row's own keys, its spans, and its texts where marks do not restore them."""
    marked_texts = {key: unmarked(row[key]) for key in MARKED}
    error: JsonObject = {"row": dict(fields)}
    for key, text in marked_texts.items():
        warnings["marks without a partner"] += not text.is_whole
        fits = all(text.text[start:end] == texts[key][start:end] for start, end in text.spans)
        if text.spans and fits:
            error[f"{key}_spans"] = [list(span) for span in text.spans]
        if marked(texts[key], error.get(f"{key}_spans", ())) != row[key]:
            error[key] = row[key]
            warnings[f"{key} texts that differ between the rows of one"] += text.text != texts[key]
    return error


def rating_of_errors(response: str, rater: str, errors: Sequence[Any]) -> Rating:
    """Return a rating from all errors that one rater marked: minus the sum of their weights, and their spans."""
    labels = [(error["row"]["category"], error["row"]["severity"]) for error in errors]
    spans = tuple(
        (start, end, category, severity)
        for error, (category, severity) in zip(errors, labels, strict=True)
        for start, end in error.get("target_spans", ())
    )
    # Added to zero, so that a translation without errors has 0 and not -0.
    value = 0.0 - round(sum(weight(*label) for label in labels), 6)
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
    """Return the errors of a rating as they were read; else from its spans; none where a number stands alone."""
    errors = (rating.meta or {}).get("errors")
    if isinstance(errors, list):
        return errors
    if rating.spans:
        return [
            {"row": {"category": label, "severity": reason or ""}, "target_spans": [[start, end]]}
            for start, end, label, reason in rating.spans
        ]
    return [{"row": dict(NO_ERROR)}] if rating.value == 0 else []


def error_rows(case: Case, texts: Mapping[str, str], names: Mapping[str, str], source: str) -> Iterator[JsonObject]:
    """Yield a row an error, of the ratings in their order."""
    for rating in case.ratings:
        for error in errors_in(rating) if rating.dimension == DIMENSION else ():
            plain = {"source": source, "target": texts[rating.response]}
            written_texts = {
                key: error.get(key, marked(text, error.get(f"{key}_spans", ()))) for key, text in plain.items()
            }
            yield {"system": names[rating.response], "rater": rating.rater, **written_texts, **error["row"]}


KINDS = {"mqm": without_settings(Mqm(), __doc__)}
