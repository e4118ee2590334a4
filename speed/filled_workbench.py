"""A workbench with any number of items, as after some months of work: what `workbench_dashboards.py` measures.

A case file of that many prompts with three responses is imported as `workbench import` does it, in batches of 10,000.
Simulated people work on the first 500 items through the functions behind the pages: answers, alignment, layers, gold.
Their rows are then copied to nine tenths of the other items, each copy a day later, and the audit log is continued with
its hashes; the rest waits for its first answer. The people are fitted and the items assessed, as the server does it
beside its requests.
"""

import random
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from sqlalchemy import insert, select, text

NUM_WORKED = 500
SHARE_WORKED = 0.9
DAY = 24 * 3600.0
OF_ITEM = f"item_id + copy * {NUM_WORKED}"


def fill(database, num_items):
    """Fill an empty workbench; returns the seconds of the import."""
    from steelyard.workbench.pipeline.item_assessments import assess_items
    from steelyard.workbench.pipeline.rater_fits import fit_people

    simulation, import_seconds = imported(database, num_items)
    print(f"imported in {import_seconds:.0f} s", file=sys.stderr)
    work(simulation)
    Copies(database, int(SHARE_WORKED * num_items / NUM_WORKED), num_items).make()
    print("copied", file=sys.stderr)
    fit_people(database, simulation.crew.project, at=time.time())
    assess_items(database, simulation.crew.project)
    return import_seconds


def imported(database, num_items):
    """Write a case file and import it in batches: the simulation, and the seconds of the import."""
    from steelyard.annotation.pipeline import PipelineRules
    from steelyard.io.cases import read_cases
    from steelyard.workbench.simulated_projects import import_batch, start_project

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases.jsonl"
        write_case_file(path, num_items)
        first = list(islice(read_cases(path), NUM_WORKED + 100))
        begun_at = time.time() - 400 * DAY
        rules = PipelineRules(gold_share=0.05)
        simulation = start_project(database, first, seed=1, begun_at=begun_at, num_annotators=50, rules=rules)
        started = time.perf_counter()
        cases, number = read_cases(path), 0
        while batch := list(islice(cases, 10_000)):
            import_batch(simulation, batch, f"batch {number}")
            number += 1
        return simulation, time.perf_counter() - started


def write_case_file(path, num_items):
    """Write prompts of twenty categories with three responses of some 60 words."""
    from steelyard.core.types import Case, Message, Prompt, Response
    from steelyard.io.cases import write_cases

    rng = random.Random(1)
    words = ["river", "scale", "weigh", "honest", "answer", "because", "number", "light", "stone", "paper", "first"]

    def make(number):
        texts = [" ".join(rng.choices(words, k=60)) for _ in range(3)]
        content = f"Question {number}: " + " ".join(rng.choices(words, k=20))
        return Case(
            prompt=Prompt(
                id=f"q{number}",
                messages=(Message(role="user", content=content),),
                category=(f"category {number % 20}",),
                language="en",
            ),
            responses=tuple(Response(id=f"r{place}", text=each) for place, each in enumerate(texts)),
        )

    write_cases(path, map(make, range(num_items)))


def work(simulation):
    """Let people work until most of the first items have gone some way, and some the whole."""
    from steelyard.workbench.simulation import adjudicate_items, adjudicate_layers, annotate, review

    for _ in range(3):
        annotate(simulation, most=int(0.28 * 2 * NUM_WORKED))
        for step in (adjudicate_items, adjudicate_items, adjudicate_layers, review):
            step(simulation)


