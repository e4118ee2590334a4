"""The loop of every format with one better and one worse answer a row: a format is a value of its differences."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Rating
from steelyard.plugins.formats._fields import (
    OTHER_SHAPE,
    PromptIds,
    as_read,
    count_other_keys,
    form_of,
    with_meta,
    with_nulls,
    with_prompt,
)
from steelyard.plugins.formats._pair_rows import PairRow, PairTurns, pair_case, pair_rows
from steelyard.plugins.formats._ratings import RatingScale, Taken, score_ratings, take_ratings

MARGIN = "margin"


class ParsedPair(NamedTuple):
    """The turns of a row, and the facts of its form that the turns do not hold."""

    turns: PairTurns
    form: JsonObject


class PairScores(NamedTuple):
    """The keys of both answers' scores and what the numbers mean. ``as_texts``: a table without types has texts."""

    keys: tuple[str, str]
    scale: RatingScale
    as_texts: bool = False

    def read(self, row: Row, case: Case, warnings: Counter[str]) -> tuple[Rating, ...]:
        """Return the ratings of both answers."""
        return score_ratings(case, [self._number(row, key) for key in self.keys], self.scale, warnings)

    def form(self, row: Row) -> JsonObject:
        """Return what the ratings do not hold: scores that were texts, and absent keys."""
        texts = {key: row.value[key] for key in self.keys if isinstance(row.value.get(key), str)}
        return {"texts": texts or None, "absent": row.absent(self.keys)}

    def write(self, pair: PairRow, taken: Taken, form: JsonObject) -> JsonObject:
        """Return both scores, null where there is none; an absent key without a score stays absent."""
        values = (taken.value(response.id, self.scale.dimension) for response in (pair.better, pair.worse))
        scores = {key: _same_text(key, value, form) for key, value in zip(self.keys, values, strict=True)}
        return {key: value for key, value in scores.items() if value is not None or key not in form.get("absent", ())}

    def _number(self, row: Row, key: str) -> float | None:
        value = row.value.get(key)
        if not self.as_texts or not isinstance(value, str):
            return row.number(key)
        number = _parsed(value)
        if value and number is None:
            raise RecordError("a value that is not a number", where=row.at(key), allowed="a number, or null")
        return number


class PairFormat(NamedTuple):
    """A format of pairs. ``parse`` reads the turns of a row and ``row_of`` writes them.

    ``keys`` are all keys of the format, ``turn_keys`` those with turns, ``null_keys`` those that may be null and then
    come back as null. ``fits`` says which cases can be written, and ``row_of`` returns null for a pair that cannot: the
    whole case is then counted and not written.
    """

    kind: str
    keys: tuple[str, ...]
    supports: frozenset[str]
    matches: Callable[[JsonObject], bool]
    parse: Callable[[Row, Counter[str]], ParsedPair]
    row_of: Callable[[PairTurns, JsonObject, Counter[str]], JsonObject | None]
    turn_keys: tuple[str, ...] = ()
    turn_fields: tuple[str, ...] = ("role", "content")
    null_keys: tuple[str, ...] = ()
    has_margin: bool = False
    scores: PairScores | None = None
    fits: Callable[[Case], bool] | None = None

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases of two tiers; a margin becomes a listed pair, and scores become ratings."""
        ids = PromptIds(warnings)
        for row in rows:
            turns, form = self.parse(row, warnings)
            for key in self.turn_keys:
                count_other_keys(row.value.get(key), warnings, self.turn_fields)
            margin = row.number(MARGIN) if self.has_margin else None
            form = form | {"null": row.nulls(self.null_keys)} | (self.scores.form(row) if self.scores else {})
            prompt = with_prompt(turns.prompt, id=ids.take(row), meta=row.others(self.keys))
            case = pair_case(prompt, turns[1:], warnings, margin=margin, meta=as_read(self.kind, **form))
            yield replace(case, ratings=self.scores.read(row, case, warnings)) if self.scores else case

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row a pair."""
        for case in cases:
            taken = take_ratings(case, (self.scores.scale,), dropped) if self.scores else Taken({}, case)
            rows = (
                self._rows(taken, form_of(case, self.kind), dropped) if self.fits is None or self.fits(case) else None
            )
            if rows is None:
                dropped[OTHER_SHAPE] += 1
                continue
            yield from (with_meta(row, case, self.keys, dropped) for row in rows)

    def _rows(self, taken: Taken, form: JsonObject, dropped: Counter[str]) -> list[JsonObject] | None:
        case = taken.rest
        has_margins = self.has_margin and any(pair.margin is not None for pair in case.pairs or ())
        rows: list[JsonObject] = []
        for pair in pair_rows(case, dropped, self.supports):
            row = self.row_of(pair.turns(case), form, dropped)
            if row is None:
                return None
            row |= {MARGIN: pair.pair.margin} if has_margins else {}
            rows.append(with_nulls(row, form) | (self.scores.write(pair, taken, form) if self.scores else {}))
        return rows


def _parsed(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _same_text(key: str, value: float | None, form: JsonObject) -> Any:
    """Return the text of a score as it was read, if it still means the score; else the number."""
    text = form.get("texts", {}).get(key)
    return text if text is not None and _parsed(text) == value else value
