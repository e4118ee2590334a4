"""Accuracy of reviewers: rates by hand, those of simulated reviewers within their intervals, and the words for them."""

import pytest
from sqlalchemy import update

from steelyard.workbench.figures.people_figures import people_figures
from steelyard.workbench.figures.reviewer_figures import reviewer_accuracy
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.results.paper_figures import paper_figures
from steelyard.workbench.results.paper_pages import methods_paragraph, paper_pages
from steelyard.workbench.simulated_people import Crew as SimulatedCrew
from steelyard.workbench.simulated_people import Habits, Simulation, reviewer_rates
from steelyard.workbench.simulation import review
from steelyard.workbench.storage.tables import StoredPlantedReview, StoredProject
from strategies import case
from workbench_crew import Crew

DECISIONS = {
    # Accepts everything.
    "delivery 4": [("truth", "accepted")] * 4 + [("wrong", "accepted")] * 4,
    # Right on 3 of 4 truths and on 1 of 4 wrong answers.
    "delivery 5": [("truth", "accepted")] * 3
    + [("truth", "rejected"), ("wrong", "rejected")]
    + [("wrong", "accepted")] * 3,
    "operations 6": [("truth", "accepted"), ("wrong", "rejected")],
}


def crew_with(database, decisions, *, retired=()):
    """A crew with decisions on planted reviews by the name of the person; items are new for each of them."""
    number = sum(map(len, decisions.values()))
    crew = Crew(database, responses="abc", num_items=number)
    people = {f"{role} {place}": person for place, (role, person) in enumerate(in_turn(crew))}

    def plant(session):
        items = iter(crew.items())
        for name, made in decisions.items():
            for kind, decision in made:
                session.add(
                    StoredPlantedReview(
                        project_id=crew.project,
                        item_id=next(items).id,
                        round=1,
                        layer=name.split()[0],
                        changed=None if kind == "truth" else {"task": 1},
                        remarks=[],
                        placed_at=1.0,
                        person_id=people[name],
                        decision=decision,
                        at=2.0,
                        seconds=36.0,
                        is_retired=name in retired,
                    )
                )

    database.write(plant)
    return crew


def in_turn(crew):
    return [(role, person) for role, people in crew.people.items() for person in people]


def accuracy(crew):
    with crew.database.reading() as session:
        return {(row.layer, row.name): row for row in reviewer_accuracy(session, crew.project)}


def test_the_rates_are_those_of_the_decisions(database):
    rows = accuracy(crew_with(database, DECISIONS))
    names = [name for layer, name in rows]
    assert names == ["", "", "delivery 4", "delivery 5", "", "operations 6"]
    values = {
        key: (row.planted, row.right.value, row.truths_accepted.value, row.wrong_rejected.value)
        for key, row in rows.items()
    }
    assert values["delivery", "delivery 4"] == (8, 0.5, 1.0, 0.0)
    assert values["delivery", "delivery 5"] == (8, 0.5, 0.75, 0.25)
    assert values["delivery", ""] == (16, 0.5, 0.875, 0.125)
    assert values["operations", "operations 6"] == (2, 1.0, 1.0, 1.0)
    assert values["all", ""] == (18, 10 / 18, 8 / 9, 2 / 9)
    assert rows["all", ""].hours == pytest.approx(0.18)
    for row in rows.values():
        assert 0 <= row.right.low <= row.right.value <= row.right.high <= 1
    # The one who accepts everything can be seen, and nobody else is marked.
    assert [name for (_, name), row in rows.items() if row.accepts_all] == ["delivery 4"]


def test_decisions_on_a_truth_that_was_withdrawn_count_against_nobody(database):
    rows = accuracy(crew_with(database, DECISIONS, retired=("delivery 5", "operations 6")))
    assert list(rows) == [("all", ""), ("delivery", ""), ("delivery", "delivery 4")]


