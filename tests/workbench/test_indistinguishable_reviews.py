"""A planted review looks as a genuine one by every route: each answer is the same, to the byte, in two worlds.

In one world an item is finished and a planted review shows it; in the other one it waits. All else is equal: who
annotated it, what others decided, every sum. So it is after the same decision in both. A route of the application is
asked as soon as it exists.
"""

import re
import time
from itertools import count, product

import msgspec
import numpy as np
import pytest
from fastapi.routing import APIRoute
from scipy.stats import rankdata
from sqlalchemy import delete, select, text, update

from steelyard.annotation.pipeline import LAYERS
from steelyard.statistics.intervals import Estimate
from steelyard.workbench.accounts.people import NewPerson, add_person
from steelyard.workbench.figures.reviewer_figures import ReviewerAccuracy, rows_shown_to
from steelyard.workbench.pipeline.alignment import QueuePage
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.disputes import evidence_of, letters_of
from steelyard.workbench.pipeline.planted_reviews import reviews_of, shown_to
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project, case_of
from steelyard.workbench.pipeline.review_placement import ROLE_OF, STATE_OF, place_review
from steelyard.workbench.pipeline.review_preparation import spoil_task
from steelyard.workbench.pipeline.reviewing import Verdict, decide, items_to_review
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredEvent,
    StoredItem,
    StoredPlantedReview,
    StoredProject,
    StoredReview,
    WorkbenchTable,
)
from strategies import case
from workbench_crew import ROLES, Crew, in_order
from workbench_routes import HOLDERS, ROUTES, routes_of
from workbench_site import begun, made_once

PASSWORD = "a long password"
NUM_ITEMS = 6
TAKES_ITEMS_AWAY = {
    "/manage/projects/{project}/export", "/api/v1/projects/{project}/export", "/api/v1/projects/{project}/answers"
}  # fmt: skip
"""Routes after which nobody is checked by the items that were taken: what they send is complete."""
NOW = re.compile(r"\b1[6-9]\d{8}(\.\d+)?\b")
"""The time of a request, in seconds since 1970: the crew lives in that year."""


LATE = "late"
"""The batch with which the planted review is shown."""


def planted_world(database, layer, *, is_changed=False):
    """A crew with an item that is finished and is shown to a layer where all others wait, and the number of that.

    The second person of the layer has never seen it, and the first one of each layer has accepted it.
    """
    return made_once(database, make_planted_world, layer=layer, is_changed=is_changed)


def make_planted_world(database, layer, is_changed):
    shares = {"delivery_share": 1.0, "operations_share": 1.0, "validation": True, "review_gold_share": 0.0}
    crew = Crew(database, responses="abc", num_items=NUM_ITEMS, passwords=PASSWORD, gold_share=0.0, **shares)
    first, second, *_ = crew.people["annotator"]
    crew.annotate(lambda person, responses: in_order(responses, order="abc"), [first, second])
    planted = crew.items()[2].id
    for each in LAYERS:
        person = crew.people[ROLE_OF[each]][0]
        with crew.database.reading() as session:
            waiting = [item.id for item in items_to_review(session, each, person)]
        # The others go on until they wait for the layer.
        chosen = waiting if LAYERS.index(each) < LAYERS.index(layer) else [planted]
        for item in chosen:
            crew.database.write(
                lambda session, item=item, each=each, person=person: decide(
                    session, item, Verdict(True), layer=each, person=person, at=crew.now()
                )
            )
    assert [item.state for item in crew.items()].count("finished") == 1
    crew.now()
    # The letters of the responses are those of the item, of which remarks speak: one number of six draws the same.
    shown = case_of(crew.item(2))
    number = next(each for each in count(1000) if letters_of(each, shown) == letters_of(planted, shown))

    def plant(session):
        # What is taken from the item in the other world belongs to an item of another project.
        other = add_project(session, "another project", ProjectSettings(), by=None, at=0.0)
        import_cases(session, other, [case("elsewhere", "abc")], batch="b", by=None, at=0.0)
        review = StoredPlantedReview(
            project_id=crew.project, item_id=planted, round=1, layer=layer, remarks=[], placed_at=crew.at - 0.5
        )
        review.number, review.batch = number, LATE
        if is_changed:
            (evidence,) = evidence_of(session, [session.get_one(StoredItem, planted)])[planted]
            review.changed = msgspec.to_builtins(spoil_task(evidence, {}, 0))
        session.add(review)
        elsewhere = session.scalars(select(StoredItem.id).where(StoredItem.project_id == other.id)).one()
        session.execute(delete(StoredReview).where(StoredReview.item_id == elsewhere))
        return elsewhere

    return crew, planted, number, crew.database.write(plant)


