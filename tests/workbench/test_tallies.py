"""The sums behind the figures: what answers add one by one is what is counted of all of them at once."""

import random
from math import log

import pytest
from sqlalchemy import delete, func, select

from steelyard.annotation.pipeline import PipelineRules
from steelyard.workbench.demo import demo_cases, import_batch, start_project
from steelyard.workbench.figure_tables import StoredGateResult, StoredGoldResult, StoredPairAgreement, StoredWorkDay
from steelyard.workbench.simulation import Habits, work_until_finished
from steelyard.workbench.tables import StoredAnswer, StoredItem, StoredTask
from steelyard.workbench.tallies import count_what_is_stored, recount
from workbench_people import NOON, answer, make_project, send, take

RULES = PipelineRules(gold_share=0.25, least_agreement=1.0)
"""Most items are aligned: there is gold for the second batch."""
TABLES = (StoredWorkDay, StoredPairAgreement, StoredGateResult, StoredGoldResult)


def rows_of(database):
    """All rows of the sums without their numbers, with floats rounded to what addition keeps."""
    found = {}
    with database.reading() as session:
        for table in TABLES:
            columns = [column for column in table.__table__.columns if column.name != "id"]
            found[table.__tablename__] = sorted(
                tuple(round(value, 6) if isinstance(value, float) else value for value in row)
                for row in session.execute(select(*columns))
            )
    return found


def test_sums_that_grew_are_the_sums_of_everything(database, tmp_path):
    random.seed(5)
    material = demo_cases(tmp_path / "cases", seed=3, num_prompts=8)
    habits = Habits(stubborn_share=0.5, rejected_share=0.4)
    simulation = start_project(
        database, material, seed=3, begun_at=NOON, num_annotators=20, rules=RULES, habits=habits
    )._replace(pace=900.0)
    import_batch(simulation, material[:4], "first")
    work_until_finished(simulation)
    import_batch(simulation, material[4:], "second")
    work_until_finished(simulation)
    grown = rows_of(database)
    assert all(grown.values())
    database.write(recount)
    assert rows_of(database) == grown
    with database.reading() as session:
        answers = session.scalar(select(func.count()).where(StoredAnswer.stage == "annotation"))
        ordinary = session.scalar(
            select(func.count())
            .select_from(StoredAnswer)
            .join(StoredTask)
            .where(StoredAnswer.stage == "annotation", StoredTask.is_gold.is_(False))
        )
        # Two people a task, retired ones too: each two answers are one pair of people.
        paired = session.scalar(select(func.sum(StoredPairAgreement.num_tasks)))
        assert session.scalar(select(func.sum(StoredWorkDay.num_answers))) == answers
        assert 2 * paired == ordinary
        assert session.scalar(select(func.count()).select_from(StoredGoldResult)) == answers - ordinary
        rounds = sum(session.scalars(select(StoredItem.round)))
        assert session.scalar(select(func.count()).select_from(StoredGateResult)) == rounds


def test_two_answers_add_what_arithmetic_by_hand_says(database):
    project, people = make_project(database)
    [(first, shown)] = take(database, project, people[0])
    [(second, _)] = take(database, project, people[1])
    send(database, first, answer(shown, ["r0", "r1", "r2"]), seconds=20)
    send(database, second, answer(shown, ["r0", "r2", "r1"]), seconds=30, at=NOON + 24 * 3600)
    with database.reading() as session:
        pair = session.scalars(select(StoredPairAgreement)).one()
        days = session.scalars(select(StoredWorkDay).order_by(StoredWorkDay.day)).all()
        gate = session.scalars(select(StoredGateResult)).one()
    # r0 > r1 and r0 > r2 by both; r1 and r2 the other way round. Tau-b: (2 - 1) / 3.
    assert (pair.num_tasks, pair.num_same, pair.num_judged) == (1, 2, 3)
    assert (pair.cell_0_0 + pair.cell_1_1, pair.cell_0_1 + pair.cell_1_0) == (2, 1)
    assert pair.sum_tau == pytest.approx(1 / 3)
    assert [day.day for day in days] == [int(NOON // 86400), int(NOON // 86400) + 1]
    assert [day.seconds for day in days] == [20, 30]
    # "Question 0?" and three answers such as "Answer 0 to 0".
    assert days[0].sum_length == pytest.approx(log(11 + 3 * 13))
    assert (gate.num_same, gate.num_judged, gate.is_passed, gate.num_answers, gate.num_wanted) == (2, 3, False, 2, 2)
    assert sum(day.num_pairs for day in days) == 6
    assert sum(day.score_5 for day in days) == 2


def test_the_sums_of_an_older_database_are_made_when_it_is_opened(database):
    project, people = make_project(database, 2)
    for person in people:
        for number, shown in take(database, project, person, number=2):
            send(database, number, answer(shown))
    grown = rows_of(database)
    database.write(lambda session: [session.execute(delete(table)) for table in TABLES] and None)
    database.write(count_what_is_stored)
    assert rows_of(database) == grown
    # And left alone where there are some.
    database.write(lambda session: session.execute(delete(StoredGateResult)) and None)
    database.write(count_what_is_stored)
    assert rows_of(database)["gate_results"] == []
