"""Alignment and escalation: who sees a dispute, what settles it, and how it climbs the layers."""

from itertools import compress

import msgspec
import pytest
from sqlalchemy import select

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.pipeline import TransitionRefused
from steelyard.core.errors import ConfigError
from steelyard.ranking.judgment_table import standing
from steelyard.workbench.accounts.people import change_account
from steelyard.workbench.pipeline.alignment import (
    QueuePage,
    add_remark,
    adjudicate,
    all_items_to_align,
    items_to_adjudicate,
    items_to_align,
    pass_on,
    propose,
    tasks_to_align,
)
from steelyard.workbench.pipeline.case_export import export_cases
from steelyard.workbench.pipeline.disputes import letters_of
from steelyard.workbench.pipeline.item_states import lock_item, move
from steelyard.workbench.pipeline.projects import ProjectSettings
from steelyard.workbench.pipeline.queues import next_assignments
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredRemark,
    StoredTask,
)
from steelyard.workbench.views.item_views import view_item
from workbench_crew import Crew, in_order, ranked


@pytest.fixture
def crew(database):
    """One item of three responses, one task, that two people ranked in opposite orders."""
    made = Crew(database, responses="abc")
    first, second = made.people["annotator"][:2]
    made.annotate(
        lambda person, _: ranked("a>b>c" if person == first else "c>b>a"),
        [first, second],
    )
    assert made.item().state == "aligning"
    return made


def proposing(crew, person, task, answer):
    return crew.database.write(
        lambda session: propose(session, crew.item().id, task, answer, person=person, at=crew.now())
    )


def passing_on(crew, person, state, reason="we read the guideline differently"):
    crew.database.write(
        lambda session: pass_on(session, crew.item().id, reason, state=state, person=person, at=crew.now())
    )


def test_only_people_of_the_dispute_see_it(crew):
    first, second, third, _ = crew.people["annotator"]
    with crew.database.reading() as session:
        for person in (first, second):
            ((entry,), _) = items_to_align(session, person)
            assert (entry.item.id, entry.num_waiting, entry.num_open) == (crew.item().id, 1, 1)
            assert len(tasks_to_align(session, entry.item.id, person)) == 1
        for person in (third, crew.people["delivery"][0]):
            assert items_to_align(session, person).entries == ()
            assert tasks_to_align(session, crew.item().id, person) is None
        assert tasks_to_align(session, 999, first) is None


def test_a_long_queue_of_alignment_is_read_page_by_page(sqlite_template, tmp_path):
    path = tmp_path / "workbench.db"
    path.write_bytes(sqlite_template.read_bytes())
    database = Database(f"sqlite:///{path}")
    crew = Crew(database, responses="ab", num_items=410)
    first, second = crew.people["annotator"][:2]

    def answer_all(session):
        for item, task in session.execute(select(StoredItem, StoredTask).join(StoredTask)).all():
            for person, order in ((first, "a>b"), (second, "b>a")):
                content = msgspec.to_builtins(ranked(order))
                session.add(StoredAnswer(task_id=task.id, person_id=person, content=content, seconds=1.0, at=2.0))
            # Many reach the queue in one moment, so that a page ends within them.
            item.state, item.changed_at = "aligning", 2.0 + item.id // 90

    database.write(answer_all)
    numbers = sorted(item.id for item in crew.items())
    with database.reading() as session:
        sizes, wanted = [], QueuePage()
        while wanted.after or not sizes:
            entries, following = items_to_align(session, first, wanted)
            sizes.append(len(entries))
            wanted = wanted._replace(after=following)
        assert sizes == [200, 200, 10]
        assert [entry.item.id for entry in all_items_to_align(session, first)] == numbers
        with pytest.raises(ConfigError, match="not a place in a queue"):
            items_to_align(session, first, QueuePage(after="2.0"))
    database.close()


