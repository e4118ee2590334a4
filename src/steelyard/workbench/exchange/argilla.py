"""Argilla 2: a dataset folder that `rg.Dataset.from_disk` loads, and the records that its people answered.

One ranking question (equal ranks are ties), a rating from 0 to 5 and marked problems for each response, and a comment.
Texts are shown as they are, without Markdown: marks count in them.

Answers are read as the server has them: pages of ``GET /api/v1/datasets/ID/records?include=responses``. The client's
own export (``to_disk``, ``to_list``) is refused where it has a ranking: it leaves out ranks, and so all ties,
nor does it tell drafts from answers. No export has the time that a person took. Marks are taken as Unicode code points:
the export has no text that would show how a browser counted characters beyond U+FFFF.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from steelyard.annotation.answers import Span
from steelyard.annotation.external_answers import ExternalAnswer
from steelyard.core.errors import FileError, Place, RecordError
from steelyard.core.types import JsonObject
from steelyard.io.json_text import decode_json
from steelyard.io.lines import read_whole
from steelyard.io.rows import is_array, read_rows
from steelyard.workbench.exchange.external_forms import (
    SCORES,
    ExternalTool,
    FormChoice,
    ReadingLog,
    choices,
    entry_of,
    instructions,
    moment_in,
    number_in,
    title,
)
from steelyard.workbench.exchange.external_tasks import ExternalTask, ExternalTasks, ManifestTask

_RECORDS = "records.json"
_MOST_GUIDELINES = 10_000
"""Characters of guidelines that the server takes."""
_DISCARDED = "discarded in Argilla"
_FETCH = (
    'fetch them: curl -H "X-Argilla-Api-Key: KEY" '
    '"URL/api/v1/datasets/ID/records?include=responses&limit=1000" -o page.json'
)


def _write(tasks: ExternalTasks, group: str) -> dict[str, str]:
    """Return the files of a dataset folder."""
    of_group = tasks.groups()[group]
    entry = of_group[0].entry
    guidelines = instructions(tasks, group, has_spans=True)
    files = {} if len(guidelines) <= _MOST_GUIDELINES else {"guidelines.md": guidelines}
    if files:
        guidelines = f"{guidelines[: _MOST_GUIDELINES - 40]}\n\n(guidelines.md …)\n"
    distribution = {"strategy": "overlap", "min_submitted": max(1, entry.wanted)}
    # The name is that of these tasks: a second export makes a dataset of its own.
    name = hashlib.sha256(" ".join(task.entry.key for task in of_group).encode()).hexdigest()[:8]
    dataset = {
        "name": f"steelyard-{group}-{name}",
        "guidelines": guidelines,
        "allow_extra_metadata": False,
        "distribution": distribution,
    }
    settings = {
        "guidelines": guidelines,
        "questions": _questions(entry, tasks.manifest.discard_reasons),
        "fields": _fields(entry.letters),
        "vectors": [],
        "metadata": [_metadata(name) for name in ("language", "category")],
        "allow_extra_metadata": False,
        "distribution": distribution,
        "mapping": None,
    }
    records = [_record(task) for task in of_group]
    contents = {".argilla/dataset.json": dataset, ".argilla/settings.json": settings, _RECORDS: records}
    return files | {path: msgspec.json.encode(value).decode() + "\n" for path, value in contents.items()}


def _fields(letters: Sequence[str]) -> list[JsonObject]:
    prompt = {"name": "prompt", "title": title("prompt"), "required": True}
    return [
        {**prompt, "settings": {"type": "chat", "use_markdown": False}},
        *(
            {
                "name": f"response_{letter.lower()}",
                "title": title("response", letter),
                "required": True,
                "settings": {"type": "text", "use_markdown": False},
            }
            for letter in letters
        ),
    ]


def _questions(entry: ManifestTask, reasons: Sequence[str]) -> list[JsonObject]:
    order = [{"value": letter, "text": title("response", letter)} for letter in entry.letters]
    questions = []
    if entry.has_scores:
        scale = {"type": "rating", "options": [{"value": score} for score in SCORES]}
        questions += [_question(f"score_{letter.lower()}", title("score", letter), scale) for letter in entry.letters]
    questions.append(_question("ranking", title("ranking"), {"type": "ranking", "options": order}, is_required=True))
    for letter in entry.letters:
        marks = {"type": "span", "field": f"response_{letter.lower()}", "allow_overlapping": True}
        marks |= {"options": _options(choices("problems"))}
        questions.append(_question(f"problems_{letter.lower()}", title("problems", letter), marks))
    for letter in entry.letters:
        why = {"type": "label_selection", "options": _options(choices("discards", reasons))}
        questions.append(_question(f"discard_{letter.lower()}", title("discard", letter), why))
    why = {"type": "label_selection", "options": _options(choices("cannot_judge"))}
    questions.append(_question("cannot_judge", title("cannot_judge"), why))
    return [*questions, _question("comment", title("comment"), {"type": "text", "use_markdown": False})]


def _question(name: str, text: str, settings: JsonObject, *, is_required: bool = False) -> JsonObject:
    return {"name": name, "title": text, "description": None, "required": is_required, "settings": settings}


def _options(listed: Sequence[FormChoice]) -> list[JsonObject]:
    return [{"value": choice.value, "text": choice.text} for choice in listed]


def _metadata(name: str) -> JsonObject:
    settings = {"type": "terms", "values": None, "visible_for_annotators": True}
    return {"name": name, "title": title(name), "visible_for_annotators": True, "settings": settings}


def _record(task: ExternalTask) -> JsonObject:
    fields: JsonObject = {"prompt": [{"role": turn.role, "content": turn.content} for turn in task.prompt]}
    # The server takes no empty text.
    fields |= {f"response_{letter.lower()}": text or " " for letter, text in task.texts.items()}
    metadata = {"language": task.entry.language, "category": task.category}
    return {
        "id": task.entry.key,
        "fields": fields,
        "metadata": {key: value for key, value in metadata.items() if value},
        "suggestions": {},
        "responses": {},
        "vectors": {},
        "status": "pending",
        "_server_id": None,
    }


def _export_files(folder: Path) -> list[Path]:
    # The settings of a dataset lie in a hidden folder beside its records.
    return sorted(file for file in folder.rglob("*.json") if ".argilla" not in file.parts)


def _read(path: Path, entries: Mapping[str, ManifestTask], log: ReadingLog) -> Iterator[ExternalAnswer]:
    """Yield the answers of every person to every record of a page of the server, or of an export."""
    num_records = 0
    total = 0
    for record, place, size in _records(path):
        num_records, total = num_records + 1, size
        with log.faults.gathered():
            entry = entry_of(record.get("external_id", record.get("id")), entries, place)
            for number, response in enumerate(_responses(record, place)):
                with log.faults.gathered():
                    answer = _response(response, entry, place._replace(path=f"responses[{number}]"))
                    if answer is None:
                        log.not_answers["drafts"] += 1
                    else:
                        yield answer
    if total > num_records:
        log.not_answers["records of the dataset that this page lacks"] += total - num_records


def _response(response: JsonObject, entry: ManifestTask, where: Place) -> ExternalAnswer | None:
    """Return the answer of a person; null for a draft."""
    person, values = response.get("user_id"), response.get("values")
    if not isinstance(person, str) or not isinstance(values, dict | None):
        raise RecordError("a response without user_id and values", where=where, allowed="a page of the server")
    if response.get("status") == "draft":
        return None
    return _answer(response, {name: _value(each, where) for name, each in (values or {}).items()}, entry, where)


def _records(path: Path) -> Iterator[tuple[JsonObject, Place, int]]:
    """Yield the records of a file, with the number that the dataset has; 0 where the file does not say."""
    if is_array(path):
        yield from ((row.value, row.place, 0) for row in read_rows(path))
        return
    page = decode_json(read_whole(path), Place(str(path)))
    items = page.get("items") if isinstance(page, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise FileError(
            "has no records",
            where=str(path),
            allowed='a page of the server: {"items": […], "total": …}',
            do=_FETCH,
        )
    total = page.get("total")
    for number, item in enumerate(items):
        yield item, Place(f"{path}:items[{number}]"), total if isinstance(total, int) else 0


def _responses(record: JsonObject, place: Place) -> list[JsonObject]:
    """Return the responses of a record as the server has them, one for each person."""
    responses = record.get("responses")
    if isinstance(responses, list) and all(isinstance(each, dict) for each in responses):
        return responses
    if not isinstance(responses, dict):
        raise RecordError("no responses", where=place, do="fetch the records with include=responses")
    # As the client writes them: by question, then by person.
    by_person: dict[str, JsonObject] = {}
    for question, answers in responses.items():
        for answer in answers if isinstance(answers, list) else [answers]:
            person = answer.get("user_id") if isinstance(answer, dict) else None
            if not isinstance(person, str):
                raise RecordError(f"an answer to {question!r} without user_id", where=place)
            of_person = by_person.setdefault(person, {"user_id": person, "values": {}})
            if question in of_person["values"]:
                raise RecordError(f"two answers of {person} to {question!r}", where=place, do="leave one out")
            of_person["values"][question] = answer
    return list(by_person.values())


def _value(answer: Any, place: Place) -> Any:
    if not isinstance(answer, dict) or "value" not in answer:
        raise RecordError("an answer without a value", where=place, allowed='{"value": …}')
    return answer["value"]


def _answer(response: JsonObject, values: JsonObject, entry: ManifestTask, place: Place) -> ExternalAnswer:
    lower = {letter: letter.lower() for letter in entry.letters}
    scores = {letter: values.get(f"score_{name}") for letter, name in lower.items()}
    why = values.get("cannot_judge") or (_DISCARDED if response.get("status") == "discarded" else None)
    return ExternalAnswer(
        source=place,
        task=entry.key,
        person=response["user_id"],
        places=_places(values.get("ranking"), entry, place),
        scores={
            letter: number_in(score, SCORES[0], SCORES[-1], place, f"the score of {letter}")
            for letter, score in scores.items()
            if score is not None
        },
        discarded={
            letter: str(values[f"discard_{name}"]) for letter, name in lower.items() if values.get(f"discard_{name}")
        },
        spans={letter: _spans(values.get(f"problems_{name}"), place) for letter, name in lower.items()},
        cannot_judge=None if why is None else str(why),
        remark=str(values["comment"]) if values.get("comment") else None,
        at=moment_in(response.get("updated_at")),
    )


def _places(ranking: Any, entry: ManifestTask, place: Place) -> dict[str, float]:
    """Return the rank of each letter; a value may have none where the person did not place it."""
    if ranking is None:
        return {}
    if isinstance(ranking, list) and ranking and all(isinstance(item, str) for item in ranking):
        raise RecordError(
            "a ranking without ranks: the client's own export leaves out ranks and ties",
            where=place,
            do=_FETCH,
        )
    if not isinstance(ranking, list) or not all(isinstance(item, dict) and "value" in item for item in ranking):
        raise RecordError("a ranking that is no list of values", where=place, allowed='[{"value": "A", "rank": 1}, …]')
    places: dict[str, float] = {}
    for item in ranking:
        if item["value"] not in entry.letters or item["value"] in places:
            problem = f"{str(item['value'])[:20]!r} in the ranking, twice or of no response"
            raise RecordError(problem, where=place, allowed=", ".join(entry.letters))
        if item.get("rank") is not None:
            places[item["value"]] = number_in(
                item["rank"], 1, len(entry.letters), place, f"the rank of {item['value']}"
            )
    return places


def _spans(marks: Any, place: Place) -> tuple[Span, ...]:
    if marks is None:
        return ()
    try:
        return tuple((int(mark["start"]), int(mark["end"]), str(mark["label"]), None) for mark in marks)
    except (TypeError, KeyError, ValueError):
        raise RecordError("a mark without start, end and label", where=place) from None


TOOL = ExternalTool("argilla", _write, _export_files, _read)
