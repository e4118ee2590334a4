"""What the annotator's page asks of the workbench: tasks without names, drafts, answers, and nothing of others."""

import itertools
import time

import pytest
from sqlalchemy import select

from steelyard.annotation.pipeline import PipelineRules
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.workbench.accounts.people import make_key
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import StoredAnswer, StoredAssignment, StoredGuideline, StoredItem, StoredTask
from workbench_people import NOON, content_of
from workbench_server import Login, ServedWorkbench

names = itertools.count(1)
TEXTS = ("I am ChatGPT, made by OpenAI. 蓝色 😀 is *blue*.", "<script>alert(1)</script> <b>bold</b>", "A third one.")
RANKED = {"scores": {"A": 5, "B": 3, "C": 1}, "ranking": [["A"], ["B"], ["C"]]}


@pytest.fixture(scope="module")
def served(sqlite_template, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "workbench.db"
    path.write_bytes(sqlite_template.read_bytes())
    database = Database(f"sqlite:///{path}")
    database.write(make_key)
    server = ServedWorkbench(f"sqlite:///{path}")
    yield database, server
    server.kill()
    database.close()


def make(database, *, num_cases=1, num_annotators=2):
    """Make a project of its own for a test; returns its id."""

    def work(session):
        settings = ProjectSettings(rules=PipelineRules(gold_share=0, num_annotators=num_annotators))
        project = add_project(session, f"project {next(names)}", settings, by=None, at=NOON)
        cases = [
            Case(
                prompt=Prompt(id=f"q{number}", messages=(Message(role="user", content="Why is the sky blue?"),)),
                responses=tuple(Response(id=f"gpt-4-{n}", author="gpt-4", text=text) for n, text in enumerate(TEXTS)),
            )
            for number in range(num_cases)
        ]
        import_cases(session, project, cases, batch="b", by=None, at=NOON)
        return project.id

    return database.write(work)


def login(database):
    return Login(database, f"person {next(names)}")


def tasks_of(served, person, project, number=2):
    status, data = served[1].request("GET", f"/annotate/tasks?project={project}&number={number}", person)
    assert status == 200
    return data


def stored(database, table, **fields):
    with database.reading() as session:
        return session.scalars(select(table).filter_by(**fields)).all()


def let_time_pass(database, assignment, seconds=600):
    """Make the workbench believe that a task was assigned, and its latest draft came, earlier."""

    def shift(session):
        row = session.get_one(StoredAssignment, assignment)
        row.assigned_at -= seconds
        if row.active_at is not None:
            row.active_at -= seconds

    database.write(shift)


def test_a_task_names_no_model_and_runs_nothing(served):
    database, server = served
    project, person = make(database), login(database)
    data = tasks_of(served, person, project)
    assert "gpt-4" not in str(data)
    assert "ChatGPT" not in str(data)
    assert "OpenAI" not in str(data)
    (task,) = data["tasks"]
    assert [each["id"] for each in task["responses"]] == ["A", "B", "C"]
    assert {each["raw"] for each in task["responses"]} == {
        "I am [name], made by [name]. 蓝色 😀 is *blue*.",
        *TEXTS[1:],
    }
    html = "".join(each["html"] for each in task["responses"])
    assert "<script" not in html
    assert "<b>" not in html
    assert "<em>blue</em>" in html
    status, text = server.request("GET", f"/annotate?project={project}", person)
    assert status == 200
    assert "gpt-4" not in text


def test_an_answer_is_stored_with_the_ids_and_spans_of_the_stored_text(served):
    database, server = served
    project, person = make(database), login(database)
    (task,) = tasks_of(served, person, project)["tasks"]
    (letter,) = [each["id"] for each in task["responses"] if each["raw"].startswith("I am")]
    raw = next(each["raw"] for each in task["responses"] if each["id"] == letter)
    # The first mask and the face, each as a person marks it.
    face = raw.index("😀")
    spans = {letter: [[5, 11, "other", None], [face, face + 1, "format or style", "why"]]}
    path = f"/annotate/{task['assignment']}"
    answer = RANKED | {"spans": spans}
    let_time_pass(database, task["assignment"])
    assert server.request("POST", f"{path}/draft?seconds=2.5", person, body={"spans": spans}) == (
        200,
        {"outcome": "open"},
    )
    (again,) = tasks_of(served, person, project)["tasks"]
    assert again["assignment"] == task["assignment"]
    # The whole mask is what a part of it stands for.
    assert again["draft"]["spans"] == {letter: [[5, 11, "other", None], [face, face + 1, "format or style", "why"]]}
    let_time_pass(database, task["assignment"])
    for outcome in ("stored", "stored before"):
        assert server.request("POST", f"{path}/answer?seconds=1.5", person, body=answer) == (200, {"outcome": outcome})
    (row,) = stored(database, StoredAnswer, assignment_id=task["assignment"])
    content = content_of(row)
    (assignment,) = stored(database, StoredAssignment, id=task["assignment"])
    assert content.ranking == tuple((response,) for response in assignment.shown)
    assert row.seconds == 4.0
    (marks,) = content.spans.values()
    assert [TEXTS[0][start:end] for start, end, *_ in marks] == ["ChatGPT", "😀"]
    assert tasks_of(served, person, project) == {"tasks": [], "guidelines": {}, "reason": "all had"}
    status, figures = server.request("GET", f"/annotate/progress?project={project}&since=0", person)
    assert (status, figures) == (200, {"today": 1, "total": 1, "agreement": None, "to_align": 0})


@pytest.mark.parametrize(("waited", "most"), [(0, 0), (50, 50), (600, 120)])
def test_no_more_seconds_are_stored_than_the_server_saw_pass(served, waited, most):
    database, server = served
    project, person, start = make(database), login(database), time.time()
    (task,) = tasks_of(served, person, project)["tasks"]
    number, path = task["assignment"], f"/annotate/{task['assignment']}"
    let_time_pass(database, number, seconds=waited)
    for _ in range(40):
        assert server.request("POST", f"{path}/draft?seconds=119", person, body={})[0] == 200
    assert server.request("POST", f"{path}/answer?seconds=119", person, body=RANKED)[0] == 200
    passed = time.time() - start
    (row,) = stored(database, StoredAnswer, assignment_id=number)
    assert min(most, 119) <= row.seconds <= most + passed


def test_agreement_is_shown_after_the_gate(served):
    database, server = served
    project, people = make(database), [login(database), login(database)]
    for person in people:
        (task,) = tasks_of(served, person, project)["tasks"]
        order = sorted(task["responses"], key=lambda each: each["raw"])
        scores = {each["id"]: 5 - place for place, each in enumerate(order)}
        body = {"scores": scores, "ranking": [[each["id"]] for each in order]}
        assert server.request("POST", f"/annotate/{task['assignment']}/answer", person, body=body)[0] == 200
    _, figures = server.request("GET", f"/annotate/progress?project={project}", people[0])
    assert figures["agreement"] == 1.0
    (item,) = stored(database, StoredItem, project_id=project)
    assert item.state != "annotating"
    assert tasks_of(served, login(database), project)["reason"] == "all taken"


@pytest.mark.parametrize("action", ["draft", "answer", "release"])
def test_an_assignment_of_another_person_does_not_exist(served, action):
    database, server = served
    project, person, other = make(database), login(database), login(database)
    (task,) = tasks_of(served, person, project)["tasks"]
    assert server.request("POST", f"/annotate/{task['assignment']}/{action}", other, body=RANKED)[0] == 404
    assert server.request("POST", f"/annotate/999999999/{action}", other, body=RANKED)[0] == 404
    (row,) = stored(database, StoredAssignment, id=task["assignment"])
    assert (row.state, row.draft) == ("open", None)


def test_a_change_needs_the_token_of_the_session(served):
    database, server = served
    project, person = make(database), login(database)
    (task,) = tasks_of(served, person, project)["tasks"]
    path = f"/annotate/{task['assignment']}/answer"
    assert server.request("POST", path, person, body=RANKED, token="forged")[0] == 403
    assert server.request("POST", path, None, body=RANKED)[0] == 401
    assert stored(database, StoredAnswer, assignment_id=task["assignment"]) == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        {"scores": {"A": 5}},
        {"scores": {"D": 5, "B": 3, "C": 1}, "ranking": [["A"], ["B"], ["C"]]},
        {"scores": {"A": 9, "B": 3, "C": 1}, "ranking": [["A"], ["B"], ["C"]]},
        {"scores": {"A": 5, "B": 3, "C": 1}, "ranking": [["C"], ["B"], ["A"]]},
        {"scores": {"A": 5, "B": 3, "C": 1}, "ranking": [["A"], ["B"]]},
        RANKED | {"more": 1},
        RANKED | {"spans": {"A": [[0, 10**6, "other", None]]}},
        RANKED | {"spans": {"A": [[-1, 1, "other", None]]}},
        RANKED | {"remark": "x" * 3000},
        {"scores": {"A": 5, "B": 3}, "ranking": [["A"], ["B"]], "discarded": {"C": "because"}},
    ],
)
def test_what_the_page_never_sends_is_refused_and_stores_nothing(served, body):
    database, server = served
    project, person = make(database), login(database)
    (task,) = tasks_of(served, person, project)["tasks"]
    status, data = server.request("POST", f"/annotate/{task['assignment']}/answer", person, body=body)
    assert status == 400, data
    assert data["error"]
    assert stored(database, StoredAnswer, assignment_id=task["assignment"]) == []


