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
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.annotation.derived_judgments import NEITHER_IS_BETTER
from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Judgment, Rating, Response, Verdict
from steelyard.curation.format_support import carrying, count_lost
from steelyard.plugins.formats._languages import language_code, language_name
from steelyard.plugins.formats._rows import (
    OTHER_SHAPE,
    CaseReader,
    PromptIds,
    RatingScale,
    RowFormat,
    form_of,
    group_id,
    groups_of,
    present,
    rating_of,
    split_meta,
    take_ratings,
    with_each,
    with_meta,
    with_metas,
    without_keys,
)
from steelyard.plugins.formats._turns import EXTRA_ID, answer_or_none, as_turns, text_of, turns_in

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


class PreferenceVerdicts(NamedTuple):
    """The judgments of a row: the overall one, and those of annotators."""

    overall: Judgment | None
    individual: tuple[Judgment, ...]


_KIND_2 = "helpsteer2"
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
            if _is_preferred(group[0]):
                yield _preferred_case(CaseReader(_KIND_2, _PREFERRED, group, ids, warnings))
            else:
                yield _rated_case(CaseReader(_KIND_2, _RATED, group, ids, warnings))

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row per response of a case with the five dimensions, else a row per case of two responses."""
        for case in cases:
            text, preferences = text_of(case.prompt.messages, EXTRA_ID), verdicts_of(case)
            texts = [answer_or_none(response) for response in case.responses]
            is_rated = any(
                (rating.dimension, rating.range) in {scale[:2] for scale in _SCALES} for rating in case.ratings
            )
            is_compared = preferences.overall is not None and len(texts) == len(_SIDES_2)
            if text is None or None in texts or not (is_rated or is_compared):
                dropped[OTHER_SHAPE] += 1
            elif is_rated:
                yield from _rated_rows(case, text, texts, dropped, supports=self.supports)
            else:
                count_lost(without_verdicts(case, preferences), dropped, self.supports - {*_OF_RATED})
                yield _preferred_row(case, [text, *texts], preferences, dropped)


def _parse_compared(reader: CaseReader) -> Case:
    row = reader.row
    turns = reader.turns("context", "user")
    if not isinstance(row.value["context"], list):
        raise RecordError("a context that is not a list of turns", where=row.at("context"))
    language, domain = row.optional_text("language"), row.optional_text("domain")
    category, code = _category_and_code(domain, language)
    return Case(
        prompt=reader.prompt(turns, language=code, category=category),
        responses=tuple(Response(id=side, text=row.text(side)) for side in _SIDES_3),
        judgments=preferences_in(row, _NAMES_3, _SIDES_3),
        meta=reader.meta(
            # A list keeps a null name, which `as_read` would leave out.
            said=[[domain, language]] if _domain_and_language(category, code) != (domain, language) else [],
            null=row.nulls((*_OPTIONAL, _NAMES_3.overall)),
            empty=row.value.get(_NAMES_3.individual) == [],
        ),
    )


def _compared_rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row for a case of two answers of one turn; a case without a verdict has null for it."""
    preferences = verdicts_of(case)
    texts = [answer_or_none(response) for response in case.responses]
    has_overall = preferences.overall is not None or _NAMES_3.overall in form.get("null", ())
    if len(texts) != 2 or None in texts or not case.prompt.messages or not has_overall:
        dropped[OTHER_SHAPE] += 1
        return
    category, language = case.prompt.category, case.prompt.language
    names = _domain_and_language(category, language)
    (read_names,) = form.get("said") or [names]
    if _domain_and_language(*_category_and_code(*read_names)) == names:
        names = read_names
    # The category is held by domain and language, unless they imply another one.
    is_held = _category_and_code(*names) == (category, language)
    rest = replace(case, prompt=replace(case.prompt, category=())) if is_held else case
    count_lost(without_verdicts(rest, preferences), dropped, _HELPSTEER3.supports)
    count_unwritten(case, preferences, _NAMES_3, dropped)
    row = {"domain": names[0], "language": names[1], "context": as_turns(case.prompt.messages)}
    row = present(row) | dict(zip(_SIDES_3, texts, strict=True))
    yield _with_form(row | preference_fields(case, preferences, _NAMES_3), form, _NAMES_3)


_HELPSTEER3 = RowFormat(
    kind=_KIND_3,
    keys=_KEYS_3,
    supports=carrying("system turns", "earlier turns", "language", "prompt meta", "judgments"),
    matches=lambda row: isinstance(row.get("context"), list) and {*_SIDES_3, _NAMES_3.overall} <= row.keys(),
    parse=_parse_compared,
    rows_of=_compared_rows,
    turn_keys=("context",),
)
"""One row two answers."""


def _domain_and_language(category: tuple[str, ...], language: str | None) -> tuple[str | None, str | None]:
    """Return the domain and the language of a row: a name in lower case, or else the category's second tier."""
    domain, second = (*category, None, None)[:2]
    return domain, second if language is None else (language_name(language) or language).lower()


def _category_and_code(domain: str | None, language: str | None) -> tuple[tuple[str, ...], str | None]:
    """Return the category and the code of a domain and a language."""
    code = None if domain == "code" else language_code(language)
    return tuple(name for name in (domain, None if code else language) if name is not None), code


def _is_preferred(row: Row) -> bool:
    return "response" not in row.value and _SIDES_2[0] in row.value


def _group_key(row: Row) -> Hashable:
    """Return the key of a case: rated rows of one prompt go together, each row of a comparison stays alone."""
    return (row.text("prompt"), row.place if _is_preferred(row) else None)


