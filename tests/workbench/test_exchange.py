"""Tasks for other annotation tools and their answers, from recorded exports of the tools, in and out."""

import json
import shutil

import msgspec
import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from exchange_cases import ADA, BOB, EXPORTS, exchanged_cases, given_answers
from steelyard.annotation.answers import TaskAnswer, contradictions
from steelyard.annotation.external_answers import ExternalAnswer, missing_parts, task_answer
from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError, FileError, OutputError, Place, RecordError
from steelyard.io.cases import read_cases, write_cases
from steelyard.workbench.accounts.people import NewPerson, add_person
from steelyard.workbench.exchange.external_tools import read_export
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredAssignment,
    StoredEvent,
    StoredItem,
    StoredPerson,
    StoredTask,
)

TOOLS = ("argilla", "label_studio", "potato")
PEOPLE = ("--person", f"{ADA}=ada", "--person", f"{BOB}=bob")


class Bench:
    """A workbench with a project of the exchanged cases, and two annotators."""

    def __init__(self, template, folder):
        self.folder = folder
        path = folder / "workbench.db"
        path.write_bytes(template.read_bytes())
        self.database = Database(f"sqlite:///{path}")
        self.database.write(self._fill)
        write_cases(folder / "cases.jsonl", exchanged_cases())

    def _fill(self, session):
        project = add_project(session, "bench", ProjectSettings(), by=None, at=0.0)
        import_cases(session, project, exchanged_cases(), batch="b", by=None, at=0.0)
        for name, role in (("ada", "annotator"), ("bob", "annotator"), ("eve", "researcher")):
            add_person(session, NewPerson(name, role), by=None, at=0.0)

    def run(self, *words):
        address = ("--database", f"sqlite:///{self.folder / 'workbench.db'}")
        return CliRunner().invoke(build_app(), ["workbench", *map(str, (*words, *address))])

    def tasks(self, tool, *words):
        result = self.run("tasks", *words, "--format", tool, "--out", self.folder / "out")
        assert result.exit_code == 0, result.exception
        return self.folder / "out"

    def answers(self, export, *words):
        return self.run("answers", export, "--tasks", self.folder / "out", "--project", "bench", *words)

    def rows(self, statement):
        with self.database.reading() as session:
            return session.execute(statement).all()


@pytest.fixture
def bench(sqlite_template, tmp_path):
    made = Bench(sqlite_template, tmp_path)
    yield made
    made.database.close()


def in_ids(answer, shown):
    """An answer about letters as an answer about the responses that were shown under them."""
    text = msgspec.json.encode(answer).decode()
    for letter, response in zip("ABC", shown, strict=False):
        text = text.replace(f'"{letter}"', f'"{response}"')
    return msgspec.json.decode(text, type=TaskAnswer)


@pytest.mark.parametrize("tool", TOOLS)
def test_nothing_that_a_tool_loads_names_an_author(bench, tool):
    out = bench.tasks(tool, "--project", "bench")
    loaded = [path for path in out.rglob("*") if path.is_file() and path.name != "manifest.json"]
    assert {path.relative_to(out).parts[0] for path in loaded} == {"pairs_by_2", "triples_by_2"}
    for path in loaded:
        text = path.read_text(encoding="utf-8")
        assert not any(word in text for word in ("gpt", "GPT", "OpenAI"))
    assert any("[name]" in path.read_text(encoding="utf-8") for path in loaded)
    assert [event.detail for (event,) in bench.rows(select(StoredEvent).filter_by(action="tasks exported"))] == [
        {"tool": tool, "seed": 0, "tasks": 4}
    ]


def test_the_order_of_each_task_follows_from_the_seed(bench, tmp_path):
    def shown(seed, name):
        words = ("--project", "bench", "--format", "argilla", "--out", tmp_path / name, "--seed", seed)
        assert bench.run("tasks", *words).exit_code == 0
        manifest = json.loads((tmp_path / name / "manifest.json").read_text())
        assert manifest["seed"] == seed
        return [task["shown"] for task in manifest["tasks"]]

    first = shown(0, "a")
    assert first == shown(0, "b")
    assert any(first != shown(seed, f"c{seed}") for seed in range(1, 4))
    words = ("tasks", "--project", "bench", "--format", "argilla", "--out", tmp_path / "a")
    again = bench.run(*words)
    assert again.exit_code == 0
    assert "It was there, with equal content." in again.output
    assert isinstance(bench.run(*words, "--seed", 9).exception, OutputError)


