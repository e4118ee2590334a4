"""Other settings of a project under way: open items ask as many people as the rules say, and none waits for nothing."""

import msgspec
from sqlalchemy import select

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.task_kinds import TaskRules
from steelyard.workbench.pipeline.changed_settings import change_settings
from steelyard.workbench.pipeline.counters import recount
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.pipeline.reviewing import Verdict, decide
from steelyard.workbench.storage.tables import StoredAssignment, StoredProject
from workbench_crew import Crew, in_order
from workbench_people import sums_of

REVIEW = {"delivery_share": 1.0}


def change(crew, *, rules=None, **fields):
    """Give the crew's project other rules, or other settings."""

    def work(session):
        project = session.get_one(StoredProject, crew.project)
        now = settings_of(project)
        changed = fields | ({"rules": msgspec.structs.replace(now.rules, **rules)} if rules else {})
        change_settings(session, project, msgspec.structs.replace(now, **changed), by=None, at=crew.now())

    crew.database.write(work)


def test_items_with_enough_answers_pass_when_fewer_are_wanted(database):
    crew = Crew(database, responses="abc", num_items=3, num_annotators=3, **REVIEW)
    first, second, third = crew.people["annotator"][:3]
    crew.annotate(lambda person, responses: in_order(responses), [first, second])
    # The third has a task of the first item in hand when the number is lowered.
    held = crew.take(third)
    assert {item.state for item in crew.items()} == {"annotating"}
    change(crew, rules={"num_annotators": 2})
    assert {item.state for item in crew.items()} == {"delivery review"}
    assert all((task.num_wanted, task.num_reserved, task.is_open) == (2, 2, False) for task in crew.tasks())
    assert crew.submit(held[0], in_order(held[2])) == "too late"
    assert crew.take(third) is None
    (event,) = crew.events("other number of people asked")
    assert event.detail == {"tasks": 3, "released": 1, "num_annotators": 2}


def test_who_has_begun_keeps_the_place_when_fewer_are_wanted(database):
    crew = Crew(database, responses="abc", num_annotators=3, **REVIEW)
    first, second, third = (crew.take(person) for person in crew.people["annotator"][:3])

    def begin(session):
        session.get_one(StoredAssignment, third[0]).draft = msgspec.to_builtins(in_order(third[2]))

    database.write(begin)
    change(crew, rules={"num_annotators": 2})
    outcomes = [crew.submit(number, in_order(responses)) for number, _, responses in (third, first, second)]
    assert outcomes == ["stored", "stored", "too late"]
    assert crew.item().state == "delivery review"


def test_what_the_remaining_people_discard_leaves_when_fewer_are_wanted(database):
    crew = Crew(database, responses="abcd", num_annotators=3, **REVIEW)
    crew.annotate(lambda person, responses: in_order(responses, "d"), crew.people["annotator"][:2])
    assert crew.item().discarded == []
    change(crew, rules={"num_annotators": 2})
    assert (crew.item().discarded, crew.item().state) == (["d"], "delivery review")
    assert all("d" not in task.responses for task in crew.tasks(is_retired=False))


def test_open_items_take_further_people_when_more_are_wanted_and_others_stay(database):
    crew = Crew(database, responses="abc", num_items=2, **REVIEW)
    first, second, third = crew.people["annotator"][:3]
    for person in (first, second, first):
        number, _, responses = crew.take(person)
        crew.submit(number, in_order(responses))
    states = [item.state for item in crew.items()]
    assert sorted(states) in (["annotating", "annotating"], ["annotating", "delivery review"])
    change(crew, rules={"num_annotators": 3})
    crew.annotate(lambda person, responses: in_order(responses), [first, second, third])
    assert {item.state for item in crew.items()} == {"delivery review"}
    for task, before in zip(crew.tasks(), states, strict=True):
        assert task.num_answered == task.num_wanted == (3 if before == "annotating" else 2)


def test_the_sums_behind_figures_stay_those_of_a_recount(database):
    crew = Crew(database, responses="abc", num_items=2, num_annotators=3, **REVIEW)
    crew.annotate(lambda person, responses: in_order(responses, order="abc"), crew.people["annotator"][:2])
    change(crew, rules={"num_annotators": 2})
    before = sums_of(database)
    database.write(recount)
    assert sums_of(database) == before


def test_a_rejected_item_without_what_the_new_kind_needs_gets_its_former_tasks(database):
    crew = Crew(database, responses="abc", **REVIEW)
    crew.annotate(lambda person, responses: in_order(responses, order="abc"))
    change(crew, tasks=TaskRules(kind="baseline", baseline="a model that nobody has"))
    person = crew.people["delivery"][0]
    database.write(
        lambda session: decide(
            session, crew.item().id, Verdict(False, "again"), layer="delivery", person=person, at=crew.now()
        )
    )
    assert (crew.item().state, crew.item().round) == ("annotating", 2)
    former, again = crew.tasks()
    assert (again.round, again.kind, again.responses) == (2, former.kind, former.responses)
    crew.annotate(lambda person, responses: in_order(responses))
    assert crew.item().state == "delivery review"


def test_nobody_can_judge_and_fewer_are_wanted(database):
    crew = Crew(database, responses="abc", num_annotators=3)
    crew.annotate(lambda person, responses: TaskAnswer(cannot_judge="no idea"), crew.people["annotator"][:2])
    change(crew, rules={"num_annotators": 2})
    assert crew.item().state == "aligning"
    with database.reading() as session:
        assert session.scalars(select(StoredAssignment.id).filter_by(state="open")).all() == []