def make_genuine(crew, item, number, layer, elsewhere):
    """Turn the world into that in which an item of that number waits for its review.

    Nobody of this layer or a later one saw it.
    """

    def change(session):
        stored, planted = session.get_one(StoredItem, item), session.scalars(select(StoredPlantedReview)).one()
        stored.state, stored.changed_at = STATE_OF[layer], planted.placed_at
        for person, wrong in (planted.changed or {"answers": {}})["answers"].items():
            answers = StoredAnswer.task_id == planted.changed["task"], StoredAnswer.person_id == int(person)
            session.execute(update(StoredAnswer).where(*answers).values(content=wrong))
        session.execute(delete(StoredPlantedReview))
        session.flush()
        session.execute(text("PRAGMA defer_foreign_keys = ON"))
        for table in WorkbenchTable.metadata.tables.values():
            if "item_id" in table.columns:
                session.execute(update(table).where(table.c.item_id == item).values(item_id=number))
        session.execute(update(StoredItem).where(StoredItem.id == item).values(id=number, batch=LATE))
        left = LAYERS[LAYERS.index(layer) :]
        later = StoredReview.item_id == number, StoredReview.layer.in_(left)
        session.execute(update(StoredReview).where(*later).values(item_id=elsewhere))
        # They have drawn it, and not decided.
        session.add_all(StoredReview(project_id=crew.project, item_id=number, round=1, layer=each) for each in left)

    crew.database.write(change)


def addresses(app, role, crew, item, number, layer):
    """Every address that a role can ask for, about the item: each parameter of a query with each of its values."""
    stored, task = next(each for each in crew.items() if each.id == item), crew.tasks(item_id=item)[0].id
    numbers = {"project": crew.project, "item": number, "task": task, "person": 1}
    numbers |= {"number": 1, "release": 1, "assignment": 1}
    place = f"{stored.changed_at!r}:{number - 1}"
    values = {
        "state": ("finished", STATE_OF[layer]),
        "batch": (stored.batch, LATE),
        "category": ("", stored.category),
        "language": (stored.language,),
        "prompt": (stored.prompt,),
        "after": (item - 1, item, number - 1, number),
        "limit": (1, NUM_ITEMS),
        "adjudicate_after": (place,),
        "review_after": (place,),
        "evidence": ("aligned", "both"),
        "file": ("cases.jsonl",),
    }
    for method, path, route in routes_of(app.routes):
        row = ROUTES.get((method, path))
        if method != "GET" or row is None or role not in HOLDERS[row.permission] or path in TAKES_ITEMS_AWAY:
            continue
        address = path.format(**numbers)
        yield address
        # Its own number is that of no item.
        yield path.format(**numbers | {"item": item})
        assert isinstance(route, APIRoute), path
        for field in route.dependant.query_params:
            assert field.alias in values, f"a new parameter of {path}: which of its values tell of an item?"
            yield from (f"{address}?{field.alias}={value}" for value in values[field.alias])


def seen_by(visitor, wanted):
    return {address: seen(visitor.get(address)) for address in wanted}


def seen(answer):
    headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
    return answer.status_code, NOW.sub("NOW", answer.text), headers


