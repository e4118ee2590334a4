"""Every list, dashboard, export, release and deletion of a workbench with 100,000 items, through HTTP.

Run: python speed/workbench_dashboards.py [--items 100000] [--postgresql] [--keep FILE]
     python speed/workbench_dashboards.py --filled ADDRESS
(adds a row to speed/results/workbench_dashboards.json; SQLite in a temporary folder, or with --postgresql a server that
is started for it, with fsync; --keep writes a copy of the SQLite file, and --filled measures a workbench that was
filled before, and adds to it)

`filled_workbench.py` fills it. Each page is asked for ``--times`` times in a row by a person who may see it; the first
time, the largest and the median are in milliseconds. A time is from the request to the end of the answer, of one
visitor at a time; CPU milliseconds are those of the serving process (median), which on SQLite are the database's too.
"""

import argparse
import http.client
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from sqlalchemy import func, select, text

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))
RESULTS = HERE / "results" / "workbench_dashboards.json"
ROLES = {"annotator": "annotator", "administrator": "administrator", "delivery": "delivery",
         "operations": "operations", "research": "researcher"}  # fmt: skip
TICKS = os.sysconf("SC_CLK_TCK")


def main():
    """Measure, print the row and add it to the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--keep", type=Path, help="a new file for a copy of the workbench on SQLite")
    parser.add_argument("--filled", help="the address of a workbench that was filled before")
    settings = parser.parse_args()
    from workbench import database_for

    load = round(os.getloadavg()[0], 2)
    if settings.filled:
        figures = measured(settings.filled, settings)
    else:
        with database_for(settings) as address:
            figures = measured(address, settings)
    row = {
        "command": "python speed/workbench_dashboards.py " + " ".join(sys.argv[1:]),
        "system": figures.pop("system"),
        "machine": f"{os.cpu_count()} shared cores ({platform.machine()}), Python {platform.python_version()}",
        "load_average_before": load,
        "load_average_after": round(os.getloadavg()[0], 2),
        **figures,
    }
    rows = msgspec.json.decode(RESULTS.read_bytes()) if RESULTS.exists() else []
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode([*rows, row]), indent=1) + b"\n")
    print(msgspec.json.format(msgspec.json.encode(row)).decode())


def measured(address, settings):
    """Fill the workbench, unless it is, and return its size, and the times of every page."""
    from filled_workbench import fill

    from steelyard.workbench.storage.database import Database
    from workbench_clients import KillableServer, tokens_of

    database = Database(address)
    database.migrate()
    figures = {"system": database.engine.dialect.name}
    if not settings.filled:
        figures["import_s"] = round(fill(database, settings.items), 1)
    people = first_people(database)
    tokens = dict(zip(people, tokens_of(database, people.values()), strict=True))
    if settings.keep:
        database.backup(settings.keep)
    figures |= sizes(database)
    listed = pages(database, figures["num_items"])
    with KillableServer(address) as server:
        visitor = Visitor(server, tokens, settings.times)
        figures["pages"] = [visitor.times(role, path) for role, path in listed]
        figures["streams"] = [visitor.stream("research", f"/api/v1/projects/1/export?evidence={evidence}")
                              for evidence in ("both", "aligned")]  # fmt: skip
        figures["release"] = visitor.release()
        figures["erase_ms"] = visitor.erase(database)
        figures["peak_mib"] = visitor.peak_mib()
    # Should one of the verbs end badly.
    print(msgspec.json.encode(figures).decode(), file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        figures["verbs"] = [verb_times(address, folder, *verb) for verb in (
            ("workbench", "export", "--project", "Simulated project", "--out", "bench.jsonl"),
            ("workbench", "export", "--project", "Simulated project", "--what", "paper", "--out", "paper"),
            ("raters", "bench.jsonl", "--out", "raters"))]  # fmt: skip
    database.close()
    return figures


def first_people(database):
    """The first person of each role, by number."""
    from steelyard.workbench.storage.tables import StoredPerson

    with database.reading() as session:
        first = select(StoredPerson.role, func.min(StoredPerson.id)).where(StoredPerson.erased_at.is_(None))
        numbers = dict(session.execute(first.group_by(StoredPerson.role)).all())
    return {name: numbers[role] for name, role in ROLES.items()}


MOST_SECONDS = 300


def verb_times(address, folder, *verb):
    """Run a verb in the folder; returns its seconds with the start of Python, and those of the processor.

    Both are null for a verb that was ended after `MOST_SECONDS`.
    """
    before, started = os.times(), time.perf_counter()
    database = ["--database", address] if verb[0] == "workbench" else []
    command = [sys.executable, "-m", "steelyard", *verb, *database]
    try:
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return {"verb": " ".join(verb), "s": None, "cpu_s": None}
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"verb": " ".join(verb), "s": round(time.perf_counter() - started, 1), "cpu_s": round(cpu, 1)}


def sizes(database):
    """The number of rows of the tables that grow."""
    from steelyard.workbench.storage.tables import WorkbenchTable

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
    found += [("research", f"/progress/1/disagreement{each}") for each in ("", "?category=category+7")]
    found += [("research", "/progress/1/items/77"), ("research", "/manage/projects/1/releases")]
    found += [("administrator", "/manage/projects/1/qualification")]
    found += [("research", f"{rest}{each}") for each in (
        "", "/progress", "/items", f"/items?after={num_items - 200}", f"/answers?after={last_answer - 2000}",
        "/figures/progress", "/figures/agreement", "/figures/people", "/figures/disagreement", "/releases",
    )]  # fmt: skip
    return found


class Visitor:
    """Asks for pages as people of each role, one request after the other."""

    def __init__(self, server, tokens, num_times):
        self._connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=600)
        self._tokens, self._num_times = tokens, num_times
        shell = server.process
        self._server = int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])

    def _ask(self, role, path, method="GET", body=None, kind="application/x-www-form-urlencoded"):
        headers = {"Authorization": f"Bearer {self._tokens[role]}"}
        if body is not None:
            headers["Content-Type"] = kind
        cpu, started = self._cpu(), time.perf_counter()
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        until_first = time.perf_counter() - started
        content = response.read()
        assert response.status in (200, 201, 303), (path, response.status, content[:500])
        return time.perf_counter() - started, self._cpu() - cpu, until_first, content

    def _cpu(self):
        """The processor seconds of the server so far."""
        fields = Path(f"/proc/{self._server}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def peak_mib(self):
        """The most memory that the server has had."""
        status = Path(f"/proc/{self._server}/status").read_text()
        return round(int(status.partition("VmHWM:")[2].split()[0]) / 1024)

    def times(self, role, path):
        """Return the times of a page."""
        asked = [self._ask(role, path)[:2] for _ in range(self._num_times)]
        in_ms = [round(1000 * seconds, 1) for seconds, _ in asked]
        return {"page": path, "first_ms": in_ms[0], "median_ms": statistics.median(in_ms), "max_ms": max(in_ms),
                "cpu_ms": round(1000 * statistics.median(cpu for _, cpu in asked))}  # fmt: skip

    def stream(self, role, path):
        """Return the time to the first byte of an export and to its end, and the number of its lines."""
        seconds, cpu, until_first, content = self._ask(role, path)
        return {"page": path, "first_byte_ms": round(1000 * until_first, 1), "s": round(seconds, 1),
                "cpu_s": round(cpu, 1), "cases": content.count(b"\n")}  # fmt: skip

    def release(self):
        """Return the time in which a release is made, and that in which its case file is sent."""
        address, name = "/api/v1/projects/1/releases", f"release-{time.time():.0f}"
        body = msgspec.json.encode({"name": name})
        seconds, cpu, _, content = self._ask("research", address, "POST", body, "application/json")
        made = {"s": round(seconds, 1), "cpu_s": round(cpu, 1)}
        return {"made": made, "sent": self.stream("research", f"{address}/{msgspec.json.decode(content)['id']}")}

    def erase(self, database):
        """Return the time of the deletion of the last annotator's name, in milliseconds."""
        from steelyard.workbench.storage.tables import StoredPerson

        there = select(StoredPerson).where(StoredPerson.role == "annotator", StoredPerson.erased_at.is_(None))
        with database.reading() as session:
            person = session.scalars(there.order_by(StoredPerson.id.desc()).limit(1)).one()
        path, body = f"/manage/people/{person.id}/erase", urlencode({"confirmation": person.name})
        return round(1000 * self._ask("administrator", path, "POST", body)[0], 1)


if __name__ == "__main__":
    main()
