"""Argilla's answers to questions as evidence, and evidence as answers."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.core.errors import Place, RecordError
from steelyard.core.types import Case, Judgment, Kind, Rating, Response
from steelyard.plugins.formats._fields import form_of, is_number, with_meta
from steelyard.plugins.formats._named import data_of, field_names
from steelyard.plugins.formats._parts import UNKNOWN, count_lost
from steelyard.plugins.formats._rankings import Ranked, Voice, judgments_of, rankings_of, without_tasks

KIND = "argilla"
KEYS = ("id", "fields", "suggestions", "responses")
_QUESTION = "ranking"


class Evidence(NamedTuple):
    """What the answers of a record say."""

    judgments: tuple[Judgment, ...]
    ratings: tuple[Rating, ...]


def ranked_names(said: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """The values that rankings order."""
    answers = [answer for questions in said.values() for given in questions.values() for answer in _listed(given)]
    rankings = [answer["value"] for answer in answers if isinstance(answer, dict) and _is_ranking(answer.get("value"))]
    return {item["value"] for ranking in rankings for item in ranking}


def evidence_of(
    said: Mapping[str, Mapping[str, Any]], responses: Sequence[Response], place: Place, noted: Counter[str]
) -> Evidence:
    """Judgments and ratings of all answers. Raises RecordError for an answer that is none."""
    names = [response.id for response in responses]
    judgments: list[Judgment] = []
    ratings: list[Rating] = []
    for key, questions in said.items():
        kind: Kind = "human" if key == "responses" else "llm"
        for question, answer in ((name, one) for name, given in questions.items() for one in _listed(given)):
            if not isinstance(answer, dict) or "value" not in answer:
                where = place._replace(path=f"{key}.{question}")
                raise RecordError("an answer without a value", where=where, allowed='{"value": …, …}')
            who = answer.get("user_id" if kind == "human" else "agent")
            value, judge = answer["value"], UNKNOWN if who is None else str(who)
            response = response_named(question, names)
            if _is_ranking(value) and {item["value"] for item in value} <= set(names):
                judgments += judgments_of(Ranked(Voice(judge, kind, question), _tiers(value)))
            elif is_number(value) and response is not None:
                dimension = _dimension(question, response)
                ratings.append(
                    Rating(response=response, rater=judge, kind=kind, dimension=dimension, value=value, task=question)
                )
            else:
                noted["answers that are no ranking and no rating of a response"] += 1
    return Evidence(tuple(judgments), tuple(ratings))


def response_named(question: str, names: Sequence[str]) -> str | None:
    """The response whose name stands in the question's (the longest of them); the only one needs no name."""
    if len(names) == 1:
        return names[0]
    found = sorted((name for name in names if name in question), key=len)
    return found[-1] if found else None


def argilla_row(case: Case, lost: Counter[str], carries: Collection[str]) -> dict[str, Any]:
    """The case as a record; what it cannot say is counted."""
    count_lost(without_tasks(case), lost, carries)
    form, names = form_of(case, KIND), field_names(case)
    renamed = sum(names[response.id] != response.id for response in case.responses)
    if renamed and not form:
        lost["response ids that are no field's name"] += renamed
    if form:
        names = {response.id: response.id for response in case.responses}
    said = form.get("said", {})
    written = fresh_evidence(case, lost, names)
    kept = evidence_of({**written, **said}, case.responses, Place("the row to write"), Counter()) if said else None
    # The very words come back only as long as they say what the case says.
    if kept == Evidence(case.judgments, case.ratings):
        written |= said
    elif said:
        lost["answers written anew"] += 1
    row = {
        "id": form["id"] if str(form.get("id")) == case.prompt.id else case.prompt.id,
        "fields": data_of(case, form, lost, names=names),
        **written,
    }
    absent = [key for key in form.get("absent", ()) if key == "id" or not row.get(key)]
    row = {key: value for key, value in row.items() if key not in absent}
    nulls = {key: None for key in form.get("null", ()) if key == "id" or not row.get(key)}
    return with_meta(row | nulls, case, KEYS, lost)


def fresh_evidence(case: Case, lost: Counter[str], names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The evidence as answers to questions; a suggestion is one a question, so further ones get a number."""
    named = names or {response.id: response.id for response in case.responses}
    people: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    models: dict[str, dict[str, Any]] = {}
    for voice, question, value in (*_rankings(case, named, lost), *_ratings(case, named)):
        if voice.kind == "human":
            people[question].append({"value": value, "user_id": voice.judge})
            continue
        if voice.kind == "model":
            lost["kinds of judges and raters"] += 1
        number, free = 1, question
        while free in models:
            number, free = number + 1, f"{question}-{number + 1}"
        models[free] = {"value": value, "score": None, "agent": voice.judge}
    return {"suggestions": models, "responses": dict(people)}


def _rankings(case: Case, names: Mapping[str, str], lost: Counter[str]) -> Iterable[tuple[Voice, str, Any]]:
    for voice, tiers in rankings_of(case.judgments, lost):
        places = [
            {"value": names[name], "rank": 1 + sum(map(len, tiers[:place]))}
            for place, tier in enumerate(tiers)
            for name in tier
        ]
        yield voice, voice.task or _QUESTION, places


def _ratings(case: Case, names: Mapping[str, str]) -> Iterable[tuple[Voice, str, Any]]:
    every = list(names.values())
    for rating in case.ratings:
        name = names[rating.response]
        questions = (rating.task or "", rating.dimension, f"{name}-{rating.dimension}")
        # The first that is read again as a rating of this response and dimension.
        fits = (one for one in questions if response_named(one, every) == name)
        question = next((one for one in fits if _dimension(one, name) == rating.dimension), questions[-1])
        yield Voice(rating.rater, rating.kind), question, rating.value


def _listed(given: Any) -> Sequence[Any]:
    return given if isinstance(given, list) else [given]


def _is_ranking(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(item, dict) and isinstance(item.get("value"), str) and is_number(item.get("rank"))
            for item in value
        )
        and len({item["value"] for item in value}) == len(value)
    )


def _tiers(value: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], ...]:
    by_rank: defaultdict[float, list[str]] = defaultdict(list)
    for item in value:
        by_rank[item["rank"]].append(item["value"])
    return tuple(tuple(by_rank[rank]) for rank in sorted(by_rank))


def _dimension(question: str, response: str) -> str:
    """What is left of the question's name without the response's."""
    before, _, after = question.partition(response)
    return "-".join(part for part in (before.strip("-_ ."), after.strip("-_ .")) if part) or question