@pytest.mark.parametrize("layer", LAYERS)
def test_every_route_shows_a_planted_item_as_one_that_waits(new_sqlite, layer):
    crew, item, number, elsewhere = planted_world(new_sqlite(), layer)
    app = begun(crew.database)
    role = ROLE_OF[layer]
    name = f"{role} {len(ROLES) - 1 - ROLES[::-1].index(role)}"
    visitor = crew.visit(app, name, PASSWORD)
    wanted = list(dict.fromkeys(addresses(app, role, crew, item, number, layer)))
    planted = seen_by(visitor, wanted)
    assert planted[f"/review/{number}"][0] == 200
    assert planted[f"/progress/1/items/{item}"][0] == 404
    make_genuine(crew, item, number, layer, elsewhere)
    genuine = seen_by(visitor, wanted)
    assert len(wanted) > 30
    for address in wanted:
        assert planted[address] == genuine[address], f"{address} tells a planted review from a genuine one"


@pytest.mark.parametrize(
    ("layer", "verdict", "is_changed"),
    [
        pytest.param(*values, marks=[] if values == ("research", "accept", True) else pytest.mark.slow)
        for values in product(LAYERS, ("accept", "reject"), (True, False))
    ],
)
def test_after_the_decision_every_route_shows_the_reviewer_what_a_genuine_review_would(
    new_sqlite, layer, verdict, is_changed
):
    crew, item, number, elsewhere = planted_world(new_sqlite(), layer, is_changed=is_changed)
    role = ROLE_OF[layer]
    name = f"{role} {len(ROLES) - 1 - ROLES[::-1].index(role)}"
    app = begun(crew.database)
    visitor = crew.visit(app, name, PASSWORD)
    wanted = list(dict.fromkeys(addresses(app, role, crew, item, number, layer)))

    def decide_and_look():
        sent = {"verdict": verdict, "reason": "" if verdict == "accept" else "the order is wrong", "round": "1"}
        sent |= {"seconds": "90"}
        posted = [seen(visitor.post(f"/review/{each}/decision", data=sent)) for each in (item, number, number, item)]
        assert [status for status, *_ in posted] == [404, 303, 409, 404]
        return seen_by(visitor, wanted)

    planted = decide_and_look()
    crew.database.write(
        lambda session: session.execute(
            update(StoredPlantedReview).values(decision=None, person_id=None, reason="", at=None, seconds=0.0)
        )
    )
    make_genuine(crew, item, number, layer, elsewhere)
    genuine = decide_and_look()
    for address in wanted:
        assert planted[address] == genuine[address], f"{address} tells that the review was planted"


def test_an_export_is_complete_and_who_took_it_is_not_checked_by_its_items(new_sqlite):
    crew, item, number, _ = planted_world(new_sqlite(), "research")
    visitor = crew.visit(begun(crew.database), "researcher 9", PASSWORD)
    prompt, waiting = (
        next(each.prompt for each in crew.items() if each.id == item),
        [each.id for each in crew.items() if each.state == "validation"],
    )
    assert visitor.get(f"/review/{number}").status_code == 200
    # At another time than that of the crew: an export from before the item was finished tells nothing of it.
    taken = StoredEvent(at=1.0, person_id=crew.people["researcher"][1], action="exported", subject="project")
    taken.subject_id, taken.detail, taken.previous_hash, taken.hash = crew.project, {}, "", "x"
    crew.database.write(lambda session: session.add(taken))
    assert visitor.get(f"/review/{number}").status_code == 200
    exported = [msgspec.json.decode(line) for line in visitor.get("/api/v1/projects/1/export").content.splitlines()]
    assert [each["prompt"]["id"] for each in exported] == [prompt]
    assert visitor.get(f"/review/{number}").status_code == 404
    assert f"/review/{number}" not in visitor.get("/review").text
    assert visitor.get(f"/review/{waiting[0]}").status_code == 200
    listed = visitor.get("/api/v1/projects/1/answers?limit=1000").json()["answers"]
    assert {each["item"] for each in listed} == {item}


def test_who_lists_the_answers_gets_those_to_finished_items_and_is_not_checked_by_these(new_sqlite):
    crew, item, number, _ = planted_world(new_sqlite(), "research")
    visitor = crew.visit(begun(crew.database), "researcher 9", PASSWORD)
    assert visitor.get(f"/review/{number}").status_code == 200
    for after in (0, 1):
        listed = visitor.get(f"/api/v1/projects/1/answers?limit=1000&after={after}").json()["answers"]
        assert {each["item"] for each in listed} == {item}
    assert visitor.get(f"/review/{number}").status_code == 404
    # One line of the log, however many pages are read.
    assert [event.detail for event in crew.events("exported")] == [{"evidence": "answers"}]