def test_a_task_that_is_handed_back_is_free_for_others(served):
    database, server = served
    project, person = make(database, num_annotators=1), login(database)
    (task,) = tasks_of(served, person, project)["tasks"]
    other = login(database)
    assert tasks_of(served, other, project)["tasks"] == []
    path = f"/annotate/{task['assignment']}/release"
    assert server.request("POST", path, person, body={}) == (200, {"outcome": "released"})
    assert server.request("POST", path, person, body={}) == (200, {"outcome": "released"})
    assert len(tasks_of(served, other, project)["tasks"]) == 1
    assert stored(database, StoredTask, project_id=project)[0].num_reserved == 1


def test_an_answer_is_filed_under_the_guideline_that_was_shown(served):
    database, server = served
    project, person = make(database, num_cases=2), login(database)

    def write(version, language):
        def work(session):
            row = StoredGuideline(
                project_id=project, language=language, version=version, text=f"**Version {version}**", at=NOON
            )
            session.add(row)
            session.flush()
            return row.id

        return database.write(work)

    first, _ = write(1, "en"), write(3, "zh")
    data = tasks_of(served, person, project)
    assert data["guidelines"] == {str(first): {"version": 1, "html": "<p><strong>Version 1</strong></p>\n"}}
    second = write(2, "en")
    for task, shown, filed in zip(data["tasks"], (first, 999999), (first, second), strict=True):
        path = f"/annotate/{task['assignment']}/answer?guideline={shown}"
        assert server.request("POST", path, person, body=RANKED)[0] == 200
        (row,) = stored(database, StoredAnswer, assignment_id=task["assignment"])
        assert row.guideline_id == filed


@pytest.mark.parametrize(
    "path", ["/annotate?project=999999", "/annotate/tasks?project=999999", "/annotate/progress?project=999999"]
)
def test_a_project_that_does_not_exist_is_not_found(served, path):
    assert served[1].request("GET", path, login(served[0]))[0] == 404
