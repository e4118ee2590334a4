"""Potato 2: a configuration with a data file, and the answers that it keeps for each person in ``user_state.json``.

Places and scores are choices of one, from 1 and from 0: its ranking has no ties. Equal places are ties. A choice once
made cannot be unmade there, so reasons have a choice that says none. Nothing is marked in texts: Potato 2.12
stores the places of a mark in what its page shows, where line breaks are left out, and not the marked words, so that
nobody could tell which words of the text were meant.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from steelyard.annotation.external_answers import ExternalAnswer
from steelyard.core.errors import FileError, Place, RecordError
from steelyard.core.types import JsonObject
from steelyard.io.json_text import decode_json
from steelyard.io.lines import read_whole
from steelyard.workbench.exchange.external_forms import (
    SCORES,
    ExternalTool,
    FormChoice,
    ReadingLog,
    choices,
    entry_of,
    instructions,
    numbers_by_letter,
    title,
)
from steelyard.workbench.exchange.external_tasks import ExternalTask, ExternalTasks, ManifestTask

_STATE = "user_state.json"
_DATA = "tasks.jsonl"
_NONE = FormChoice("none", "—")
_LABELS = "instance_id_to_label_to_value"
_BEHAVIOR = "instance_id_to_behavioral_data"


def _write(tasks: ExternalTasks, group: str) -> dict[str, str]:
    """Return the configuration and the data of a project of Potato. JSON is YAML, so no writer of YAML is needed."""
    of_group = tasks.groups()[group]
    entry = of_group[0].entry
    config = {
        "annotation_task_name": f"Steelyard {group}",
        "task_dir": ".",
        "data_files": [_DATA],
        "item_properties": {"id_key": "id", "text_key": "response_a"},
        "output_annotation_dir": "annotation_output",
        "num_annotators_per_item": max(1, entry.wanted),
        "annotation_instructions": instructions(tasks, group, has_spans=False),
        "instance_display": {
            "fields": [
                {"key": "prompt", "type": "dialogue", "label": title("prompt")},
                *(
                    {"key": _field(letter), "type": "text", "label": title("response", letter)}
                    for letter in entry.letters
                ),
            ]
        },
        "annotation_schemes": _schemes(entry, tasks.manifest.discard_reasons),
    }
    return {
        "config.yaml": msgspec.json.format(msgspec.json.encode(config), indent=1).decode() + "\n",
        _DATA: "".join(msgspec.json.encode(_item(task)).decode() + "\n" for task in of_group),
    }


def _schemes(entry: ManifestTask, reasons: Sequence[str]) -> list[JsonObject]:
    places = [FormChoice(str(place), str(place)) for place in range(1, len(entry.letters) + 1)]
    scores = [FormChoice(str(score), str(score)) for score in SCORES]
    schemes: list[JsonObject] = []
    for letter in entry.letters:
        name = letter.lower()
        if entry.has_scores:
            schemes.append(_radio(f"score_{name}", title("score", letter), scores))
        schemes.append(_radio(f"place_{name}", title("place", letter), places))
        schemes.append(_radio(f"discard_{name}", title("discard", letter), [_NONE, *choices("discards", reasons)]))
    schemes.append(_radio("cannot_judge", title("cannot_judge"), [_NONE, *choices("cannot_judge")]))
    comment = {"annotation_type": "text", "name": "comment", "description": title("comment")}
    return [*schemes, {**comment, "textarea": {"on": True, "rows": 3}}]


def _radio(name: str, text: str, listed: Sequence[FormChoice]) -> JsonObject:
    labels = [{"name": choice.value, "displayed_label": choice.text} for choice in listed]
    return {"annotation_type": "radio", "name": name, "description": text, "horizontal": True, "labels": labels}


def _item(task: ExternalTask) -> JsonObject:
    item: JsonObject = {"id": task.entry.key, "language": task.entry.language or "", "category": task.category}
    item["prompt"] = [{"speaker": turn.role, "text": turn.content} for turn in task.prompt]
    return item | {_field(letter): text for letter, text in task.texts.items()}


def _field(letter: str) -> str:
    return f"response_{letter.lower()}"


def _export_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob(_STATE))


def _read(path: Path, entries: Mapping[str, ManifestTask], log: ReadingLog) -> Iterator[ExternalAnswer]:
    """Yield the answers of the person whose state a file is. A task that was opened and left empty has none."""
    state = decode_json(read_whole(path), Place(str(path)))
    person = state.get("user_id") if isinstance(state, dict) else None
    answered = state.get(_LABELS) if isinstance(state, dict) else None
    if not isinstance(person, str) or not person or not isinstance(answered, dict):
        raise FileError(
            "has no answers of a person",
            where=str(path),
            allowed=f"annotation_output/PERSON/{_STATE}, as Potato 2 keeps it",
            do="name the folder annotation_output",
        )
    behavior = state.get(_BEHAVIOR)
    for task, labels in answered.items():
        place = Place(f"{path}:{_LABELS}[{task!r}]")
        with log.faults.gathered():
            entry = entry_of(task, entries, place)
            if not (entered := _entered(labels, place)):
                log.not_answers["tasks without an answer"] += 1
                continue
            seen = behavior.get(task) if isinstance(behavior, dict) else None
            yield _answer(person, entered, seen if isinstance(seen, dict) else {}, entry, place)


def _answer(
    person: str, entered: Mapping[str, str], behavior: JsonObject, entry: ManifestTask, place: Place
) -> ExternalAnswer:
    lower = {letter: letter.lower() for letter in entry.letters}
    milliseconds = _positive(behavior.get("total_time_ms"))
    return ExternalAnswer(
        source=place,
        task=entry.key,
        person=person,
        places=numbers_by_letter(entered, entry.letters, "place", (1, len(entry.letters)), place),
        scores=numbers_by_letter(entered, entry.letters, "score", (SCORES[0], SCORES[-1]), place),
        discarded={
            letter: entered[f"discard_{name}"] for letter, name in lower.items() if f"discard_{name}" in entered
        },
        spans={},
        cannot_judge=entered.get("cannot_judge"),
        remark=entered.get("comment"),
        seconds=None if milliseconds is None else milliseconds / 1000,
        at=_positive(behavior.get("session_end")),
    )


def _entered(labels: object, place: Place) -> dict[str, str]:
    """Return what was chosen or written, by the name of the scheme; choices of none are left out."""
    entered: dict[str, str] = {}
    for pair in labels if isinstance(labels, list) else [labels]:
        match pair:
            case [{"schema": str(scheme), "name": str()}, str() | int() | float() | bool() | None as value]:
                text = "" if value is None else str(value)
            case _:
                allowed = '[{"schema": …, "name": …}, VALUE]'
                raise RecordError("an answer that is no label with a value", where=place, allowed=allowed)
        if not text or (text == _NONE.value and scheme != "comment"):
            continue
        if entered.setdefault(scheme, text) != text:
            raise RecordError(f"two values of {scheme!r}", where=place, do="leave one out")
    return entered


def _positive(value: object) -> float | None:
    """Return a time; null for 0 too, which Potato writes where the browser reported none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


TOOL = ExternalTool("potato", _write, _export_files, _read)
