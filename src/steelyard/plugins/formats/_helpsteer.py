"""The preferences of HelpSteer2 and HelpSteer3: a number from -3 to 3 for two answers, overall and by annotator.

-3 says that the first answer is much better, 0 that both are about the same, 3 that the second is much better. The
number stays in a judgment's ``meta`` as ``strength``. What the publishers computed is a judgment of the batch
``overall``, each annotator's one of the batch ``individual``, so that either can be left out when conflicts are sought.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Judgment, Verdict
from steelyard.plugins.formats._fields import list_field
from steelyard.plugins.formats._parts import UNKNOWN
from steelyard.plugins.formats._plain import without_keys

OVERALL, INDIVIDUAL = "overall", "individual"
_LOWEST, _HIGHEST = -3, 3
_STRENGTH = "strength"


class Preferences(NamedTuple):
    """What a data set calls the overall number and its reason (empty for none), the individual ones, and theirs."""

    overall: str
    overall_reason: str
    individual: str
    strength: str
    reason: str


class Said(NamedTuple):
    """The judgments that a row says: the overall one, and those of annotators."""

    overall: Judgment | None
    individual: tuple[Judgment, ...]


def preferences_in(row: Row, names: Preferences, sides: tuple[str, str]) -> tuple[Judgment, ...]:
    """The judgments of a row on the two response ids. Raises RecordError for a number that is none from -3 to 3."""
    found: list[Judgment] = []
    strength = row.value.get(names.overall)
    if strength is not None:
        reason = row.value.get(names.overall_reason) if names.overall_reason else None
        found.append(_judgment(sides, strength, row.place._replace(path=names.overall), OVERALL, reason=reason))
    for place, item in enumerate(list_field(row, names.individual, default=())):
        where = row.place._replace(path=f"{names.individual}[{place}]")
        if not isinstance(item, dict) or names.strength not in item:
            raise RecordError("a preference without a number", where=where, allowed=f'{{"{names.strength}": -3 to 3}}')
        # A reason that is null stays in the meta, so that it is null again.
        said = {names.strength, names.reason} if item.get(names.reason) is not None else {names.strength}
        other = {key: value for key, value in item.items() if key not in said}
        found.append(
            _judgment(sides, item[names.strength], where, INDIVIDUAL, reason=item.get(names.reason), other=other)
        )
    return tuple(found)


def _judgment(
    sides: tuple[str, str], strength: Any, where: Place, batch: str, *, reason: Any = None, other: Any = None
) -> Judgment:
    is_whole = isinstance(strength, int) and not isinstance(strength, bool)
    if not is_whole or not _LOWEST <= strength <= _HIGHEST:
        raise RecordError(f"{strength!r} is no preference", where=where, allowed=f"{_LOWEST} to {_HIGHEST}")
    if not isinstance(reason, str | None):
        raise RecordError("a reason that is no text", where=where, allowed="a text, or null")
    verdict: Verdict = "tie" if strength == 0 else "left" if strength < 0 else "right"
    meta = {_STRENGTH: strength} | (other or {})
    left, right = sides
    return Judgment(
        left=left, right=right, verdict=verdict, judge=UNKNOWN, kind="human", batch=batch, reason=reason, meta=meta
    )


def said_of(case: Case) -> Said:
    """The judgments that such a row can say: the first that is overall or of no batch, and the individual ones."""
    usable = [one for one in case.judgments if one.verdict != "none"]
    overall = next((one for one in usable if one.batch in (OVERALL, None)), None)
    return Said(overall, tuple(one for one in usable if one.batch == INDIVIDUAL))


def without_said(case: Case, said: Said) -> Case:
    """The case without what the row says of its judgments: what is left of them is lost."""
    own = {id(one): replace(one, batch=None, reason=None) for one in (said.overall, *said.individual) if one}
    return replace(case, judgments=tuple(own.get(id(one), one) for one in case.judgments))


def count_unsaid(case: Case, said: Said, names: Preferences, lost: Counter[str]) -> None:
    """Count the judgments for which the row has no place, and what the overall one says besides its number."""
    num_said = (said.overall is not None) + len(said.individual)
    lost["judgments beyond those of a row"] += len(case.judgments) - num_said
    if said.overall is not None:
        lost["what judgments say besides"] += bool(without_keys(said.overall.meta, (_STRENGTH,)))
        lost["reasons"] += said.overall.reason is not None and not names.overall_reason


def said_row(case: Case, said: Said, names: Preferences) -> dict[str, Any]:
    """The keys of the row; a list or a number only where there is something to say."""
    first = case.responses[0].id
    row: dict[str, Any] = {}
    if said.overall is not None:
        row[names.overall] = _strength(said.overall, first)
        if names.overall_reason and said.overall.reason is not None:
            row[names.overall_reason] = said.overall.reason
    if said.individual:
        row[names.individual] = [_item(one, names, first) for one in said.individual]
    return row


def _item(one: Judgment, names: Preferences, first: str) -> dict[str, Any]:
    own = {names.strength: _strength(one, first)} | ({} if one.reason is None else {names.reason: one.reason})
    return own | (without_keys(one.meta, (_STRENGTH, *own)) or {})


def _strength(one: Judgment, first: str) -> int:
    """The number of a judgment: its own where it says the verdict, else 1 either way."""
    meta: Mapping[str, Any] = one.meta or {}
    wanted: Sequence[int] = {"tie": (0,), "left": (-1, -2, -3), "right": (1, 2, 3)}[one.verdict]
    number = next((strength for strength in wanted if strength == meta.get(_STRENGTH)), wanted[0])
    return number if one.left == first else -number
