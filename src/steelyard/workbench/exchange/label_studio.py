"""Label Studio: a labelling configuration with tasks to import, and the answers of its JSON export.

Places and scores are choices of one, from 1 and from 0: its Ranker shows a text in a list alone, where nothing can be
marked, and its stars have no 0. Equal places are ties. A task that a person skipped cannot be judged, unless the same
person answered it after all. Projects of Label Studio give each task to one person: ``project.json`` says how many.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec

from steelyard.annotation.answers import Span
from steelyard.annotation.external_answers import ExternalAnswer
from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import JsonObject
from steelyard.io.rows import read_rows
from steelyard.workbench.exchange.external_forms import (
    SCORES,
    ExternalTool,
    FormChoice,
    ReadingLog,
    choices,
    entry_of,
    instructions,
    moment_in,
    numbers_by_letter,
    title,
)
from steelyard.workbench.exchange.external_tasks import ExternalTask, ExternalTasks, ManifestTask

_SKIPPED = "skipped in Label Studio"
_SPACE = re.compile(r"\s|\\n")
"""Characters of a mark's text that differ from the response: its pages fold spaces, and write a line break as two
characters."""


def _write(tasks: ExternalTasks, group: str) -> dict[str, str]:
    """Return the configuration, the tasks and the instructions of a project of Label Studio.

    ``project.json`` is the request that makes the project with all of it but the tasks.
    """
    of_group = tasks.groups()[group]
    config = _config(of_group[0].entry, tasks.manifest.discard_reasons)
    ElementTree.indent(config)
    label_config = ElementTree.tostring(config, encoding="unicode") + "\n"
    text = instructions(tasks, group, has_spans=True)
    project = {
        "title": f"Steelyard {group}",
        "label_config": label_config,
        "expert_instruction": text,
        "show_instruction": True,
        # By default a task that one person has answered is given to nobody else.
        "maximum_annotations": max(1, of_group[0].entry.wanted),
    }
    return {
        "project.json": msgspec.json.format(msgspec.json.encode(project), indent=1).decode() + "\n",
        "config.xml": label_config,
        "tasks.json": msgspec.json.encode([_task(task) for task in of_group]).decode() + "\n",
        "instructions.md": text,
    }


def _config(entry: ManifestTask, reasons: Sequence[str]) -> ElementTree.Element:
    view = ElementTree.Element("View")
    _add(view, "Header", value=title("prompt"))
    _add(view, "Paragraphs", name="prompt", value="$prompt", layout="dialogue", nameKey="role", textKey="content")
    places = [FormChoice(str(place), str(place)) for place in range(1, len(entry.letters) + 1)]
    scores = [FormChoice(str(score), str(score)) for score in SCORES]
    for letter in entry.letters:
        name = f"response_{letter.lower()}"
        _add(view, "Header", value=title("response", letter))
        marks = _add(view, "Labels", name=f"problems_{letter.lower()}", toName=name)
        for choice in choices("problems"):
            _add(marks, "Label", value=choice.text)
        _add(view, "Text", name=name, value=f"${name}")
        if entry.has_scores:
            _add_choices(view, f"score_{letter.lower()}", name, title("score", letter), scores)
        _add_choices(view, f"place_{letter.lower()}", name, title("place", letter), places)
        listed = choices("discards", reasons)
        _add_choices(view, f"discard_{letter.lower()}", name, title("discard", letter), listed)
    _add_choices(view, "cannot_judge", "prompt", title("cannot_judge"), choices("cannot_judge"))
    _add(view, "Header", value=title("comment"))
    _add(view, "TextArea", name="comment", toName="prompt", rows="3", maxSubmissions="1")
    return view


def _add_choices(view: ElementTree.Element, name: str, to_name: str, text: str, listed: Sequence[FormChoice]) -> None:
    _add(view, "Header", value=text, size="5")
    box = _add(view, "Choices", name=name, toName=to_name, choice="single-radio", showInline="true")
    for choice in listed:
        _add(box, "Choice", value=choice.text)


def _add(parent: ElementTree.Element, tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.SubElement(parent, tag, attributes)


def _task(task: ExternalTask) -> JsonObject:
    data: JsonObject = {"task": task.entry.key, "language": task.entry.language or "", "category": task.category}
    data["prompt"] = [{"role": turn.role, "content": turn.content} for turn in task.prompt]
    return {"data": data | {f"response_{letter.lower()}": text for letter, text in task.texts.items()}}


def _export_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.json"))


def _read(path: Path, entries: Mapping[str, ManifestTask], log: ReadingLog) -> Iterator[ExternalAnswer]:
    """Yield every annotation of every task of a JSON export."""
    for row in read_rows(path):
        with log.faults.gathered():
            yield from _task_answers(row, entries, log)


def _task_answers(row: Row, entries: Mapping[str, ManifestTask], log: ReadingLog) -> Iterator[ExternalAnswer]:
    data, annotations = row.value.get("data"), row.value.get("annotations")
    if not isinstance(data, dict) or not isinstance(annotations, list):
        raise RecordError(
            "a task without data and annotations", where=row.place, allowed="the export format JSON", do="export it"
        )
    entry = entry_of(data.get("task"), entries, row.place)
    drafts = row.value.get("drafts")
    log.not_answers["drafts"] += len(drafts) if isinstance(drafts, list) else 0
    read: list[ExternalAnswer] = []
    for number, annotation in enumerate(annotations):
        place = row.at(f"annotations[{number}]")
        with log.faults.gathered():
            if not isinstance(annotation, dict) or not isinstance(annotation.get("result"), list):
                raise RecordError("an annotation without a result", where=place, allowed='{"result": […]}')
            read.append(_answer(annotation, data, entry, place))
    answered = {answer.person for answer in read if answer.cannot_judge != _SKIPPED}
    for answer in read:
        if answer.cannot_judge == _SKIPPED and answer.person in answered:
            log.not_answers["skipped, and answered as well"] += 1
        else:
            yield answer


def _answer(annotation: JsonObject, data: JsonObject, entry: ManifestTask, place: Place) -> ExternalAnswer:
    entered, marks = _entered(annotation["result"], place)
    lower = {letter: letter.lower() for letter in entry.letters}
    discards = {choice.text: choice.value for choice in choices("discards")}
    why = entered.get("cannot_judge")
    why = {choice.text: choice.value for choice in choices("cannot_judge")}.get(why or "", why)
    seconds = annotation.get("lead_time")
    return ExternalAnswer(
        source=place,
        task=entry.key,
        person=_person(annotation.get("completed_by"), place),
        places=numbers_by_letter(entered, entry.letters, "place", (1, len(entry.letters)), place),
        scores=numbers_by_letter(entered, entry.letters, "score", (SCORES[0], SCORES[-1]), place),
        discarded={
            letter: discards.get(entered[f"discard_{name}"], entered[f"discard_{name}"])
            for letter, name in lower.items()
            if f"discard_{name}" in entered
        },
        spans={
            letter: tuple(
                _span(mark, str(data.get(f"response_{name}", "")), place) for mark in marks[f"problems_{name}"]
            )
            for letter, name in lower.items()
            if f"problems_{name}" in marks
        },
        cannot_judge=_SKIPPED if why is None and annotation.get("was_cancelled") else why,
        remark=entered.get("comment") or None,
        seconds=float(seconds) if isinstance(seconds, int | float) and seconds >= 0 else None,
        at=moment_in(annotation.get("updated_at") or annotation.get("created_at")),
    )


def _entered(results: Sequence[Any], place: Place) -> tuple[dict[str, str], dict[str, list[JsonObject]]]:
    """Return what was chosen or written, and the marks, by the name of the control."""
    entered: dict[str, str] = {}
    marks: dict[str, list[JsonObject]] = {}
    for result in results:
        value = result.get("value") if isinstance(result, dict) else None
        if not isinstance(value, dict):
            raise RecordError("a result without a value", where=place)
        name = str(result.get("from_name"))
        if "labels" in value:
            marks.setdefault(name, []).append(value)
            continue
        texts = value.get("choices", value.get("text"))
        listed = [texts] if isinstance(texts, str) else texts
        if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
            continue
        text = "\n".join(listed)
        if entered.setdefault(name, text) != text:
            raise RecordError(f"two values of {name!r}", where=place, do="leave one out")
    return entered, marks


def _span(mark: JsonObject, text: str, place: Place) -> Span:
    """Return a mark in Unicode code points.

    Label Studio 1.23 counts in them, a browser by itself in units of UTF-16: the marked text says which it is.
    """
    start, end, label, marked = (mark.get(key) for key in ("start", "end", "labels", "text"))
    problems = {choice.text: choice.value for choice in choices("problems")}
    if isinstance(start, int) and isinstance(end, int) and isinstance(label, list) and label:
        kind = problems.get(str(label[0]), str(label[0]))
        if not isinstance(marked, str) or _letters(text[start:end]) == _letters(marked):
            return start, end, kind, None
        units = text.encode("utf-16-le")
        before, inside = (
            part.decode("utf-16-le", errors="replace") for part in (units[: 2 * start], units[2 * start : 2 * end])
        )
        if _letters(inside) == _letters(marked):
            return len(before), len(before) + len(inside), kind, None
    raise RecordError(f"a mark that is not in the text: {str(marked)[:40]!r}", where=place)


def _letters(text: str) -> str:
    """Return a text without spaces and line breaks."""
    return _SPACE.sub("", text)


def _person(completed_by: Any, place: Place) -> str:
    """Return the address of a person, else the number."""
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    if completed_by is None or isinstance(completed_by, list | bool):
        raise RecordError("an annotation of nobody", where=place, allowed="completed_by: a number or an account")
    return str(completed_by)


TOOL = ExternalTool("label_studio", _write, _export_files, _read)
