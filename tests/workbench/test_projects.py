"""Projects: imports are whole or nothing, and what is exported is what people entered, with its origin."""

from itertools import combinations

import msgspec
import pytest
from sqlalchemy import func, select

from steelyard.annotation.answers import BucketComparison, TaskAnswer
from steelyard.core.errors import ConfigError, UserError
from steelyard.core.types import Case
from steelyard.io.cases import encode_case
from steelyard.workbench.pipeline.case_export import export_cases
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project, count_states, settings_of
from steelyard.workbench.pipeline.submissions import move
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredAssignment,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredReview,
    StoredTask,
)
from workbench_people import NO_GOLD, NOON, answer_all, cases, content_of, make_project, send, take


def load(database, project, new, *, batch="b2"):
    return database.write(
        lambda session: import_cases(
            session, session.get_one(StoredProject, project), new, batch=batch, by=None, at=NOON
        )
    )


def counts(database):
    with database.reading() as session:
        return [
            session.scalar(select(func.count()).select_from(table)) for table in (StoredItem, StoredTask, StoredReview)
        ]


def bad_import(kind):
    """Cases of which the last has a fault, after more good ones than a block of the import has."""
    good = cases(600, first=100)
    return {
        "one response": [*good, *cases(1, 1, first=900)],
        "twice in the file": [*good, good[0]],
        "twice in one block": [*good[:10], good[3]],
        "in the project": [*good, *cases(1)],
    }[kind]


@pytest.mark.parametrize("kind", ["one response", "twice in the file", "twice in one block", "in the project"])
def test_an_import_with_a_fault_leaves_nothing(database, kind):
    project, _ = make_project(database)
    before = counts(database)
    with pytest.raises(UserError, match=r"'q(900|100|103|0)'"):
        load(database, project, bad_import(kind))
    assert counts(database) == before
    assert load(database, project, cases(2, first=100)).num_items == 2


def test_an_id_with_a_nul_character_is_refused_visibly_and_leaves_nothing(database):
    project, _ = make_project(database)
    before = counts(database)
    (case,) = cases(1, first=5)
    named = msgspec.structs.replace(case, prompt=msgspec.structs.replace(case.prompt, id="a\0b"))
    with pytest.raises(UserError, match=r"prompt 'a\\x00b' has an id with a NUL character") as error:
        load(database, project, [*cases(1, first=6), named])
    assert "\0" not in str(error.value), "PostgreSQL and terminals take no NUL"
    assert counts(database) == before


def test_a_batch_of_the_same_name_is_refused(database):
    project, _ = make_project(database)
    with pytest.raises(ConfigError, match="the batch 'b1' is imported already"):
        load(database, project, cases(1, first=5), batch="b1")


def test_a_case_with_too_few_responses_says_how_many(database):
    project, _ = make_project(database)
    with pytest.raises(ConfigError, match="with 1 response gets no task"):
        load(database, project, cases(1, 1, first=5))


def test_every_wrong_case_of_an_import_is_named_and_nothing_is_imported(database):
    project, _ = make_project(database, 2)
    before = counts(database)
    with pytest.raises(ConfigError) as error:
        load(database, project, [*cases(2), *cases(2, 1, first=5), *cases(1, first=9)])
    assert str(error.value).startswith("4 cases are wrong, and nothing was imported")
    assert str(error.value).count("is in the project already") == str(error.value).count("gets no task") == 2
    assert counts(database) == before


def test_tasks_follow_the_circular_design(database):
    make_project(database, num_responses=5)
    with database.reading() as session:
        shown = [tuple(task.responses) for task in session.scalars(select(StoredTask).order_by(StoredTask.number))]
    assert shown == [
        ("r0", "r1", "r2"), ("r1", "r2", "r3"), ("r2", "r3", "r4"), ("r3", "r4", "r0"), ("r4", "r0", "r1"),
    ]  # fmt: skip


@pytest.mark.parametrize("num_responses", [3, 4, 6, 7, 10])
def test_every_two_responses_meet_and_no_task_comes_twice(database, num_responses):
    make_project(database, num_responses=num_responses)
    with database.reading() as session:
        tasks = [frozenset(task.responses) for task in session.scalars(select(StoredTask))]
    met = {frozenset(pair) for task in tasks for pair in combinations(task, 2)}
    assert len(met) == num_responses * (num_responses - 1) / 2
    assert len(set(tasks)) == len(tasks)


def test_the_layers_draw_their_exact_shares(database):
    project, _ = make_project(database)
    imported = load(database, project, cases(101, first=100))
    assert imported.num_drawn == {"delivery": 31, "operations": 31}


def test_settings_come_back_as_they_were_given(database):
    given = ProjectSettings(rules=msgspec.structs.replace(NO_GOLD, gate="batch"), discard_reasons=("a", "乱码"), seed=7)
    number = database.write(lambda session: add_project(session, " 项目 ", given, by=None, at=NOON).id)
    with database.reading() as session:
        project = session.get_one(StoredProject, number)
        assert project.name == "项目"
        assert settings_of(project) == given
    for name in ("项目", "", "x" * 201):
        with pytest.raises(ConfigError):
            database.write(lambda session, name=name: add_project(session, name, given, by=None, at=NOON))