class Copies:
    """Copies of the rows of the items that people worked on, for the items behind them."""

    def __init__(self, database, num_copies, num_items):
        from steelyard.workbench.storage import tables

        self._database, self._num, self._num_items, self._spans = database, num_copies, num_items, {}
        self._tables = tables.WorkbenchTable.metadata.tables

    def make(self):
        """Copy item by item what refers to it, add the sums up, and continue the log."""
        with self._database.engine.begin() as connection:
            self._connection = connection
            if self._database.is_sqlite:
                # The workbench begins its transactions itself: else each of a million rows would wait for the disk.
                connection.exec_driver_sql("BEGIN")
                connection.execute(text("PRAGMA cache_size = -1000000"))
            self._move_items()
            self._copied("tasks", f"id > {self._num_items}", item_id=OF_ITEM)
            of_task = (
                f"CASE WHEN task_id <= {self._num_items} THEN task_id + copy * {NUM_WORKED} "
                f"ELSE task_id + copy * {self._spans['tasks']} END"
            )
            self._copied("assignments", task_id=of_task)
            of_assignment = f"assignment_id + copy * {self._spans['assignments']}"
            self._copied("answers", task_id=of_task, assignment_id=of_assignment)
            self._copied("gold_results", task_id=of_task)
            for table in ("gate_results", "remarks"):
                self._copied(table, item_id=OF_ITEM)
            connection.execute(
                text("DELETE FROM reviews WHERE item_id > :worked AND item_id <= :last"),
                {"worked": NUM_WORKED, "last": NUM_WORKED * self._num},
            )
            self._copied("reviews", f"item_id <= {NUM_WORKED}", item_id=OF_ITEM)
            self._copied("work_days")
            prefixes = ("num_", "same_", "judged_", "cell_", "sum_", "tau_")
            columns = [column.name for column in self._tables["pair_agreements"].columns]
            names = [name for name in columns if name.startswith(prefixes)]
            sums = ", ".join(f"{name} = {name} * {self._num}" for name in names)
            connection.execute(text(f"UPDATE pair_agreements SET {sums}"))
            self._continue_log()
            self._number_on()
        if not self._database.is_sqlite:
            with self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                # As the server does by itself after a while.
                connection.execute(text("VACUUM ANALYZE"))

    def _move_items(self):
        place = f"((moved.id - 1) % {NUM_WORKED}) + 1"
        bounds = f"moved.id > {NUM_WORKED} AND moved.id <= {NUM_WORKED * self._num}"
        later = f"from_.changed_at + {DAY} * ((moved.id - 1) / {NUM_WORKED})"
        for table, columns in (
            ("items", ("state", "round", "agreement", "discarded")),
            ("tasks", ("num_reserved", "num_answered", "is_open", "is_retired")),
        ):
            values = ", ".join(f"{name} = from_.{name}" for name in columns)
            values += f", changed_at = {later}" if table == "items" else ""
            self._connection.execute(
                text(
                    f"UPDATE {table} AS moved SET {values} FROM {table} AS from_ WHERE from_.id = {place} AND {bounds}"
                )
            )

    def _copied(self, table, where="1 = 1", **changed):
        """Copy the rows of a table, with other numbers in some columns, and keep the distance between two copies."""
        names = [column.name for column in self._tables[table].columns]
        # Beyond all numbers that there are.
        self._spans[table] = self._connection.scalar(text(f"SELECT max(id) FROM {table}")) or 0
        later = {name: f"{name} + {DAY} * copy" for name in ("at", "assigned_at", "expires_at")}
        values = later | {"day": "day + copy", "id": f"id + copy * {self._spans[table]}"}
        made = ", ".join((values | changed).get(name, name) for name in names)
        self._connection.execute(
            text(
                f"INSERT INTO {table} ({', '.join(names)}) WITH RECURSIVE copies(copy) AS "
                f"(SELECT 1 UNION ALL SELECT copy + 1 FROM copies WHERE copy < {self._num - 1}) "
                f"SELECT {made} FROM {table} CROSS JOIN copies WHERE {where}"
            )
        )

    def _continue_log(self):
        from steelyard.workbench.storage.audit_log import AuditEvent, chained

        events = self._tables["events"]
        every = list(self._connection.execute(select(events).order_by(events.c.id)).mappings())
        worked = [row for row in every if row["subject"] in ("item", "task")]
        last = every[-1]["hash"]
        for copy in range(1, self._num):
            deeds = [
                (AuditEvent(row["action"], row["subject"], row["subject_id"] + copy * NUM_WORKED, row["person_id"],
                      row["detail"]), row["at"] + copy * DAY)
                for row in worked
            ]  # fmt: skip
            rows = chained(deeds, last)
            last = rows[-1]["hash"]
            self._connection.execute(insert(events), rows)

    def _number_on(self):
        """Let PostgreSQL number new rows behind the copies."""
        if self._database.is_sqlite:
            return
        for name in self._tables:
            self._connection.execute(
                text(f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), (SELECT max(id) + 1 FROM {name}))")
            )
