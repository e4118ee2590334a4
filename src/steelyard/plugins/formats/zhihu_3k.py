"""Zhihu RLHF 3k: a question from Zhihu, an answer that many readers agreed with, and one that fewer did.

Written from public descriptions of the data set liyucheng/zhihu_rlhf_3k, whose card says nothing of its columns, and
from public code that reads its ``zhihu_3k_rlfh.tsv`` by the columns ``prompt``, ``chosen``, ``rejected``,
``question_id``, ``upvotes_chosen`` and ``upvotes_rejected``. The file itself could not be read. Upvotes are ratings:
how many readers agreed, without an upper end. ``question_id`` is a key of the row's own.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case
from steelyard.plugins.formats._fields import PromptIds, as_read, form_of, is_number, with_meta
from steelyard.plugins.formats._parts import carrying
from steelyard.plugins.formats._plain import Names, plain_case, plain_rows
from steelyard.plugins.formats._ratings import Scale, scored, take_ratings
from steelyard.plugins.formats._sides import absent_keys

_KIND = "zhihu_3k"
_NAMES = Names("prompt", "chosen", "rejected")
_UPVOTES = ("upvotes_chosen", "upvotes_rejected")
_KEYS = (*_NAMES, *_UPVOTES)
_SCALE = Scale("upvotes", None, "zhihu", "human")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Zhihu3k:
    """One row a pair of texts, with the upvotes of both; in a TSV file the upvotes are texts too."""

    keys = _KEYS
    carries = carrying("prompt meta", "rankings", "listed pairs")

    def recognises(self, row: dict[str, Any]) -> bool:
        """Three texts, and the upvotes of both answers."""
        return all(isinstance(row.get(key), str) for key in _NAMES) and set(_UPVOTES) <= row.keys()

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two tiers, with a rating for each number of upvotes."""
        ids = PromptIds(noted)
        for row in rows:
            case = plain_case(row, _NAMES, ids, noted, known=_KEYS)
            upvotes = [_number(row, key) for key in _UPVOTES]
            said = {key: row.value[key] for key in _UPVOTES if isinstance(row.value.get(key), str)}
            meta = as_read(_KIND, texts=said or None, absent=absent_keys(row, _UPVOTES))
            yield replace(case, ratings=scored(case, upvotes, _SCALE, noted), meta=meta)

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a pair of a case of one question and answers of one turn."""
        for case in cases:
            form, taken = form_of(case, _KIND), take_ratings(case, (_SCALE,), lost)
            for values, pair in plain_rows(taken.rest, _NAMES, lost, self.carries):
                upvotes = (taken.value(response.id, _SCALE.dimension) for response in pair[:2])
                said = {key: _said(key, value, form) for key, value in zip(_UPVOTES, upvotes, strict=True)}
                kept = {
                    key: value for key, value in said.items() if value is not None or key not in form.get("absent", ())
                }
                yield with_meta(values | kept, case, _KEYS, lost)


def build(config: Config) -> Zhihu3k:
    """The format."""
    return Zhihu3k()


def _parsed(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _number(row: Row, key: str) -> float | None:
    value = row.value.get(key)
    if value is None or value == "":
        return None
    number = _parsed(value) if isinstance(value, str) else value
    if not is_number(number):
        raise RecordError("upvotes that are no number", where=row.place._replace(path=key), allowed="a number, or null")
    return number


def _said(key: str, value: float | None, form: dict[str, Any]) -> Any:
    """The number as it was read, if it was a text that still says it."""
    text = form.get("texts", {}).get(key)
    return text if text is not None and _parsed(text) == value else value
