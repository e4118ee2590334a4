"""Pages, figures and exports ask the database as often for many items as for few: no statement an item or a task."""

from contextlib import contextmanager

import msgspec
import pytest
from sqlalchemy import event, select

from steelyard.annotation.pipeline import PipelineRules
from steelyard.workbench.figures.agreement_figures import agreement_figures
from steelyard.workbench.figures.dashboards import progress_figures
from steelyard.workbench.figures.hard_items import disagreement_figures
from steelyard.workbench.figures.people_figures import people_figures
from steelyard.workbench.pipeline.case_export import export_cases
from steelyard.workbench.pipeline.item_assessments import assess_items
from steelyard.workbench.pipeline.item_states import move
from steelyard.workbench.pipeline.listings import ItemSelection, answer_page, item_page
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.pipeline.queues import next_assignments
from steelyard.workbench.pipeline.rater_fits import fit_people
from steelyard.workbench.results.paper_figures import paper_figures
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import StoredItem, StoredProject
from steelyard.workbench.views.item_views import item_panels
from workbench_people import NOON, answer_all, make_project, membership_of

FEW, MANY = 4, 12
READERS = {
    "progress": lambda session, project, items: progress_figures(session, project, at=NOON),
    "agreement": lambda session, project, items: agreement_figures(session, project),
    "people": lambda session, project, items: people_figures(session, project),
    "hard items": lambda session, project, items: disagreement_figures(session, project),
    "panels": lambda session, project, items: item_panels(session, items, 1, settings_of(project), {}),
    "paper": lambda session, project, items: paper_figures(session, project, at=NOON),
    "export": lambda session, project, items: list(export_cases(session, project, evidence="both")),
    "items": lambda session, project, items: item_page(session, project.id, ItemSelection()),
    "answers": lambda session, project, items: answer_page(session, project.id),
}


@pytest.fixture(scope="module")
def projects(sqlite_template, tmp_path_factory):
    """Two workbenches whose projects differ in the number of items: finished, to align, and of a second round."""
    made = {}
    for number in (FEW, MANY):
        path = tmp_path_factory.mktemp("project") / "workbench.db"
        path.write_bytes(sqlite_template.read_bytes())
        made[number] = worked(Database(f"sqlite:///{path}"), number)
    yield made
    for database in made.values():
        database.close()


def worked(database, number):
    """A project of four people who differ in their orders, with a fit, a half of whose items are finished."""
    rules = PipelineRules(gold_share=0, least_agreement=0.5)
    project, people = make_project(database, number, num_people=4, rules=rules)
    turned = {people[0]}
    answer_all(database, project, people, order=lambda person, shown: sorted(shown, reverse=person in turned))
    fit_people(database, project, at=NOON)
    assess_items(database, project)

    def finish(session):
        for item in session.scalars(select(StoredItem).where(StoredItem.id % 2 == 0)).all():
            while item.state not in ("finished", "aligning"):
                move(session, item, "accepted", person=None, at=NOON)
            item.state = "finished"

    database.write(finish)
    return database


@contextmanager
def counted(database):
    """Count the statements that are sent to the database."""
    sent = []

    def note(connection, cursor, statement, parameters, *_):
        sent.append((statement, parameters))

    event.listen(database.engine, "before_cursor_execute", note)
    yield sent
    event.remove(database.engine, "before_cursor_execute", note)


@pytest.mark.parametrize("name", READERS)
def test_more_items_are_no_more_statements(projects, name):
    sent = {}
    for number, database in projects.items():
        with database.reading() as session:
            project = session.get_one(StoredProject, 1)
            items = list(session.scalars(select(StoredItem.id).order_by(StoredItem.id)))
            with counted(database) as statements:
                READERS[name](session, project, items)
        sent[number] = statements
    assert len(sent[MANY]) == len(sent[FEW]), sent[MANY]


@pytest.mark.parametrize("rework", ["anyone", "others", "same people"])
def test_what_a_person_has_had_is_looked_up_by_task(projects, rework):
    """Who has had 5,000 tasks gets the next one as fast as a newcomer: nothing reads all that a person has had."""
    database = projects[FEW]
    with database.reading() as session:
        membership = membership_of(session, 1, 1)
        rules = msgspec.structs.replace(membership.settings.rules, rework=rework)
        membership = membership._replace(settings=msgspec.structs.replace(membership.settings, rules=rules))
        with counted(database) as statements:
            next_assignments(session, membership, number=1, at=NOON)
        candidates = [(text, values) for text, values in statements if "NOT (EXISTS" in text]
        plans = [
            row[3]
            for text, values in candidates
            for row in session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values)
        ]
    assert candidates
    assert not [step for step in plans if "person_id=?" in step and "task_id=?" not in step]