def test_equal_proposals_settle_each_task_and_the_last_one_the_item(database):
    crew = Crew(database, responses="abcd", delivery_share=1.0)
    first, second = crew.people["annotator"][:2]
    crew.annotate(
        lambda person, responses: in_order(responses, order="abcd" if person == first else "dcba"), [first, second]
    )
    tasks = crew.evidence()
    assert len(tasks) == 4
    for number, each in enumerate(tasks):
        task, responses = each.task.id, each.task.responses
        assert not proposing(crew, first, task, in_order(responses, order="bacd"))
        with database.reading() as session:
            # It waits for the other person first.
            mine, theirs = (items_to_align(session, person).entries[0] for person in (first, second))
            assert (mine.num_waiting, theirs.num_waiting) == (3 - number, 4 - number)
        assert not proposing(crew, second, task, in_order(responses, order="dcab"))
        assert crew.item().state == "aligning"
        assert proposing(crew, second, task, in_order(responses, order="bacd"))
    assert crew.item().state == "delivery review"
    assert [event.detail["from"] for event in crew.events("settled")] == ["aligning"]
    assert len(crew.events("proposed")) == 12
    assert {each.settled_by for each in crew.evidence()} == {"alignment"}
    assert all(each.settled == in_order(each.task.responses, order="bacd") for each in crew.evidence())


def test_scores_may_differ_where_verdicts_agree(crew):
    first, second = crew.people["annotator"][:2]
    task = crew.evidence()[0].task.id
    proposing(crew, first, task, ranked("b>a>c"))
    other = TaskAnswer(scores={"b": 4, "a": 2, "c": 0}, ranking=(("b",), ("a",), ("c",)))
    assert proposing(crew, second, task, other)


def test_a_settled_task_or_one_of_others_takes_no_proposal(crew):
    first, second, third, _ = crew.people["annotator"]
    task = crew.evidence()[0].task.id
    with pytest.raises(TransitionRefused):
        proposing(crew, third, task, ranked("a>b>c"))
    proposing(crew, first, task, ranked("a>b>c"))
    proposing(crew, second, task, ranked("a>b>c"))
    with pytest.raises(TransitionRefused):
        proposing(crew, first, task, ranked("c>b>a"))
    with pytest.raises(TransitionRefused):
        proposing(crew, first, 999, ranked("c>b>a"))


@pytest.mark.parametrize(
    "answer",
    [
        TaskAnswer(cannot_judge="too hard"),
        TaskAnswer(scores={"a": 5, "b": 1, "c": 0}, ranking=(("c",), ("b",), ("a",))),
        TaskAnswer(scores={"a": 5, "b": 1}, ranking=(("a",), ("b",))),
        TaskAnswer(scores={"a": 5, "b": 1}, ranking=(("a",), ("b",)), discarded={"c": "a reason of nobody"}),
        TaskAnswer(scores={"a": 9, "b": 1, "c": 0}, ranking=(("a",), ("b",), ("c",))),
    ],
    ids=["gives up", "contradiction", "incomplete", "unknown reason", "off the scale"],
)
def test_a_proposal_is_a_whole_answer(crew, answer):
    first = crew.people["annotator"][0]
    with pytest.raises(ConfigError):
        proposing(crew, first, crew.evidence()[0].task.id, answer)
    assert crew.events("proposed") == []


def test_the_discussion_stays(crew):
    first, second = crew.people["annotator"][:2]
    item = crew.item()
    crew.database.write(lambda session: add_remark(session, item, " b is wrong ", person=first, at=crew.now()))
    crew.database.write(lambda session: add_remark(session, item, "but clear", person=second, at=crew.now()))
    with pytest.raises(ConfigError):
        crew.database.write(lambda session: add_remark(session, item, " ", person=first, at=crew.now()))
    passing_on(crew, second, "aligning", "no way")
    with crew.database.reading() as session:
        remarks = session.execute(select(StoredRemark.person_id, StoredRemark.text).order_by(StoredRemark.id)).all()
    assert remarks == [
        (first, "b is wrong"),
        (second, "but clear"),
        (second, "no way"),
    ]


