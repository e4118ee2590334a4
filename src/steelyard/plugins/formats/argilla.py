"""Argilla records: fields, and what people (responses) and models (suggestions) said to each question.

Written from the record's ``to_dict`` in the repository argilla-io/argilla (version 2): ``responses`` is
``{question: [{value, user_id}]}``, ``suggestions`` is ``{question: {value, score, agent}}``. A ranking's value is a
list of ``{value, rank}``, 1 the best, equal ranks a tie: it becomes judgments on all of its pairs, with the question as
their task. A number is a rating of the response that its question names (``response2-quality``), or of the only one.
Other answers (labels, texts) are stored with the row and counted. The prompt and the answers are found by the names of
the fields; other fields are stored with the row.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import Case, JsonObject, Judgment, Kind, Rating, Response
from steelyard.curation.format_support import UNKNOWN, carrying, count_lost
from steelyard.plugins.formats._annotation_items import (
    RankedTiers,
    ToolEvidence,
    ToolRecord,
    Voice,
    data_of,
    field_names,
    judgments_of,
    named_item,
    rankings_of,
    tool_case,
    tool_row,
    without_tasks,
)
from steelyard.plugins.formats._fields import PromptIds, form_of

_KIND = "argilla"
_KEYS = ("id", "fields", "suggestions", "responses")
_ANSWERS = ("suggestions", "responses")
_QUESTION = "ranking"


class Argilla:
    """One record a prompt; people's answers are human evidence, suggestions are of the kind llm."""

    keys = _KEYS
    supports = carrying(
        "system turns", "earlier turns", "prompt meta", "prompt ids", "response ids", "answers of several turns",
        "more than two responses", "judgments", "judges", "ratings", "raters",
    )  # fmt: skip

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has fields, and responses or suggestions by question."""
        has_answers = any(key in row for key in _ANSWERS)
        are_objects = all(isinstance(row.get(key), dict | None) for key in _ANSWERS)
        return isinstance(row.get("fields"), dict) and has_answers and are_objects

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases with judgments and ratings."""
        ids = PromptIds(warnings)
        for row in rows:
            fields = _object(row, "fields")
            answers = {key: _object(row, key) for key in _ANSWERS}
            item = named_item(fields, row.at("fields"), warnings, ranked=_ranked_names(answers) & fields.keys())
            evidence = evidence_of(answers, item.responses, row.place, warnings)
            yield tool_case(ToolRecord(row, item, fields, answers, evidence), _KIND, _KEYS, fresh_answers, ids)

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a record a case, in the shape that ``from_dict`` reads."""
        for case in cases:
            count_lost(without_tasks(case), dropped, self.supports)
            form, names = form_of(case, _KIND), field_names(case)
            renamed = sum(names[response.id] != response.id for response in case.responses)
            if renamed and not form:
                dropped["response ids that are no field's name"] += renamed
            if form:
                names = {response.id: response.id for response in case.responses}
            answers = _answers(case, form.get("said", {}), names, dropped)
            fields = {"fields": data_of(case, form, dropped, names=names)}
            yield tool_row(case, _KIND, _KEYS, fields | answers, dropped)


KINDS = {"argilla": without_settings(Argilla(), __doc__)}


def _object(row: Row, key: str) -> JsonObject:
    value = row.value.get(key)
    if value is None and key != "fields" and (key in row.value or key == "suggestions"):
        return {}
    if not isinstance(value, dict):
        problem = "lacks" if value is None else f"has {type(value).__name__} under"
        raise RecordError(f"the row {problem} {key!r}", where=row.place, allowed=f"{key}: an object")
    return value


def _ranked_names(answers: Mapping[str, JsonObject]) -> set[str]:
    """Return the values that rankings order."""
    entries = [entry for questions in answers.values() for value in questions.values() for entry in _listed(value)]
    rankings = [entry["value"] for entry in entries if isinstance(entry, dict) and _is_ranking(entry.get("value"))]
    return {item["value"] for ranking in rankings for item in ranking}


def evidence_of(
    answers: Mapping[str, JsonObject], responses: Sequence[Response], place: Place, warnings: Counter[str]
) -> ToolEvidence:
    """Return the judgments and ratings of all answers. Raises RecordError for an answer without a value."""
    names = [response.id for response in responses]
    judgments: list[Judgment] = []
    ratings: list[Rating] = []
    for key, questions in answers.items():
        kind: Kind = "human" if key == "responses" else "llm"
        for question, answer in ((name, item) for name, entry in questions.items() for item in _listed(entry)):
            if not isinstance(answer, dict) or "value" not in answer:
                where = place._replace(path=f"{key}.{question}")
                raise RecordError("an answer without a value", where=where, allowed='{"value": …, …}')
            author = answer.get("user_id" if kind == "human" else "agent")
            value, judge = answer["value"], UNKNOWN if author is None else str(author)
            response = _response_in(question, names)
            if _is_ranking(value) and {item["value"] for item in value} <= set(names):
                judgments += judgments_of(RankedTiers(Voice(judge, kind, question), _tiers(value)))
            elif is_number(value) and response is not None:
                details: Any = {"dimension": _dimension(question, response), "value": value, "task": question}
                ratings.append(Rating(response=response, rater=judge, kind=kind, **details))
            else:
                warnings["answers that are no ranking and no rating of a response"] += 1
    return ToolEvidence(tuple(judgments), tuple(ratings))


def _response_in(question: str, names: Sequence[str]) -> str | None:
    """Return the response whose name is part of the question's (the longest one); a single response needs no name."""
    if len(names) == 1:
        return names[0]
    return max((name for name in sorted(names) if name in question), key=len, default=None)


