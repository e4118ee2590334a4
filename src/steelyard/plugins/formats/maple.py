"""MAPLE: translations of one sentence by several systems, each with the scores of two professional translators.

Written from the README of the repository amazon-science/preference-driven-mt: one JSON line a translation, five to a
source sentence; scores go from 1 to 6 on a continuous slider. Consecutive lines of one source make one case. Both
translators' scores are ratings; ``score``, their mean, is no evidence of its own and is written from them again. The
rows do not say the direction; what was asked of the systems is not in them either, so a prompt is the bare source.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message, Rating, Response
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_ids,
    as_read,
    form_of,
    nulls_of,
    optional_text,
    text_field,
    with_prompt,
)
from steelyard.plugins.formats._gathered import gathered, group_id, split_meta, with_metas
from steelyard.plugins.formats._parts import carrying, count_lost
from steelyard.plugins.formats._plain import plain_of
from steelyard.plugins.formats._ratings import Scale, number_field, rating_of
from steelyard.plugins.formats._sides import OTHER_SHAPE, absent_keys

_KIND = "maple"
_SCALES = {f"score_{rater}": Scale("score", (1, 6), rater, "human") for rater in ("annotator_a", "annotator_b")}
_OPTIONAL = (*_SCALES, "score", "system")
_KEYS = (*_SCALES, "score", "system", "source", "translation")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Maple:
    """One row a translation."""

    keys = _KEYS
    carries = carrying("prompt meta", "authors", "response meta", "more than two responses")

    def recognises(self, row: dict[str, Any]) -> bool:
        """A source and a translation with both translators' scores."""
        return {*_SCALES, "source", "translation"} <= row.keys()

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases with two ratings a response."""
        ids = PromptIds(noted)
        for group in gathered(rows, lambda row: text_field(row, "source")):
            turns = [(Message(role="assistant", content=text_field(row, "translation")),) for row in group]
            names = answer_ids(turns, noted)
            meta, metas = split_meta(group, _KEYS)
            forms = [_form(row) for row in group]
            question = Message(role="user", content=text_field(group[0], "source"))
            yield Case(
                prompt=with_prompt((question,), id=group_id(group, ids), meta=meta),
                responses=tuple(
                    Response(id=name, text=one[0].content, author=optional_text(row, "system"), meta=said)
                    for name, one, row, said in zip(names, turns, group, metas, strict=True)
                ),
                ratings=tuple(
                    rating for name, row in zip(names, group, strict=True) for rating in _ratings(name, row, noted)
                ),
                meta=as_read(_KIND, forms=forms if any(forms) else []),
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a response of a case of one question, where a response has one of the two scores."""
        for case in cases:
            scores, others = _taken(case, lost)
            plain = plain_of(case, lost) if scores else None
            if plain is None:
                lost[OTHER_SHAPE] += not scores
                continue
            count_lost(others, lost, self.carries)
            forms = form_of(case, _KIND).get("forms") or [{}] * len(case.responses)
            for response, form in zip(case.responses, forms, strict=True):
                said = {key: scores.get((response.id, scale.rater)) for key, scale in _SCALES.items()}
                row = {**said, "score": _mean(said), "system": response.author, "source": plain.question}
                row = {key: value for key, value in row.items() if value is not None or key in form.get("null", ())}
                row |= {"translation": plain.texts[response.id]} | form.get("score", {})
                row = {key: value for key, value in row.items() if key not in form.get("absent", ())}
                yield with_metas(row, case, response.meta, _KEYS, lost)


def build(config: Config) -> Maple:
    """The format."""
    return Maple()


def _ratings(name: str, row: Row, noted: Counter[str]) -> Iterator[Rating]:
    for key, scale in _SCALES.items():
        value = number_field(row, key)
        if value is not None:
            yield rating_of(name, value, scale, noted)


def _mean(said: Mapping[str, float | None]) -> float | None:
    values = [value for value in said.values() if value is not None]
    return sum(values) / len(values) if len(values) == len(_SCALES) else None


def _form(row: Row) -> dict[str, Any]:
    """What the ratings do not say of a row: null and absent keys, and a ``score`` that is not quite the mean."""
    form: dict[str, Any] = {"null": nulls_of(row, _OPTIONAL), "absent": absent_keys(row, ("score",))}
    mean, score = _mean({key: number_field(row, key) for key in _SCALES}), number_field(row, "score")
    if score is not None and score != mean:
        form["score"] = {"score": score}
    return {key: value for key, value in form.items() if value}


def _taken(case: Case, lost: Counter[str]) -> tuple[dict[tuple[str, str | None], float], Case]:
    """The scores by response and rater, and the case with only the other ratings."""
    scores: dict[tuple[str, str | None], float] = {}
    others: list[Rating] = []
    for rating in case.ratings:
        is_own = any(
            (rating.dimension, rating.range, rating.rater, rating.kind)
            == (scale.dimension, scale.range, scale.rater, scale.kind)
            for scale in _SCALES.values()
        )
        if not is_own or (rating.response, rating.rater) in scores:
            others.append(rating)
            continue
        scores[rating.response, rating.rater] = rating.value
        lost["rating details"] += bool(rating.id or rating.task or rating.spans or rating.meta)
    return scores, replace(case, ratings=tuple(others))
