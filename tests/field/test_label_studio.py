"""Tasks into Label Studio itself, answers of its people, its own export, and back."""

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from browser import CHROMIUM
from browser_tab import Tab
from exchange_cases import exchanged_cases, given_answers
from label_studio_server import LabelStudioPerson, label_studio
from steelyard.annotation.external_answers import task_answer
from steelyard.cli.main import build_app
from steelyard.io.cases import read_cases, write_cases
from steelyard.workbench.exchange.external_forms import choices
from steelyard.workbench.exchange.external_tools import read_export

PROGRAM = Path(__file__).parents[2] / ".peers" / "label_studio" / "bin" / "label-studio"
pytestmark = pytest.mark.field
TEXT = "  😀 Alpha line\r\n\r\n\tsecond & <i>line</i> \\n back  omega end\n"
"""A response whose marks are hard to place: a character of two units, line breaks of Windows, spaces, markup."""
BOXES = """(word => { const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const at = walk.currentNode.data.indexOf(word); if (at < 0) continue;
    const range = document.createRange();
    range.setStart(walk.currentNode, at); range.setEnd(walk.currentNode, at + word.length);
    const box = range.getBoundingClientRect(), middle = box.y + box.height / 2;
    if (box.width) found.push([box.x + 1, middle, box.x + box.width, middle]); }
  return found; })"""


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    if not PROGRAM.exists():
        pytest.skip("Label Studio is not installed here: `make peers` does it, with a network")
    with label_studio(PROGRAM, tmp_path_factory.mktemp("label_studio")) as address:
        yield [LabelStudioPerson(address, f"{name}@example.org", "/user/signup/") for name in ("ada", "bob")]


def steelyard(*words):
    result = CliRunner().invoke(build_app(), ["workbench", *map(str, words)])
    assert result.exit_code == 0, result.exception
    return result.output


def results_of(answer, texts):
    """What the pages of Label Studio send for an answer about letters."""

    def choice(name, to, text):
        return {"from_name": name, "to_name": to, "type": "choices", "value": {"choices": [text]}, "origin": "manual"}

    def chosen(listed, value):
        return {each.value: each.text for each in choices(listed)}[value]

    made, lower = [], {letter: letter.lower() for letter in texts}
    for letter, score in answer.scores.items():
        made.append(choice(f"score_{lower[letter]}", f"response_{lower[letter]}", str(score)))
    for place, tier in enumerate(answer.ranking, start=1):
        made += [choice(f"place_{lower[each]}", f"response_{lower[each]}", str(place)) for each in tier]
    for letter, reason in answer.discarded.items():
        made.append(choice(f"discard_{lower[letter]}", f"response_{lower[letter]}", chosen("discards", reason)))
    for letter, spans in answer.spans.items():
        for start, end, kind, _ in spans:
            value = {"start": start, "end": end, "text": texts[letter][start:end], "labels": [chosen("problems", kind)]}
            shape = {"from_name": f"problems_{lower[letter]}", "to_name": f"response_{lower[letter]}", "type": "labels"}
            made.append({**shape, "value": value, "origin": "manual"})
    if answer.cannot_judge:
        made.append(choice("cannot_judge", "prompt", chosen("cannot_judge", answer.cannot_judge)))
    if answer.remark:
        shape = {"from_name": "comment", "to_name": "prompt", "type": "textarea", "origin": "manual"}
        made.append({**shape, "value": {"text": answer.remark.split("\n")}})
    return made


def test_answers_come_back_equal_with_who_gave_them(people, tmp_path):
    ada, bob = people
    cases, out, export = tmp_path / "cases.jsonl", tmp_path / "out", tmp_path / "export"
    write_cases(cases, exchanged_cases())
    steelyard("tasks", cases, "--format", "label_studio", "--out", out)
    entries = json.loads((out / "manifest.json").read_text())["tasks"]
    numbers = {entry["key"]: number for number, entry in enumerate(entries, start=1)}
    given = given_answers()
    export.mkdir()
    for folder in filter(Path.is_dir, out.iterdir()):
        project = ada.make_project(folder)
        for key, task in ada.tasks(project).items():
            texts = {letter: task["data"].get(f"response_{letter.lower()}", "") for letter in "ABC"}
            for person, answer in zip(people, given[numbers[key]], strict=True):
                if answer is not None:
                    # Both people get the task, the second one after the first has answered it.
                    assert person.json("GET", f"/api/projects/{project}/next")["data"]["task"] == key
                    person.annotate(task, results_of(answer, texts))
        (export / f"{project}.json").write_text(ada.export(project), encoding="utf-8")
    read = read_export([export], out)
    found = {}
    for answer in read.answers:
        entry = read.manifest.by_key[answer.task]
        found[numbers[answer.task], answer.person] = task_answer(answer, entry.letters, has_scores=entry.has_scores)
        assert answer.seconds == 12.5
    expected = {
        (number, str(person.number)): answer
        for number, both in given.items()
        for person, answer in zip(people, both, strict=True)
        if answer is not None
    }
    assert found == expected
    names = ("--person", f"{ada.number}=ada", "--person", f"{bob.number}=bob")
    steelyard("answers", export, "--tasks", out, *names, "--cases", cases, "--out", tmp_path / "judged.jsonl")
    judged = list(read_cases(tmp_path / "judged.jsonl"))
    assert {each.judge for case in judged for each in case.judgments} == {"ada", "bob"}