def test_people_who_review_see_no_id_of_a_prompt(new_sqlite):
    """It is the same under both numbers of an item: whoever knows it from before would know the item again."""
    crew, item, number, _ = planted_world(new_sqlite(), "delivery")
    app = begun(crew.database)
    crew.database.write(
        lambda session: session.execute(update(StoredItem).values(prompt="secret-" + StoredItem.prompt))
    )
    crew.database.write(
        lambda session: add_person(session, NewPerson("manager", "administrator", PASSWORD), by=None, at=0.0)
    )
    listed = "/api/v1/projects/1/items"
    for name in ("delivery 5", "operations 7", "researcher 9"):
        visitor = crew.visit(app, name, PASSWORD)
        assert {each["prompt"] for each in visitor.get(listed).json()["items"]} == {None}, name
        refused = visitor.get(f"{listed}?prompt=secret-p2")
        assert (refused.status_code, "are not shown the ids of prompts" in refused.json()["error"]) == (400, True)
        for address in ("/review", f"/review/{number}", f"/progress/1/items/{item}", "/progress/1/disagreement"):
            assert "secret-" not in visitor.get(address).text, (name, address)
    manager = crew.visit(app, "manager", PASSWORD)
    (found,) = manager.get(f"{listed}?prompt=secret-p1").json()["items"]
    assert found["prompt"] == "secret-p1"


