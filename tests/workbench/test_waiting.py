"""What waits for people: numbers in the navigation and on the annotator's page, names and ages for managers."""

import re

from sqlalchemy import select

from steelyard.workbench.pipeline.alignment import items_to_align, propose, tasks_to_align
from steelyard.workbench.pipeline.waiting import count_waiting, num_to_align, waiting_work
from steelyard.workbench.storage.tables import StoredItem, StoredPerson
from workbench_people import NOON, answer, answer_all, make_project

DAY = 86400.0


def disagree(database, project, people):
    """Let two people answer everything in opposite orders: all of it waits in alignment."""
    answer_all(database, project, people, order=lambda person, shown: sorted(shown, reverse=person == people[1]))


def to_align(database, people):
    with database.reading() as session:
        return [num_to_align(session, person) for person in people]


def test_an_item_in_alignment_waits_for_whoever_did_not_make_the_latest_proposal(database):
    project, people = make_project(database, 3)
    disagree(database, project, people)
    assert to_align(database, people) == [3, 3]

    def propose_first(session, person):
        item = items_to_align(session, person).entries[0].item
        task = tasks_to_align(session, item.id, person)[0].task
        order = sorted(task.responses, reverse=person == people[1])
        propose(session, item.id, task.id, answer(task.responses, order), person=person, at=NOON)

    database.write(lambda session: propose_first(session, people[0]))
    assert to_align(database, people) == [2, 3]
    # The other's queue begins with the item that waits longest, which is the same one.
    database.write(lambda session: propose_first(session, people[1]))
    assert to_align(database, people) == [3, 2]


def test_managers_see_for_whom_items_wait_and_since_when(database):
    project, people = make_project(database, 4)
    disagree(database, project, people)

    def move(session):
        for number, item in enumerate(session.scalars(select(StoredItem).order_by(StoredItem.id))):
            item.changed_at = NOON + number * DAY
            if number == 2:
                item.state = "delivery review"
            if number == 3:
                item.state = "with operations"

    database.write(move)
    with database.reading() as session:
        rows = waiting_work(session, project)
    assert [(row.state, row.role, row.person, row.items, row.since) for row in rows] == [
        ("aligning", "annotator", "person 0", 2, NOON),
        ("aligning", "annotator", "person 1", 2, NOON),
        ("delivery review", "delivery", None, 1, NOON + 2 * DAY),
        ("with operations", "operations", None, 1, NOON + 3 * DAY),
    ]


def test_the_navigation_has_what_waits_for_each_role(visit):
    with visit.database.reading() as session:
        numbers = {
            role: count_waiting(session, visit.site.people[role], role)
            for role in ("annotator", "delivery", "operations", "researcher", "administrator")
        }
    # The site has an item in each queue; see `add_settled_items`.
    assert numbers == {"annotator": 1, "delivery": 2, "operations": 2, "researcher": 2, "administrator": 0}
    for role, number in numbers.items():
        text = visit.browser(role).get("/account").text
        shown = re.findall(r'class="waiting"[^>]*>(\d+)<', text)
        assert shown == ([str(number)] if number else [])
    progress = visit.browser("annotator").get("/annotate/progress?project=1").json()
    assert progress["to_align"] == 1


def test_the_page_of_progress_names_who_is_waited_for(visit):
    def shown():
        return " ".join(re.sub("<[^>]+>", " ", visit.browser("researcher").get("/progress/1").text).split())

    text = shown()
    assert "Work that waits for people" in text
    assert re.search(r"Annotators with items to align: 2 ?; the oldest item has waited since 20\d\d-", text)
    assert re.search(r"waiting for Delivery since 20\d\d-", text)

    def change_language(session):
        session.get_one(StoredPerson, visit.site.people["researcher"]).language = "zh"

    visit.database.write(change_language)
    assert re.search(r"有 2 名标注员尚有待对齐条目，最早自 20\d\d-\d\d-\d\d 起等待", shown())
