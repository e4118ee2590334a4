"""The REST interface: what programs read and write, its pages, its errors, and requests drawn from its description."""

import json

import hypothesis
import msgspec
import pytest
from sqlalchemy import select

from steelyard.core.types import Case
from steelyard.workbench.storage.tables import StoredEvent, StoredItem
from workbench_people import NOON, answer_all
from workbench_site import case_lines

PROJECTS = "/api/v1/projects"


@pytest.fixture
def admin(visit):
    return visit.program(visit.site.tokens["administrator"])


def test_a_project_is_made_with_settings_and_shown(admin):
    made = admin.post(PROJECTS, json={"name": " R ", "settings": {"rules": {"gold_share": 0.25}}})
    assert made.status_code == 201
    note = made.json()
    assert (note["name"], note["settings"]["rules"]["gold_share"], note["items"]) == ("R", 0.25, {})
    assert admin.get(f"{PROJECTS}/{note['id']}").json() == note
    assert [each["name"] for each in admin.get(PROJECTS).json()] == ["P", "R"]
    again = admin.post(PROJECTS, json={"name": "R"})
    assert (again.status_code, set(again.json())) == (400, {"error"})
    assert "choose another name" in again.json()["error"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"name": "R", "settings": {"rules": {"gold_shares": 0.1}}}, "gold_shares"),
        ({"name": "R", "settings": {"rules": {"gold_share": 0.9}}}, "0 to 0.5"),
        ({"name": "R", "setting": {}}, "setting"),
        ({"name": 3}, "name"),
        ({}, "name"),
        ([], "body"),
    ],
)
def test_a_wrong_body_is_refused_with_the_place(admin, body, words):
    refused = admin.post(PROJECTS, json=body)
    assert refused.status_code in (400, 422)
    assert words in refused.json()["error"]
    assert len(admin.get(PROJECTS).json()) == 1


def test_items_come_a_page_at_a_time_and_none_twice(visit, admin):
    path = f"{PROJECTS}/{visit.site.project}/items"
    prompts, after, sizes = [], 0, []
    while after is not None:
        listed = admin.get(path, params={"limit": 4, "after": after, "batch": "b1"}).json()
        prompts += [item["prompt"] for item in listed["items"]]
        sizes.append(len(listed["items"]))
        after = listed["next"]
    # By their numbers, which the import drew.
    assert sorted(prompts) == [f"q{number}" for number in range(6)]
    assert sizes == [4, 2]
    assert [item["prompt"] for item in admin.get(path, params={"prompt": "q3"}).json()["items"]] == ["q3"]
    assert admin.get(path, params={"state": "finished"}).json() == {"items": [], "next": None}
    assert admin.get(path, params={"limit": 0}).status_code == 422
    assert admin.get(path, params={"limit": 6, "batch": "b1"}).json()["next"] is None


def test_an_import_takes_all_cases_or_none(visit, admin):
    path = f"{PROJECTS}/{visit.site.project}/import"
    before = admin.get(f"{PROJECTS}/{visit.site.project}/progress").json()
    wrong = admin.post(path, params={"batch": "b2"}, content=case_lines(3) + b'{"prompt": 1}\n')
    assert wrong.status_code == 400
    assert "body.jsonl:4" in wrong.json()["error"]
    two_responses = case_lines(1, first=300).replace(b'"id":"r2"', b'"id":"r1"')
    for body in (b"", b"\xff\xfe", b"\n\n", two_responses, case_lines(2) * 2):
        assert admin.post(path, params={"batch": "b2"}, content=body).status_code == 400
    assert admin.get(f"{PROJECTS}/{visit.site.project}/progress").json() == before
    note = admin.post(path, params={"batch": "b2"}, content=case_lines(10)).json()
    # A share of 0.3 of 10 items; three responses are one triple.
    assert note == {"num_items": 10, "num_tasks": 10, "num_drawn": {"delivery": 3, "operations": 3}, "num_skipped": 0}
    assert admin.post(path, params={"batch": "b2"}, content=case_lines(1, first=400)).status_code == 400
    progress = admin.get(f"{PROJECTS}/{visit.site.project}/progress").json()
    assert progress["num_items"] == sum(progress["items"].values()) == before["num_items"] + 10
    assert progress["items"]["annotating"] == before["items"]["annotating"] + 10


