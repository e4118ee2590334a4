"""Agreement and people of a project: the sums give what the measures give on the raw answers."""

import random
from itertools import combinations

import msgspec
import numpy as np
import pytest
from sqlalchemy import select

from steelyard.annotation.answers import TaskAnswer, outcome_of
from steelyard.annotation.pipeline import PipelineRules
from steelyard.statistics.agreement import alpha, coincidences, unique_labels
from steelyard.workbench.database import Database
from steelyard.workbench.demo import demo_cases, import_batch, start_project
from steelyard.workbench.quality import agreement_figures, people_figures
from steelyard.workbench.simulation import Habits, work_until_finished
from steelyard.workbench.tables import StoredAnswer, StoredProject, StoredReview, StoredTask
from workbench_people import NOON, answer_all, make_project
from workbench_site import copy_rows, copy_sqlite

LABELS = {"left": 0, "right": 1, "tie": 2}


@pytest.fixture(scope="module")
def simulated(sqlite_template, tmp_path_factory):
    """A project on SQLite that simulated people have worked through, with gold in its second batch."""
    random.seed(1)
    folder = tmp_path_factory.mktemp("simulated")
    copy_sqlite(sqlite_template, folder / "workbench.db")
    database = Database(f"sqlite:///{folder}/workbench.db")
    material = demo_cases(folder / "cases", seed=5, num_prompts=8)
    rules = PipelineRules(gold_share=0.25, least_agreement=0.95)
    start = start_project(
        database, material, seed=5, begun_at=NOON, num_annotators=20, rules=rules, habits=Habits(rejected_share=0.3)
    )
    import_batch(start, material[:4], "first")
    work_until_finished(start)
    import_batch(start, material[4:], "second")
    work_until_finished(start)
    yield database
    database.close()


@pytest.fixture
def worked(database, simulated):
    """The same rows on each of the two systems."""
    copy_rows(simulated, database)
    return database


def raw_labels(session):
    """Item, person and label of every verdict on ordinary tasks, as the raw answers have them."""
    rows = session.execute(
        select(StoredTask.id, StoredTask.responses, StoredAnswer.person_id, StoredAnswer.content)
        .join(StoredAnswer, StoredAnswer.task_id == StoredTask.id)
        .where(StoredAnswer.stage == "annotation", StoredTask.is_gold.is_(False))
    ).all()
    labels = []
    for task, responses, person, content in rows:
        answer = msgspec.convert(content, TaskAnswer)
        for number, pair in enumerate(combinations(responses, 2)):
            outcome = outcome_of(answer, *pair)
            if outcome in LABELS:
                labels.append((task * 3 + number, person, LABELS[outcome]))
    return (np.array(column) for column in zip(*labels, strict=True))


def test_alpha_of_the_sums_is_alpha_of_the_answers(worked):
    with worked.reading() as session:
        made = agreement_figures(session, session.get_one(StoredProject, 1))
        labels = unique_labels(*raw_labels(session))
        made_reviews = session.scalars(select(StoredReview.decision).where(StoredReview.decision.is_not(None))).all()
    cells = coincidences(labels, np.zeros(len(labels.item), np.int64), 1)[0]
    assert made.overall.alpha.value == pytest.approx(float(alpha(cells)))
    assert sum(row.num_tasks for row in made.categories) == made.overall.num_tasks
    assert sum(row.num_tasks for row in made.people) == 2 * made.overall.num_tasks
    assert sum(row.num_tasks for row in made.pairs) == made.overall.num_tasks
    assert (
        made.gate.n == sum(row.share.n for row in made.gate_weeks) == sum(row.share.n for row in made.gate_categories)
    )
    assert sum(row.share.n for row in made.rejected_layers) == len(made_reviews)
    rejected = sum(row.share.value * row.share.n for row in made.rejected_people)
    assert rejected == pytest.approx(made_reviews.count("rejected"))
    for row in (made.overall, *made.categories, *made.people):
        assert row.same.low <= row.same.value <= row.same.high


def test_gold_accuracy_is_that_of_the_gold_answers(worked):
    with worked.reading() as session:
        made = people_figures(session, session.get_one(StoredProject, 1))
        rows = session.execute(
            select(StoredAnswer.person_id, StoredAnswer.content, StoredTask.gold)
            .join(StoredTask, StoredAnswer.task_id == StoredTask.id)
            .where(StoredTask.is_gold.is_(True), StoredTask.is_retired.is_(False), StoredAnswer.stage == "annotation")
        ).all()
    right = {}
    for person, content, gold in rows:
        mine, truth = msgspec.convert(content, TaskAnswer), msgspec.convert(gold, TaskAnswer)
        shown = [response for tier in truth.ranking for response in tier]
        pairs = [(outcome_of(mine, *pair), outcome_of(truth, *pair)) for pair in combinations(shown, 2)]
        right.setdefault(person, []).append(np.mean([first == second for first, second in pairs]))
    assert rows
    by_person = {row.person: row for row in made.people}
    for person, shares in right.items():
        assert by_person[person].gold_answers == len(shares)
        assert by_person[person].gold.value == pytest.approx(np.mean(shares))
    assert made.gold.value == pytest.approx(np.mean([share for shares in right.values() for share in shares]))


def test_two_people_who_agree_have_agreement_one_and_those_who_do_not_minus(database):
    project, people = make_project(database, 40)
    answer_all(database, project, people)
    with database.reading() as session:
        made = agreement_figures(session, session.get_one(StoredProject, project))
    assert (made.overall.same.value, made.overall.tau.value, made.gate.value) == (1, 1, 1)
    assert made.pairs[0].kappa.value == pytest.approx(1)
    assert made.overall.same.low > 0.9
    assert made.rejected_layers == ()


def test_people_in_opposite_order_have_tau_minus_one(database):
    project, people = make_project(database, 10)
    answer_all(database, project, people, order=lambda person, shown: sorted(shown, reverse=person == people[0]))
    with database.reading() as session:
        made = agreement_figures(session, session.get_one(StoredProject, project))
    assert (made.overall.same.value, made.overall.tau.value, made.gate.value) == (0, -1, 0)
