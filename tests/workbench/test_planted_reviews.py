"""Planted reviews: they look like any other, go to nobody who knows the item, and change no figure."""

import random
import re
from itertools import pairwise
from threading import Barrier, Thread

import msgspec
import pytest
from sqlalchemy import String, cast, delete, select, update

from steelyard.annotation.pipeline import TransitionRefused
from steelyard.io.cases import encode_case
from steelyard.workbench.accounts.people import NewPerson, add_person
from steelyard.workbench.figures.agreement_figures import agreement_figures
from steelyard.workbench.figures.dashboards import progress_figures
from steelyard.workbench.figures.people_figures import people_figures
from steelyard.workbench.pipeline.case_export import export_cases
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.listings import ItemSelection, answer_page, item_page
from steelyard.workbench.pipeline.planted_reviews import (
    evidence_shown,
    review_shown,
    reviews_of,
    shown_to,
)
from steelyard.workbench.pipeline.review_preparation import SpoiledTask, spoil_task
from steelyard.workbench.pipeline.reviewing import (
    Verdict,
    batches_of,
    count_review,
    decide,
    decide_batch,
    item_for,
    items_to_review,
    remark_in_review,
    reviewed_item,
)
from steelyard.workbench.pipeline.waiting import count_waiting, waiting_work
from steelyard.workbench.results.paper_figures import paper_figures
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredItem,
    StoredPerson,
    StoredPlantedReview,
    StoredProject,
    StoredReview,
    StoredTask,
)
from strategies import case
from workbench_crew import Crew, in_order
from workbench_site import begun, close_when_idle, made_once

ACCEPTED, REJECTED = Verdict(True), Verdict(False, "the order is wrong")
LAYERS = (("delivery", "delivery"), ("operations", "operations"), ("research", "researcher"))
PASSWORD = "a long password"


def planted_crew(database, **settings):
    """A crew whose first batch is finished, and whose second one waits for delivery with a planted review for each.

    With half of all reviews planted, one comes with every ordinary item as long as any lies ready.
    """
    return made_once(database, make_planted_crew, **settings)


def make_planted_crew(database, *, num_items=6, is_planted=True, **rules):
    settings = {"responses": "abc", "delivery_share": 1.0, "operations_share": 0.0, "review_gold_share": 0.5}
    crew = Crew(database, num_items=num_items, **(settings | rules))
    # Pseudonyms are drawn at random: two crews are to be compared.
    names = {"pseudonym": "P-" + cast(StoredPerson.id, String)}
    crew.database.write(lambda session: session.execute(update(StoredPerson).values(names)))
    crew.annotate(lambda person, responses: in_order(responses))
    finish_all(crew)
    if not is_planted:
        # None lies ready for the second batch; the numbers of its items are the same.
        crew.database.write(lambda session: session.execute(delete(StoredPlantedReview)))
    add_batch(crew, num_items)
    return crew


def add_batch(crew, number, *, batch="b2"):
    cases = [case(f"{batch} {place}", "abc") for place in range(number)]

    def load(session):
        project = session.get_one(StoredProject, crew.project)
        import_cases(session, project, cases, batch=batch, by=None, at=crew.now())

    crew.database.write(load)
    crew.annotate(lambda person, responses: in_order(responses))


def finish_all(crew):
    """Let the first person of each layer accept everything that waits."""
    for layer, role in LAYERS:
        person = crew.people[role][0]
        for item in queue(crew, layer, person):
            decided(crew, item, ACCEPTED, layer, person)


def queue(crew, layer, person):
    with crew.database.reading() as session:
        return [item.id for item in items_to_review(session, layer, person)]


def decided(crew, item, verdict, layer, person):
    crew.database.write(lambda session: decide(session, item, verdict, layer=layer, person=person, at=crew.now()))


def planted_rows(crew, **wanted):
    return crew.rows(select(StoredPlantedReview).filter_by(**wanted).order_by(StoredPlantedReview.id))


def number_of(row):
    """The number with which a planted review is shown."""
    return row.item_id if row.number is None else row.number


def waiting_rows(crew, layer="delivery"):
    return [row for row in planted_rows(crew, layer=layer, decision=None, is_retired=False) if row.placed_at]


