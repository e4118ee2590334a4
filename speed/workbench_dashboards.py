"""Every list, dashboard, export and deletion of a workbench with 100,000 items, through HTTP.

Run: python speed/workbench_dashboards.py [--items 100000] [--postgresql]
(adds a row to speed/results/workbench_dashboards.json; SQLite in a temporary folder, or with --postgresql a server that
is started for it, with fsync)

A case file of that many prompts with three responses is imported as `workbench import` does it, in batches of 10,000.
Simulated people work on the first 500 items through the functions behind the pages: answers, alignment, layers, gold.
Their rows are then copied to nine tenths of the other items, each copy a day later, and the audit log is continued with
its hashes; the rest waits for its first answer. Each page is asked for ``--times`` times in a row by a person who may
see it; the first time, the largest and the median are in milliseconds. A time is from the request to the end of the
answer, of one visitor at a time.
"""

import argparse
import http.client
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from sqlalchemy import func, insert, select, text

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
RESULTS = HERE / "results" / "workbench_dashboards.json"
NUM_WORKED = 500
SHARE_WORKED = 0.9
DAY = 24 * 3600.0
OF_ITEM = f"item_id + copy * {NUM_WORKED}"


def main():
    """Measure, print the row and add it to the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--keep", type=Path, help="a new file for a copy of the workbench on SQLite")
    settings = parser.parse_args()
    from workbench import database_for

    load = round(os.getloadavg()[0], 2)
    with database_for(settings) as address:
        figures = measured(address, settings)
    row = {
        "command": "python speed/workbench_dashboards.py " + " ".join(sys.argv[1:]),
        "system": address.partition(":")[0],
        "machine": f"{os.cpu_count()} shared cores ({platform.machine()}), Python {platform.python_version()}",
        "load_average_before": load,
        "load_average_after": round(os.getloadavg()[0], 2),
        **figures,
    }
    rows = msgspec.json.decode(RESULTS.read_bytes()) if RESULTS.exists() else []
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode([*rows, row]), indent=1) + b"\n")
    print(msgspec.json.format(msgspec.json.encode(row)).decode())


def measured(address, settings):
    """Fill the workbench and return its size, and the times of every page."""
    from steelyard.workbench.database import Database
    from workbench_clients import KillableServer, tokens_of

    database = Database(address)
    database.migrate()
    simulation, import_seconds = imported(database, settings.items)
    print(f"imported in {import_seconds:.0f} s", file=sys.stderr)
    work(simulation)
    num_copies = int(SHARE_WORKED * settings.items / NUM_WORKED)
    Copies(database, num_copies, settings.items).make()
    print("copied", file=sys.stderr)
    crew = simulation.crew
    people = {"annotator": crew.annotators[0], "administrator": crew.annotators[-1] + 7}
    people |= {layer: crew.layers[layer][0] for layer in ("delivery", "operations", "research")}
    tokens = dict(zip(people, tokens_of(database, people.values()), strict=True))
    if settings.keep:
        database.backup(settings.keep)
    figures = {"import_s": round(import_seconds, 1), **sizes(database)}
    with KillableServer(address) as server:
        visitor = Visitor(server, tokens, settings.times)
        figures["pages"] = [visitor.times(role, path) for role, path in pages(database, settings.items)]
        figures["streams"] = [visitor.stream("research", f"/api/v1/projects/1/export?evidence={evidence}")
                              for evidence in ("both", "aligned")]  # fmt: skip
        figures["erase_ms"] = visitor.erase(database, crew.annotators[1])
    database.close()
    return figures


def imported(database, num_items):
    """Write a case file and import it in batches: the simulation, and the seconds of the import."""
    from steelyard.annotation.pipeline import PipelineRules
    from steelyard.io.cases import read_cases
    from steelyard.workbench.demo import import_batch, start_project

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
    from steelyard.workbench.simulation import align, annotate, review, settle_layers

    for _ in range(3):
        annotate(simulation, most=int(0.28 * 2 * NUM_WORKED))
        for step in (align, align, settle_layers, review):
            step(simulation)


class Copies:
    """Copies of the rows of the items that people worked on, for the items behind them."""

    def __init__(self, database, num_copies, num_items):
        from steelyard.workbench import tables

        self._database, self._num, self._num_items, self._spans = database, num_copies, num_items, {}
        self._tables = tables.WorkbenchTable.metadata.tables

    def make(self):
        """Copy item by item what refers to it, add the sums up, and continue the log."""
        with self._database.engine.begin() as connection:
            self._connection = connection
            if self._database.is_sqlite:
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
        from steelyard.workbench.audit_log import Deed, chained

        events = self._tables["events"]
        every = list(self._connection.execute(select(events).order_by(events.c.id)).mappings())
        worked = [row for row in every if row["subject"] in ("item", "task")]
        last = every[-1]["hash"]
        for copy in range(1, self._num):
            deeds = [
                (Deed(row["action"], row["subject"], row["subject_id"] + copy * NUM_WORKED, row["person_id"],
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


def sizes(database):
    """The number of rows of the tables that grow."""
    from steelyard.workbench.tables import WorkbenchTable

    names = ("items", "tasks", "answers", "events", "reviews", "work_days", "pair_agreements")
    tables = WorkbenchTable.metadata.tables
    with database.reading() as session:
        return {f"num_{name}": session.scalar(select(func.count()).select_from(tables[name])) for name in names}


def pages(database, num_items):
    """Roles and paths of every list and dashboard, with each of their filters, and of pages deep in a list."""
    items, rest = "/manage/projects/1/items", "/api/v1/projects/1"
    with database.reading() as session:
        last_event = session.scalar(text("SELECT max(id) FROM events"))
        last_answer = session.scalar(text("SELECT max(id) FROM answers"))
    filters = ({}, {"state": "annotating"}, {"state": "finished"}, {"state": "dropped"}, {"batch": "batch 3"},
               {"category": "category 7"}, {"category": "category 7", "state": "aligning"}, {"prompt": "q77777"},
               {"after": str(num_items - 60)}, {"category": "none", "state": "finished"})  # fmt: skip
    audits = ({}, {"action": "answered"}, {"action": "account made"}, {"action": "no such"}, {"person": "5"},
              {"person": "60"}, {"subject": "item", "number": "77"}, {"subject": "project"},
              {"action": "rejected", "person": "7"}, {"before": str(last_event // 2)})  # fmt: skip
    found = [("administrator", "/manage"), ("administrator", "/manage/projects/1"), ("administrator", "/manage/people")]
    found += [("administrator", f"{items}?{urlencode(each)}") for each in filters]
    found += [("administrator", f"/manage/audit?{urlencode(each)}") for each in audits]
    found += [("administrator", "/manage/projects/1/guidelines")]
    found += [("research", f"/progress/1{each}") for each in ("", "/agreement", "/people")]
    found += [(layer, "/review") for layer in ("delivery", "operations", "research")]
    found += [("research", f"/review?category={quote('category 7')}"), ("annotator", "/align")]
    found += [("annotator", "/annotate/tasks?project=1&number=2"), ("annotator", "/annotate/progress?project=1")]
    found += [("research", f"{rest}{each}") for each in (
        "", "/progress", "/items", f"/items?after={num_items - 200}", f"/answers?after={last_answer - 2000}",
        "/figures/progress", "/figures/agreement", "/figures/people")]  # fmt: skip
    return found


class Visitor:
    """Asks for pages as people of each role, one request after the other."""

    def __init__(self, server, tokens, num_times):
        self._connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=600)
        self._tokens, self._num_times = tokens, num_times

    def _ask(self, role, path, method="GET", body=None):
        headers = {"Authorization": f"Bearer {self._tokens[role]}"}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        started = time.perf_counter()
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        until_first = time.perf_counter() - started
        content = response.read()
        assert response.status in (200, 303), (path, response.status, content[:500])
        return time.perf_counter() - started, until_first, content

    def times(self, role, path):
        """Return the times of a page."""
        seconds = [self._ask(role, path)[0] for _ in range(self._num_times)]
        in_ms = [round(1000 * each, 1) for each in seconds]
        return {"page": path, "first_ms": in_ms[0], "median_ms": statistics.median(in_ms), "max_ms": max(in_ms)}

    def stream(self, role, path):
        """Return the time to the first byte of an export and to its end, and the number of its lines."""
        seconds, until_first, content = self._ask(role, path)
        return {"page": path, "first_byte_ms": round(1000 * until_first, 1), "s": round(seconds, 1),
                "cases": content.count(b"\n")}  # fmt: skip

    def erase(self, database, person):
        """Return the time of the deletion of a person's name, in milliseconds."""
        from steelyard.workbench.tables import StoredPerson

        with database.reading() as session:
            name = session.get_one(StoredPerson, person).name
        path, body = f"/manage/people/{person}/erase", urlencode({"confirmation": name})
        return round(1000 * self._ask("administrator", path, "POST", body)[0], 1)


if __name__ == "__main__":
    main()