def arrivals(database, *, jump, num_items, seed):
    """The queue of a layer to which the items of a batch have come, with planted reviews of an older one.

    Each item comes up to ``jump`` places after that of the import. Rows are moment, number, batch, state, round, and
    whether the review is planted.
    """
    shares = {"delivery_share": 1.0, "operations_share": 0.0, "validation": False, "review_gold_share": 0.2}
    crew, rng = (
        Crew(database, responses="abc", num_items=num_items // 2, seed=seed, **shares),
        np.random.default_rng(seed),
    )

    def come(session):
        for item in session.scalars(select(StoredItem)):
            item.state, item.changed_at = "finished", 10.0
            session.add(
                StoredPlantedReview(project_id=crew.project, item_id=item.id, round=1, layer="delivery", remarks=[])
            )
        project = session.get_one(StoredProject, crew.project)
        import_cases(
            session, project, [case(f"n{place}", "abc") for place in range(num_items)], batch=LATE, by=None, at=11.0
        )
        items = session.scalars(select(StoredItem).where(StoredItem.batch == LATE).order_by(StoredItem.place)).all()
        at = 100.0
        for place in np.argsort(np.arange(num_items) + rng.uniform(0, jump, num_items)):
            at += rng.exponential(10.0)
            items[place].state, items[place].changed_at = "delivery review", at
            session.flush()
            place_review(session, items[place], "delivery", at=at)

    crew.database.write(come)
    person = crew.people["delivery"][0]
    numbers = {row.number for row in crew.rows(select(StoredPlantedReview).where(StoredPlantedReview.placed_at > 0))}
    queue, wanted = [], QueuePage()
    with crew.database.reading() as session:
        while wanted.after or not queue:
            page = items_to_review(session, "delivery", person, wanted)
            queue += [
                (each.changed_at, each.id, each.batch, each.state, each.round, each.id in numbers) for each in page
            ]
            wanted = wanted._replace(after=wanted.following(page))
    return queue


def separation(values, are_planted):
    """How far values tell planted reviews from others: the area under the curve from 1/2, in standard deviations."""
    ranks, planted, others = rankdata(values), are_planted.sum(), (~are_planted).sum()
    area = (ranks[are_planted].sum() - planted * (planted + 1) / 2) / (planted * others)
    return (area - 0.5) / np.sqrt((planted + others + 1) / (12 * planted * others))


@pytest.mark.parametrize(
    ("jump", "num_items"),
    [
        (20, 160),
        (0, 160),
        pytest.param(0, 1200, marks=pytest.mark.slow),
        pytest.param(8, 400, marks=pytest.mark.slow),
        pytest.param(1e6, 400, marks=pytest.mark.slow),
    ],
)
def test_number_batch_state_and_place_in_the_queue_tell_no_planted_review(new_sqlite, jump, num_items):
    queue = arrivals(new_sqlite(), jump=jump, num_items=num_items, seed=0)
    assert queue == sorted(queue)
    moments, numbers, batches, states, rounds, are_planted = map(np.array, zip(*queue, strict=True))
    assert len(set(numbers)) == len(numbers)
    assert (set(batches), set(states), set(rounds)) == ({LATE}, {"delivery review"}, {1})
    assert len(set(moments)) == len(moments)
    assert are_planted.sum() > num_items / 8
    inner = slice(2, -2)
    before, behind = numbers - np.roll(numbers, 1), np.roll(numbers, -1) - numbers
    around = sum(np.roll(numbers, shift) for shift in (-2, -1, 1, 2)) / 4
    told = {
        "number": numbers,
        "number above the one before": before,
        "number below the one behind": behind,
        "number above those around": numbers - around,
        "distance from those around": np.minimum(abs(before), abs(behind)),
        "the number before is there": np.isin(numbers - 1, numbers),
        "the number behind is there": np.isin(numbers + 1, numbers),
        "time since the one before": moments - np.roll(moments, 1),
        "time to the one behind": np.roll(moments, -1) - moments,
    }
    for name, values in told.items():
        assert abs(separation(values[inner], are_planted[inner])) < 3, f"{name} tells planted reviews from others"


def test_managers_open_the_number_of_a_planted_review_and_see_what_it_is(new_sqlite):
    crew, item, number, _ = planted_world(new_sqlite(), "delivery", is_changed=True)
    crew.database.write(
        lambda session: add_person(session, NewPerson("manager", "administrator", PASSWORD), by=None, at=0.0)
    )
    app = begun(crew.database)
    manager, reviewer = crew.visit(app, "manager", PASSWORD), crew.visit(app, "delivery 5", PASSWORD)
    shown = manager.get(f"/progress/1/items/{number}")
    assert shown.status_code == 200
    for words in ("Planted review", "Delivery", f'/progress/1/items/{item}"', "one task has a wrong answer"):
        assert words in shown.text
    assert "Planted review" not in manager.get(f"/progress/1/items/{item}").text
    assert "Planted review" not in reviewer.get(f"/progress/1/items/{number}").text
    # Another layer sees the item, and nothing under that number.
    other = crew.visit(app, "operations 7", PASSWORD)
    assert [other.get(f"/progress/1/items/{each}").status_code for each in (item, number)] == [200, 404]


def test_a_planted_review_is_seen_from_its_moment_on(new_sqlite):
    crew, item, number, _ = planted_world(new_sqlite(), "delivery")
    person = crew.people["delivery"][1]
    for at, is_seen in ((time.time() + 600, False), (time.time() - 600, True)):
        crew.database.write(lambda session, at=at: session.execute(update(StoredPlantedReview).values(placed_at=at)))
        with crew.database.reading() as session:
            assert (number in [each.id for each in items_to_review(session, "delivery", person)]) == is_seen
            assert bool(reviews_of(session, shown_to(session, crew.project, person, "delivery"), [item])) == is_seen


def test_people_of_a_layer_see_the_accuracy_of_the_layers_before_theirs():
    share = Estimate(1.0, 0.5, 1.0, 3)
    rows = [
        ReviewerAccuracy(
            layer=layer, person=None, pseudonym="", name="", planted=3, hours=0.0, right=share, truths_accepted=share,
            wrong_rejected=share, accepts_all=False,
        )
        for layer in ("all", *LAYERS)
    ]  # fmt: skip
    seen = {role: [row.layer for row in rows_shown_to(role, rows)] for role in {*ROLE_OF.values(), "administrator"}}
    assert seen == {
        "delivery": [],
        "operations": ["delivery"],
        "researcher": ["delivery", "operations"],
        "administrator": ["all", "delivery", "operations", "research"],
    }