def test_finished_items_come_back_as_planted_reviews_with_the_items_that_arrive(database):
    crew = planted_crew(database)
    first, second = crew.people["delivery"]
    finished = {item.id for item in crew.items() if item.state == "finished"}
    ordinary = {item.id for item in crew.items() if item.state == "delivery review"}
    assert (len(finished), len(ordinary)) == (6, 6)
    planted = {number_of(row) for row in waiting_rows(crew)}
    assert planted
    assert {row.item_id for row in waiting_rows(crew)} <= finished
    # The first person of the layer has reviewed all of the first batch.
    assert set(queue(crew, "delivery", first)) == ordinary
    assert set(queue(crew, "delivery", second)) == ordinary | planted
    # Each came after an ordinary item, before as much time had passed as four of them took, at a moment of its own.
    arrivals = sorted(item.changed_at for item in crew.items() if item.id in ordinary)
    longest = max(
        later - earlier
        for earlier, later in pairwise(
            [max(each.changed_at for each in crew.items() if each.id in finished), *arrivals]
        )
    )
    for row in waiting_rows(crew):
        before = [moment for moment in arrivals if moment < row.placed_at]
        assert 0 < row.placed_at - before[-1] < 4 * longest


def test_planted_reviews_stand_in_the_queue_by_the_moment_at_which_they_came(database):
    crew = planted_crew(database, num_items=12, review_gold_share=0.3)
    order = queue(crew, "delivery", crew.people["delivery"][1])
    places = [number for number, item in enumerate(order) if item in {number_of(row) for row in waiting_rows(crew)}]
    # Ordinary ones stand before, between and behind them: neither end of the queue is theirs.
    assert 2 <= len(places) <= len(order) / 2
    assert places != list(range(len(places)))
    assert places != list(range(len(order) - len(places), len(order)))


def test_without_the_share_nothing_is_planted(database):
    crew = planted_crew(database, review_gold_share=0.0)
    assert planted_rows(crew) == []


def test_a_queue_has_only_ordinary_items_while_nothing_is_finished(database):
    crew = Crew(database, responses="abc", num_items=4, delivery_share=1.0, review_gold_share=0.5)
    crew.annotate(lambda person, responses: in_order(responses))
    assert planted_rows(crew) == []
    assert len(queue(crew, "delivery", crew.people["delivery"][0])) == 4


def test_the_first_who_decides_takes_it_from_everybody_and_nobody_gets_it_twice(database):
    crew = planted_crew(database)
    second = crew.people["delivery"][1]

    def third(session):
        return add_person(session, NewPerson("delivery 9", "delivery"), by=None, at=crew.now()).id

    other = crew.database.write(third)
    item, number = waiting_rows(crew)[0].item_id, number_of(waiting_rows(crew)[0])
    state = next(each.state for each in crew.items() if each.id == item)
    assert number in queue(crew, "delivery", other)
    decided(crew, number, REJECTED, "delivery", second)
    for person in (second, other):
        assert number not in queue(crew, "delivery", person)
        for each in (number, item):
            with pytest.raises(TransitionRefused):
                decided(crew, each, ACCEPTED, "delivery", person)
    (row,) = planted_rows(crew, item_id=item, layer="delivery")
    assert (row.person_id, row.decision, row.reason) == (second, "rejected", "the order is wrong")
    # The item itself is where it was: no review, no round, no task.
    (stored,) = [each for each in crew.items() if each.id == item]
    assert (stored.state, stored.round) == (state, 1) == ("finished", 1)
    assert len(crew.rows(select(StoredReview).filter_by(item_id=item, person_id=second))) == 0
    # Put back by hand, it still goes to the other alone: who decided once knows it.
    crew.database.write(
        lambda session: session.add(
            StoredPlantedReview(
                project_id=crew.project, item_id=item, round=1, layer="operations", remarks=[], placed_at=crew.now()
            )
        )
    )
    crew.database.write(lambda session: change_role(session, second, "operations"))
    assert item not in queue(crew, "operations", second)
    assert item in queue(crew, "operations", crew.people["operations"][0])


def seen_as(crew, item, person, role="delivery"):
    """State and round of an item whose planted review a person sees; null for who sees the item as it is."""
    with crew.database.reading() as session:
        shown = reviews_of(session, shown_to(session, crew.project, person, role), [item]).get(item)
    return shown and (shown.state, shown.round)