def test_skipped_drafted_and_repeated_annotations(people, tmp_path):
    ada, bob = people
    cases, out, export = tmp_path / "cases.jsonl", tmp_path / "out", tmp_path / "export.json"
    write_cases(cases, exchanged_cases()[:1])
    steelyard("tasks", cases, "--format", "label_studio", "--out", out)
    project = ada.make_project(out / "pairs_by_2")
    (task,) = ada.tasks(project).values()
    results = results_of(given_answers()[1][0], {"A": "", "B": ""})
    ada.annotate(task, [], is_skipped=True)
    ada.annotate(task, results)
    bob.annotate(task, [], is_skipped=True)
    bob.json("POST", f"/api/tasks/{task['id']}/drafts?project={project}", {"result": results, "lead_time": 3})
    export.write_text(ada.export(project), encoding="utf-8")
    read = read_export([export], out)
    assert {answer.person: answer.cannot_judge for answer in read.answers} == {
        str(ada.number): None,
        str(bob.number): "skipped in Label Studio",
    }
    assert read.not_answers == {"drafts": 1, "skipped, and answered as well": 1}


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_a_mark_over_several_lines_is_where_it_was_made(people, tmp_path):
    ada, _ = people
    cases, out, export = tmp_path / "cases.jsonl", tmp_path / "out", tmp_path / "export.json"
    write_cases(cases, exchanged_cases()[:1])
    steelyard("tasks", cases, "--format", "label_studio", "--out", out)
    folder = out / "pairs_by_2"
    tasks = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    tasks[0]["data"]["response_a"] = TEXT
    (folder / "tasks.json").write_text(json.dumps(tasks), encoding="utf-8")
    project = ada.make_project(folder)
    (task,) = ada.tasks(project).values()
    with Tab(tmp_path / "profile", height=2200) as tab:
        for name, value in ada.cookies.items():
            tab.set_cookie(ada.address, name, value)
        tab.open(f"{ada.address}/projects/{project}/data?task={task['id']}")
        mark_and_submit(tab)
    tab_export = ada.export(project)
    export.write_text(tab_export, encoding="utf-8")
    (answer,) = read_export([export], out).answers
    ((start, end, kind, _),) = answer.spans["A"]
    assert TEXT[start:end] == TEXT[TEXT.index("Alpha") : TEXT.index("omega") + len("omega")]
    assert kind == "factual error"


def mark_and_submit(tab):
    """Mark from Alpha to omega as a factual error by mouse, and submit."""

    def press(place):
        mouse(tab, "mouseMoved", place)
        mouse(tab, "mousePressed", place, button="left", clickCount=1)
        mouse(tab, "mouseReleased", place, button="left", clickCount=1)

    tab.wait(f"{BOXES}('factual error').length && {BOXES}('omega').length && {BOXES}('Submit').length")
    for _ in range(10):
        # The page takes marks some moments after it shows the text.
        press(tab.value(f"{BOXES}('factual error')[0]")[:2])
        drag(tab, tab.value(f"{BOXES}('Alpha').at(-1)")[:2], tab.value(f"{BOXES}('omega').at(-1)")[2:])
        time.sleep(1)
        if not tab.value(f"{BOXES}('Labeled regions will appear here').length"):
            break
    press(tab.value(f"{BOXES}('Submit').at(-1)")[:2])
    tab.wait(f"{BOXES}('Update').length")


def mouse(tab, kind, place, **more):
    """Move or press the mouse at a place of the page."""
    tab.protocol("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], **more)


def drag(tab, start, end):
    """Select from one place to another by mouse."""
    mouse(tab, "mouseMoved", start)
    mouse(tab, "mousePressed", start, button="left", clickCount=1)
    for step in range(1, 11):
        place = [first + (last - first) * step / 10 for first, last in zip(start, end, strict=True)]
        mouse(tab, "mouseMoved", place, button="left", buttons=1)
        tab.value("new Promise(requestAnimationFrame)")
    mouse(tab, "mouseReleased", end, button="left", clickCount=1)
