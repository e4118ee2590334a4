"""The pages of figures and the same figures as JSON: they say what is in the database, in both languages."""

import html
import re
import time
from typing import NamedTuple, get_args

import msgspec
import pytest
from sqlalchemy import Double, func, literal, select, update

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.pipeline import ItemState
from steelyard.annotation.task_kinds import TaskRules
from steelyard.statistics.intervals import Estimate
from steelyard.workbench.figures import label_coincidences
from steelyard.workbench.figures.dashboards import ItemCounts, progress_figures, week_of, week_start
from steelyard.workbench.figures.figure_plots import progress_plots
from steelyard.workbench.figures.plots import DayColumn, PlotPart, ValueDot, day_columns, dots
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.counters import recount
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.results.paper_figures import paper_figures
from steelyard.workbench.results.paper_pages import methods_paragraph
from steelyard.workbench.storage.tables import StoredAnswer, StoredItem, StoredProject, StoredTask
from steelyard.workbench.views.pages import FOLDER, LANGUAGES, words_of
from task_kind_cases import cases_for
from workbench_people import NO_GOLD, NOON, answer_all, make_project

PAGES = (
    "/progress/1",
    "/progress/1/agreement",
    "/progress/1/people",
    "/progress/1/disagreement",
    "/progress/1/items/1",
)
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


def test_alpha_of_a_large_project_says_how_many_answers_it_stands_on(visit, monkeypatch):
    answer_all(visit.database, 1, [visit.site.people["annotator"], visit.site.people["other"]])
    # The site has answers that came past the sums.
    visit.database.write(recount)
    visit.database.write(lambda session: session.execute(update(StoredTask).values(num_wanted=3)))
    researcher, program = visit.browser("researcher"), visit.program(visit.site.tokens["researcher"])
    assert program.get(f"{FIGURES}/agreement").json()["alpha_sample"] is None
    assert "latest" not in researcher.get("/progress/1/agreement").text
    with visit.database.reading() as session:
        ordinary = StoredTask.is_gold.is_(False), StoredTask.project_id == 1, StoredAnswer.stage == "annotation"
        answers = select(func.count()).select_from(StoredAnswer).join(StoredTask).where(*ordinary)
        number = session.scalar(answers)
    assert number > 3
    monkeypatch.setattr(label_coincidences, "MOST_ANSWERS", 3)
    assert program.get(f"{FIGURES}/agreement").json()["alpha_sample"] == {"num_read": 3, "num_answers": number}
    with visit.database.reading() as session:
        paper = paper_figures(session, session.get_one(StoredProject, 1), at=NOON)
    said = {"en": f"the latest 3 of {number} answers", "zh": f"全部 {number} 个答案中最近的 3 个"}
    for language, words in said.items():
        researcher.post("/account/language", data={"language": language, "csrf": visit.csrf("researcher")})
        assert words in researcher.get("/progress/1/agreement").text
        assert words in methods_paragraph(paper, language)


def test_native_speakers_have_a_page_and_the_same_figures_as_json(visit):
    def make(session):
        settings = ProjectSettings(rules=NO_GOLD, tasks=TaskRules(kind="native_check"))
        project = add_project(session, "natives", settings, by=None, at=NOON)
        import_cases(session, project, cases_for("native_check", 6), batch="b", by=None, at=NOON)
        rows = session.execute(
            select(StoredItem, StoredTask).join(StoredTask).where(StoredItem.project_id == project.id)
        )
        for item, task in rows.all():
            # Four of six prefer the better response of the reference.
            ranking = (("r0",), ("r1",)) if item.prompt not in ("q0", "q3") else (("r1",), ("r0",))
            content = TaskAnswer(ranking=ranking, entries={"fluency": "native", "suited": "yes"})
            person = visit.site.people["annotator"]
            answer = StoredAnswer(task_id=task.id, person_id=person, seconds=1.0, at=NOON)
            answer.content, item.state = msgspec.to_builtins(content), "finished"
            session.add(answer)
        return project.id

    project = visit.database.write(make)
    figures = visit.program(visit.site.tokens["researcher"]).get(f"/api/v1/projects/{project}/figures/native").json()
    assert (figures["items"], figures["finished"], figures["judges"]) == (6, 6, [])
    shares = {each["language"]: each["reference"]["value"] for each in figures["languages"]}
    assert shares == {"ar": 1.0, "en": 0.0, "zh": 1.0}
    page = visit.browser("researcher").get(f"/progress/{project}/native").text
    assert page.count("<svg") == 2
    assert "Native speakers" in visit.browser("researcher").get(f"/progress/{project}").text
    assert "Native speakers" not in visit.browser("researcher").get("/progress/1").text


def test_each_state_has_a_shade_of_its_own_and_plots_fit_a_phone():
    words = words_of("en")
    counts = ItemCounts(name="", total=10, finished=1, rework=0, states=dict.fromkeys(get_args(ItemState), 1))
    plots = progress_plots(_Figures(counts, ()), words)
    assert len({mark.tone for mark in plots.legend}) == len(plots.legend) == len(get_args(ItemState))
    css = (FOLDER / "static" / "figures.css").read_text(encoding="utf-8")
    assert all(f".{mark.tone}" in css for mark in plots.legend)
    assert str(plots.states).count('class="plot on-phone" viewBox="0 0 340') == 1


class _Figures(NamedTuple):
    items: ItemCounts
    days: tuple
    queue: None = None


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
        # Those of a native-speaker check are of a project of that kind: see above.
        if "/figures/" not in path or path.endswith("/native"):
            continue
        name = method["get"]["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].split("/")[-1]
        sent = observer.get(path.format(project=1)).json()
        assert set(sent) <= set(described["components"]["schemas"][name]["properties"])
        assert set(described["components"]["schemas"][name].get("required", ())) <= set(sent)
    assert observer.get(f"{FIGURES}/progress").json()["items"]["total"] == 13


def test_a_plot_says_its_values_and_how_many_they_rest_on():
    plot = str(dots("Agreement", [ValueDot("数学", Estimate(0.78, 0.6, 0.9, 1024))]))
    # Once for the desk, once for the phone.
    assert plot.count(">78% ") == plot.count("n = 1,024") == 2
    parts = [PlotPart(7, "a", "tone-1"), PlotPart(5, "b", "tone-2")]
    columns = str(day_columns("Answers", [DayColumn("11-15", parts)], up="Answers", across="Day"))
    assert columns.count(">12</text>") == 2
