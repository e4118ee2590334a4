"""The pages of figures and the same figures as JSON: they say what is in the database, in both languages."""

import html
import re
import time

import pytest
from sqlalchemy import Double, literal, select, update

from steelyard.workbench.dashboards import progress_figures, week_of, week_start
from steelyard.workbench.pages import LANGUAGES
from steelyard.workbench.tables import StoredItem, StoredProject
from workbench_people import NOON, answer_all, make_project

PAGES = ("/progress/1", "/progress/1/agreement", "/progress/1/people")
FIGURES = "/api/v1/projects/1/figures"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("address", PAGES)
def test_a_page_of_figures_has_words_and_no_object_of_the_program(visit, address, language):
    researcher = visit.browser("researcher")
    researcher.post("/account/language", data={"language": language, "csrf": visit.csrf("researcher")})
    people = [visit.site.people["annotator"], visit.site.people["other"]]
    answer_all(visit.database, 1, people, at=time.time() - 3 * 86400)
    answer = researcher.get(address)
    assert answer.status_code == 200
    assert f'<html lang="{language}">' in answer.text
    shown = html.unescape(re.sub("<[^>]+>", " ", answer.text))
    assert " object at 0x" not in shown
    assert "None" not in shown
    # Every plot has a label, and no script or style of its own.
    assert all('role="img" aria-label="' in plot for plot in re.findall("<svg[^>]*>", answer.text))
    assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=", answer.text)


def test_progress_counts_items_answers_days_and_people(database):
    project, people = make_project(database, 4)
    answer_all(database, project, people, at=NOON)

    def finish(session):
        session.execute(update(StoredItem).where(StoredItem.prompt.in_(["q0", "q1"])).values(state="finished"))
        session.execute(update(StoredItem).where(StoredItem.prompt == "q1").values(round=2, category="code"))

    database.write(finish)
    with database.reading() as session:
        made = progress_figures(session, session.get_one(StoredProject, project), at=NOON + 86400)
    assert (made.items.total, made.items.finished, made.items.rework) == (4, 2, 1)
    assert {group.name: group.finished for group in made.categories} == {"": 1, "code": 1}
    assert [group.name for group in made.batches] == ["b1"]
    [day] = made.days
    assert (day.answers, day.people, day.rework, day.hours) == (8, 2, 0, pytest.approx(8 * 3 / 3600))
    assert [(person.answers, person.days) for person in made.people] == [(4, 1), (4, 1)]
    assert (made.pace.value, made.pace.n, made.answers_left) == (4, 2, 0)
    # All four agreed at the gate.
    assert (made.rounds.gates, made.rounds.passed, made.rounds.answers, made.rounds.rejected) == (4, 4, 8, 0)
    assert made.forecast.why == "few days"


def test_weeks_begin_on_mondays(database):
    # 2023-11-13 was a Monday.
    monday = 1699833600.0
    assert week_start(int((monday + 1 - 4 * 86400) // (7 * 86400))) == monday
    with database.reading() as session:
        weeks = [session.scalar(select(week_of(literal(monday + shift, Double)))) for shift in (-2, 1, 6 * 86400)]
    assert weeks[0] + 1 == weeks[1] == weeks[2]
    assert week_start(weeks[1]) == monday


def test_figures_as_json_have_the_form_of_their_description(visit):
    observer = visit.program(visit.site.tokens["delivery"])
    described = observer.get("/api/openapi.json").json()
    for path, method in described["paths"].items():
        if "/figures/" not in path:
            continue
        name = method["get"]["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].split("/")[-1]
        sent = observer.get(path.format(project=1)).json()
        assert set(sent) <= set(described["components"]["schemas"][name]["properties"])
        assert set(described["components"]["schemas"][name].get("required", ())) <= set(sent)
    assert observer.get(f"{FIGURES}/progress").json()["items"]["total"] == 13
