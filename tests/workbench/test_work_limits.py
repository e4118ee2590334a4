"""Nobody gets more tasks than a day's limit, nor those of a category in which the record on gold tasks is too low."""

import msgspec
import pytest
from sqlalchemy import select

from steelyard.core.errors import ConfigError
from steelyard.workbench.figures.people_figures import people_figures
from steelyard.workbench.pipeline.changed_settings import change_settings
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.pipeline.unassignable import unassignable_work
from steelyard.workbench.pipeline.work_limits import WorkLimits
from steelyard.workbench.storage.figure_tables import StoredGoldResult
from steelyard.workbench.storage.tables import StoredAssignment, StoredProject, StoredTask
from steelyard.workbench.views.task_views import view_tasks
from workbench_people import NOON, answer, make_project, membership_of, send, take

DAY = 86_400.0


def limit(database, project, **limits):
    def change(session):
        row = session.get_one(StoredProject, project)
        settings = msgspec.structs.replace(settings_of(row), limits=WorkLimits(**limits))
        change_settings(session, row, settings, by=None, at=NOON)

    database.write(change)


def name_categories(database, *categories):
    def name(session):
        for task, category in zip(session.scalars(select(StoredTask).order_by(StoredTask.id)), categories, strict=True):
            task.category = category

    database.write(name)


def reason(database, project, person, at=NOON):
    with database.reading() as session:
        return view_tasks(session, membership_of(session, project, person), [], at=at).reason


def test_a_day_has_a_limit_and_ends(database):
    project, (first, second) = make_project(database, 5)
    limit(database, project, most_answers_a_day=2)
    for at in (NOON, NOON + 3600):
        [(number, shown)] = take(database, project, first, at=at)
        send(database, number, answer(shown), at=at)
    assert take(database, project, first, at=NOON + 7200) == []
    assert reason(database, project, first, at=NOON + 7200) == "day full"
    assert len(take(database, project, second, at=NOON + 7200)) == 1
    assert len(take(database, project, first, at=NOON + DAY + 1)) == 1


def test_a_task_in_hand_may_be_answered_after_the_limit(database):
    project, (person, _) = make_project(database, 5)
    limit(database, project, most_answers_a_day=1)
    ahead = take(database, project, person, number=2)
    assert len(ahead) == 2
    send(database, ahead[0][0], answer(ahead[0][1]))
    assert take(database, project, person, number=2) == ahead[1:]
    assert send(database, ahead[1][0], answer(ahead[1][1])) == "stored"
    assert take(database, project, person) == []


def test_a_paused_project_gives_out_nothing_new_and_takes_what_is_in_hand(database):
    project, (first, second) = make_project(database, 5)
    [(number, shown)] = take(database, project, first)
    limit(database, project, is_paused=True)
    assert take(database, project, second) == []
    assert reason(database, project, second) == "paused"
    assert take(database, project, first, number=2) == [(number, shown)]
    assert send(database, number, answer(shown)) == "stored"
    assert take(database, project, first) == []
    limit(database, project)
    assert len(take(database, project, first)) == 1


@pytest.fixture
def poor(database):
    """Two people and five tasks, four of them of the category law."""
    project, people = make_project(database, 5)
    name_categories(database, "law", "code", "law", "law", "law")
    return project, people


def record_of(database, project, person, shares, *, is_void=False):
    """Store one result for each share on gold tasks of the category law, made of copies of the last task."""

    def add(session):
        last = session.scalars(select(StoredTask).order_by(StoredTask.id.desc())).first()
        for number, share in enumerate(shares):
            task = StoredTask(
                project_id=project, item_id=last.item_id, round=9, number=number + 10 * person,
                responses=last.responses, category="law", num_wanted=1, is_open=False, is_gold=True,
            )  # fmt: skip
            session.add(task)
            session.flush()
            session.add(
                StoredGoldResult(
                    project_id=project, person_id=person, task_id=task.id, at=NOON + number,
                    num_same=round(10 * share), num_judged=10, is_void=is_void,
                )
            )  # fmt: skip

    database.write(add)


def categories_taken(database, project, person):
    taken = []
    while mine := take(database, project, person):
        [(number, shown)] = mine
        with database.reading() as session:
            taken.append(session.get_one(StoredTask, session.get_one(StoredAssignment, number).task_id).category)
        send(database, number, answer(shown))
    return sorted(taken)


def test_a_poor_record_closes_its_category_for_that_person_alone(database, poor):
    project, (first, second) = poor
    limit(database, project, least_accuracy=0.6)
    record_of(database, project, first, [0.1, 0.2, 0.0, 0.1, 0.2, 0.1, 0.0, 0.2])
    record_of(database, project, second, [0.9, 0.8, 1.0, 0.9, 1.0, 0.8, 0.9, 1.0])
    assert categories_taken(database, project, first) == ["code"]
    assert reason(database, project, first) == "record"
    assert categories_taken(database, project, second) == ["code", "law", "law", "law", "law"]
    with database.reading() as session:
        rows = {row.person: row for row in people_figures(session, session.get_one(StoredProject, project)).people}
    assert [each.category for each in rows[first].closed] == ["law"]
    assert rows[first].closed[0].accuracy.high < 0.6
    assert rows[second].closed == ()


@pytest.mark.parametrize(
    ("shares", "is_void", "least"),
    [([0.0], False, 0.6), ([0.5, 0.6, 0.7, 0.5], False, 0.6), ([0.1] * 8, True, 0.6), ([0.1] * 8, False, 0.0)],
    ids=["one answer", "near the limit", "withdrawn truth", "no limit"],
)
def test_what_closes_nothing(database, poor, shares, is_void, least):
    project, (first, _) = poor
    limit(database, project, least_accuracy=least)
    record_of(database, project, first, shares, is_void=is_void)
    assert categories_taken(database, project, first) == ["code", "law", "law", "law", "law"]


def test_work_that_every_record_closes_is_named(database, poor):
    project, people = poor
    limit(database, project, least_accuracy=0.6)
    for person in people:
        record_of(database, project, person, [0.1, 0.2, 0.0, 0.1, 0.2, 0.1, 0.0, 0.2])
    with database.reading() as session:
        rows = unassignable_work(session, session.get_one(StoredProject, project))
    assert [(row.reason, row.about, row.number) for row in rows] == [("record", "law", 4)]


@pytest.mark.parametrize("limits", [{"most_answers_a_day": -1}, {"least_accuracy": 1.5}])
def test_limits_that_mean_nothing_are_refused(limits):
    with pytest.raises(ConfigError):
        WorkLimits(**limits)
