"""Settings of a project with thousands of open items: a gate over batches or pairs costs as much as over items."""

import random
import sys
import time

import msgspec
import pytest
from sqlalchemy import insert, select, update

from steelyard.annotation.pipeline import PipelineRules
from steelyard.workbench.pipeline.changed_settings import change_settings
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import StoredAnswer, StoredItem, StoredProject, StoredTask
from workbench_people import NOON, answer, make_project

pytestmark = pytest.mark.field
NUM_ITEMS = 2000


def seconds_to_lower_the_number(folder, gate):
    """Processor time of asking two people in place of three, when two have answered every task of one batch."""
    database = Database(f"sqlite:///{folder / gate}.db")
    database.migrate()
    rules = PipelineRules(gold_share=0, num_annotators=3, gate=gate)
    project, people = make_project(database, NUM_ITEMS, num_people=10, rules=rules)
    draw = random.Random(1)

    def fill(session):
        rows = [
            {
                "task_id": task.id,
                "person_id": person,
                "content": msgspec.to_builtins(
                    answer(task.responses, sorted(task.responses, reverse=draw.random() < 0.06))
                ),
                "seconds": 1.0,
                "at": NOON,
            }
            for task in session.scalars(select(StoredTask))
            for person in draw.sample(people, 2)
        ]
        session.execute(insert(StoredAnswer), rows)
        session.execute(update(StoredTask).values(num_answered=2, num_reserved=2))

    def ask_two(session):
        row = session.get_one(StoredProject, project)
        settings = settings_of(row)
        fewer = msgspec.structs.replace(settings.rules, num_annotators=2)
        change_settings(session, row, msgspec.structs.replace(settings, rules=fewer), by=None, at=NOON)

    database.write(fill)
    started = time.process_time()
    database.write(ask_two)
    seconds = time.process_time() - started
    with database.reading() as session:
        assert "annotating" not in set(session.scalars(select(StoredItem.state)))
    database.close()
    return seconds


@pytest.mark.parametrize("gate", ["batch", "pair of people"])
def test_a_batch_of_thousands_of_items_goes_to_the_gate_as_fast_as_its_items_alone(tmp_path, gate):
    alone, together = (seconds_to_lower_the_number(tmp_path, each) for each in ("item", gate))
    sys.stdout.write(f"{NUM_ITEMS} items, processor time: gate over items {alone:.1f} s, {gate} {together:.1f} s\n")
    assert together < 1.5 * alone + 1
