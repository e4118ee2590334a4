"""MAPLE: translations of one sentence by several systems, each with the scores of two professional translators.

Written from the README of the repository amazon-science/preference-driven-mt: one JSON line a translation, five to a
source sentence; scores go from 1 to 6 on a continuous slider. Consecutive lines of one source make one case. Both
translators' scores are ratings; ``score`` is their mean: not a rating, but written from them again. The
rows do not say the direction; what was asked of the systems is not in them either, so a prompt is the bare source.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Message, Rating, Response
from steelyard.curation.format_support import carrying, count_lost
from steelyard.plugins.formats._fields import (
    OTHER_SHAPE,
    PromptIds,
    answer_ids,
    answer_of,
    as_read,
    form_of,
    with_prompt,
)
from steelyard.plugins.formats._grouping import group_id, groups_of, split_meta, with_metas
from steelyard.plugins.formats._pair_rows import plain_texts
from steelyard.plugins.formats._ratings import RatingScale, rating_of

_KIND = "maple"
_SCALES = {f"score_{rater}": RatingScale("score", (1, 6), rater, "human") for rater in ("annotator_a", "annotator_b")}
_OPTIONAL = (*_SCALES, "score", "system")
_KEYS = (*_SCALES, "score", "system", "source", "translation")


class Maple:
    """One row a translation."""

    keys = _KEYS
    supports = carrying("prompt meta", "authors", "response meta", "more than two responses")

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has a source and a translation with both translators' scores."""
        return {*_SCALES, "source", "translation"} <= row.keys()

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases with two ratings a response."""
        ids = PromptIds(warnings)
        for group in groups_of(rows, lambda row: row.text("source")):
            turns = [answer_of(row.text("translation")) for row in group]
            names = answer_ids(turns, warnings)
            meta, metas = split_meta(group, _KEYS)
            forms = [_form(row) for row in group]
            question = Message(role="user", content=group[0].text("source"))
            yield Case(
                prompt=with_prompt((question,), id=group_id(group, ids), meta=meta),
                responses=tuple(
                    Response(id=name, text=answer[0].content, author=row.optional_text("system"), meta=answer_meta)
                    for name, answer, row, answer_meta in zip(names, turns, group, metas, strict=True)
                ),
                ratings=tuple(
                    rating for name, row in zip(names, group, strict=True) for rating in _ratings(name, row, warnings)
                ),
                meta=as_read(_KIND, forms=forms if any(forms) else []),
            )

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row a response of a case of one question, where a response has one of the two scores."""
        for case in cases:
            scores, others = _taken(case, dropped)
            plain = plain_texts(case, dropped) if scores else None
            if plain is None:
                dropped[OTHER_SHAPE] += not scores
                continue
            count_lost(others, dropped, self.supports)
            forms = form_of(case, _KIND).get("forms") or [{}] * len(case.responses)
            for response, form in zip(case.responses, forms, strict=True):
                values = {key: scores.get((response.id, scale.rater)) for key, scale in _SCALES.items()}
                row = {**values, "score": _mean(values), "system": response.author, "source": plain.question}
                row = {key: value for key, value in row.items() if value is not None or key in form.get("null", ())}
                row |= {"translation": plain.texts[response.id]} | form.get("score", {})
                row = {key: value for key, value in row.items() if key not in form.get("absent", ())}
                yield with_metas(row, case, response.meta, _KEYS, dropped)


KINDS = {"maple": without_settings(Maple(), __doc__)}


def _ratings(name: str, row: Row, warnings: Counter[str]) -> Iterator[Rating]:
    for key, scale in _SCALES.items():
        value = row.number(key)
        if value is not None:
            yield rating_of(name, value, scale, warnings)


def _mean(scores: Mapping[str, float | None]) -> float | None:
    values = [value for value in scores.values() if value is not None]
    return sum(values) / len(values) if len(values) == len(_SCALES) else None


def _form(row: Row) -> JsonObject:
    """Return the facts that ratings do not hold: null and absent keys, and a ``score`` other than the mean."""
    form: JsonObject = {"null": row.nulls(_OPTIONAL), "absent": row.absent(("score",))}
    mean, score = _mean({key: row.number(key) for key in _SCALES}), row.number("score")
    if score is not None and score != mean:
        form["score"] = {"score": score}
    return {key: value for key, value in form.items() if value}


def _taken(case: Case, dropped: Counter[str]) -> tuple[dict[tuple[str, str | None], float], Case]:
    """Return the scores by response and rater, and the case with only the other ratings."""
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
        dropped["rating details"] += bool(rating.id or rating.task or rating.spans or rating.meta)
    return scores, replace(case, ratings=tuple(others))
