"""Flat exports of annotation tools as the records of the same tools: one row an annotation, or one column a question.

Argilla on the Hub: version 2 has the columns ``QUESTION.responses``, ``.responses.users``, ``.responses.status`` and
``.suggestion`` with ``.suggestion.agent`` (a ranking is a list of names, best first); version 1 has ``QUESTION`` as
``{user_id, value, status}``, as lists or a list, and ``QUESTION-suggestion``. Written from the cards of data sets on
the Hub. Only submitted responses count. Records of version 1 in its own JSON list the ``values`` of each person.

Label Studio's JSON_MIN is written from ``convert_to_json_min`` in the repository HumanSignal/label-studio-sdk: the
task's data with the values of each control under its name, and the annotator. Rows of one task follow each other.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from steelyard.core.protocols import Row
from steelyard.core.types import JsonObject
from steelyard.io.json_text import decode_list

NOT_SUBMITTED = "responses that were not submitted"
_RECORD = ("id", "external_id", "status", "_server_id", "inserted_at", "updated_at", "metadata", "vectors")
_RESPONSES, _SUGGESTION = ".responses", "suggestion"
_ANSWER_KEYS = {"user_id", "value", "status"}
_RESULTS = {"selected": "pairwise", "ranker": "ranker", "rating": "rating"}
_ANNOTATION = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement")


def is_flat_record(row: JsonObject) -> bool:
    """Return whether the row is a record of Argilla in columns, or lists the values of each person."""
    return bool(_listed_values(row)) if "fields" in row else bool(_questions(row))


def argilla_record(rows: Sequence[Row], warnings: Counter[str]) -> Row:
    """Return the record of a row in columns: fields, responses and suggestions. A record stays as it is."""
    place, row = rows[0]
    if not is_flat_record(row):
        return rows[0]
    questions = _listed_values(row) or _questions(row)
    of_questions = tuple(f"{question}{mark}" for question in questions for mark in (".", f"-{_SUGGESTION}"))
    names = {key for key in row if key not in questions and not key.startswith(of_questions)} - {*_RECORD}
    fields = row.get("fields") or {
        key: value for key, value in row.items() if key in names and not key.startswith("metadata.")
    }
    responses = {question: _submitted(answers, fields, warnings) for question, answers in questions.items()}
    suggestions = {
        question: {"value": as_ranks(value, fields), "score": None, "agent": agent}
        for question in questions
        for value, agent in [_suggestion(row, question)]
        if value is not None
    }
    record = {key: value for key, value in row.items() if key in _RECORD or key.startswith("metadata.")}
    if row.get("id") is None and row.get("external_id") is not None:
        record["id"] = record.pop("external_id")
    return Row(place, record | {"fields": fields, "responses": responses, "suggestions": suggestions})


def _questions(row: JsonObject) -> dict[str, list[tuple[Any, Any, Any]]]:
    """Return the values, users and states of the responses to each question."""
    questions: dict[str, list[tuple[Any, Any, Any]]] = {}
    for key, value in row.items():
        if key.endswith(_RESPONSES) and f"{key}.users" in row:
            lists = (value, row[f"{key}.users"], row.get(f"{key}.status"))
            questions[key.removesuffix(_RESPONSES)] = _zipped(lists)
        elif isinstance(value, dict) and value.keys() == _ANSWER_KEYS:
            questions[key] = _zipped([value["value"], value["user_id"], value["status"]])
        elif (
            isinstance(value, list)
            and value
            and all(isinstance(each, dict) and each.keys() == _ANSWER_KEYS for each in value)
        ):
            questions[key] = [(each["value"], each["user_id"], each["status"]) for each in value]
        elif isinstance(value, list) and not value and f"{key}-{_SUGGESTION}" in row:
            questions[key] = []
    return questions


def _listed_values(row: JsonObject) -> dict[str, list[tuple[Any, Any, Any]]]:
    """Return the same of a record whose responses are a list, one for each person; empty for another one."""
    questions: dict[str, list[tuple[Any, Any, Any]]] = {}
    responses = row.get("responses")
    for each in responses if isinstance(responses, list) and isinstance(row.get("fields"), dict) else ():
        values = each.get("values") if isinstance(each, dict) else None
        for question, answer in values.items() if isinstance(values, dict) else ():
            value = answer.get("value") if isinstance(answer, dict) else answer
            questions.setdefault(question, []).append((value, each.get("user_id"), each.get("status")))
    return questions


def _zipped(lists: Sequence[Any]) -> list[tuple[Any, Any, Any]]:
    return list(zip_longest(*(each if isinstance(each, list) else () for each in lists)))


def _submitted(answers: Sequence[tuple[Any, Any, Any]], fields: JsonObject, warnings: Counter[str]) -> list[JsonObject]:
    submitted = [
        (value, user) for value, user, status in answers if status in (None, "submitted") and value is not None
    ]
    if len(submitted) < len(answers):
        warnings[NOT_SUBMITTED] += len(answers) - len(submitted)
    return [{"value": as_ranks(value, fields), "user_id": user} for value, user in submitted]


def _suggestion(row: JsonObject, question: str) -> tuple[Any, Any]:
    listed = row.get("suggestions")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and each.get("question_name") == question:
            return each.get("value"), each.get("agent")
    metadata = row.get(f"{question}-{_SUGGESTION}-metadata")
    agent = metadata.get("agent") if isinstance(metadata, dict) else row.get(f"{question}.{_SUGGESTION}.agent")
    return row.get(f"{question}.{_SUGGESTION}", row.get(f"{question}-{_SUGGESTION}")), agent


def as_ranks(value: Any, names: Collection[str] | None = None) -> Any:
    """Return an answer as a list of values and ranks where it is several of the names, best first, or two lists.

    Without ``names``, any several texts are. A list of one text is that text.
    """
    if isinstance(value, dict) and {"value", "rank"} <= value.keys() and isinstance(value["value"], list):
        return [{"value": name, "rank": rank} for name, rank in zip(value["value"], value["rank"], strict=False)]
    if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
        return value
    if len(value) == 1:
        return value[0]
    if names is None or set(value) <= set(names):
        return [{"value": name, "rank": rank} for rank, name in enumerate(value, 1)]
    return value


def is_annotation_row(row: JsonObject) -> bool:
    """Return whether the row is an annotation in Label Studio's JSON_MIN with a comparison, a ranking or a rating."""
    return {"annotator", "annotation_id"} <= row.keys() and any(True for _ in _results(row))