def finish(database):
    def work(session):
        for item in session.scalars(select(StoredItem)):
            while item.state != "finished":
                move(session, item, "accepted", person=None, at=NOON)

    database.write(work)


def test_what_is_exported_is_what_was_entered(database):
    rules = msgspec.structs.replace(NO_GOLD, least_agreement=0.0)
    project, people = make_project(database, 2, rules=rules)
    entered = {}
    contents = [
        TaskAnswer(
            scores={"r0": 3, "r1": 3, "r2": 5},
            comparisons=(BucketComparison(first="r1", second="r0", choice="better"),),
            ranking=(("r2",), ("r1",), ("r0",)),
            spans={"r0": ((0, 5, "wrong", "no such word"),)},
            remark="hard",
        ),
        TaskAnswer(
            scores={"r0": 4, "r2": 4},
            comparisons=(BucketComparison(first="r0", second="r2", choice="same"),),
            ranking=(("r0", "r2"),),
            discarded={"r1": "garbled"},
        ),
    ]
    for person, content in zip(people, contents, strict=True):
        for _ in range(2):
            ((number, shown),) = take(database, project, person)
            send(database, number, content, seconds=12.5)
            entered[person, number] = (content, shown)
    finish(database)
    with database.reading() as session:
        exported = list(export_cases(session, session.get_one(StoredProject, project), evidence="both"))
        names = dict(session.execute(select(StoredPerson.id, StoredPerson.pseudonym)).all())
        where = {
            (assignment.person_id, item.prompt): assignment.id
            for assignment, item in session.execute(
                select(StoredAssignment, StoredItem)
                .join(StoredTask, StoredAssignment.task_id == StoredTask.id)
                .join(StoredItem, StoredTask.item_id == StoredItem.id)
            )
        }
        assert count_states(session, project) == {"finished": 2}
        assert {
            content_of(each) == contents[people.index(each.person_id)] for each in session.scalars(select(StoredAnswer))
        } == {True}
    assert [(case.prompt, case.responses) for case in exported] == [(case.prompt, case.responses) for case in cases(2)]
    for case in exported:
        # Every case passes the reader of case files.
        assert msgspec.json.decode(encode_case(case), type=Case) == case
        for person, verdicts in zip(people, EXPECTED, strict=True):
            shown = entered[person, where[person, case.prompt.id]][1]
            mine = [each for each in case.judgments if each.judge == names[person]]
            assert len(mine) == 3
            for judgment in mine:
                expected = verdicts[frozenset((judgment.left, judgment.right))]
                better = {"left": judgment.left, "right": judgment.right}.get(judgment.verdict, judgment.verdict)
                assert better == expected
                assert judgment.shown == shown
                assert (judgment.task[8:], judgment.batch) == ("-1-1", "b1")
                assert judgment.meta == {"stage": "annotation", "seconds": 12.5, "guideline": None}
            ratings = {each.response: each.value for each in case.ratings if each.rater == names[person]}
            assert ratings == contents[people.index(person)].scores
        assert [each.spans for each in case.ratings if each.spans] == [((0, 5, "wrong", "no such word"),)]


def test_what_one_project_exported_is_kept_by_the_next_one_under_names_of_its_own(database):
    """Judgments of equal names would be one in a file that is read, or merged: the later ones would be lost."""
    rules = msgspec.structs.replace(NO_GOLD, least_agreement=0.0)
    first, people = make_project(database, 1, rules=rules)

    def answered(project):
        answer_all(database, project, people, order=lambda person, shown: sorted(shown, reverse=person == people[0]))
        finish(database)
        with database.reading() as session:
            return list(export_cases(session, session.get_one(StoredProject, project), evidence="aligned"))

    (before,) = answered(first)
    mine = {"agreement": "of the source"}

    def import_again(session):
        project = add_project(session, "Q", ProjectSettings(rules=rules), by=None, at=NOON)
        again = [before, msgspec.structs.replace(cases(1, first=7)[0], meta=mine)]
        import_cases(session, project, again, batch="b2", by=None, at=NOON)
        return project.id

    after, other = answered(database.write(import_again))
    assert after.judgments[:6] == before.judgments
    assert len({each.id for each in after.judgments}) == len(after.judgments) == 12
    assert len({each.id for each in after.ratings}) == len(after.ratings) == 12
    assert not {each.task for each in after.judgments[6:]} & {each.task for each in before.judgments}
    assert after.meta["imported"] == before.meta
    assert other.meta["imported"] == mine


EXPECTED = [
    {frozenset(("r0", "r1")): "r1", frozenset(("r0", "r2")): "r2", frozenset(("r1", "r2")): "r2"},
    {frozenset(("r0", "r1")): "none", frozenset(("r0", "r2")): "tie", frozenset(("r1", "r2")): "none"},
]
"""What each person says of every two responses: the better one, a tie, or nothing that counts."""


def test_an_import_of_many_cases_stores_all_their_tasks(database):
    """It goes block by block, as values: nothing of a block is kept as objects."""
    (project, _), many = make_project(database, num_cases=1), cases(3000, 8, first=100)
    note = load(database, project, many)
    assert (note.num_items, note.num_tasks) == (3000, 3000 * 11)
    assert counts(database)[1] == 3000 * 11 + 1