def test_an_accepted_planted_review_seems_to_pass_the_later_layers_in_its_turn(database):
    crew = planted_crew(database, operations_share=1.0)
    first, second = crew.people["delivery"]

    def third(session):
        return add_person(session, NewPerson("delivery 9", "delivery"), by=None, at=crew.now()).id

    other, item = crew.database.write(third), waiting_rows(crew)[0].item_id
    before, behind, *_ = [each.id for each in crew.items() if each.state == "delivery review"]
    for each in (before, number_of(waiting_rows(crew)[0]), behind):
        decided(crew, each, ACCEPTED, "delivery", second)
    # Who decided and all colleagues see the same, also the one who had worked on the item; other layers do not.
    assert [seen_as(crew, item, person) for person in (second, other, first)] == [("operations review", 1)] * 3
    assert seen_as(crew, item, crew.people["operations"][0], "operations") is None
    decided(crew, behind, ACCEPTED, "operations", crew.people["operations"][0])
    assert seen_as(crew, item, second) == ("operations review", 1)
    decided(crew, before, ACCEPTED, "operations", crew.people["operations"][0])
    assert seen_as(crew, item, second) == ("validation", 1)
    decided(crew, before, ACCEPTED, "research", crew.people["researcher"][0])
    assert seen_as(crew, item, second) == ("finished", 1)


def test_a_planted_review_that_was_sent_back_seems_to_be_annotated_until_others_return(database):
    crew = planted_crew(database)
    second, item = crew.people["delivery"][1], waiting_rows(crew)[0].item_id
    genuine = next(each.id for each in crew.items() if each.state == "delivery review")
    decided(crew, number_of(waiting_rows(crew)[0]), REJECTED, "delivery", second)
    assert seen_as(crew, item, second) == ("annotating", 2)
    decided(crew, genuine, REJECTED, "delivery", second)
    assert seen_as(crew, item, second) == ("annotating", 2)
    crew.annotate(lambda person, responses: in_order(responses))
    assert seen_as(crew, item, second) == ("finished", 2)


def test_of_those_that_lie_ready_the_one_of_the_batch_and_the_nearest_number_comes(database):
    crew = planted_crew(database)
    *others, last = [each.id for each in crew.items() if each.batch == "b2"]
    for item in others:
        for layer, role in (LAYERS[0], LAYERS[2]):
            decided(crew, item, ACCEPTED, layer, crew.people[role][0])
    crew.database.write(lambda session: session.execute(update(StoredPlantedReview).values(placed_at=None)))
    ready = {row.item_id for row in planted_rows(crew, layer="delivery", decision=None)}
    assert ready - {*others}
    decided(crew, last, REJECTED, "delivery", crew.people["delivery"][0])
    crew.annotate(lambda person, responses: in_order(responses))
    assert [row.item_id for row in waiting_rows(crew)] == [max(ready & {*others})]


def change_role(session, person, role):
    session.execute(update(StoredPerson).where(StoredPerson.id == person).values(role=role))


@pytest.mark.parametrize("role", ["annotator", "delivery", "researcher"])
def test_who_worked_on_the_item_in_any_role_never_gets_it(database, role):
    crew = planted_crew(database)
    item, number = waiting_rows(crew)[0].item_id, number_of(waiting_rows(crew)[0])
    # Two annotators, and the first person of each layer, have worked on every item of the first batch.
    annotators = crew.rows(
        select(StoredAnswer.person_id)
        .join(StoredTask, StoredAnswer.task_id == StoredTask.id)
        .where(StoredTask.item_id == item)
    )
    people = annotators if role == "annotator" else crew.people[role][:1]
    assert people
    for person in people:
        with crew.database.reading() as session:
            assert item_for(session, number, person, ["delivery review"]) is None
        crew.database.write(lambda session, person=person: change_role(session, person, "delivery"))
        assert number not in queue(crew, "delivery", person)
        with pytest.raises(TransitionRefused):
            decided(crew, number, ACCEPTED, "delivery", person)