def label_studio_task(rows: Sequence[Row], warnings: Counter[str]) -> Row:
    """Return the task of the annotations of JSON_MIN. A task stays as it is."""
    place, first = rows[0]
    if not is_annotation_row(first):
        return rows[0]
    controls = {name for row in rows for name, _ in _results(row.value)}
    data = {
        # In CSV a list of items is JSON text.
        key: _items(value) or value
        for key, value in first.items()
        if key not in {"id", *_ANNOTATION, *controls}
    }
    annotations = [
        {
            "id": row.value["annotation_id"],
            "completed_by": row.value["annotator"],
            "result": [
                {"from_name": name, "type": _RESULTS[key], "value": {key: value[key]}}
                for name, value in _results(row.value)
                for key in _RESULTS.keys() & value.keys()
            ],
            **{key: row.value[key] for key in _ANNOTATION[2:] if key in row.value},
        }
        for row in rows
    ]
    return Row(place, {"id": first.get("id"), "data": data, "annotations": annotations})


def _items(cell: Any) -> list[JsonObject] | None:
    items = decode_list(cell) if isinstance(cell, str) else None
    return items if items and all(isinstance(item, dict) for item in items) else None


def task_of(row: Row) -> object:
    """Return what the rows of one task share: its id in JSON_MIN, else nothing but the row itself."""
    return ("task", row.value.get("id", row.place)) if is_annotation_row(row.value) else row.place


def _results(row: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield the name of each control with each of its results."""
    for name, cell in row.items():
        # In CSV a result is JSON text.
        is_text = isinstance(cell, str) and cell.startswith(("{", "[")) and any(f'"{key}"' in cell for key in _RESULTS)
        value = decode_list(f"[{cell}]" if cell.startswith("{") else cell) if is_text else cell
        for result in value if isinstance(value, list) else [value]:
            if isinstance(result, dict) and _RESULTS.keys() & result.keys():
                yield name, result