@pytest.mark.parametrize("tool", TOOLS)
def test_answers_come_back_through_the_gate_and_only_once(bench, tool):
    out = bench.tasks(tool, "--project", "bench")
    result = bench.answers(EXPORTS / tool, *PEOPLE)
    assert result.exit_code == 0, result.exception
    assert result.output.startswith("7 answers of 8 stored in project bench.\n")
    assert "contradictory, left out: 1" in result.output
    manifest = {task["number"]: task["shown"] for task in json.loads((out / "manifest.json").read_text())["tasks"]}
    rows = bench.rows(
        select(StoredAnswer, StoredAssignment, StoredPerson.name)
        .join(StoredAssignment, StoredAnswer.assignment_id == StoredAssignment.id)
        .join(StoredPerson, StoredAnswer.person_id == StoredPerson.id)
    )
    stored = {(answer.task_id, name): msgspec.convert(answer.content, TaskAnswer) for answer, _, name in rows}
    expected = {
        (task, name): in_ids(answer, manifest[task])
        for task, both in given_answers(has_marks=tool != "potato").items()
        for name, answer in zip(("ada", "bob"), both, strict=True)
        if answer is not None
    }
    assert stored == expected
    assert all(assignment.shown == manifest[answer.task_id] for answer, assignment, _ in rows)
    # The pair is agreed on; of the triples one was not judged by Bob, and one lacks an answer.
    states = dict(bench.rows(select(StoredItem.prompt, StoredItem.state)))
    assert states["q0"] not in ("annotating", "aligning")
    assert (states["q2"], states["q3"]) == ("aligning", "annotating")
    assert len(bench.rows(select(StoredEvent).filter_by(action="answered"))) == 7
    assert bench.run("export", "--project", "bench", "--what", "paper", "--out", bench.folder / "paper").exit_code == 0
    paragraph = (bench.folder / "paper" / "paper.en.md").read_text(encoding="utf-8")
    # Argilla records no time: a median of nothing is not 0 seconds.
    assert ("median active time" in paragraph) == (tool != "argilla")
    again = bench.answers(EXPORTS / tool, *PEOPLE, "--json")
    made = json.loads(again.output)
    assert (made["stored"], made["before"], made["contradictory"]) == (0, 7, 1)
    assert "score against ranking" in made["left_out"][0]["reason"]
    assert len(bench.rows(select(StoredAnswer))) == 7


@pytest.mark.parametrize("tool", TOOLS)
def test_answers_go_straight_to_a_case_file_as_they_were_given(bench, tool, tmp_path):
    out = bench.tasks(tool, bench.folder / "cases.jsonl")
    tasks = json.loads((out / "manifest.json").read_text())["tasks"]
    export = tmp_path / "export"
    shutil.copytree(EXPORTS / tool, export)
    for path in export.rglob("*.json"):
        text = path.read_text(encoding="utf-8")
        for number, task in enumerate(tasks, start=1):
            text = text.replace(f'"task-{number}"', f'"{task["key"]}"')
        path.write_text(text, encoding="utf-8")
    judged = tmp_path / "judged.jsonl"
    words = ("answers", export, "--tasks", out, *PEOPLE)
    result = bench.run(*words, "--cases", bench.folder / "cases.jsonl", "--out", judged)
    assert result.exit_code == 0, result.exception
    assert "8 answers of 8 added" in result.output
    written = judged.read_bytes()
    # Again the same; nothing else is replaced unasked, and never the cases themselves.
    assert bench.run(*words, "--cases", bench.folder / "cases.jsonl", "--out", judged).exit_code == 0
    assert judged.read_bytes() == written
    own = bench.folder / "cases.jsonl"
    assert "is the case file that is read" in str(bench.run(*words, "--cases", own, "--out", own, "--force").exception)
    judged.write_text("another file\n")
    assert "--force" in bench.run(*words, "--cases", own, "--out", judged).exception.do
    assert judged.read_text() == "another file\n"
    assert bench.run(*words, "--cases", own, "--out", judged, "--force").exit_code == 0
    assert judged.read_bytes() == written
    assert "contradictory, written as they are: meta.contradictions says what: 1" in result.output
    read = list(read_cases(judged))
    assert [len(case.judgments) for case in read] == [2, 6, 6, 6]
    assert {judgment.judge for case in read for judgment in case.judgments} == {"ada", "bob"}
    shown = tasks[3]["shown"]
    verdicts = {(each.left, each.right): each for each in read[3].judgments if each.judge == "bob"}
    assert verdicts[shown[0], shown[1]].verdict == "tie"
    assert verdicts[shown[0], shown[2]].verdict == "left"
    assert verdicts[shown[0], shown[2]].meta["contradictions"]
    ratings = {each.response: each.value for each in read[3].ratings if each.rater == "bob"}
    assert [ratings[response] for response in shown] == [2, 4, 5]
    # Read into its own result, nothing is added twice.
    again = bench.run(*words, "--cases", judged, "--out", tmp_path / "again.jsonl", "--json")
    assert json.loads(again.output)["before"] == 8
    assert (tmp_path / "again.jsonl").read_bytes() == judged.read_bytes()


