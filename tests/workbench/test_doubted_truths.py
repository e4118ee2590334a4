"""Doubts about settled answers: who raises them, who rules, and what a withdrawn answer no longer says of anyone."""

import msgspec
import pytest
from sqlalchemy import select

from steelyard.annotation.pipeline import TransitionRefused
from steelyard.core.errors import ConfigError
from steelyard.workbench.figures.reviewer_figures import reviewer_accuracy
from steelyard.workbench.pipeline.doubted_truths import doubted_truths, rule_on_truth
from steelyard.workbench.pipeline.reviewing import Verdict
from steelyard.workbench.storage.figure_tables import StoredGoldResult
from steelyard.workbench.storage.tables import StoredPlantedReview, StoredTask
from workbench_crew import Crew, in_order
from workbench_site import begun

PASSWORD = "a long password"
STANDS, WITHDRAWN = Verdict(True), Verdict(False, "the source says otherwise")


def doubting_crew(database, *, changed=None, **fields):
    """A crew with two finished items; somebody of delivery has sent back a planted review of the first."""
    crew = Crew(
        database, responses="abc", num_items=2, delivery_share=0.0, operations_share=0.0, validation=False, **fields
    )
    crew.annotate(lambda person, responses: in_order(responses))

    def plant(session):
        session.add(
            StoredPlantedReview(
                project_id=crew.project,
                item_id=crew.item().id,
                round=1,
                layer="delivery",
                changed=changed,
                remarks=[],
                placed_at=crew.now(),
                person_id=crew.people["delivery"][1],
                decision="rejected",
                reason="b is better",
                at=crew.now(),
            )
        )

    database.write(plant)
    return crew


def doubts(crew, person=None):
    with crew.database.reading() as session:
        found = doubted_truths(session, person or crew.people["researcher"][0])
        return [(doubt.item.id, doubt.reasons, doubt.num_against, doubt.num_answers) for doubt in found]


def ruled(crew, verdict, person=None):
    who = person or crew.people["researcher"][0]
    crew.database.write(lambda session: rule_on_truth(session, crew.item().id, verdict, person=who, at=crew.now()))
    return crew.item().state


def accuracy(crew):
    with crew.database.reading() as session:
        return [(row.layer, row.right.value) for row in reviewer_accuracy(session, crew.project)]


def test_a_truth_that_a_reviewer_sent_back_waits_for_a_ruling(database):
    crew = doubting_crew(database)
    assert doubts(crew) == [(crew.item().id, ("b is better",), 0, 0)]
    # Nobody rules on the own protest.
    assert doubts(crew, crew.people["delivery"][1]) == []
    with pytest.raises(TransitionRefused):
        ruled(crew, STANDS, crew.people["delivery"][1])


def test_a_wrong_answer_that_was_sent_back_is_no_doubt(database):
    assert doubts(doubting_crew(database, changed={"task": 1})) == []


def test_a_truth_that_stands_is_asked_about_once_and_counts(database):
    crew = doubting_crew(database)
    assert ruled(crew, STANDS) == "finished"
    assert doubts(crew) == []
    assert accuracy(crew) == [("all", 0.0), ("delivery", 0.0), ("delivery", 0.0)]
    with pytest.raises(TransitionRefused):
        ruled(crew, WITHDRAWN)
    assert [event.subject_id for event in crew.events("truth upheld")] == [crew.item().id]


def test_a_truth_that_is_withdrawn_is_annotated_again_and_counts_against_nobody(database):
    crew = doubting_crew(database)
    gold = add_gold(crew, crew.item().id, dict.fromkeys(crew.people["annotator"], 0))
    for reason in ("", "  ", "x" * 5001):
        with pytest.raises(ConfigError):
            ruled(crew, Verdict(False, reason))
    assert ruled(crew, WITHDRAWN) == "annotating"
    assert (crew.item().state, crew.item().round) == ("annotating", 2)
    assert accuracy(crew) == []
    assert doubts(crew) == []
    assert all(row.is_void for row in crew.rows(select(StoredGoldResult).filter_by(task_id=gold)))
    assert [task.is_retired for task in crew.tasks(id=gold)] == [True]
    assert len([task for task in crew.tasks(round=2) if task.is_open]) > 0
    with pytest.raises(TransitionRefused):
        ruled(crew, WITHDRAWN)


