"""The sums behind the figures, by hand; `test_simulation` compares them with those of all answers at once."""

from math import log

import pytest
from sqlalchemy import delete, select

from steelyard.workbench.pipeline.counters import count_what_is_stored
from steelyard.workbench.storage.figure_tables import StoredGateResult, StoredPairAgreement, StoredWorkDay
from workbench_people import NOON, SUMS, answer, make_project, send, sums_of, take


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
    assert (pair.num_left_left + pair.num_right_right, pair.num_left_right + pair.num_right_left) == (2, 1)
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
    grown = sums_of(database)
    database.write(lambda session: [session.execute(delete(table)) for table in SUMS] and None)
    database.write(count_what_is_stored)
    assert sums_of(database) == grown
    # And left alone where there are some.
    database.write(lambda session: session.execute(delete(StoredGateResult)) and None)
    database.write(count_what_is_stored)
    assert sums_of(database)["gate_results"] == []