def _rated_case(reader: CaseReader) -> Case:
    group = reader.rows
    meta, metas = split_meta(group, _RATED)
    silent = [row.nulls(_RATED[2:]) for row in group]
    turns = turns_in(group[0].text("prompt"), EXTRA_ID).turns
    responses = reader.responses([row.text("response") for row in group], metas=metas)
    rated = zip(responses, group, strict=True)
    return Case(
        prompt=reader.prompt(turns, id=group_id(group, reader.ids), meta=meta),
        responses=responses,
        ratings=tuple(rating for item, row in rated for rating in _ratings(item.id, row, reader.warnings)),
        meta=reader.meta(null=silent if any(silent) else []),
    )


def _ratings(name: str, row: Row, warnings: Counter[str]) -> Iterator[Rating]:
    for scale in _SCALES:
        value = row.number(scale.dimension)
        if value is not None:
            meta = NEITHER_IS_BETTER if scale.dimension in _NEITHER else None
            yield rating_of(name, value, scale, warnings, meta=meta)


def _rated_rows(
    case: Case, text: str, texts: Sequence[str | None], dropped: Counter[str], *, supports: frozenset[str]
) -> Iterator[JsonObject]:
    form, taken = form_of(case, _KIND_2), take_ratings(case, _SCALES, dropped, keeps_meta=True)
    count_lost(taken.rest, dropped, supports)
    nulls = form.get("null") or [[]] * len(texts)
    for response, answer, null in zip(case.responses, texts, nulls, strict=True):
        values = {key: taken.value(response.id, key) for key in _RATED[2:]}
        scores = {key: value for key, value in values.items() if value is not None or key in null}
        yield with_metas({"prompt": text, "response": answer, **scores}, case, response.meta, _RATED, dropped)


def _preferred_case(reader: CaseReader) -> Case:
    row = reader.row
    return Case(
        prompt=reader.prompt(turns_in(row.text("prompt"), EXTRA_ID).turns),
        responses=tuple(Response(id=side, text=row.text(side)) for side in _SIDES_2),
        judgments=preferences_in(row, _NAMES_2, _SIDES_2),
        meta=reader.meta(null=row.nulls(_NAMES_2[:3]), empty=row.value.get(_NAMES_2.individual) == []),
    )


def _preferred_row(
    case: Case, texts: Sequence[str | None], preferences: PreferenceVerdicts, dropped: Counter[str]
) -> JsonObject:
    form = form_of(case, _KIND_2)
    count_unwritten(case, preferences, _NAMES_2, dropped)
    row = dict(zip(("prompt", *_SIDES_2), texts, strict=True))
    row |= preference_fields(case, preferences, _NAMES_2)
    return with_meta(_with_form(row, form, _NAMES_2), case, _PREFERRED, dropped)


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


def verdicts_of(case: Case) -> PreferenceVerdicts:
    """Return the judgments that a row can hold: the first overall one (or without a batch), and the individual ones."""
    usable = [judgment for judgment in case.judgments if judgment.verdict != "none"]
    overall = next((judgment for judgment in usable if judgment.batch in (OVERALL, None)), None)
    return PreferenceVerdicts(overall, tuple(judgment for judgment in usable if judgment.batch == INDIVIDUAL))


def without_verdicts(case: Case, preferences: PreferenceVerdicts) -> Case:
    """Return the case without the batch and reason of the row's judgments: the remaining details are dropped."""
    written = {id(judgment) for judgment in (preferences.overall, *preferences.individual)}
    return with_each(
        case, judgment=lambda item: replace(item, batch=None, reason=None) if id(item) in written else item
    )


def count_unwritten(case: Case, preferences: PreferenceVerdicts, names: PreferenceKeys, dropped: Counter[str]) -> None:
    """Count the judgments without a place in the row, and the details of the overall one besides its number."""
    num_said = (preferences.overall is not None) + len(preferences.individual)
    dropped["judgments beyond those of a row"] += len(case.judgments) - num_said
    if preferences.overall is not None:
        dropped["further fields of judgments"] += bool(without_keys(preferences.overall.meta, (_STRENGTH,)))
        dropped["reasons"] += preferences.overall.reason is not None and not names.overall_reason


def _with_form(row: JsonObject, form: JsonObject, names: PreferenceKeys) -> JsonObject:
    """Return the row with the nulls and the empty list of individual preferences that it was read with."""
    row |= {key: None for key in form.get("null", ()) if key not in row}
    return row | ({names.individual: []} if form.get("empty") and names.individual not in row else {})


def preference_fields(case: Case, preferences: PreferenceVerdicts, names: PreferenceKeys) -> JsonObject:
    """Return the keys of the row; a list or a number only where there is a judgment."""
    first = case.responses[0].id
    row: JsonObject = {}
    if preferences.overall is not None:
        row[names.overall] = _strength(preferences.overall, first)
        if names.overall_reason and preferences.overall.reason is not None:
            row[names.overall_reason] = preferences.overall.reason
    if preferences.individual:
        row[names.individual] = [_item(judgment, names, first) for judgment in preferences.individual]
    return row


def _item(judgment: Judgment, names: PreferenceKeys, first: str) -> JsonObject:
    fields = present({names.strength: _strength(judgment, first), names.reason: judgment.reason})
    return fields | (without_keys(judgment.meta, (_STRENGTH, *fields)) or {})


def _strength(judgment: Judgment, first: str) -> int:
    """Return the strength of a judgment: the recorded one where it agrees with the verdict, else 1 either way."""
    meta: JsonObject = judgment.meta or {}
    wanted: Sequence[int] = {"tie": (0,), "left": (-1, -2, -3), "right": (1, 2, 3)}[judgment.verdict]
    number = next((strength for strength in wanted if strength == meta.get(_STRENGTH)), wanted[0])
    return number if judgment.left == first else -number


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
