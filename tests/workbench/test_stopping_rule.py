"""Stopping early: at least the fewest people, at most all, decided by the stored fit and written down."""

import random
import threading

import msgspec
import pytest
from sqlalchemy import select

from steelyard.annotation.pipeline import PipelineRules, annotators_at_first
from steelyard.annotation.rater_reliability import RaterParameters
from steelyard.core.errors import ConfigError
from steelyard.workbench.figures.dashboards import progress_figures
from steelyard.workbench.pipeline import projects
from steelyard.workbench.pipeline.case_export import export_cases
from steelyard.workbench.pipeline.tallies import DAY
from steelyard.workbench.storage.figure_tables import StoredEarlyStop, StoredRaterFit
from steelyard.workbench.storage.tables import StoredEvent, StoredItem, StoredProject, StoredTask
from workbench_people import NOON, answer, answer_all, make_project, send, take

RULES = PipelineRules(gold_share=0, num_annotators=3, fewest_annotators=2, sure_enough=0.8)
BACKWARDS = ["r2", "r1", "r0"]


@pytest.fixture(autouse=True)
def _no_calibration(monkeypatch):
    monkeypatch.setattr(projects, "CALIBRATION_SHARE", 0.0)


def know(database, project, people, *, discrimination=3.0, num_answers=100):
    """Store a fit in which people are good raters."""
    rater = RaterParameters(
        discrimination=discrimination,
        tie=-3.0,
        discrimination_error=0.1,
        tie_error=0.1,
        parameter_covariance=0.0,
        num_answers=num_answers,
    )
    raters = {str(person): msgspec.to_builtins(rater) for person in people}

    def store(session):
        session.add(
            StoredRaterFit(project_id=project, at=NOON, num_answers=0, num_used=100, num_items=50, raters=raters)
        )

    database.write(store)


def all_of(database, table):
    with database.reading() as session:
        return session.scalars(select(table).order_by(table.id)).all()


def reply(database, project, person, order=None):
    [(assignment, shown)] = take(database, project, person)
    return send(database, assignment, answer(shown, order))


def test_two_good_people_who_agree_are_enough_and_it_is_written_down(database):
    project, people = make_project(database, num_people=3, rules=RULES)
    know(database, project, people)
    reply(database, project, people[0])
    assert reply(database, project, people[1]).item_state != "annotating"
    assert take(database, project, people[2]) == []
    [stop] = all_of(database, StoredEarlyStop)
    assert (stop.num_answers, stop.num_saved) == (2, 1)
    assert stop.sureness >= 0.8
    [event] = [each for each in all_of(database, StoredEvent) if each.action == "sure enough"]
    assert (event.detail["saved"], event.detail["fit"]) == (1, stop.fit_id)

    def finish(session):
        session.scalars(select(StoredItem)).one().state = "finished"

    database.write(finish)
    with database.reading() as session:
        row = session.get_one(StoredProject, project)
        figures = progress_figures(session, row, at=NOON + 86400)
        [case] = export_cases(session, row, evidence="both")
    assert (figures.stopped_rounds, figures.answers_saved, figures.answers_left) == (1, 1, 0)
    assert case.meta["stopping"]["saved"] == 1
    assert len({judgment.judge for judgment in case.judgments}) == 2


def test_two_who_differ_get_a_third_and_no_fourth(database):
    project, people = make_project(database, num_people=4, rules=RULES)
    know(database, project, people)
    reply(database, project, people[0])
    assert reply(database, project, people[1], BACKWARDS).item_state == "annotating"
    [event] = [each for each in all_of(database, StoredEvent) if each.action == "further people asked"]
    assert event.detail["sureness"] < 0.8
    assert reply(database, project, people[2]).item_state != "annotating"
    assert take(database, project, people[3]) == []
    [task] = all_of(database, StoredTask)
    assert (task.num_answered, task.num_wanted) == (3, 3)
    assert all_of(database, StoredEarlyStop) == []


@pytest.mark.parametrize("known", [{"num_answers": 5}, {"discrimination": 0.0}, None])
def test_without_a_fit_or_with_people_who_are_not_known_all_are_asked(database, known):
    project, people = make_project(database, num_people=3, rules=RULES)
    if known is not None:
        know(database, project, people, **known)
    assert answer_all(database, project, people) == 3


def test_the_forecast_knows_of_people_who_are_not_asked_yet(database):
    """Without a fit every task comes to ask three people: 30 tasks are 90 answers, whatever they ask for now."""
    # Which task a person gets is drawn, and six days of some draws let the forecast come to 96.
    random.seed(0)
    rules = msgspec.structs.replace(RULES, delivery_share=0.0, operations_share=0.0)
    project, people = make_project(database, 30, num_people=3, rules=rules)
    given = 0
    for day in range(6):
        for _ in range(3):
            for person in people:
                [(assignment, shown)] = take(database, project, person, at=NOON + day * DAY)
                send(database, assignment, answer(shown), at=NOON + day * DAY)
                given += 1

    def accept(session):
        for item in session.scalars(select(StoredItem).where(StoredItem.state == "validation")):
            item.state = "finished"

    database.write(accept)
    with database.reading() as session:
        made = progress_figures(session, session.get_one(StoredProject, project), at=NOON + 6 * DAY)
    assert given + made.answers_left < 90
    assert given + made.forecast.answers.median == pytest.approx(90, abs=3)


def test_items_of_the_calibration_ask_everybody_and_the_rule_is_off_by_default():
    assert annotators_at_first(RULES, is_calibration=False) == 2
    assert annotators_at_first(RULES, is_calibration=True) == 3
    assert annotators_at_first(PipelineRules(), is_calibration=False) == 2
    with pytest.raises(ConfigError, match="3 people"):
        PipelineRules(fewest_annotators=3)
    with pytest.raises(ConfigError, match=r"0\.3"):
        PipelineRules(sure_enough=0.3)


def test_people_who_answer_at_once_leave_no_task_with_too_few_or_too_many(database):
    project, people = make_project(database, 8, num_people=5, rules=RULES)
    know(database, project, people)

    def work(person):
        while mine := take(database, project, person):
            for assignment, shown in mine:
                send(database, assignment, answer(shown, BACKWARDS if person % 2 else None))

    for _ in range(3):
        threads = [threading.Thread(target=work, args=(person,)) for person in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    tasks, items = all_of(database, StoredTask), all_of(database, StoredItem)
    assert all(2 <= task.num_answered == task.num_wanted == task.num_reserved <= 3 for task in tasks)
    assert all(item.state != "annotating" for item in items)
