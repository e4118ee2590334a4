r"""HelpSteer2: one answer a row with five numbers from 0 to 4; or, in its preference part, two answers and a verdict.

Written from the card of the data set nvidia/HelpSteer2. Consecutive rows of one prompt make one case. The numbers
(``helpfulness``, ``correctness``, ``coherence``, ``complexity``, ``verbosity``) are means over annotators, rounded by
the publishers: ratings of an unnamed person; more of the last two is not better, and their ``meta`` says so. In a
prompt of several turns ``<extra_id_1>Assistant`` and ``<extra_id_1>User`` mark the turns after the first.

A preference row has ``preference_strength`` from -3 (``response_1`` is much better) to 3 with its statement, and all
annotators' in ``all_preferences_unprocessed``; the three most similar of those, and the elaboration, are keys of the
row's own. The lists of labels in its part ``disagreements`` are refused: they do not say who gave which.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message, Rating, Response
from steelyard.methods.annotation.derived import NEITHER_IS_BETTER
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_ids,
    as_read,
    form_of,
    rest,
    text_field,
    with_meta,
    with_prompt,
)
from steelyard.plugins.formats._gathered import gathered, group_id, split_meta, with_metas
from steelyard.plugins.formats._helpsteer import (
    Preferences,
    Said,
    count_unsaid,
    preferences_in,
    said_of,
    said_row,
    without_said,
)
from steelyard.plugins.formats._parts import UNKNOWN, carrying, count_lost
from steelyard.plugins.formats._plain import answer_or_none
from steelyard.plugins.formats._ratings import Scale, number_field, rating_of, take_ratings
from steelyard.plugins.formats._sides import OTHER_SHAPE
from steelyard.plugins.formats._transcripts import EXTRA_ID, text_of, turns_in

_KIND = "helpsteer2"
_SCALES = tuple(
    Scale(name, (0, 4), UNKNOWN, "human")
    for name in ("helpfulness", "correctness", "coherence", "complexity", "verbosity")
)
_NEITHER = ("complexity", "verbosity")
_RATED = ("prompt", "response", *(scale.dimension for scale in _SCALES))
_SIDES = ("response_1", "response_2")
_NAMES = Preferences(
    "preference_strength", "preference_statement", "all_preferences_unprocessed", "strength", "justification"
)
_PREFERRED = ("prompt", *_SIDES, *_NAMES[:3])
_KEYS = (*_RATED, *_PREFERRED[1:])
_OF_RATED = ("response meta", "more than two responses")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class HelpSteer2:
    """One row a rated answer, or two compared ones."""

    keys = _KEYS
    carries = carrying("earlier turns", "prompt meta", *_OF_RATED)

    def recognises(self, row: dict[str, Any]) -> bool:
        """A prompt and a response with the five numbers, or two responses with a preference's strength."""
        numbers = [row.get(scale.dimension) for scale in _SCALES]
        is_rated = {"prompt", "response"} <= row.keys() and all(isinstance(value, int | float) for value in numbers)
        return is_rated or {"prompt", *_SIDES, "preference_strength"} <= row.keys()

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases with ratings, or with the overall judgment and those of annotators."""
        ids = PromptIds(noted)
        for group in gathered(rows, _key):
            is_preferred = _is_preferred(group[0])
            yield _preferred_case(group[0], ids) if is_preferred else _rated_case(group, ids, noted)

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a response of a case with the five dimensions, else a row a case of two responses and a verdict."""
        for case in cases:
            text, said = text_of(case.prompt.messages, EXTRA_ID), said_of(case)
            texts = [answer_or_none(response) for response in case.responses]
            is_rated = any((one.dimension, one.range) in {scale[:2] for scale in _SCALES} for one in case.ratings)
            is_compared = said.overall is not None and len(texts) == len(_SIDES)
            if text is None or None in texts or not (is_rated or is_compared):
                lost[OTHER_SHAPE] += 1
            elif is_rated:
                yield from _rated_rows(case, text, texts, lost, carries=self.carries)
            else:
                count_lost(without_said(case, said), lost, self.carries - {*_OF_RATED})
                yield _preferred_row(case, [text, *texts], said, lost)


def build(config: Config) -> HelpSteer2:
    """The format."""
    return HelpSteer2()


def _is_preferred(row: Row) -> bool:
    return "response" not in row.value and _SIDES[0] in row.value


def _key(row: Row) -> Hashable:
    """Rated rows of one prompt go together, each compared one stands alone."""
    return (text_field(row, "prompt"), row.place if _is_preferred(row) else None)


def _rated_case(group: Sequence[Row], ids: PromptIds, noted: Counter[str]) -> Case:
    texts = [text_field(row, "response") for row in group]
    names = answer_ids([(Message(role="assistant", content=text),) for text in texts], noted)
    meta, metas = split_meta(group, _RATED)
    silent = [[key for key in _RATED[2:] if row.value.get(key, ...) is None] for row in group]
    return Case(
        prompt=with_prompt(
            turns_in(text_field(group[0], "prompt"), EXTRA_ID).turns, id=group_id(group, ids), meta=meta
        ),
        responses=tuple(
            Response(id=name, text=text, meta=said) for name, text, said in zip(names, texts, metas, strict=True)
        ),
        ratings=tuple(rating for name, row in zip(names, group, strict=True) for rating in _ratings(name, row, noted)),
        meta=as_read(_KIND, null=silent if any(silent) else []),
    )


def _ratings(name: str, row: Row, noted: Counter[str]) -> Iterator[Rating]:
    for scale in _SCALES:
        value = number_field(row, scale.dimension)
        if value is not None:
            meta = NEITHER_IS_BETTER if scale.dimension in _NEITHER else None
            yield rating_of(name, value, scale, noted, meta=meta)


def _rated_rows(
    case: Case, text: str, texts: Sequence[str | None], lost: Counter[str], *, carries: frozenset[str]
) -> Iterator[dict[str, Any]]:
    form, taken = form_of(case, _KIND), take_ratings(case, _SCALES, lost, keeps_meta=True)
    count_lost(taken.rest, lost, carries)
    nulls = form.get("null") or [[]] * len(texts)
    for response, answer, null in zip(case.responses, texts, nulls, strict=True):
        values = {key: taken.value(response.id, key) for key in _RATED[2:]}
        said = {key: value for key, value in values.items() if value is not None or key in null}
        yield with_metas({"prompt": text, "response": answer, **said}, case, response.meta, _RATED, lost)


def _preferred_case(row: Row, ids: PromptIds) -> Case:
    turns = turns_in(text_field(row, "prompt"), EXTRA_ID).turns
    null = [key for key in _NAMES[:3] if row.value.get(key, ...) is None]
    return Case(
        prompt=with_prompt(turns, id=ids.made(row), meta=rest(row, _PREFERRED)),
        responses=tuple(Response(id=side, text=text_field(row, side)) for side in _SIDES),
        judgments=preferences_in(row, _NAMES, _SIDES),
        meta=as_read(_KIND, null=null, empty=row.value.get(_NAMES.individual) == []),
    )


def _preferred_row(case: Case, texts: Sequence[str | None], said: Said, lost: Counter[str]) -> dict[str, Any]:
    form = form_of(case, _KIND)
    count_unsaid(case, said, _NAMES, lost)
    row = dict(zip(("prompt", *_SIDES), texts, strict=True)) | said_row(case, said, _NAMES)
    row |= {key: None for key in form.get("null", ()) if key not in row}
    row |= {_NAMES.individual: []} if form.get("empty") and _NAMES.individual not in row else {}
    return with_meta(row, case, _PREFERRED, lost)
