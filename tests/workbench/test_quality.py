"""Agreement and people of a project: the sums give what the measures give on the raw answers."""

import random
from itertools import combinations, permutations

import msgspec
import numpy as np
import pytest
from sqlalchemy import select

from steelyard.annotation.answers import TaskAnswer, outcome_of
from steelyard.annotation.pipeline import PipelineRules
from steelyard.statistics.agreement import alpha, coincidences, unique_labels
from steelyard.workbench.demo import demo_cases
from steelyard.workbench.figures.agreement_figures import agreement_figures
from steelyard.workbench.figures.label_coincidences import several_coincidences
from steelyard.workbench.figures.people_figures import people_figures
from steelyard.workbench.simulated_people import Habits
from steelyard.workbench.simulated_projects import import_batch, start_project
from steelyard.workbench.simulation import work_until_finished
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import StoredAnswer, StoredProject, StoredReview, StoredTask
from workbench_people import NOON, answer, answer_all, make_project
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


def test_alpha_weighs_each_item_by_the_number_of_its_labels(database):
    """Three people are asked for; one task has three answers, one two, one a single one.

    Values as labelled, with every pair of the responses an item. The first task: r0 > r1 > r2 by two people, and
    r0 > r2 > r1 by the third. The second: both say r0 > r1 > r2. By hand; the package krippendorff gives the same.
    """
    rules = PipelineRules(gold_share=0, num_annotators=3)
    project, people = make_project(database, 3, num_people=3, rules=rules)
    orders = {0: ["012", "012", "021"], 1: ["012", "012"], 2: ["102"]}

    def answer_tasks(session):
        for number, task in enumerate(session.scalars(select(StoredTask).order_by(StoredTask.id))):
            for person, order in zip(people, orders[number], strict=False):
                content = msgspec.to_builtins(answer(task.responses, [f"r{place}" for place in order]))
                row = StoredAnswer(task_id=task.id, person_id=person, content=content, seconds=1.0, at=NOON)
                session.add(row)

    database.write(answer_tasks)
    with database.reading() as session:
        cells = several_coincidences(session, session.get_one(StoredProject, project))
        responses = session.scalars(select(StoredTask.responses).order_by(StoredTask.id)).all()
    # Label 0: the earlier response of the task is better. Items of one label say nothing.
    items = []
    for number, shown in enumerate(responses):
        for first, second in combinations(shown, 2):
            items.append([int(order.index(first[1]) > order.index(second[1])) for order in orders[number]])
    assert float(alpha(cells.total)) == pytest.approx(alpha_by_hand(items))


def alpha_by_hand(items):
    """Krippendorff's nominal alpha: 1 - observed / expected disagreement over items with two labels or more."""
    several = [labels for labels in items if len(labels) > 1]
    values = [label for labels in several for label in labels]
    observed = sum(
        sum(one != other for one, other in permutations(labels, 2)) / (len(labels) - 1) for labels in several
    ) / len(values)
    expected = sum(one != other for one, other in permutations(values, 2)) / (len(values) * (len(values) - 1))
    return 1 - observed / expected


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