def test_what_cannot_be_settled_climbs_to_the_developers(crew):
    first = crew.people["annotator"][0]
    with pytest.raises(ConfigError):
        passing_on(crew, first, "aligning", "")
    passing_on(crew, first, "aligning")
    with pytest.raises(TransitionRefused):
        passing_on(crew, first, "aligning")
    layers = [("delivery", "with delivery"), ("operations", "with operations"), ("research", "with developers")]
    roles = {"research": "researcher"}
    for layer, state in layers:
        person = crew.people[roles.get(layer, layer)][0]
        with crew.database.reading() as session:
            for other, _ in layers:
                expected = [crew.item().id] if other == layer else []
                assert [item.id for item in items_to_adjudicate(session, other, person)] == expected
            assert items_to_adjudicate(session, layer, first) == []
        if layer != "research":
            passing_on(crew, person, state)
    with pytest.raises(TransitionRefused):
        passing_on(crew, person, "with developers")
    for each in crew.evidence():
        crew.database.write(
            lambda session, task=each.task.id: adjudicate(
                session, crew.item().id, task, ranked("a=b>c"), layer="research", person=person, at=crew.now()
            )
        )
    assert {each.settled_by for each in crew.evidence()} == {"research"}
    assert [event.detail["from"] for event in crew.events("settled")] == ["with developers"]


def test_a_layer_settles_only_what_waits_for_it(crew):
    delivery = crew.people["delivery"][0]
    task = crew.evidence()[0].task.id
    with pytest.raises(TransitionRefused):
        crew.database.write(
            lambda session: adjudicate(
                session, crew.item().id, task, ranked("a>b>c"), layer="delivery", person=delivery, at=crew.now()
            )
        )


def test_the_export_has_what_came_of_a_discussion_and_not_its_steps(database):
    crew = Crew(database, responses="abc", delivery_share=0.0, operations_share=0.0)
    first, second = crew.people["annotator"][:2]
    crew.annotate(lambda person, _: ranked("a>b>c" if person == first else "c>b>a"), [first, second])
    for each in crew.evidence():
        for answer in ("c>a>b", "a>c>b", "b>a>c"):
            proposing(crew, first, each.task.id, ranked(answer))
        proposing(crew, second, each.task.id, ranked("b>a>c"))
    crew.database.write(
        lambda session: move(session, lock_item(session, crew.item().id), "accepted", person=None, at=crew.now())
    )
    with database.reading() as session:
        project = session.get_one(StoredProject, crew.project)
        (aligned,) = export_cases(session, project, evidence="aligned")
        (both,) = export_cases(session, project, evidence="both")
        assert len(session.scalars(select(StoredAnswer.id)).all()) == 2 + 4 + 1
    assert len(aligned.judgments) == 3
    assert len(both.judgments) == 3 * 3
    assert len({judgment.id for judgment in both.judgments}) == 3 * 3
    assert {judgment.meta["stage"] for judgment in aligned.judgments} == {"alignment"}
    # It is the answer of both, and nobody's own.
    judges = {judgment.judge for judgment in both.judgments if judgment.meta["stage"] == "annotation"}
    assert {judgment.judge for judgment in aligned.judgments} == {"alignment"}
    assert all(set(judgment.meta["people"]) == judges for judgment in aligned.judgments)
    # Nobody measures the time of a discussion: it is unknown, and not 0.
    assert {judgment.meta["seconds"] for judgment in both.judgments} == {10.0, None}
    assert {judgment.meta["seconds"] for judgment in aligned.judgments} == {None}


def test_what_stands_of_an_export_of_both_is_what_was_aligned(database):
    crew = Crew(database, responses="abc", delivery_share=0.0, operations_share=0.0)
    first, second = crew.people["annotator"][:2]
    crew.annotate(lambda person, _: ranked("a>b>c" if person == first else "c>b>a"), [first, second])
    for each in crew.evidence():
        for person in (first, second):
            proposing(crew, person, each.task.id, ranked("b>a>c"))
    crew.database.write(
        lambda session: move(session, lock_item(session, crew.item().id), "accepted", person=None, at=crew.now())
    )
    with database.reading() as session:
        project = session.get_one(StoredProject, crew.project)
        (aligned,) = export_cases(session, project, evidence="aligned")
        (both,) = export_cases(session, project, evidence="both")
    assert len(both.judgments) == 9
    assert list(compress(both.judgments, standing(both.judgments))) == list(aligned.judgments)