def _answers(case: Case, answers_read: JsonObject, names: Mapping[str, str], dropped: Counter[str]) -> JsonObject:
    """Return the answers as they were read, while they mean what the case holds; else new ones, which are counted."""
    written = fresh_answers(case, dropped, names)
    if not answers_read:
        return written
    evidence = evidence_of(written | answers_read, case.responses, Place("the row to write"), Counter())
    if evidence == (case.judgments, case.ratings):
        return written | answers_read
    dropped["answers written anew"] += 1
    return written


def fresh_answers(case: Case, dropped: Counter[str], names: Mapping[str, str] | None = None) -> JsonObject:
    """Return the evidence as answers to questions; a question has one suggestion, so further ones get a number."""
    field_of = names or {response.id: response.id for response in case.responses}
    people: defaultdict[str, list[JsonObject]] = defaultdict(list)
    models: dict[str, JsonObject] = {}
    for voice, question, value in (*_rankings(case, field_of, dropped), *_ratings(case, field_of)):
        if voice.kind == "human":
            people[question].append({"value": value, "user_id": voice.judge})
            continue
        if voice.kind == "model":
            dropped["kinds of judges and raters"] += 1
        number, free = 1, question
        while free in models:
            number, free = number + 1, f"{question}-{number + 1}"
        models[free] = {"value": value, "score": None, "agent": voice.judge}
    return {"suggestions": models, "responses": dict(people)}


def _rankings(case: Case, names: Mapping[str, str], dropped: Counter[str]) -> Iterable[tuple[Voice, str, Any]]:
    for voice, tiers in rankings_of(case.judgments, dropped):
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
        fits = (question for question in questions if _response_in(question, every) == name)
        question = next((fit for fit in fits if _dimension(fit, name) == rating.dimension), questions[-1])
        yield Voice(rating.rater, rating.kind), question, rating.value


def _listed(entry: Any) -> Sequence[Any]:
    return entry if isinstance(entry, list) else [entry]


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


def _tiers(value: Sequence[JsonObject]) -> tuple[tuple[str, ...], ...]:
    by_rank: defaultdict[float, list[str]] = defaultdict(list)
    for item in value:
        by_rank[item["rank"]].append(item["value"])
    return tuple(tuple(by_rank[rank]) for rank in sorted(by_rank))


def _dimension(question: str, response: str) -> str:
    """Return the rest of the question's name without the response's."""
    before, _, after = question.partition(response)
    return "-".join(part for part in (before.strip("-_ ."), after.strip("-_ .")) if part) or question
