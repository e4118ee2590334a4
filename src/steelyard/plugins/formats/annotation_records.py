"""Argilla and Label Studio: a record per prompt, with the evidence of people and of models.

Argilla is written from the record's ``to_dict`` in the repository argilla-io/argilla (version 2): ``responses`` is
``{question: [{value, user_id}]}``, ``suggestions`` is ``{question: {value, score, agent}}``. A ranking's value is a
list of ``{value, rank}``, 1 the best, equal ranks a tie, or of names, best first: it becomes judgments on all of its
pairs, with the question as their task. A number is a rating of the response that its question names
(``response2-quality``), or of the only one. In a question that asks for the best response (``choose-best``), it is the
place of that response, from 1. Other answers (labels, texts) are stored with the row and counted. The prompt and the
answers are identified by the names of the fields; other fields are stored with the row. Records in columns are read
too (`_tool_exports`), as are Label Studio's rows of JSON_MIN.

Label Studio is written from the documentation of the tags Pairwise, Ranker and Rating and of the JSON export. A
pairwise result has ``selected`` left or right, of the two answers that ``to_name`` names, or else of the task's first
two. A ranker's value is ``{name: [ids, best first]}``, or with buckets ``{bucket: [ids]}``, best bucket first and each
a tie; the bucket ``_`` holds what was not moved. Results become judgments with ``from_name`` as their task; a skipped
task (``was_cancelled``) of two answers is a judgment without a verdict. The export lacks the labelling config, which
names the data: the prompt and the answers are identified by their names, or the answers are a list of items with ``id``
and ``body``.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Judgment, Kind, Rating, Response, Verdict
from steelyard.curation.format_support import carrying
from steelyard.plugins.formats._annotation_tools import (
    RankedTiers,
    RankingSource,
    ToolEvidence,
    ToolFormat,
    judgments_of,
    rankings_of,
)
from steelyard.plugins.formats._label_phrases import verdict_of_label
from steelyard.plugins.formats._pairs import tiers_of
from steelyard.plugins.formats._tool_exports import (
    argilla_record,
    as_ranks,
    is_annotation_row,
    is_flat_record,
    label_studio_task,
    task_of,
)

_UNSORTED = "_"
_VERDICTS: dict[str, Verdict] = {"left": "left", "right": "right"}
_CHOICE = re.compile(r"best|better|choose|choice|chosen|prefer|select|pick|winner|which|最好|更好|选择|選擇|偏好|أفضل")
"""Words in the names of questions that ask for the best response, not for a number of points."""
_NUMBERED = re.compile(r"(?:rating|score|quality|grade|评分|分数)[-_ ]?(\d+)")
_END = re.compile(r"(\d+|(?<=[-_ ])[A-Za-z])$")
"""Endings that tell the names of responses apart: ``response2``, ``answer_b``."""


# Argilla


def _object(row: Row, key: str) -> JsonObject:
    value = row.value.get(key)
    if value is None and key != "fields" and (key in row.value or key == "suggestions"):
        return {}
    if not isinstance(value, dict):
        problem = "lacks" if value is None else f"has {type(value).__name__} under"
        raise RecordError(f"the row {problem} {key!r}", where=row.place, allowed=f"{key}: an object")
    return value


def _ranked_values(answers: Mapping[str, JsonObject]) -> set[str]:
    """Return the values that rankings order."""
    entries = [entry for questions in answers.values() for value in questions.values() for entry in _listed(value)]
    values = [as_ranks(entry.get("value")) for entry in entries if isinstance(entry, dict)]
    return {item["value"] for ranking in values if _is_ranking(ranking) for item in ranking}


def _argilla_evidence(
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
            value, judge = as_ranks(answer["value"], names), UNKNOWN_JUDGE if author is None else str(author)
            response = _question_response(question, names)
            if _is_ranking(value) and {item["value"] for item in value} <= set(names):
                tiers = tiers_of({item["value"]: item["rank"] for item in value})
                judgments += judgments_of(RankedTiers(RankingSource(judge, kind, question), tiers))
            elif response is None and (best := _best_of(question, value, names)):
                judgments += (
                    Judgment(left=best, right=other, verdict="left", judge=judge, kind=kind, task=question)
                    for other in names
                    if other != best
                )
            elif is_number(value) and response is not None:
                details: Any = {"dimension": _dimension(question, response), "value": value, "task": question}
                ratings.append(Rating(response=response, rater=judge, kind=kind, **details))
            elif isinstance(value, str) and (verdict := verdict_of_label(value, tuple(names))):
                judgments.append(
                    Judgment(left=names[0], right=names[1], verdict=verdict, judge=judge, kind=kind, task=question)
                )
            else:
                warnings["answers that are neither rankings nor ratings of a response"] += 1
    return ToolEvidence(tuple(judgments), tuple(ratings))


def _best_of(question: str, value: Any, names: Sequence[str]) -> str | None:
    """Return the response of a number in a question that asks for the best one, by its name; null for other answers.

    The number is the end of the response's name where all names end in numbers (``response-2``), else its place from 1.
    """
    text = str(value).strip() if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not text.isdecimal() or not _CHOICE.search(question.casefold()):
        return None
    ends = [re.search(r"\d*$", name) for name in names]
    numbers = [end[0] for end in ends if end is not None and end[0]]
    places = numbers if len({*numbers}) == len(names) else [str(place) for place in range(1, len(names) + 1)]
    return dict(zip(places, names, strict=True)).get(text)


def _question_response(question: str, names: Sequence[str]) -> str | None:
    """Return the response whose name is part of the question's (the longest one); a single response needs no name.

    A number behind a word for ratings is that of a response: ``rating_2`` of ``response2``.
    """
    if len(names) == 1:
        return names[0]
    within = max((name for name in sorted(names) if name in question), key=len, default=None)
    numbered = _NUMBERED.fullmatch(question.casefold())
    ends = [name for name in names if numbered and re.findall(r"\d*$", name)[0] == numbered[1]]
    return within or (ends[0] if len(ends) == 1 else None)


def _argilla_answers(case: Case, dropped: Counter[str], names: Mapping[str, str]) -> JsonObject:
    """Return the evidence as answers to questions; a question has one suggestion, so further ones get a number."""
    people: defaultdict[str, list[JsonObject]] = defaultdict(list)
    models: dict[str, JsonObject] = {}
    for source, question, value in (*_ranking_answers(case, names, dropped), *_rating_answers(case, names)):
        if source.kind == "human":
            people[question].append({"value": value, "user_id": source.judge})
            continue
        dropped["kinds of judges and raters"] += source.kind == "model"
        number, free = 1, question
        while free in models:
            number, free = number + 1, f"{question}-{number + 1}"
        models[free] = {"value": value, "score": None, "agent": source.judge}
    return {"suggestions": models, "responses": dict(people)}


def _ranking_answers(
    case: Case, names: Mapping[str, str], dropped: Counter[str]
) -> Iterable[tuple[RankingSource, str, list[JsonObject]]]:
    for source, tiers in rankings_of(case.judgments, dropped):
        places = [
            {"value": names[name], "rank": 1 + sum(map(len, tiers[:place]))}
            for place, tier in enumerate(tiers)
            for name in tier
        ]
        yield source, source.task or "ranking", places


def _rating_answers(case: Case, names: Mapping[str, str]) -> Iterable[tuple[RankingSource, str, float]]:
    every = list(names.values())
    for rating in case.ratings:
        name = names[rating.response]
        questions = (rating.task or "", rating.dimension, f"{name}-{rating.dimension}")
        # The first that is read again as a rating of this response and dimension.
        fits = (question for question in questions if _question_response(question, every) == name)
        question = next((fit for fit in fits if _dimension(fit, name) == rating.dimension), questions[-1])
        yield RankingSource(rating.rater, rating.kind), question, rating.value


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


def _dimension(question: str, response: str) -> str:
    """Return the rest of the question's name without the response's."""
    if response not in question:
        return _without_end(question, response)
    before, _, after = question.partition(response)
    return "-".join(part for part in (before.strip("-_ ."), after.strip("-_ .")) if part) or question


def _without_end(question: str, response: str) -> str:
    """Return the question's name without the number or letter that the response's name ends in, too."""
    end = _END.search(response)
    return (question.removesuffix(end[1]).rstrip("-_ .") if end else "") or question


_ARGILLA = ToolFormat(
    kind="argilla",
    content_key="fields",
    answer_keys=("suggestions", "responses"),
    supports=carrying(
        "system turns", "earlier turns", "prompt meta", "prompt ids", "response ids", "answers of several turns",
        "more than two responses", "judgments", "judges", "ratings", "raters",
    ),
    matches=lambda row: (
        is_flat_record(row)
        or (
            isinstance(row.get("fields"), dict)
            and any(key in row for key in _ARGILLA.answer_keys)
            and all(isinstance(row.get(key), dict | None) for key in _ARGILLA.answer_keys)
        )
    ),
    read_content=lambda row: _object(row, "fields"),
    read_answers=_object,
    ranked=_ranked_values,
    evidence=_argilla_evidence,
    write=_argilla_answers,
    whole=argilla_record,
)  # fmt: skip


# Label Studio


class ToolResult(NamedTuple):
    """One result: its author, the responses that it concerns, and its place."""

    source: RankingSource
    type: Any
    value: JsonObject
    targets: tuple[str, ...]
    place: Place


def _task_data(row: Row) -> JsonObject:
    data = row.value.get("data")
    if not isinstance(data, dict):
        raise RecordError("the row lacks 'data'", where=row.place, allowed="data: an object")
    return data


def _label_studio_evidence(
    lists: Mapping[str, Sequence[Any]], responses: Sequence[Response], place: Place, warnings: Counter[str]
) -> ToolEvidence:
    """Return judgments and ratings of all results. Raises RecordError for an annotation of another form."""
    names = [response.id for response in responses]
    judgments: list[Judgment] = []
    ratings: list[Rating] = []
    for key, annotations in lists.items():
        for index, annotation in enumerate(annotations):
            where = place._replace(path=f"{key}[{index}]")
            source = _source(key, annotation, where)
            if annotation.get("was_cancelled"):
                warnings["cancelled annotations"] += 1
                if len(names) == 2:
                    fields: JsonObject = source._asdict() | {"reason": "cancelled"}
                    judgments.append(Judgment(left=names[0], right=names[1], verdict="none", **fields))
                continue
            for result in _results(source, annotation, names, where):
                if result.type == "rating" and is_number(result.value.get("rating")) and len(result.targets) == 1:
                    judge, kind, task = result.source
                    target, value = result.targets[0], result.value["rating"]
                    dimension = _without_end(task, target) if task else "rating"
                    ratings.append(Rating(response=target, rater=judge, kind=kind, dimension=dimension, value=value))
                elif (comparisons := list(_judgments(result, names))) or result.type in ("pairwise", "ranker"):
                    judgments += comparisons
                else:
                    warnings["results that are neither comparisons nor ratings of a response"] += 1
    return ToolEvidence(tuple(judgments), tuple(ratings))


def _source(key: str, annotation: Any, where: Place) -> RankingSource:
    if not isinstance(annotation, dict) or not isinstance(annotation.get("result") or [], list):
        raise RecordError("an annotation without results", where=where, allowed='{"result": […], …}')
    kind: Kind = "human" if key == "annotations" else "llm"
    who = annotation.get("completed_by" if kind == "human" else "model_version")
    if isinstance(who, dict):
        who = who.get("email", who.get("id"))
    return RankingSource(UNKNOWN_JUDGE if who is None else str(who), kind)


def _results(source: RankingSource, annotation: JsonObject, names: Sequence[str], where: Place) -> Iterator[ToolResult]:
    for number, result in enumerate(annotation.get("result") or ()):
        place = where._replace(path=f"{where.path}.result[{number}]")
        if not isinstance(result, dict) or not isinstance(result.get("value"), dict):
            raise RecordError("a result without a value", where=place, allowed='{"type": …, "value": {…}}')
        to_name = tuple(str(result.get("to_name") or "").split(","))
        targets = to_name if set(to_name) <= set(names) else tuple(names) if len(names) == 1 else ()
        task = result.get("from_name")
        question = source._replace(task=task if isinstance(task, str) else None)
        yield ToolResult(question, result.get("type"), result["value"], targets, place)


def _judgments(result: ToolResult, names: Sequence[str]) -> Iterator[Judgment]:
    if result.type == "pairwise":
        selected = result.value.get("selected")
        targets = result.targets if len(result.targets) == 2 else tuple(names[:2])
        if selected is not None and (selected not in _VERDICTS or len(targets) < 2 or targets[0] == targets[1]):
            raise RecordError(f"unknown choice {selected!r} of two", where=result.place, allowed="left, right")
        if selected is not None:
            verdict = _VERDICTS[selected]
            yield Judgment(left=targets[0], right=targets[1], verdict=verdict, **result.source._asdict())
    choices = result.value.get("choices") if result.type == "choices" else None
    label = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    if isinstance(label, str) and (verdict := verdict_of_label(label, tuple(names))):
        yield Judgment(left=names[0], right=names[1], verdict=verdict, **result.source._asdict())
    if result.type == "ranker":
        yield from judgments_of(RankedTiers(result.source, _ranker_tiers(result, names)))


def _ranker_tiers(result: ToolResult, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    value = result.value.get("ranker")
    lists = value if isinstance(value, dict) else {}
    ids = [str(name) for names_of_list in lists.values() if isinstance(names_of_list, list) for name in names_of_list]
    if not lists or not set(ids) <= set(names) or len(set(ids)) < len(ids):
        raise RecordError("a ranking that is not of the answers", where=result.place, allowed=", ".join(names))
    if len(lists) == 1:
        return tuple((str(name),) for names_of_list in lists.values() for name in names_of_list)
    return tuple(
        tuple(map(str, names_of_list))
        for bucket, names_of_list in lists.items()
        if bucket != _UNSORTED and names_of_list
    )


def _label_studio_lists(case: Case, dropped: Counter[str], names: Mapping[str, str]) -> JsonObject:
    """Return annotations of people and predictions of models, one for each ranking or rating."""
    written: JsonObject = {key: [] for key in _LABEL_STUDIO.answer_keys}
    results = [(ranking.source, _ranking_result(ranking)) for ranking in rankings_of(case.judgments, dropped)]
    for rating in case.ratings:
        value = {"from_name": rating.dimension, "to_name": rating.response, "type": "rating"}
        results.append((RankingSource(rating.rater, rating.kind), {**value, "value": {"rating": rating.value}}))
    for source, result in results:
        if source.kind == "human":
            written["annotations"].append({"completed_by": source.judge, "was_cancelled": False, "result": [result]})
            continue
        dropped["kinds of judges and raters"] += source.kind == "model"
        written["predictions"].append({"model_version": source.judge, "result": [result]})
    return written


def _ranking_result(ranked: RankedTiers) -> JsonObject:
    """Return two answers in order as a pairwise result, more as a ranking, ties as buckets."""
    names = [name for tier in ranked.tiers for name in tier]
    is_strict = len(names) == len(ranked.tiers)
    if is_strict and len(names) == 2 and not any("," in name for name in names):
        task, value = ranked.source.task or "pairwise", {"selected": "left"}
        return {"from_name": task, "to_name": ",".join(names), "type": "pairwise", "value": value}
    lists = {"ranking": names} if is_strict else {str(place): list(tier) for place, tier in enumerate(ranked.tiers, 1)}
    # A single list is an order: the empty bucket marks these lists as buckets.
    value = {"ranker": lists if is_strict else lists | {_UNSORTED: []}}
    return {"from_name": ranked.source.task or "ranker", "to_name": "items", "type": "ranker", "value": value}


_LABEL_STUDIO = ToolFormat(
    kind="label_studio",
    content_key="data",
    answer_keys=("annotations", "predictions"),
    supports=carrying(
        "system turns", "earlier turns", "prompt meta", "prompt ids", "response ids", "response meta",
        "more than two responses", "judgments", "judges", "ratings", "raters",
    ),
    matches=lambda row: (
        is_annotation_row(row)
        or (
            isinstance(row.get("data"), dict)
            and any(isinstance(row.get(key), list) for key in _LABEL_STUDIO.answer_keys)
        )
    ),
    read_content=_task_data,
    read_answers=lambda row, key: row.items(key, default=()),
    ranked=lambda answers: set(),
    evidence=_label_studio_evidence,
    write=_label_studio_lists,
    has_items=True,
    whole=label_studio_task,
    group_key=task_of,
)  # fmt: skip

KINDS = {
    "argilla": without_settings(
        _ARGILLA.format(),
        "Argilla records: fields, and the answers of people (responses) and models (suggestions) to each question.",
    ),
    "label_studio": without_settings(
        _LABEL_STUDIO.format(),
        "Label Studio tasks: data, people's annotations (Pairwise, Ranker and Rating results) and models' predictions.",
    ),
}
