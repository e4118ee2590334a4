"""Fits of people: of what was answered, when they are due, and never in the way of a page."""

import random
import threading

import numpy as np
import pytest
from sqlalchemy import func, select

from steelyard.statistics.intervals import Estimate
from steelyard.workbench.figures import fit_keeper
from steelyard.workbench.figures.fit_keeper import FitKeeper
from steelyard.workbench.figures.people_figures import people_figures
from steelyard.workbench.pipeline.rater_fits import fit_people, is_due, latest_answers, latest_panel
from steelyard.workbench.storage.figure_tables import StoredRaterFit
from steelyard.workbench.storage.tables import StoredAnswer, StoredProject
from workbench_people import NOON, answer, answer_all, make_project, send, take
from workbench_site import close_when_idle, made_once


@pytest.fixture
def one_guesses(database):
    """A project of four people, three of whom agree; the fourth answers at random."""
    return database, *made_once(database, make_answers)


def make_answers(database):
    project, people = make_project(database, 60, num_people=4)
    rng = np.random.default_rng(3)
    # Who gets which task is drawn.
    random.seed(3)

    def order(person, shown):
        return rng.permutation(shown).tolist() if person == people[3] else sorted(shown)

    answer_all(database, project, people, order=order)
    return project, people


def num_fits(database):
    with database.reading() as session:
        return session.scalar(select(func.count()).select_from(StoredRaterFit))


def test_who_answers_at_random_is_less_reliable(one_guesses):
    database, project, people = one_guesses
    fit_people(database, project, at=NOON + 5)
    with database.reading() as session:
        made = people_figures(session, session.get_one(StoredProject, project))
    assert (made.fit.at, made.fit.num_answers, made.fit.num_items, made.fit.num_since) == (NOON + 5, 120, 60, 0)
    found = {row.person: row.reliability for row in made.people}
    good = [found[person] for person in people[:3]]
    assert all(isinstance(each, Estimate) and each.low > found[people[3]].high for each in good)
    assert sum(each.n for each in found.values()) == 120
    assert all(row.ties.value < 0.1 for row in made.people)


def test_a_fit_is_due_at_first_after_new_answers_and_after_a_day(one_guesses):
    database, project, people = one_guesses

    def due(at):
        with database.reading() as session:
            return is_due(session, project, at=at)

    assert due(NOON)
    fit_people(database, project, at=NOON)
    assert not due(NOON + 10 * 86400)
    with database.reading() as session:
        assert latest_panel(session, project).note.num_since == 0
    other, _ = make_project_again(database, people)
    assert not due(NOON)
    # Another project's answers are not this one's.
    with database.reading() as session:
        assert latest_panel(session, other) is None
        assert not is_due(session, other, at=NOON)


def test_a_fit_of_a_version_without_intervals_of_accuracy_is_due(one_guesses):
    database, project, _ = one_guesses
    fit_people(database, project, at=NOON)

    def forget(session):
        row = session.scalar(select(StoredRaterFit))
        kept = {
            person: {name: value for name, value in each.items() if name != "accuracy"}
            for person, each in row.raters.items()
        }
        row.raters = kept

    database.write(forget)
    with database.reading() as session:
        assert is_due(session, project, at=NOON)


def make_project_again(database, people):
    """Make a second project in which one answer was given."""
    from steelyard.workbench.pipeline.case_import import import_cases
    from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
    from workbench_people import NO_GOLD, cases

    def make(session):
        project = add_project(session, "Q", ProjectSettings(rules=NO_GOLD), by=None, at=NOON)
        import_cases(session, project, cases(1), batch="b", by=None, at=NOON)
        return project.id

    project = database.write(make)
    [(assignment, shown)] = take(database, project, people[0])
    send(database, assignment, answer(shown))
    return project, people


def test_a_keeper_makes_a_fit_that_is_due_once(one_guesses):
    database, project, _ = one_guesses
    keeper = FitKeeper(database)
    keeper.refresh(project, patience=60)
    assert num_fits(database) == 1
    keeper.refresh(project, patience=60)
    assert num_fits(database) == 1


@pytest.mark.parametrize(("most_answers", "patience"), [(500, 0.01), pytest.param(1, 60, marks=pytest.mark.slow)])
def test_a_page_does_not_wait_for_a_fit(one_guesses, monkeypatch, most_answers, patience):
    database, project, _ = one_guesses
    keeper = FitKeeper(database)
    monkeypatch.setattr(fit_keeper, "_MOST_ANSWERS", most_answers)
    # Somebody writes for long: the fit cannot end before the page, which does not wait for a long one.
    with database.engine.begin() as other:
        lock = "BEGIN IMMEDIATE" if database.is_sqlite else "LOCK TABLE rater_fits IN EXCLUSIVE MODE"
        other.exec_driver_sql(lock)
        keeper.refresh(project, patience=patience)
        assert num_fits(database) == 0
    keeper._running[project].join()
    assert num_fits(database) == 1


def test_answers_that_rank_nothing_are_not_read(database):
    project, people = make_project(database, 4)
    answer_all(database, project, people)
    with database.reading() as session:
        read = latest_answers(session, project)
        assert session.scalar(select(func.count()).select_from(StoredAnswer)) == len(read.answers) == 8
    assert (len(read.items), read.people, read.width) == (4, sorted(people, reverse=True), 3) or len(read.people) == 2
    assert all(len(answer.tiers) == 3 for answer in read.answers)


def test_a_fit_ends_before_the_next_test_has_a_file_of_the_same_name(visit, monkeypatch):
    goes_on = threading.Event()
    monkeypatch.setattr(fit_keeper, "fit_people", lambda *_, **__: goes_on.wait(60))
    monkeypatch.setattr(fit_keeper.FitKeeper.refresh, "__kwdefaults__", {"patience": 0.0})
    answer_all(visit.database, 1, [visit.site.people["annotator"], visit.site.people["other"]])
    assert visit.browser("researcher").get("/progress/1/people").status_code == 200
    (fit,) = (each for each in threading.enumerate() if each.name.startswith(fit_keeper.THREAD_NAME))
    threading.Timer(0.2, goes_on.set).start()
    close_when_idle(visit.database)
    assert not fit.is_alive()
