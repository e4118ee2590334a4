"""Lists of numbers and names of any length as one value of a statement, and numbers for new items."""

import sqlite3
from contextlib import contextmanager

from sqlalchemy import event, select

from steelyard.workbench.pipeline.disputes import evidence_of
from steelyard.workbench.pipeline.doubted_truths import doubted_truths
from steelyard.workbench.pipeline.listings import ItemSelection, item_page
from steelyard.workbench.pipeline.planted_reviews import shown_to
from steelyard.workbench.storage.number_lists import is_among, next_item_numbers
from steelyard.workbench.storage.tables import StoredItem, StoredPlantedReview, StoredProject
from workbench_crew import Crew

MANY = 70_000
"""More than SQLite (32,766) and PostgreSQL (65,535) take as values of one statement."""


@contextmanager
def few_values(database, most):
    """Let SQLite take ``most`` values of one statement: its limit is 32,766 unless who built it chose another one."""

    def limit(connection, _):
        if database.is_sqlite:
            connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, most)

    database.close()
    event.listen(database.engine, "connect", limit)
    try:
        yield
    finally:
        event.remove(database.engine, "connect", limit)
        database.close()


def test_a_list_longer_than_databases_take_values_chooses_what_it_names(database):
    crew = Crew(database, num_items=3, responses="abc")
    first, second, last = sorted(item.id for item in crew.items())
    numbers = [first, second, *range(10**6, 10**6 + MANY)]
    with few_values(database, 32_766):
        chosen = crew.rows(select(StoredItem).where(is_among(StoredItem.id, numbers)))
        assert [item.id for item in chosen] == numbers[:2]
        left = crew.rows(select(StoredItem).where(~is_among(StoredItem.id, numbers)))
        assert [item.id for item in left] == [last]
        assert crew.rows(select(StoredItem).where(is_among(StoredItem.id, []))) == []
        assert len(crew.rows(select(StoredItem).where(~is_among(StoredItem.id, [])))) == 3


def test_names_in_any_writing_are_found_as_they_are(database):
    crew = Crew(database, num_items=1, responses="abc")
    names = ['"', "'; --", "汉字", "עברית", "\\", "ثلاثة", "🙂", "%", "a,b", "[1]"]

    def rename(session):
        for name in names:
            session.add(
                StoredItem(
                    project_id=crew.project, prompt=name, case_json="", state="dropped", discarded=[], changed_at=0.0
                )
            )

    crew.database.write(rename)
    for name in names:
        rows = crew.rows(select(StoredItem).where(is_among(StoredItem.prompt, [name, "none of these"])))
        assert [row.prompt for row in rows] == [name]


def test_numbers_for_new_items_are_those_of_no_other(database):
    crew = Crew(database, num_items=3, responses="abc")
    drawn = database.write(lambda session: next_item_numbers(session, 5))
    assert drawn == sorted(set(drawn))
    assert len(drawn) == 5
    assert not set(drawn) & {item.id for item in crew.items()}


def test_pages_of_somebody_to_whom_many_reviews_were_planted_are_read(new_sqlite):
    crew = Crew(new_sqlite(), num_items=1, responses="abc", review_gold_share=0.0)
    many = 2000

    def plant(session):
        item = crew.item()
        columns = {column.key: getattr(item, column.key) for column in StoredItem.__table__.columns} | {
            "state": "finished"
        }
        numbers = range(item.id + 1, item.id + 1 + many)
        session.execute(
            StoredItem.__table__.insert(), [columns | {"id": each, "prompt": f"f{each}"} for each in numbers]
        )
        rows = [
            StoredPlantedReview(
                id=each, project_id=crew.project, item_id=each, round=1, layer="delivery", number=each + many,
                batch="late", placed_at=1.0, remarks=[],
            )
            for each in numbers
        ]  # fmt: skip
        columns = [column.key for column in StoredPlantedReview.__table__.columns]
        protests = {
            "decision": "rejected",
            "at": 2.0,
            "reason": "no",
            "seconds": 0.0,
            "is_retired": False,
            "is_upheld": False,
        }
        session.execute(
            StoredPlantedReview.__table__.insert(),
            [{key: getattr(row, key) for key in columns} | protests for row in rows],
        )
        return [each + many for each in numbers]

    shown_numbers = crew.database.write(plant)
    with few_values(crew.database, many - 500), crew.database.reading() as session:
        planted = shown_to(session, crew.project, crew.people["delivery"][0], "delivery")
        # Nothing has passed the gate since they were sent back.
        listed = item_page(session, crew.project, ItemSelection(state="annotating"), size=1000, planted=planted)
        ordinary = crew.item().id
        assert [row.id for row in listed.rows] == [ordinary, *shown_numbers][:1000]
        assert {row.batch for row in listed.rows[1:]} == {"late"}
        assert listed.following == listed.rows[-1].id
        assert len(doubted_truths(session, crew.people["researcher"][0])) == many
        assert len(evidence_of(session, session.scalars(select(StoredItem)).all())) == many + 1
        assert session.get_one(StoredProject, crew.project)