def test_a_paper_states_the_rates_or_that_there_are_none(database):
    crew = crew_with(database, DECISIONS)

    def figures():
        with crew.database.reading() as session:
            project = session.get_one(StoredProject, crew.project)
            return paper_figures(session, project, at=10.0), people_figures(session, project)

    made, people = figures()
    assert [(row.layer, row.planted) for row in made.reviewers] == [
        ("all", 18), ("delivery", 16), ("delivery", 8), ("delivery", 8), ("operations", 2), ("operations", 2)
    ]  # fmt: skip
    assert [row.right for row in made.reviewers][:2] == [row.right for row in people.reviewers][:2]
    # Nobody has answered a task: the paragraph says that alone.
    assert "no answer yet" in methods_paragraph(made, "en")
    pages = paper_pages(made)
    assert "Reviews with a known right decision" in pages["paper.en.md"]
    assert "错误答案退回率" in pages["paper.zh.tex"]
    assert "delivery 4" not in "".join(pages.values())
    crew.database.write(lambda session: session.execute(update(StoredPlantedReview).values(is_retired=True)))
    without = paper_pages(figures()[0])
    assert "Reviews with a known right decision" not in without["paper.en.md"]


@pytest.mark.slow
def test_simulated_reviewers_have_their_rates_within_the_intervals(new_sqlite):
    """At 95 % and 12 rates of reviewers who differ, 9 of 12 within is less than one chance in a hundred."""
    crew = Crew(new_sqlite(), responses="abc", num_items=360, delivery_share=1.0)
    reviewers = [person for role in ("delivery", "operations", "researcher") for person in crew.people[role]]
    layers = {
        "delivery": tuple(crew.people["delivery"]),
        "operations": tuple(crew.people["operations"]),
        "research": tuple(crew.people["researcher"]),
    }
    simulation = Simulation(
        database=crew.database,
        crew=SimulatedCrew(crew.project, tuple(crew.people["annotator"]), layers),
        qualities={},
        habits=Habits(truths_accepted=0.85, wrong_rejected=0.6, agreeable_share=0.2),
        seed=5,
        begun_at=2000.0,
    )

    def plant(session):
        for number, item in enumerate(crew.items()):
            # Each person has items of the own layer that only this one may get: a colleague knows the others.
            layer = ("delivery", "operations", "research")[number % 3]
            colleague = layers[layer][number // 3 % 2]
            row = session.merge(item)
            row.state = "finished"
            session.add(
                StoredPlantedReview(
                    project_id=crew.project,
                    item_id=item.id,
                    round=1,
                    layer=layer,
                    changed={"task": 1} if number // 6 % 2 else None,
                    remarks=[],
                    placed_at=1000.0,
                    ruled_by=colleague,
                )
            )

    crew.database.write(plant)
    while review(simulation):
        pass
    with crew.database.reading() as session:
        rows = {row.person: row for row in reviewer_accuracy(session, crew.project) if row.person is not None}
    assert rows.keys() == set(reviewers)
    within = []
    for person, row in rows.items():
        rates = reviewer_rates(simulation, person)
        assert row.truths_accepted.n == row.wrong_rejected.n == 30
        assert row.accepts_all == (rates.wrong_rejected == 0)
        for estimate, rate in (
            (row.truths_accepted, rates.truths_accepted),
            (row.wrong_rejected, rates.wrong_rejected),
        ):
            within.append(estimate.low <= rate <= estimate.high)
    assert len({reviewer_rates(simulation, person) for person in reviewers}) > 3
    assert sum(within) > 9


def test_rates_of_reviewers_follow_from_the_seed_and_lie_within_their_ends(new_sqlite):
    simulation = Simulation(database=new_sqlite(), crew=SimulatedCrew(1, (), {}), qualities={}, seed=3)
    rates = [reviewer_rates(simulation, person) for person in range(200)]
    assert rates == [reviewer_rates(simulation, person) for person in range(200)]
    agreeable = sum(rate == (1.0, 0.0) for rate in rates)
    # A fifth of 200, within three standard deviations.
    assert abs(agreeable - 40) < 17
    assert all(0 <= value <= 1 for rate in rates for value in rate)


def test_a_person_of_a_project_without_planted_reviews_has_no_row(database):
    crew = Crew(database, responses="abc")
    assert accuracy(crew) == {}

    def load(session):
        project = session.get_one(StoredProject, crew.project)
        import_cases(session, project, [case("q", "abc")], batch="b2", by=None, at=5.0)
        return people_figures(session, project).reviewers

    assert crew.database.write(load) == ()
