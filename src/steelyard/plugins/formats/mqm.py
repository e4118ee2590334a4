"""MQM annotations of WMT: a row for each error that a rater marked in a translation, with its category and severity.

Written from the README of the repository google/wmt-mqm-human-evaluation and the look of its files: columns ``system``,
``doc``, ``docSegId`` and ``globalSegId`` (in older files ``doc_id`` and ``seg_id``), ``rater``, ``source``, ``target``,
``category``, ``severity`` and ``metadata``, with ``<v>`` and ``</v>`` around the error. Consecutive rows of one segment
make one case: a response for each system, a rating for each rater of it.

A rating's value is minus the sum of the README's weights: 5 a major error, 1 a minor one, 0.1 minor punctuation, 25
what is no translation, 0 anything else (neutral, no error, the test of attention ``HOTW-test``); 0 is best. There is no
lowest value: the newer files have no limit of five errors a segment. The README exempts no other category, so an issue
of the source weighs what any error does. Spans are those in the translation, with the category as label and the
severity as reason; what else a row says stays in the rating's ``meta``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message, Response
from steelyard.plugins.formats._fields import as_read, form_of, text_field, with_meta, with_prompt
from steelyard.plugins.formats._gathered import gathered, split_meta
from steelyard.plugins.formats._mqm import DIMENSION, error_of, error_rows, errors_in, rating_of_errors, unmarked
from steelyard.plugins.formats._parts import carrying, count_lost
from steelyard.plugins.formats._plain import Plain, plain_of
from steelyard.plugins.formats._sides import OTHER_SHAPE

_KIND = "mqm"
_SEGMENTS = ("globalSegId", "seg_id")
_ERROR = ("category", "severity")
_NEEDED = ("system", "doc", "rater", "source", "target", *_ERROR)
_KEYS = (*_NEEDED, *_SEGMENTS, "metadata")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Mqm:
    """One row an error."""

    keys = _KEYS
    carries = carrying("source", "prompt meta", "authors", "more than two responses")

    def recognises(self, row: dict[str, Any]) -> bool:
        """A translation with the rater, and the category and severity of an error."""
        return set(_NEEDED) <= row.keys() and any(key in row for key in _SEGMENTS)

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases with a rating for each rater of each translation."""
        seen: dict[str, Place] = {}
        for group in gathered(rows, lambda row: (text_field(row, "doc"), _segment(row))):
            first = group[0]
            name = f"{first.value['doc']}/{_segment(first)}"
            if name in seen:
                found = f"segment {name!r} stands at {seen[name]} already"
                raise RecordError(found, where=first.place, do="sort the rows by document and segment")
            seen[name] = first.place
            yield _case(name, group, noted)

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row an error of a case of one source and translations by different systems."""
        for case in cases:
            names = {one.id: one.id if one.author is None else one.author for one in case.responses}
            own = [one for one in case.ratings if one.dimension == DIMENSION and errors_in(one)]
            plain = plain_of(case, lost) if own else None
            if plain is None or len(set(names.values())) < len(names) or _has_marks(plain):
                lost[OTHER_SHAPE] += plain is not None or not own
                continue
            mine = {id(one) for one in own}
            others = tuple(one for one in case.ratings if id(one) not in mine)
            count_lost(replace(case, ratings=others), lost, self.carries)
            lost["responses without a rating"] += len(names.keys() - {one.response for one in own})
            lost["raters"] += sum(one.kind != "human" for one in own)
            form = form_of(case, _KIND)
            key, segment = form.get("segment", (_SEGMENTS[0], case.prompt.id))
            shared = {"doc": case.prompt.source or "", key: segment}
            written = list(error_rows(replace(case, ratings=tuple(own)), plain.texts, names, plain.question))
            for place in form.get("order") or range(len(written)):
                yield with_meta(shared | written[place], case, _KEYS, lost)


def build(config: Config) -> Mqm:
    """The format."""
    return Mqm()


def _segment(row: Row) -> Any:
    key = next((key for key in _SEGMENTS if key in row.value), _SEGMENTS[0])
    value = row.value.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RecordError("the row names no segment", where=row.place._replace(path=key), allowed="a number or a text")
    return value


def _case(name: str, group: Sequence[Row], noted: Counter[str]) -> Case:
    first = group[0]
    for row in group:
        for key in _NEEDED:
            text_field(row, key)
    source = unmarked(first.value["source"]).text
    targets: dict[str, str] = {}
    for row in group:
        targets.setdefault(row.value["system"], unmarked(row.value["target"]).text)
    meta, metas = split_meta(group, _KEYS)
    errors: dict[tuple[str, str], list[Any]] = {}
    places: dict[tuple[str, str], list[int]] = {}
    for place, (row, other) in enumerate(zip(group, metas, strict=True)):
        key = (row.value["system"], row.value["rater"])
        own = {name: row.value[name] for name in (*_ERROR, "metadata") if name in row.value} | (other or {})
        texts = {"source": source, "target": targets[key[0]]}
        errors.setdefault(key, []).append(error_of(row.value, own, texts, noted))
        places.setdefault(key, []).append(place)
    segment_key = next(key for key in _SEGMENTS if key in first.value)
    return Case(
        prompt=with_prompt((Message(role="user", content=source),), id=name, source=first.value["doc"], meta=meta),
        responses=tuple(Response(id=system, text=text, author=system) for system, text in targets.items()),
        ratings=tuple(rating_of_errors(*key, said) for key, said in errors.items()),
        meta=as_read(_KIND, segment=[segment_key, first.value[segment_key]], order=_order(places)),
    )


def _order(places: Mapping[tuple[str, str], Sequence[int]]) -> list[int]:
    """Where each row of the file stands among the rows by rating; empty where it is the same order."""
    by_rating = [place for one in places.values() for place in one]
    order = sorted(range(len(by_rating)), key=by_rating.__getitem__)
    return order if order != list(range(len(order))) else []


def _has_marks(plain: Plain) -> bool:
    return any(unmarked(text).text != text for text in (plain.question, *plain.texts.values()))
