"""PKU-SafeRLHF: two answers to one prompt, which is the more helpful, which the less harmful, and how harmful each is.

Written from the card of the data set PKU-Alignment/PKU-SafeRLHF and public code that lists its columns. Both verdicts
are judgments of their own (``helpfulness`` and ``harmlessness`` in their ``meta``): they contradict each other freely.
A row without ``safer_response_id``, as in the single-dimension set, has one judgment of no dimension. The severity
level, 0 (safe) to 3 (severe), is a rating in which lower is better, as its ``meta`` says; whether an answer is safe,
its harm categories and its hash stay with it. The card calls the labels joint work of people and models; they are read
as human.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Judgment, Message, Response
from steelyard.methods.annotation.derived import LOWER_IS_BETTER
from steelyard.plugins.formats._fields import (
    PromptIds,
    as_read,
    form_of,
    nulls_of,
    optional_text,
    rest,
    text_field,
    with_meta,
    with_nulls,
    with_prompt,
)
from steelyard.plugins.formats._parts import UNKNOWN, carrying, count_lost
from steelyard.plugins.formats._plain import plain_of, without_keys
from steelyard.plugins.formats._ratings import Scale, number_field, rating_of, take_ratings
from steelyard.plugins.formats._sides import OTHER_SHAPE

_KIND = "pku_saferlhf"
_SIDES = ("response_0", "response_1")
_LABELS = {"is_safe": "is_{}_safe", "harm_category": "{}_harm_category", "sha256": "{}_sha256"}
_VERDICTS = {"better_response_id": "helpfulness", "safer_response_id": "harmlessness"}
_SEVERITY, _AUTHOR = "{}_severity_level", "{}_source"
_KEYS = (
    "prompt", *_SIDES, "prompt_source", *_VERDICTS,
    *(key.format(side) for key in (*_LABELS.values(), _SEVERITY, _AUTHOR) for side in _SIDES),
)  # fmt: skip
_SCALE = Scale("severity_level", (0, 3), UNKNOWN, "human")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class PkuSafeRlhf:
    """One row two answers."""

    keys = _KEYS
    carries = carrying("source", "prompt meta", "authors", "judgments")

    def recognises(self, row: dict[str, Any]) -> bool:
        """A prompt, two numbered responses, and which is better."""
        return {"prompt", *_SIDES, "better_response_id"} <= row.keys()

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two responses with a judgment for each verdict."""
        ids = PromptIds(noted)
        for row in rows:
            prompt = with_prompt(
                (Message(role="user", content=text_field(row, "prompt")),),
                id=ids.made(row),
                source=optional_text(row, "prompt_source"),
                meta=rest(row, _KEYS),
            )
            levels = [number_field(row, _SEVERITY.format(side)) for side in _SIDES]
            yield Case(
                prompt=prompt,
                responses=tuple(_response(row, side) for side in _SIDES),
                judgments=tuple(_judgments(row)),
                ratings=tuple(
                    rating_of(side, level, _SCALE, noted, meta=LOWER_IS_BETTER)
                    for side, level in zip(_SIDES, levels, strict=True)
                    if level is not None
                ),
                meta=as_read(_KIND, null=nulls_of(row, (*_KEYS[3:6], *_KEYS[-4:]))),
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a case of one question, two answers of one turn, and a verdict."""
        for case in cases:
            verdicts = _taken(case)
            plain = plain_of(case, lost) if len(case.responses) == 2 and verdicts else None
            if plain is None:
                lost[OTHER_SHAPE] += len(case.responses) != 2 or not verdicts
                continue
            taken = take_ratings(case, (_SCALE,), lost, keeps_meta=True)
            count_lost(_without_labels(taken.rest), lost, self.carries)
            lost["judgments beyond one a verdict, and ties"] += len(case.judgments) - len(verdicts)
            row: dict[str, Any] = {"prompt": plain.question}
            row |= {} if case.prompt.source is None else {"prompt_source": case.prompt.source}
            for side, response in zip(_SIDES, case.responses, strict=True):
                row |= {side: plain.texts[response.id]} | _said(side, response)
                level = taken.value(response.id, _SCALE.dimension)
                row |= {} if level is None else {_SEVERITY.format(side): level}
            row |= _said_verdicts(verdicts, case)
            yield with_meta(with_nulls(row, _still_null(case, row)), case, _KEYS, lost)


def build(config: Config) -> PkuSafeRlhf:
    """The format."""
    return PkuSafeRlhf()


def _response(row: Row, side: str) -> Response:
    labels = {label: row.value[key.format(side)] for label, key in _LABELS.items() if key.format(side) in row.value}
    author = optional_text(row, _AUTHOR.format(side))
    return Response(id=side, text=text_field(row, side), author=author, meta=labels or None)


def _judgments(row: Row) -> Iterator[Judgment]:
    is_dual = "safer_response_id" in row.value
    for key, dimension in _VERDICTS.items():
        chosen = row.value.get(key)
        if chosen is None:
            continue
        if isinstance(chosen, bool) or chosen not in (0, 1):
            where = row.place._replace(path=key)
            raise RecordError(f"no response has the number {chosen!r}", where=where, allowed="0 or 1")
        yield Judgment(
            left=_SIDES[0],
            right=_SIDES[1],
            verdict="right" if chosen else "left",
            judge=UNKNOWN,
            kind="human",
            meta={"dimension": dimension} if is_dual else None,
        )


def _taken(case: Case) -> dict[str | None, Judgment]:
    """The first judgment of each dimension that the row has; without one, where there is no dimension at all."""
    found: dict[str | None, Judgment] = {}
    for one in case.judgments:
        dimension = (one.meta or {}).get("dimension")
        if one.verdict in ("left", "right") and (dimension is None or dimension in _VERDICTS.values()):
            found.setdefault(dimension, one)
    return found if len(found) == 1 else {name: one for name, one in found.items() if name is not None}


def _said_verdicts(verdicts: Mapping[str | None, Judgment], case: Case) -> dict[str, int | None]:
    first = case.responses[0].id
    chosen = {name: int((one.verdict == "left") != (one.left == first)) for name, one in verdicts.items()}
    if None in chosen:
        return {"better_response_id": chosen[None]}
    return {key: chosen.get(dimension) for key, dimension in _VERDICTS.items()}


def _still_null(case: Case, row: dict[str, Any]) -> dict[str, Any]:
    """The keys that were null; ``safer_response_id`` not, where its absence says that there is no dimension."""
    nulls = form_of(case, _KIND).get("null", ())
    return {"null": [key for key in nulls if key not in _VERDICTS or "safer_response_id" in row]}


def _said(side: str, response: Response) -> dict[str, Any]:
    meta = response.meta or {}
    labels = {key.format(side): meta[label] for label, key in _LABELS.items() if label in meta}
    return labels | ({} if response.author is None else {_AUTHOR.format(side): response.author})


def _without_labels(case: Case) -> Case:
    """The case without what the row says of an answer: only a further ``meta`` is lost."""
    responses = tuple(replace(one, meta=without_keys(one.meta, _LABELS)) for one in case.responses)
    return replace(case, responses=responses)