def test_answers_are_signed_by_pseudonyms_and_export_says_who_took_it(visit, admin):
    site = visit.site
    people = [site.people["annotator"], site.people["other"]]
    answer_all(visit.database, site.project, people, at=NOON)
    researcher = visit.program(site.tokens["researcher"])
    # Administrators review nothing: their list has also the answers to items that wait for researchers.
    listed = admin.get(f"{PROJECTS}/{site.project}/answers", params={"limit": 1000}).json()
    pseudonyms = {visit.person(number).pseudonym for number in people}
    answers = [each for each in listed["answers"] if each["prompt"] in {f"q{number}" for number in range(6)}]
    assert len(answers) == 12
    assert {each["person"] for each in answers} == pseudonyms
    assert all(set(each["responses"]) == {"r0", "r1", "r2"} for each in answers)

    def finish(session):
        for item in session.scalars(select(StoredItem).where(StoredItem.prompt.in_(["q1", "q2"]))):
            item.state = "finished"

    visit.database.write(finish)
    sent = researcher.get(f"{PROJECTS}/{site.project}/export", params={"evidence": "aligned"})
    assert sent.headers["content-type"].startswith("application/x-ndjson")
    cases = [msgspec.json.decode(line, type=Case) for line in sent.content.splitlines()]
    assert [case.prompt.id for case in cases] == ["q1", "q2"]
    assert {judgment.judge for case in cases for judgment in case.judgments} == pseudonyms
    with visit.database.reading() as session:
        events = session.scalars(select(StoredEvent).where(StoredEvent.action == "exported")).all()
    assert [(event.person_id, event.detail) for event in events] == [
        (site.people["researcher"], {"evidence": "aligned"})
    ]


def test_a_body_without_its_kind_is_refused(admin):
    # As curl sends it by itself, a body is no JSON.
    assert "send Content-Type: application/json" in admin.post(PROJECTS, content=b'{"name": "R"}').json()["error"]


def test_unknown_addresses_and_methods_are_answered_as_data(admin):
    for method, path, status in (
        ("GET", "/api/v1/none", 404),
        ("DELETE", PROJECTS, 405),
        ("PUT", f"{PROJECTS}/1", 405),
    ):
        refused = admin.request(method, path)
        assert (refused.status_code, set(refused.json())) == (status, {"error"})


def test_the_description_names_every_operation_with_its_errors(visit):
    schema = visit.browser().get("/api/openapi.json").json()
    assert all(path.startswith("/api/v1/") for path in schema["paths"])
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            assert {"401", "403"} <= set(operation["responses"]), path
            assert operation["description"]
            assert operation["security"]
    page = visit.browser("administrator").get("/api").text
    assert all(path in page for path in schema["paths"])
    assert "http" not in json.dumps(schema["paths"])


@pytest.mark.slow
def test_no_request_drawn_from_the_description_ends_in_a_fault_of_the_server(visit):
    schemathesis = pytest.importorskip("schemathesis")
    schemathesis.serializer("application/x-ndjson")(
        lambda _, value: value if isinstance(value, bytes) else str(value).encode(errors="replace")
    )
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", visit.app, headers={"host": "testserver"})
    headers = {"Authorization": f"Bearer {visit.site.tokens['administrator']}", "host": "testserver"}
    valid, wrong = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
    statuses = set()

    def send(case):
        answer = case.call(headers=headers)
        statuses.add(answer.status_code)
        assert answer.status_code < 500, case.as_curl_command()

    def send_to_the_project(case):
        # Else nearly every number is that of no project.
        case.path_parameters["project"] = visit.site.project
        send(case)

    for operation in (result.ok() for result in schema.get_all_operations()):
        drawn(operation.as_strategy(generation_mode=valid), send)
        if operation.path_parameters:
            drawn(operation.as_strategy(generation_mode=valid), send_to_the_project)
        if operation.body or operation.path_parameters:
            drawn(operation.as_strategy(generation_mode=wrong), send)
    # Some were carried out and some refused, else nothing was tested.
    assert {200, 201, 400, 404, 422} <= statuses


def drawn(strategy, send):
    """Send requests of a strategy, the same ones in every run."""
    checks = list(hypothesis.HealthCheck)
    settings = hypothesis.settings(
        max_examples=10, deadline=None, database=None, derandomize=True, suppress_health_check=checks
    )
    settings(hypothesis.given(case=strategy)(send))()