def test_an_unknown_person_is_an_error_whose_remedy_works(bench):
    bench.tasks("argilla", "--project", "bench")
    refused = bench.answers(EXPORTS / "argilla", "--person", f"{ADA}=ada").exception
    assert isinstance(refused, ConfigError)
    assert "pairs_by_2.json:items[0] at responses[1]" in str(refused)
    assert f"--person {BOB}=NAME" in refused.do
    assert bench.rows(select(StoredAnswer)) == []
    assert bench.answers(EXPORTS / "argilla", "--person", f"{ADA}=ada", "--person", f"{BOB}=bob").exit_code == 0
    reviewer = bench.answers(EXPORTS / "argilla", "--person", f"{ADA}=eve", "--person", f"{BOB}=bob").exception
    assert "role researcher" in str(reviewer)


def changed_page(folder, change):
    """A copy of the recorded page of triples after a change of its record of the second task."""
    page = json.loads((EXPORTS / "argilla" / "triples_by_2.json").read_text(encoding="utf-8"))
    change(page["items"][0])
    path = folder / "page.json"
    path.write_text(json.dumps(page), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda record: record.update(external_id="task-77"), "items[0]: the task 'task-77' was not exported"),
        (lambda record: record["responses"].append(
            record["responses"][0] | {"values": record["responses"][1]["values"]}
        ), "items[0] at responses[2]: a second answer"),
        (lambda record: record["responses"][0]["values"]["score_a"].update(value=7), "'7' as the score of A"),
        (lambda record: record["responses"][0]["values"]["problems_a"]["value"][0].update(end=999), "a span from 0"),
        (lambda record: record["responses"][0]["values"].update(ranking={"value": ["A", "B", "C"]}), "without ranks"),
        (lambda record: record["responses"][0]["values"].update(ranking={"value": [{"value": "D"}]}), "'D' in the"),
        (lambda record: record.update(responses=None), "no responses"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_place_and_nothing_is_stored(bench, tmp_path, change, problem):
    bench.tasks("argilla", "--project", "bench")
    refused = bench.answers(changed_page(tmp_path, change), *PEOPLE).exception
    assert isinstance(refused, RecordError)
    assert f"{tmp_path / 'page.json'}:" in str(refused)
    assert problem in str(refused)
    assert bench.rows(select(StoredAnswer)) == []


def test_all_answers_that_are_wrong_are_named_and_none_is_stored(bench, tmp_path):
    """One of them ended the import, and the next try found the next one."""

    def wrong(record):
        first, second = record["responses"]
        first["values"]["score_a"]["value"] = 7
        second["values"]["score_b"]["value"] = "many"

    bench.tasks("argilla", "--project", "bench")
    path = changed_page(tmp_path, wrong)
    page = json.loads(path.read_text(encoding="utf-8"))
    page["items"].append(page["items"][0] | {"external_id": "task-77"})
    path.write_text(json.dumps(page), encoding="utf-8")
    first, *faults, remedy = str(bench.answers(path, *PEOPLE).exception).split("\n")
    assert first == "3 answers are wrong, and nothing was imported"
    places = ("[0] at responses[0]: '7'", "[0] at responses[1]: 'many'", f"[{len(page['items']) - 1}]: the task")
    for place, fault in zip(places, faults, strict=True):
        assert fault.startswith(f"  {path}:items{place}")
    assert "name the folder that these tasks were exported to" in remedy
    assert bench.rows(select(StoredAnswer)) == []


def test_all_answers_that_differ_from_earlier_ones_are_named(bench, tmp_path):
    def change(record):
        for response in record["responses"]:
            score = response["values"]["score_c"]
            score["value"] = 1 + score["value"] % 5

    bench.tasks("argilla", "--project", "bench")
    words = ("--tasks", bench.folder / "out", "--project", "bench", *PEOPLE)
    refused = bench.run("answers", EXPORTS / "argilla", changed_page(tmp_path, change), *words).exception
    assert str(refused).startswith("2 answers are wrong, and nothing was imported\n")
    assert str(refused).count("a second answer of") == 2
    assert bench.rows(select(StoredAnswer)) == []


def test_a_skipped_task_cannot_be_judged_and_marks_must_be_in_the_text(bench, tmp_path):
    bench.tasks("label_studio", "--project", "bench")
    tasks = json.loads((EXPORTS / "label_studio" / "triples_by_2.json").read_text(encoding="utf-8"))
    skipped = {"completed_by": 7, "result": [], "was_cancelled": True, "lead_time": 3.5}
    path = tmp_path / "export.json"
    path.write_text(json.dumps([tasks[0] | {"annotations": [skipped]}]), encoding="utf-8")
    assert bench.answers(path, "--person", "7=ada").exit_code == 0
    ((answer,),) = bench.rows(select(StoredAnswer))
    assert msgspec.convert(answer.content, TaskAnswer) == TaskAnswer(cannot_judge="skipped in Label Studio")
    assert answer.seconds == 3.5
    mark = next(each for each in tasks[0]["annotations"][0]["result"] if each["type"] == "labels")
    mark["value"]["text"] = "elsewhere"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    refused = bench.answers(path, *PEOPLE).exception
    assert f"{path}[0] at annotations[0]: a mark that is not in the text" in str(refused)


def test_a_mark_over_lines_as_label_studio_writes_it_and_a_skip_before_an_answer(bench, tmp_path):
    """The mark was made in Label Studio 1.23.2 by mouse: it folds spaces, and writes a line break as two characters."""
    bench.tasks("label_studio", "--project", "bench")
    tasks = json.loads((EXPORTS / "label_studio" / "triples_by_2.json").read_text(encoding="utf-8"))
    response = "  \N{GRINNING FACE} Alpha line\r\n\r\n\tsecond & <i>line</i> \\n back  omega end\n"
    shown = "Alpha line\\n\\n\\n\\nsecond & <i>line</i> \\n back omega"
    value = {"start": 4, "end": 54, "text": shown, "labels": ["factual error / 事实错误"]}
    mark = {"value": value, "from_name": "problems_a", "to_name": "response_a", "type": "labels", "origin": "manual"}
    answered = tasks[0]["annotations"][0]
    answered["result"] = [each for each in answered["result"] if each["type"] != "labels"] + [mark]
    skipped = answered | {"result": [], "was_cancelled": True}
    tasks[0]["data"]["response_a"] = response
    path = tmp_path / "export.json"
    path.write_text(json.dumps([tasks[0] | {"annotations": [skipped, answered]}]), encoding="utf-8")
    read = read_export([path], bench.folder / "out")
    (answer,) = read.answers
    assert answer.spans == {"A": ((4, 54, "factual error", None),)}
    assert response[4:54].split() == ["Alpha", "line", "second", "&", "<i>line</i>", r"\n", "back", "omega"]
    assert read.not_answers == {"skipped, and answered as well": 1}


def changed_state(folder, change):
    """A copy of what Potato recorded of Ada's triples after a change."""
    (recorded,) = (EXPORTS / "potato" / "triples_by_2").rglob(f"{ADA}/user_state.json")
    state = json.loads(recorded.read_text(encoding="utf-8"))
    change(state, state["instance_id_to_label_to_value"])
    path = folder / "user_state.json"
    path.write_text(json.dumps(state), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda _, labels: labels.update({"task-77": labels.pop("task-2")}), "the task 'task-77' was not exported"),
        (lambda _, labels: labels["task-2"].append([{"schema": "place_a", "name": "3"}, "3"]), "two values of"),
        (lambda _, labels: labels["task-2"].append([{"schema": "place_a"}, "3"]), "no label with a value"),
        (lambda _, labels: labels.update({"task-2": [[{"schema": "score_a", "name": "9"}, "9"]]}), "as the score of A"),
        (lambda _, labels: labels.update({"task-2": None}), "no label with a value"),
        (lambda state, _: state.pop("user_id"), "has no answers of a person"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_state_of_potato_is_refused_with_its_place(bench, tmp_path, change, problem):
    bench.tasks("potato", "--project", "bench")
    path = changed_state(tmp_path, change)
    refused = bench.answers(path, *PEOPLE).exception
    assert isinstance(refused, RecordError | FileError)
    assert str(path) in str(refused)
    assert problem in str(refused)
    assert bench.rows(select(StoredAnswer)) == []


def test_a_choice_of_none_in_potato_is_no_reason_and_a_task_left_empty_is_counted(bench, tmp_path):
    def change(_, labels):
        labels["task-2"] += [[{"schema": name, "name": "none"}, "none"] for name in ("discard_a", "cannot_judge")]
        labels["task-3"] = [[{"schema": "discard_b", "name": "none"}, "none"]]

    out = bench.tasks("potato", "--project", "bench")
    made = json.loads(bench.answers(changed_state(tmp_path, change), *PEOPLE, "--json").output)
    assert (made["stored"], made["not_answers"]) == (2, {"tasks without an answer": 1})
    config = json.loads((out / "triples_by_2" / "config.yaml").read_text(encoding="utf-8"))
    names = [[label["name"] for label in scheme.get("labels", ())] for scheme in config["annotation_schemes"]]
    assert names[:2] == [["0", "1", "2", "3", "4", "5"], ["1", "2", "3"]]
    assert [label for label in names[2] if label == "none"] == ["none"]


def test_an_answer_that_changed_since_is_refused_and_an_incomplete_one_is_counted(bench, tmp_path):
    bench.tasks("argilla", "--project", "bench")
    incomplete = changed_page(tmp_path, lambda record: record["responses"][0]["values"].pop("score_b"))
    result = bench.answers(incomplete, *PEOPLE)
    assert "incomplete, left out: 1" in result.output
    assert "no score of B" in result.output
    assert bench.answers(EXPORTS / "argilla", *PEOPLE).exit_code == 0
    changed = changed_page(tmp_path, lambda record: record["responses"][0]["values"]["score_c"].update(value=1))
    assert "another answer" in str(bench.answers(changed, *PEOPLE).exception)


def test_a_task_that_has_its_answers_by_now_takes_no_more(bench):
    bench.tasks("argilla", "--project", "bench")

    def close(session):
        for task in session.scalars(select(StoredTask)):
            task.num_reserved, task.is_open = task.num_wanted, False

    bench.database.write(close)
    assert "too late, left out: 7" in bench.answers(EXPORTS / "argilla", *PEOPLE).output


def test_what_a_killed_command_left_is_removed_by_the_next(bench):
    left = bench.folder / ".out.killed.part"
    (left / "whole").mkdir(parents=True)
    bench.tasks("argilla", "--project", "bench")
    assert not left.exists()


def test_tasks_and_answers_of_the_wrong_place_are_refused(bench, tmp_path):
    out = bench.tasks("argilla", "--project", "bench")
    assert isinstance(bench.answers(out / "manifest.json").exception, FileError)
    (tmp_path / "empty").mkdir()
    assert "has no export of argilla" in str(bench.answers(tmp_path / "empty").exception)
    words = ("answers", EXPORTS / "argilla", "--tasks", out)
    assert "name --project" in bench.run(*words).exception.do
    to_cases = bench.run(*words, "--cases", bench.folder / "cases.jsonl", "--out", tmp_path / "o")
    assert "--project bench" in to_cases.exception.do
    absent = bench.run("answers", EXPORTS / "argilla", "--tasks", tmp_path / "none", "--project", "bench")
    assert isinstance(absent.exception, FileError)
    (tmp_path / "manifest.json").write_text("[]")
    assert "no manifest" in str(bench.run("answers", out, "--tasks", tmp_path, "--project", "bench").exception)
    assert isinstance(bench.run("tasks", "--format", "argilla", "--out", tmp_path / "x").exception, ConfigError)


def test_places_make_a_ranking_and_its_comparisons():
    def external(**values):
        empty = {"places": {}, "scores": {}, "discarded": {}, "spans": {}}
        return ExternalAnswer(source=Place("f"), task="t", person="p", **(empty | values))

    entered = external(places={"A": 2, "B": 1, "C": 2}, scores={"A": 3, "B": 3, "C": 3})
    answer = task_answer(entered, "ABC", has_scores=True)
    assert answer.ranking == (("B",), ("A", "C"))
    assert [(each.first, each.second, each.choice) for each in answer.comparisons] == [
        ("A", "B", "worse"), ("A", "C", "same"), ("B", "C", "better"),
    ]  # fmt: skip
    assert contradictions(answer, "ABC") == ()
    # Places from 1 with a gap, as ranks are often written, mean the same.
    assert task_answer(entered._replace(places={"A": 3, "B": 1, "C": 3}), "ABC", has_scores=True) == answer
    assert missing_parts(external(places={"A": 1}), "AB", has_scores=False) == ("no place of B",)
    # What is left of a discarded pair is nothing to compare; with scores it is a ranking of one.
    alone = external(discarded={"A": "empty"}, scores={"B": 4})
    assert missing_parts(alone, "AB", has_scores=True) == ()
    assert task_answer(alone, "AB", has_scores=True).ranking == (("B",),)
    assert task_answer(alone, "AB", has_scores=False) == TaskAnswer(discarded={"A": "empty"})