def add_gold(crew, item, answers):
    """A gold task of an item with an answer of each person, who is right on so many of its three pairs."""

    def add(session):
        task = crew.tasks(item_id=item)[0]
        row = StoredTask(
            project_id=crew.project,
            item_id=item,
            round=1,
            number=90,
            kind=task.kind,
            responses=task.responses,
            num_wanted=100,
            is_gold=True,
            gold=msgspec.to_builtins(in_order(task.responses)),
        )
        session.add(row)
        session.flush()
        for person, same in answers.items():
            add_result(session, crew, row.id, person, same)
        return row.id

    return crew.database.write(add)


def add_result(session, crew, task, person, same):
    session.add(
        StoredGoldResult(
            project_id=crew.project, person_id=person, task_id=task, at=crew.now(), num_same=same, num_judged=3
        )
    )


@pytest.mark.parametrize(
    ("num_against", "num_others", "is_doubted"),
    [(3, 0, True), (2, 1, True), (2, 2, False), (1, 2, False), (2, 0, False)],
)
def test_good_annotators_who_contradict_a_gold_task_together_are_heard(database, num_against, num_others, is_doubted):
    crew = doubting_crew(database, changed={"task": 1})
    people = crew.people["annotator"]
    # Nine tasks on which everybody is right make them good: 9 of 10 with the one that they contradict.
    answers = dict.fromkeys(people[:num_against], 0) | dict.fromkeys(people[4 - num_others :], 3)
    for number in range(9):
        add_right(crew, people, 91 + number)
    add_gold(crew, crew.item(1).id, answers)
    expected = [(crew.item(1).id, (), num_against, num_against + num_others)] if is_doubted else []
    assert doubts(crew) == expected


def add_right(crew, people, number):
    def add(session):
        task = crew.tasks(item_id=crew.item().id)[0]
        row = StoredTask(
            project_id=crew.project,
            item_id=crew.item().id,
            round=1,
            number=number,
            kind=task.kind,
            responses=task.responses,
            num_wanted=100,
            is_gold=True,
            gold={},
        )
        session.add(row)
        session.flush()
        for person in people:
            add_result(session, crew, row.id, person, 3)

    crew.database.write(add)


def test_people_who_are_often_wrong_are_not_heard(database):
    crew = doubting_crew(database, changed={"task": 1})
    for _ in range(2):
        add_gold_again(crew)
    assert doubts(crew) == []


def add_gold_again(crew):
    number = len(crew.tasks(is_gold=True)) + 90

    def add(session):
        for item in crew.items():
            task = crew.tasks(item_id=item.id)[0]
            for place in range(3):
                row = StoredTask(
                    project_id=crew.project,
                    item_id=item.id,
                    round=1,
                    number=number + place,
                    kind=task.kind,
                    responses=task.responses,
                    num_wanted=100,
                    is_gold=True,
                    gold={},
                )
                session.add(row)
                session.flush()
                for person in crew.people["annotator"]:
                    add_result(session, crew, row.id, person, 0)

    crew.database.write(add)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_researcher_rules_on_the_page_of_reviews(new_sqlite, language):
    crew = doubting_crew(new_sqlite(), passwords=PASSWORD)
    app = begun(crew.database)
    item = crew.item().id
    words = {"en": "Doubted answers", "zh": "存疑的最终结论"}
    visitor = crew.visit(app, "researcher 8", PASSWORD)
    visitor.post("/account/language", data={"language": language})
    text = visitor.get("/review").text
    assert words[language] in text
    assert "b is better" in text
    assert visitor.get(f"/progress/{crew.project}/items/{item}").status_code == 200
    # Other layers have neither the list nor the form.
    operations = crew.visit(app, "operations 6", PASSWORD)
    assert "b is better" not in operations.get("/review").text
    assert operations.post(f"/review/{item}/truth", data={"verdict": "accept"}).status_code == 403
    address = f"/review/{item}/truth"
    assert visitor.post("/review/999/truth", data={"verdict": "accept"}).status_code == 404
    assert visitor.post(f"/review/{crew.item(1).id}/truth", data={"verdict": "accept"}).status_code == 404
    assert visitor.post(address, data={"verdict": "reject", "reason": " "}).status_code == 400
    assert visitor.post(address, data={"verdict": "reject", "reason": "wrong"}).status_code == 303
    assert words[language] not in visitor.get("/review").text
    assert visitor.post(address, data={"verdict": "accept"}).status_code == 409
