r"""HelpSteer: answers with five numbers, and pairs of answers with a preference from -3 to 3.

HelpSteer2 is written from the card of the data set nvidia/HelpSteer2: one answer per row with five numbers from 0 to 4;
or, in its preference part, two answers and a verdict. Consecutive rows of one prompt make one case. The numbers
(``helpfulness``, ``correctness``, ``coherence``, ``complexity``, ``verbosity``) are means over annotators, rounded by
the publishers: ratings of an unnamed person; more of the last two is not better, and their ``meta`` marks this. In a
prompt of several turns ``<extra_id_1>Assistant`` and ``<extra_id_1>User`` mark the turns after the first. A preference
row has ``preference_strength`` from -3 (``response_1`` is much better) to 3 with its statement, and all annotators' in
``all_preferences_unprocessed``; the three most similar of those, and the elaboration, are other keys of the row. The
lists of labels in its part ``disagreements`` are refused: they do not name the annotators.

HelpSteer3 is written from the card of the data set nvidia/HelpSteer3 (its preference part) and the features that its
copies list: ``domain``, ``language``, ``context`` as turns, ``response1``, ``response2``, ``overall_preference`` and up
to three ``individual_preference`` of ``score``, ``reasoning``, ``feedback1``, ``feedback2``. In the domain ``code`` the
language is a programming language: it is the category's second tier.

A preference of -3 means that the first answer is much better, 0 that both are about the same, 3 that the second is much
better. The number stays in a judgment's ``meta`` as ``strength``. The publishers' verdict is a judgment of the batch
``overall``, each annotator's a judgment of the batch ``individual``: a search for conflicts can leave either out.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, NamedTuple

from steelyard.annotation.derived_judgments import NEITHER_IS_BETTER
from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Judgment, Rating, Response, Verdict
from steelyard.curation.format_support import carrying
from steelyard.plugins.formats._languages import language_code
from steelyard.plugins.formats._rating_scales import RatingScale, rating_of
from steelyard.plugins.formats._row_format import (
    CaseReader,
    PromptIds,
    RowFormat,
    group_id,
    groups_of,
    split_meta,
)
from steelyard.plugins.formats._turns import EXTRA_ID, turns_in

OVERALL, INDIVIDUAL = "overall", "individual"
_LOWEST, _HIGHEST = -3, 3
_STRENGTH = "strength"


class PreferenceKeys(NamedTuple):
    """The keys of the overall number and its reason (empty for none), the individual numbers, and their reasons."""

    overall: str
    overall_reason: str
    individual: str
    strength: str
    reason: str


_SCALES = tuple(
    RatingScale(name, (0, 4), UNKNOWN_JUDGE, "human")
    for name in ("helpfulness", "correctness", "coherence", "complexity", "verbosity")
)
_NEITHER = ("complexity", "verbosity")
_RATED = ("prompt", "response", *(scale.dimension for scale in _SCALES))
_SIDES_2 = ("response_1", "response_2")
_NAMES_2 = PreferenceKeys(
    "preference_strength", "preference_statement", "all_preferences_unprocessed", "strength", "justification"
)
_PREFERRED = ("prompt", *_SIDES_2, *_NAMES_2[:3])
_KEYS_2 = (*_RATED, *_PREFERRED[1:])
_OF_RATED = ("response meta", "more than two responses")
_KIND_3 = "helpsteer3"
_SIDES_3 = ("response1", "response2")
_NAMES_3 = PreferenceKeys("overall_preference", "", "individual_preference", "score", "reasoning")
_OPTIONAL = ("domain", "language", _NAMES_3.individual)
_KEYS_3 = ("context", *_SIDES_3, _NAMES_3.overall, *_OPTIONAL)


class HelpSteer2:
    """One row a rated answer, or two compared ones."""

    keys = _KEYS_2
    has_evidence_rows = False
    is_written = False
    supports = carrying("earlier turns", "prompt meta", *_OF_RATED)

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has a response with the five numbers, or two with a preference."""
        numbers = [row.get(scale.dimension) for scale in _SCALES]
        is_rated = {"prompt", "response"} <= row.keys() and all(isinstance(value, int | float) for value in numbers)
        return is_rated or {"prompt", *_SIDES_2, "preference_strength"} <= row.keys()

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases with ratings, or with the overall judgment and those of annotators."""
        ids = PromptIds(warnings)
        for group in groups_of(rows, _group_key):
            is_preferred = _is_preferred(group[0])
            reader = CaseReader("helpsteer2", _PREFERRED if is_preferred else _RATED, group, ids, warnings)
            turns = turns_in(reader.row.text("prompt"), EXTRA_ID)
            if is_preferred:
                yield Case(
                    prompt=reader.prompt(turns),
                    responses=tuple(Response(id=side, text=reader.row.text(side)) for side in _SIDES_2),
                    judgments=preferences_in(reader.row, _NAMES_2, _SIDES_2),
                )
            else:
                meta, metas = split_meta(group, _RATED)
                responses = reader.responses([row.text("response") for row in group], metas=metas)
                rated = zip(responses, group, strict=True)
                yield Case(
                    prompt=reader.prompt(turns, id=group_id(group, reader.ids), meta=meta),
                    responses=responses,
                    ratings=tuple(rating for item, row in rated for rating in _ratings(item.id, row, warnings)),
                )


def _parse_compared(reader: CaseReader) -> Case:
    row = reader.row
    turns = reader.turns("context", "user")
    if not isinstance(row.value["context"], list):
        raise RecordError("a context that is not a list of turns", where=row.at("context"))
    language, domain = row.optional_text("language"), row.optional_text("domain")
    code = None if domain == "code" else language_code(language)
    category = tuple(name for name in (domain, None if code else language) if name is not None)
    return Case(
        prompt=reader.prompt(turns, language=code, category=category),
        responses=tuple(Response(id=side, text=row.text(side)) for side in _SIDES_3),
        judgments=preferences_in(row, _NAMES_3, _SIDES_3),
    )


_HELPSTEER3 = RowFormat(
    kind=_KIND_3,
    keys=_KEYS_3,
    supports=carrying("system turns", "earlier turns", "language", "prompt meta", "judgments"),
    matches=lambda row: isinstance(row.get("context"), list) and {*_SIDES_3, _NAMES_3.overall} <= row.keys(),
    parse=_parse_compared,
    turn_keys=("context",),
)
"""One row two answers."""


def _is_preferred(row: Row) -> bool:
    return "response" not in row.value and _SIDES_2[0] in row.value


def _group_key(row: Row) -> Hashable:
    """Return the key of a case: rated rows of one prompt go together, each row of a comparison stays alone."""
    return (row.text("prompt"), row.place if _is_preferred(row) else None)


def _ratings(name: str, row: Row, warnings: Counter[str]) -> Iterator[Rating]:
    for scale in _SCALES:
        value = row.number(scale.dimension)
        if value is not None:
            meta = NEITHER_IS_BETTER if scale.dimension in _NEITHER else None
            yield rating_of(name, value, scale, warnings, meta=meta)


def preferences_in(row: Row, names: PreferenceKeys, sides: tuple[str, str]) -> tuple[Judgment, ...]:
    """Return the judgments of a row on the two response ids. Raises RecordError for a number outside -3 to 3."""
    judgments: list[Judgment] = []
    strength = row.value.get(names.overall)
    if strength is not None:
        reason = row.value.get(names.overall_reason) if names.overall_reason else None
        judgments.append(_judgment(sides, strength, row.at(names.overall), OVERALL, reason=reason))
    for place, item in enumerate(row.items(names.individual, default=())):
        where = row.at(f"{names.individual}[{place}]")
        if not isinstance(item, dict) or names.strength not in item:
            raise RecordError("a preference without a number", where=where, allowed=f'{{"{names.strength}": -3 to 3}}')
        # A reason that is null stays in the meta, so that it is null again.
        known = {names.strength, names.reason} if item.get(names.reason) is not None else {names.strength}
        other = {key: value for key, value in item.items() if key not in known}
        judgments.append(
            _judgment(sides, item[names.strength], where, INDIVIDUAL, reason=item.get(names.reason), other=other)
        )
    return tuple(judgments)


def _judgment(
    sides: tuple[str, str], strength: Any, where: Place, batch: str, *, reason: Any = None, other: Any = None
) -> Judgment:
    is_whole = isinstance(strength, int) and not isinstance(strength, bool)
    if not is_whole or not _LOWEST <= strength <= _HIGHEST:
        raise RecordError(f"{strength!r} is not a preference", where=where, allowed=f"{_LOWEST} to {_HIGHEST}")
    if not isinstance(reason, str | None):
        raise RecordError("a reason that is not a text", where=where, allowed="a text, or null")
    verdict: Verdict = "tie" if strength == 0 else "left" if strength < 0 else "right"
    meta = {_STRENGTH: strength} | (other or {})
    left, right = sides
    return Judgment(
        left=left,
        right=right,
        verdict=verdict,
        judge=UNKNOWN_JUDGE,
        kind="human",
        batch=batch,
        reason=reason,
        meta=meta,
    )


KINDS = {
    "helpsteer2": without_settings(
        HelpSteer2(),
        "HelpSteer2: one answer per row with five numbers from 0 to 4; or, in its preference part, two answers and a"
        " verdict.",
    ),
    "helpsteer3": without_settings(
        _HELPSTEER3,
        "HelpSteer3's preferences: a conversation, two answers to its last turn, which one is better, and by how much.",
    ),
}