def test_two_reviewers_at_once_make_one_decision(database):
    crew = planted_crew(database)

    def third(session):
        return add_person(session, NewPerson("delivery 9", "delivery"), by=None, at=crew.now()).id

    people = (crew.people["delivery"][1], crew.database.write(third))
    row, ready, outcomes = waiting_rows(crew)[0], Barrier(2), []

    def review(person, verdict):
        ready.wait()
        try:
            decided(crew, number_of(row), verdict, "delivery", person)
            outcomes.append("decided")
        except TransitionRefused:
            outcomes.append("refused")

    threads = [Thread(target=review, args=each) for each in zip(people, (ACCEPTED, REJECTED), strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["decided", "refused"]
    assert len([row for row in planted_rows(crew, item_id=row.item_id, layer="delivery") if row.decision]) == 1


def test_items_that_arrive_at_once_get_different_planted_reviews(database):
    crew = Crew(database, responses="abc", num_items=8, delivery_share=1.0, operations_share=1.0, review_gold_share=0.5)
    crew.annotate(lambda person, responses: in_order(responses))
    finish_all(crew)
    add_batch(crew, 4)
    ordinary = [item.id for item in crew.items() if item.state == "delivery review"]
    ready = Barrier(len(ordinary))

    def accept(item):
        ready.wait()
        decided(crew, item, ACCEPTED, "delivery", crew.people["delivery"][1])

    threads = [Thread(target=accept, args=(item,)) for item in ordinary]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {item.state for item in crew.items() if item.id in ordinary} == {"operations review"}
    placed = [row.item_id for row in waiting_rows(crew, "operations")]
    assert len(placed) == len(set(placed)) > 0


@pytest.mark.parametrize("changed", [False, True])
def test_what_is_shown_is_the_truth_or_clearly_not(database, changed):
    crew = planted_crew(database, num_items=8, validation=False)
    rows = [row for row in waiting_rows(crew) if (row.changed is not None) == changed]
    assert rows
    with crew.database.reading() as session:
        for row in rows:
            item = session.get_one(StoredItem, row.item_id)
            (task,) = evidence_shown(session, item, review_shown(session, row))
            orders = {answer.ranking for answer in task.answers.values()}
            assert orders == {(("c",), ("b",), ("a",)) if changed else (("a",), ("b",), ("c",))}
            assert [answer.scores for answer in task.answers.values()] == [
                {"a": 3, "b": 4, "c": 5} if changed else {"a": 5, "b": 4, "c": 3}
            ] * 2


@pytest.mark.slow
def test_half_of_the_planted_reviews_are_changed(database):
    crew = planted_crew(database, num_items=40)
    kinds = [row.changed is not None for row in planted_rows(crew)]
    # Up to 20 lie ready for each of two layers: three standard deviations of a fair coin.
    assert len(kinds) > 30
    assert abs(sum(kinds) / len(kinds) - 0.5) < 1.5 / len(kinds) ** 0.5


def test_a_settled_dispute_is_changed_only_to_what_nobody_said(database):
    crew = Crew(database, responses="abc", num_items=1, delivery_share=1.0)
    first, second = crew.people["annotator"][:2]
    crew.annotate(
        lambda person, responses: in_order(responses, order="abc" if person == first else "cba"), [first, second]
    )
    (evidence,) = crew.evidence()
    for settled, expected in (("abc", None), ("cba", None), ("bac", (("c",), ("a",), ("b",)))):
        evidence.settled = in_order("abc", order=settled)
        spoiled = spoil_task(evidence, {}, 0)
        assert (spoiled and spoiled.settled.ranking) == expected


def test_the_page_of_a_planted_review_is_that_of_the_item_when_it_waited(new_sqlite):
    """To the byte, but for the token of the session: what one person saw is what another one sees later."""
    # One layer has all planted reviews: that none of 16 is intact happens once in 65,536 times.
    shares = {"delivery_share": 1.0, "operations_share": 0.0, "validation": False, "review_gold_share": 0.5}
    crew = Crew(new_sqlite(), responses="abc", num_items=16, passwords=PASSWORD, **shares)
    crew.annotate(lambda person, responses: in_order(responses))
    app = begun(crew.database)
    first, second = crew.visit(app, "delivery 4", PASSWORD), crew.visit(app, "delivery 5", PASSWORD)
    before = {item.id: page(first, f"/review/{item.id}") for item in crew.items()}
    listed = page(first, "/review")
    looked_up = {
        item.id: re.search(r"<main.*", page(first, f"/progress/1/items/{item.id}"), re.DOTALL)[0]
        for item in crew.items()
    }
    crew.database.write(
        lambda session: remark_in_review(
            session, session.get_one(StoredItem, crew.item().id), "late", layer="operations", person=9, at=crew.now()
        )
    )
    finish_all(crew)
    intact = [row for row in planted_rows(crew, layer="delivery") if row.changed is None]
    crew.database.write(
        lambda session: session.execute(
            update(StoredPlantedReview)
            .where(StoredPlantedReview.id.in_([row.id for row in intact]))
            .values(placed_at=crew.now())
        )
    )
    assert intact
    after = page(second, "/review")
    for row in intact:
        assert page(second, f"/review/{row.item_id}") == before[row.item_id]
        # The row of the list, too.
        (line,) = [line for line in listed.splitlines() if f'"/review/{row.item_id}"' in line]
        assert line in after.splitlines()
    # What the reviewer looks up shows the item as it waits, and in the list under that state alone.
    for row in intact:
        shown = re.search(r"<main.*", page(second, f"/progress/1/items/{row.item_id}"), re.DOTALL)[0]
        assert shown == looked_up[row.item_id]
    waiting, finished = (
        {each["id"]: each["state"] for each in second.get(f"/api/v1/projects/1/items?state={state}").json()["items"]}
        for state in ("delivery review", "finished")
    )
    everything = {each["id"]: each["state"] for each in second.get("/api/v1/projects/1/items").json()["items"]}
    assert {row.item_id for row in intact} <= waiting.keys()
    assert set(waiting.values()) == {"delivery review"}
    assert not waiting.keys() & finished.keys()
    assert everything == waiting | finished
    # Who decided on the items does not see them: the pages do not exist.
    assert {first.get(f"/review/{row.item_id}").status_code for row in intact} == {404}


def page(visitor, address):
    answer = visitor.get(address)
    assert answer.status_code == 200
    text = re.sub(r'(csrf(-token)?" (value|content)=")\w+', r"\1", answer.text)
    # How much waits for the person, and the name of the person.
    return re.sub(r'for you">\d+|delivery [45]', "", text)


def test_every_form_of_a_planted_review_is_answered_as_that_of_an_item(new_sqlite):
    crew = Crew(
        new_sqlite(), responses="abc", num_items=4, passwords=PASSWORD, delivery_share=1.0, review_gold_share=0.5
    )
    crew.annotate(lambda person, responses: in_order(responses))
    finish_all(crew)
    add_batch(crew, 4)
    app = begun(crew.database)
    planted = waiting_rows(crew)[0]
    ordinary = next(item.id for item in crew.items() if item.state == "delivery review")
    visitor, form = crew.visit(app, "delivery 5", PASSWORD), {"score": ["5", "4", "3"], "place": ["1", "2", "3"]}
    answers = []
    for item, stored in ((number_of(planted), planted.item_id), (ordinary, ordinary)):
        task = crew.tasks(item_id=stored, is_gold=False)[0].id
        requests = (
            ("remarks", {"text": "Why?"}),
            ("remarks", {"text": " "}),
            (f"tasks/{task}", form | {"discard": ["", "", ""]}),
            ("tasks/999", form),
            ("unresolved", {"reason": "no way"}),
            ("decision", {"verdict": "reject", "reason": " "}),
            ("decision", {"verdict": "accept", "round": "2"}),
            ("decision", {"verdict": "reject", "reason": "wrong", "round": "1", "seconds": "20"}),
            ("decision", {"verdict": "accept"}),
            ("remarks", {"text": "too late"}),
        )
        sent = [visitor.post(f"/review/{item}/{address}", data=data) for address, data in requests]
        shown = visitor.get(f"/review/{item}").status_code
        answers.append(
            [(each.status_code, each.headers.get("location", "").replace(f"{item}", "N")) for each in sent] + [shown]
        )
        answers[-1].append([re.sub(r"<time.*?</time>", "", bare(each.text, crew, item)) for each in sent])
    assert answers[0] == answers[1]
    assert [status for status, _ in answers[0][:10]] == [303, 400, 409, 409, 409, 400, 409, 303, 409, 409]


def bare(text, crew, item):
    """A page without what is of its item: numbers, prompt and order of the letters."""
    text = re.sub(r'csrf(-token)?" (value|content)="\w+', "", text)
    text = re.sub(r"task-\d+|/tasks/\d+|/review/\d+|What is [^<]*|p\d|b2 \d", "", text)
    text = re.sub(r'for you">\d+', "", text)
    return re.sub(r"answer [abc]|[ABC] [=>&gt;]+.*|<b>\d</b>", "", text)


def snapshot(crew, *, at=10_000.0):
    """Everything that a project says of itself, as bytes: figures, lists, exports, counts."""
    with crew.database.reading() as session:
        project = session.get_one(StoredProject, crew.project)
        paper = msgspec.to_builtins(paper_figures(session, project, at=at))
        people = msgspec.to_builtins(people_figures(session, project))
        settings = paper.pop("settings")
        for figures in (paper, people):
            for shown in SHOWS_PLANTED:
                figures.pop(shown, None)
        settings["rules"].pop("review_gold_share")
        parts = (
            progress_figures(session, project, at=at),
            agreement_figures(session, project),
            people,
            paper,
            settings,
            [encode_case(each).decode() for each in export_cases(session, project, evidence="both")],
            [encode_case(each).decode() for each in export_cases(session, project, evidence="aligned")],
            item_page(session, project.id, ItemSelection()),
            answer_page(session, project.id),
            waiting_work(session, project.id),
        )
        return msgspec.json.encode(parts)


SHOWS_PLANTED = ("reviewers", "review_gold")


@pytest.mark.slow
def test_no_figure_or_export_knows_of_planted_reviews(database):
    """The same, to the byte, while they wait, after remarks, time and decisions, and without any row of them."""
    crew = planted_crew(database, num_items=6)
    waiting, person = snapshot(crew), crew.people["delivery"][1]
    for number, row in enumerate(waiting_rows(crew)):

        def work(session, row=row, number=number):
            item = item_for(session, number_of(row), person, ["delivery review"])
            remark_in_review(session, item, "Why?", layer="delivery", person=person, at=crew.now())
            at = crew.now() + 100
            assert count_review(session, item, layer="delivery", person=person, reported=50.0, at=at) == 50
            decide(session, item.id, (ACCEPTED, REJECTED)[number % 2], layer="delivery", person=person, at=at)

        crew.at += 200
        crew.database.write(work)
    assert snapshot(crew) == waiting
    crew.database.write(lambda session: session.execute(delete(StoredPlantedReview)))
    assert snapshot(crew) == waiting


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_project_with_planted_reviews_ends_as_one_without(new_sqlite, seed):
    """The same people give the same answers and decide alike on ordinary items: all figures and exports are equal."""
    ends = []
    for is_planted in (False, True):
        # People who ask at once try different tasks first.
        random.seed(seed)
        crew = planted_crew(new_sqlite(), is_planted=is_planted, seed=seed, operations_share=0.5)
        person, planted = crew.people["delivery"][1], {number_of(row) for row in waiting_rows(crew)}
        ordinary = [item for item in queue(crew, "delivery", person) if item not in planted]
        for number, item in enumerate(ordinary):
            verdict = REJECTED if number % 3 == seed else ACCEPTED
            crew.at = 5_000.0 + 100 * number
            decided(crew, item, verdict, "delivery", person)
        for item in sorted(planted):
            decided(crew, item, REJECTED, "delivery", person)
        assert bool(planted) == is_planted
        ends.append(snapshot(crew))
        close_when_idle(crew.database)
    assert ends[0] == ends[1]


def test_what_waits_for_a_person_counts_what_the_person_sees(database):
    crew = planted_crew(database)
    for person in crew.people["delivery"]:
        with crew.database.reading() as session:
            assert count_waiting(session, person, "delivery") == len(queue(crew, "delivery", person))
    with crew.database.reading() as session:
        (row,) = [each for each in waiting_work(session, crew.project) if each.state == "delivery review"]
    assert row.items == 6


def test_a_batch_that_is_accepted_takes_its_planted_reviews_along(database):
    crew = planted_crew(database, delivery_share=0.0)
    second = crew.people["researcher"][1]
    planted = {row.item_id for row in waiting_rows(crew, "research")}
    assert planted
    assert {row.batch for row in waiting_rows(crew, "research")} == {"b2"}
    ordinary = sum(item.state == "validation" for item in crew.items())
    with crew.database.reading() as session:
        shown = {each.batch: each for each in batches_of(session, "research", second)}
        project = session.get_one(StoredProject, crew.project)
    # An item of the first batch that is shown as one of the second that waits is not shown as finished.
    finished = sum(each.num_finished for each in shown.values() if each.batch == "b")
    assert (sum(each.num_waiting for each in shown.values() if each.batch == "b"), finished) == (0, 6 - len(planted))
    assert shown["b2"].num_waiting == ordinary + len(planted)
    crew.database.write(
        lambda session: decide_batch(session, project, "b2", ACCEPTED, layer="research", person=second, at=crew.now())
    )
    assert {row.decision for row in planted_rows(crew, layer="research") if row.item_id in planted} == {"accepted"}
    assert [event.detail["items"] for event in crew.events("batch accepted")] == [ordinary]
    with pytest.raises(TransitionRefused):
        crew.database.write(
            lambda session: decide_batch(
                session, project, "b2", ACCEPTED, layer="research", person=second, at=crew.now()
            )
        )


def test_a_batch_that_is_sent_back_asks_about_none_of_its_planted_reviews_any_more(database):
    crew = planted_crew(database, delivery_share=0.0)
    waiting = {row.id for row in waiting_rows(crew, "research")}
    assert waiting
    with crew.database.reading() as session:
        project = session.get_one(StoredProject, crew.project)
    second = crew.people["researcher"][1]
    crew.database.write(
        lambda session: decide_batch(session, project, "b2", REJECTED, layer="research", person=second, at=crew.now())
    )
    assert queue(crew, "research", second) == []
    assert {(row.decision, row.is_retired) for row in planted_rows(crew) if row.id in waiting} == {(None, True)}
    # Their items are finished, as before.
    assert {item.state for item in crew.items() if item.batch == "b"} == {"finished"}


def test_a_truth_that_is_rejected_later_takes_its_planted_reviews_along(database):
    crew = planted_crew(database)
    item, other = [row.item_id for row in waiting_rows(crew)][:2]
    numbers = {number_of(row) for row in waiting_rows(crew)}
    decided(crew, number_of(waiting_rows(crew)[0]), REJECTED, "delivery", crew.people["delivery"][1])
    with crew.database.reading() as session:
        project = session.get_one(StoredProject, crew.project)
    crew.database.write(
        lambda session: decide_batch(
            session, project, "b", REJECTED, layer="research", person=crew.people["researcher"][0], at=crew.now()
        )
    )
    assert waiting_rows(crew) == []
    assert all(row.is_retired for row in planted_rows(crew) if row.item_id in (item, other))
    assert not numbers & set(queue(crew, "delivery", crew.people["delivery"][1]))


def test_remarks_of_later_layers_are_not_shown_and_those_on_it_stay_with_it(database):
    crew = Crew(database, responses="abc", num_items=6, delivery_share=1.0, review_gold_share=0.5)
    crew.annotate(lambda person, responses: in_order(responses))
    delivery, researcher = crew.people["delivery"], crew.people["researcher"][0]
    for item in queue(crew, "delivery", delivery[0]):
        decided(crew, item, ACCEPTED, "delivery", delivery[0])
    for item in crew.items():
        crew.database.write(
            lambda session, item=item: remark_in_review(
                session,
                session.get_one(StoredItem, item.id),
                "late",
                layer="research",
                person=researcher,
                at=crew.now(),
            )
        )
    finish_all(crew)
    add_batch(crew, 6)
    number = number_of(waiting_rows(crew)[0])

    def remark(session):
        shown = item_for(session, number, delivery[1], ["delivery review"])
        for _ in range(2):
            remark_in_review(session, shown, " Why? ", layer="delivery", person=delivery[1], at=crew.now())
        reviewed = reviewed_item(session, number, delivery[1], ["delivery review"])
        assert reviewed is not None
        return reviewed.remarks, reviewed.decisions, reviewed.item.state

    assert crew.database.write(remark) == ([(delivery[1], "Why?")], [], "delivery review")


def test_a_changed_task_survives_its_row():
    spoiled = SpoiledTask(task=3, answers={"1": in_order("abc")}, settled=in_order("abc"))
    assert msgspec.convert(msgspec.to_builtins(spoiled), SpoiledTask) == spoiled
