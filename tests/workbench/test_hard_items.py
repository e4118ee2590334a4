"""Items about which good people differ: found, the worst first, by category, and assessed once each."""

import msgspec
import numpy as np
import pytest
from sqlalchemy import func, select, update

from steelyard.annotation.pipeline import PipelineRules
from steelyard.annotation.rater_reliability import RaterParameters
from steelyard.workbench.accounts.people import NewPerson, add_person
from steelyard.workbench.figures.hard_items import PAGE_SIZE, disagreement_figures
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.item_assessments import assess_items, has_waiting, known_raters
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.pipeline.rater_fits import FitNote, StoredPanel, fit_people
from steelyard.workbench.storage.figure_tables import StoredDisagreement, StoredRaterFit
from steelyard.workbench.storage.tables import StoredProject, StoredTask
from workbench_people import NOON, answer_all, cases
from workbench_site import made_once

NUM_CASES = 24
UNCLEAR = 12
EVERYBODY = PipelineRules(gold_share=0, num_annotators=4)


def categorised(number, responses):
    """Cases of one triple; the first are of a category whose guideline says nothing."""
    return [
        msgspec.structs.replace(
            case,
            prompt=msgspec.structs.replace(case.prompt, category=("poetry" if place < UNCLEAR else "facts",)),
        )
        for place, case in enumerate(cases(number, responses))
    ]


@pytest.fixture
def divided(database):
    """A project of one triple an item, and four good people of whom half rank poems the other way round."""
    return database, made_once(database, divided_project, responses=3)


def divided_project(database, responses):
    def make(session):
        project = add_project(session, "Poems", ProjectSettings(rules=EVERYBODY), by=None, at=NOON)
        import_cases(session, project, categorised(NUM_CASES, responses), batch="b1", by=None, at=NOON)
        people = [add_person(session, NewPerson(f"p{n}", "annotator"), by=None, at=NOON).id for n in range(4)]
        return project.id, people

    project, people = database.write(make)
    rng = np.random.default_rng(0)

    def order(person, shown):
        best = sorted(shown)
        if rng.random() < 0.15:
            best[:2] = best[1::-1]
        return best

    def only(category):
        return lambda session: (
            session.execute(
                update(StoredTask)
                .where(StoredTask.num_answered < StoredTask.num_wanted)
                .values(is_open=StoredTask.category == category)
            )
            and None
        )

    database.write(only("facts"))
    answer_all(database, project, people, order=order)
    database.write(only("poetry"))
    answer_all(
        database,
        project,
        people,
        order=lambda person, shown: sorted(shown, reverse=people.index(person) % 2 == 1),
    )
    fit_people(database, project, at=NOON)
    return project


def figures_of(database, project, **wanted):
    with database.reading() as session:
        return disagreement_figures(session, session.get_one(StoredProject, project), **wanted)


def test_items_of_the_unclear_category_come_first_a_page_at_a_time(divided):
    database, project = divided
    before = figures_of(database, project)
    assert (before.num_items, before.num_waiting, before.items) == (0, NUM_CASES, ())
    assess_items(database, project)
    made = figures_of(database, project)
    assert (made.num_items, made.num_waiting, len(made.items)) == (NUM_CASES, 0, PAGE_SIZE)
    worst, other = made.categories
    assert (worst.name, worst.num_items, other.name) == ("poetry", UNCLEAR, "facts")
    assert worst.needs_work
    assert not other.needs_work
    assert worst.excess.low > other.excess.high
    assert worst.different.value > worst.explained
    hard = [row for row in made.items if row.p <= 0.05]
    assert hard
    assert {row.category for row in hard} == {"poetry"}
    assert all(0 <= row.num_different <= row.num_compared for row in made.items)
    rest = figures_of(database, project, after=made.following)
    every = [*made.items, *rest.items]
    assert rest.following is None
    assert len({row.item for row in every}) == NUM_CASES
    assert [row.excess for row in every] == sorted((row.excess for row in every), reverse=True)
    poems = figures_of(database, project, category="poetry")
    assert [row.category for row in poems.items] == ["poetry"] * UNCLEAR
    assert figures_of(database, project, after=10**6).items == ()
    # Each item is assessed once.
    with database.reading() as session:
        assert not has_waiting(session, project)
        last = session.scalar(select(func.max(StoredDisagreement.id)))
    assess_items(database, project)
    with database.reading() as session:
        assert session.scalar(select(func.max(StoredDisagreement.id))) == last


@pytest.mark.slow
def test_items_with_several_tasks_a_person_have_a_reason_and_no_number(database):
    project = divided_project(database, 5)
    with database.reading() as session:
        assert not has_waiting(session, project)
    assess_items(database, project)
    made = figures_of(database, project)
    assert (made.num_items, made.num_waiting, made.items, made.categories, made.following) == (0, 0, (), (), None)
    assert "several tasks of one item" in made.why
    assert made.fit is not None


def test_figures_that_an_earlier_version_stored_are_not_shown(divided, database):
    _, project = divided
    assess_items(database, project)
    assert figures_of(database, project).items

    def give_variance(session):
        row = session.scalar(select(StoredRaterFit))
        row.raters = {person: {**each, "rater_item_variance": 0.5} for person, each in row.raters.items()}

    database.write(give_variance)
    made = figures_of(database, project)
    assert (made.items, made.categories) == ((), ())
    assert made.why


def test_somebody_whom_the_fit_does_not_know_counts_as_an_average_person():
    def rater(discrimination, tie):
        return RaterParameters(
            discrimination=discrimination,
            tie=tie,
            discrimination_error=0.1,
            tie_error=0.1,
            parameter_covariance=0.0,
            num_answers=50,
            rater_item_variance=0.5,
        )

    note = FitNote(fit=1, at=NOON, num_answers=100, num_items=50, num_since=0)
    panel = StoredPanel(note, {1: rater(1.0, -1.0), 2: rater(3.0, -2.0)})
    found = known_raters(panel, [2, 7])
    assert found.discrimination.tolist() == [3.0, 2.0]
    assert found.tie.tolist() == [-2.0, -1.5]
    assert found.rater_item_variance == 0.5
    assert known_raters(panel, []).tie.tolist() == []


REASONS = {"en": ("Hard items are not shown", "No estimate: it could use"), "zh": ("不显示疑难条目", "无估计值：")}


@pytest.mark.slow
@pytest.mark.parametrize("language", REASONS)
def test_the_pages_give_the_reason_in_both_languages(visit, language):
    hard, withheld = REASONS[language]
    project = divided_project(visit.database, 5)
    researcher = visit.browser("researcher")
    researcher.post("/account/language", data={"language": language, "csrf": visit.csrf("researcher")})
    disagreement, people = (researcher.get(f"/progress/{project}/{page}").text for page in ("disagreement", "people"))
    assert hard in disagreement
    assert withheld in people
    program = visit.program(visit.site.tokens["researcher"])
    figures = program.get(f"/api/v1/projects/{project}/figures/people").json()
    shown = [row["reliability"] for row in figures["people"] if row["reliability"]]
    assert shown
    assert all(each["value"] is None and "more than half" in each["why"] for each in shown)