def test_what_is_settled_is_exported_in_the_order_of_its_page(database):
    crew = Crew(database, responses="abcdefg", delivery_share=0.0, operations_share=0.0)
    first, second = crew.people["annotator"][:2]
    crew.annotate(
        lambda person, shown: in_order(shown, order="abcdefg" if person == first else "gfedcba"), [first, second]
    )
    with database.reading() as session:
        view = view_item(session, crew.item(), crew.evidence(), first, ProjectSettings())
    orders = {panel.task: panel.letters.split() for panel in view.panels}
    for each in crew.evidence():
        for person in (first, second):
            proposing(crew, person, each.task.id, in_order(each.task.responses))
    crew.database.write(
        lambda session: move(session, lock_item(session, crew.item().id), "accepted", person=None, at=crew.now())
    )
    with database.reading() as session:
        (case,) = export_cases(session, session.get_one(StoredProject, crew.project), evidence="aligned")
        letters = letters_of(crew.item().id, case)
        tasks = {each.task.number: each.task.id for each in crew.evidence()}
    shown = {tasks[int(judgment.task.split("-")[2])]: judgment.shown for judgment in case.judgments}
    assert {task: [letters[response] for response in order] for task, order in shown.items()} == orders
    assert len(shown) == 7


def test_people_who_could_not_judge_have_to_align(database):
    crew = Crew(database, responses="abc", delivery_share=1.0)
    first, second = crew.people["annotator"][:2]
    crew.annotate(lambda person, _: TaskAnswer(cannot_judge="no idea"), [first, second])
    assert crew.item().state == "aligning"
    for each in crew.evidence():
        proposing(crew, first, each.task.id, ranked("a>b>c"))
        proposing(crew, second, each.task.id, ranked("a>b>c"))
    assert crew.item().state == "delivery review"


def test_an_item_without_disputes_passes_though_its_batch_fails(database):
    crew = Crew(database, responses="abc", num_items=2, gate="batch", delivery_share=1.0)
    first, second = crew.people["annotator"][:2]
    disputed = {each.id for each in crew.tasks(item_id=crew.item(0).id)}
    for person in (first, second):
        held = database.write(
            lambda session, person=person: [
                (each.id, each.task_id)
                for each in next_assignments(session, crew.membership(session, person), number=2, at=crew.now())
            ]
        )
        # The answer to the disputed item comes first.
        for assignment, task in sorted(held, key=lambda each: each[1] not in disputed):
            is_turned = person == first and task in disputed
            crew.submit(assignment, ranked("c>b>a" if is_turned else "a>b>c"))
    assert crew.item(0).state == "aligning"
    assert crew.item(1).state == "delivery review"
    assert [event.detail["to"] for event in crew.events("disagreed")] == ["aligning", "aligning"]


def test_one_annotator_for_each_task_has_nobody_to_align_with(database):
    crew = Crew(database, responses="abcde", num_annotators=1, delivery_share=1.0)
    crew.annotate(lambda person, responses: in_order(responses))
    assert crew.item().state == "delivery review"


def test_an_annotator_who_reviews_by_now_speaks_as_an_annotator_of_the_answers_given_then(crew):
    """Opinions are labelled by what a person was when answering; the answer of nobody else is that of a layer."""
    first, second = crew.people["annotator"][:2]
    visitor, delivery = crew.people["researcher"][0], crew.people["delivery"][0]
    remarks = [(second, "The second is wrong."), (delivery, "Settle it.")]

    def promote(session):
        person = session.get_one(StoredPerson, second)
        change_account(session, person, role="delivery", is_active=True, skills=(), by=None, at=crew.now())

    crew.database.write(promote)
    with crew.database.reading() as session:

        def view(who):
            return view_item(session, crew.item(), crew.evidence(), who, ProjectSettings(), remarks=remarks)

        assert [each.voice for each in view(visitor).panels[0].opinions] == ["1", "2"]
        assert [each.voice for each in view(first).panels[0].opinions] == ["voice you", "voice other"]
        assert [voice for voice, _ in view(visitor).remarks] == ["2", "role delivery"]
