"""PKU-SafeRLHF: two answers to one prompt, verdicts on helpfulness and harmlessness, and how harmful each is.

Written from the card of the data set PKU-Alignment/PKU-SafeRLHF and public code that lists its columns. Both verdicts
are judgments of their own (``helpfulness`` and ``harmlessness`` in their ``meta``): they contradict each other freely.
A row without ``safer_response_id``, as in the single-dimension set, has one judgment of no dimension. The severity
level, 0 (safe) to 3 (severe), is a rating in which lower is better, as its ``meta`` records; whether an answer is safe,
its harm categories and its hash stay with it. The card calls the labels joint work of people and models; they are read
as human.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from steelyard.annotation.derived_judgments import LOWER_IS_BETTER
from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Judgment, Response
from steelyard.curation.format_support import UNKNOWN, carrying, count_lost
from steelyard.plugins.formats._pairs import plain_texts
from steelyard.plugins.formats._ratings import RatingScale, rating_of, take_ratings
from steelyard.plugins.formats._rows import (
    OTHER_SHAPE,
    PromptIds,
    RowFormat,
    as_read,
    question_prompt,
    without_keys,
)

_KIND = "pku_saferlhf"
_SIDES = ("response_0", "response_1")
_LABELS = {"is_safe": "is_{}_safe", "harm_category": "{}_harm_category", "sha256": "{}_sha256"}
_VERDICTS = {"better_response_id": "helpfulness", "safer_response_id": "harmlessness"}
_SEVERITY, _AUTHOR = "{}_severity_level", "{}_source"
_KEYS = (
    "prompt", *_SIDES, "prompt_source", *_VERDICTS,
    *(key.format(side) for key in (*_LABELS.values(), _SEVERITY, _AUTHOR) for side in _SIDES),
)  # fmt: skip
_SCALE = RatingScale("severity_level", (0, 3), UNKNOWN, "human")


def _parse(row: Row, ids: PromptIds, warnings: Counter[str]) -> Case:
    source, levels = row.optional_text("prompt_source"), [row.number(_SEVERITY.format(side)) for side in _SIDES]
    return Case(
        prompt=question_prompt(row.text("prompt"), id=ids.take(row), source=source, meta=row.others(_KEYS)),
        responses=tuple(_response(row, side) for side in _SIDES),
        judgments=tuple(_judgments(row)),
        ratings=tuple(
            rating_of(side, level, _SCALE, warnings, meta=LOWER_IS_BETTER)
            for side, level in zip(_SIDES, levels, strict=True)
            if level is not None
        ),
        meta=as_read(_KIND, null=row.nulls((*_KEYS[3:6], *_KEYS[-4:]))),
    )


def _rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row for a case of one question, two answers of one turn, and a verdict."""
    verdicts = _take_verdicts(case)
    plain = plain_texts(case, dropped) if len(case.responses) == 2 and verdicts else None
    if plain is None:
        dropped[OTHER_SHAPE] += len(case.responses) != 2 or not verdicts
        return
    taken = take_ratings(case, (_SCALE,), dropped, keeps_meta=True)
    count_lost(_without_labels(taken.rest), dropped, _PKU_SAFERLHF.supports)
    dropped["judgments beyond one per verdict, and ties"] += len(case.judgments) - len(verdicts)
    row: JsonObject = {"prompt": plain.question}
    row |= {} if case.prompt.source is None else {"prompt_source": case.prompt.source}
    for side, response in zip(_SIDES, case.responses, strict=True):
        row |= {side: plain.texts[response.id]} | _label_fields(side, response)
        level = taken.value(response.id, _SCALE.dimension)
        row |= {} if level is None else {_SEVERITY.format(side): level}
    row |= _verdict_fields(verdicts, case)
    # A null ``safer_response_id`` differs from an absent one, which means one judgment.
    form["null"] = [key for key in form.get("null", ()) if key not in _VERDICTS or "safer_response_id" in row]
    yield row


def _response(row: Row, side: str) -> Response:
    labels = {label: row.value[key.format(side)] for label, key in _LABELS.items() if key.format(side) in row.value}
    author = row.optional_text(_AUTHOR.format(side))
    return Response(id=side, text=row.text(side), author=author, meta=labels or None)


def _judgments(row: Row) -> Iterator[Judgment]:
    is_dual = "safer_response_id" in row.value
    for key, dimension in _VERDICTS.items():
        chosen = row.value.get(key)
        if chosen is None:
            continue
        if isinstance(chosen, bool) or chosen not in (0, 1):
            where = row.at(key)
            raise RecordError(f"no response has the number {chosen!r}", where=where, allowed="0 or 1")
        yield Judgment(
            left=_SIDES[0],
            right=_SIDES[1],
            verdict="right" if chosen else "left",
            judge=UNKNOWN,
            kind="human",
            meta={"dimension": dimension} if is_dual else None,
        )


def _take_verdicts(case: Case) -> dict[str | None, Judgment]:
    """Return the first judgment of each dimension of the row, or one judgment without a dimension."""
    verdicts: dict[str | None, Judgment] = {}
    for judgment in case.judgments:
        dimension = (judgment.meta or {}).get("dimension")
        if judgment.verdict in ("left", "right") and (dimension is None or dimension in _VERDICTS.values()):
            verdicts.setdefault(dimension, judgment)
    return (
        verdicts if len(verdicts) == 1 else {name: judgment for name, judgment in verdicts.items() if name is not None}
    )


def _verdict_fields(verdicts: Mapping[str | None, Judgment], case: Case) -> dict[str, int | None]:
    first = case.responses[0].id
    chosen = {
        name: int((judgment.verdict == "left") != (judgment.left == first)) for name, judgment in verdicts.items()
    }
    if None in chosen:
        return {"better_response_id": chosen[None]}
    return {key: chosen.get(dimension) for key, dimension in _VERDICTS.items()}


def _label_fields(side: str, response: Response) -> JsonObject:
    meta = response.meta or {}
    labels = {key.format(side): meta[label] for label, key in _LABELS.items() if label in meta}
    return labels | ({} if response.author is None else {_AUTHOR.format(side): response.author})


def _without_labels(case: Case) -> Case:
    """Return the case without the labels of its answers: only a further ``meta`` is dropped."""
    responses = tuple(replace(response, meta=without_keys(response.meta, _LABELS)) for response in case.responses)
    return replace(case, responses=responses)


_PKU_SAFERLHF = RowFormat(
    kind=_KIND,
    keys=_KEYS,
    supports=carrying("source", "prompt meta", "authors", "judgments"),
    matches=lambda row: {"prompt", *_SIDES, "better_response_id"} <= row.keys(),
    parse=_parse,
    rows_of=_rows,
)

KINDS = {"pku_saferlhf": without_settings(_PKU_SAFERLHF, __doc__)}
