"""Load on a workbench: many people at once through HTTP, with exact counts; and how long serving takes in a large one.

Run: python speed/workbench.py requests [--postgresql]
     python speed/workbench.py load --people 100 --seconds 120 --postgresql [--processes 2]
     python speed/workbench.py load --people 20 --pace machine --seconds 30
     python speed/workbench.py large --items 100000
(adds a row to speed/results/workbench.json; SQLite in a temporary folder, or with --postgresql a server that is started
for it, with fsync)

``requests``: people one after the other, so that the processor time of the server is that of one kind of request, in
milliseconds; it hardly depends on what else the machine does.
``load``: `steelyard workbench serve`, and the people in another process on the same cores; with ``--cores 2`` server
and database have the first two cores, and the people the others, as people have machines of their own. Each person asks
for a task, submits its answer after the seconds of ``--pace``, and asks for the next one: ``human`` is 20 to 90
seconds, ``machine`` none at all, which is as fast as the server answers. 95th percentiles are over all requests of a
kind; the counts are checked afterwards: never more than two answers a task, no answer twice, the log whole. Processor
time is given for the server, the database and the people (the load itself), each per request.
Both use items of five responses of about 300 words with a list, code and a formula.
``large``: a project of that many cases with five responses; times of reserving a task, of submitting and of counting
states, medians and maxima over 50 calls, in one process.
"""

import argparse
import math
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import msgspec
from sqlalchemy import func, select

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))
RESULTS = HERE / "results" / "workbench.json"
PACES = {
    # Log-normal around 42 s as the simulated people of the demonstration, half of them within 0.7 and 1.4 times as
    # much; nobody is faster than 20 s or slower than 90 s.
    "human": lambda: min(90.0, max(20.0, random.lognormvariate(math.log(42), 0.5))),
    "machine": lambda: 0.0,
}
"""The seconds from a task on the screen to its answer."""


def main():
    """Measure, print the row and add it to the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("requests", "load", "large"))
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--pace", choices=tuple(PACES), default="human")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--cores", type=int, help="cores of server and database; the people get the others")
    settings = parser.parse_args()
    settings.others = _keep_to(settings.cores)
    settings.load_average = round(os.getloadavg()[0], 2)
    with database_for(settings) as address:
        figures = {"requests": requests, "load": load, "large": large}[settings.what](address, settings)
    row = {
        "command": "python speed/workbench.py " + " ".join(sys.argv[1:]),
        "system": address.partition(":")[0],
        "machine": f"{os.cpu_count()} shared cores ({platform.machine()}), Python {platform.python_version()}",
        "load_average_before": settings.load_average,
        "load_average_after": round(os.getloadavg()[0], 2),
        **figures,
    }
    rows = msgspec.json.decode(RESULTS.read_bytes()) if RESULTS.exists() else []
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode([*rows, row]), indent=1) + b"\n")
    print(msgspec.json.format(msgspec.json.encode(row)).decode())


@contextmanager
def database_for(settings):
    """A database for one measurement: its address. PostgreSQL writes to the disk as a server of a team does."""
    if not settings.postgresql:
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{folder}/workbench.db"
        return
    from postgres_server import postgres_serving, run_statement

    with postgres_serving(on_disk=True) as address:
        maintenance = address.format(name="postgres")
        for change in ("fsync = on", "full_page_writes = on"):
            run_statement(maintenance, f"ALTER SYSTEM SET {change}")
        run_statement(maintenance, "SELECT pg_reload_conf()")
        run_statement(maintenance, "CREATE DATABASE workbench")
        yield address.format(name="workbench")


def _project(database, settings):
    """A project with texts of a usual length, and people with tokens: its number and the tokens."""
    from annotate_page import text_of

    from steelyard.core.numerics import generator
    from steelyard.core.types import Case, Message, Prompt, Response
    from steelyard.workbench.accounts.people import NewPerson, add_person
    from steelyard.workbench.pipeline.case_import import import_cases
    from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
    from workbench_clients import tokens_of

    random, at = generator(0, "workbench"), time.time()
    cases = [
        Case(
            prompt=Prompt(id=f"q{number}", messages=(Message(role="user", content=f"Question {number}?"),)),
            responses=tuple(Response(id=f"r{place}", text=text_of(random, place)) for place in range(5)),
        )
        for number in range(settings.items)
    ]

    def make(session):
        project = add_project(session, "speed", ProjectSettings(), by=None, at=at)
        import_cases(session, project, cases, batch="b", by=None, at=at)
        people = [add_person(session, NewPerson(f"p{n}", "annotator"), by=None, at=at) for n in range(settings.people)]
        return project.id, [person.id for person in people]

    project, people = database.write(make)
    return project, tokens_of(database, people)


def requests(address, settings):
    """Return the processor time and the time of serving a task, of a draft and of an answer, one at a time."""
    from steelyard.workbench.storage.database import Database
    from workbench_clients import KillableServer, RequestsOfOne

    database = Database(address)
    database.migrate()
    project, tokens = _project(database, settings)
    kinds = ("serve", "draft", "submit")
    used, seconds = dict.fromkeys(kinds, 0.0), {kind: [] for kind in kinds}
    with KillableServer(address) as server:
        people = [RequestsOfOne(server, token, project=project) for token in tokens]
        for warm in (False, *[True] * 20):
            for kind in kinds:
                before, times = _used_by(server.process), []
                for person in people:
                    _timed(times, getattr(person, kind))
                if warm:
                    used[kind] += _used_by(server.process) - before
                    seconds[kind] += times
    database.close()
    return {
        kind: {"server_cpu_ms": round(1000 * used[kind] / len(seconds[kind]), 2), **_percentiles(seconds[kind])}
        for kind in kinds
    }


def load(address, settings):
    """Let people work for a time and return the times of requests, and the counts afterwards."""
    from steelyard.workbench.storage.database import Database
    from workbench_clients import Annotator, KillableServer

    database = Database(address)
    database.migrate()
    project, tokens = _project(database, settings)
    with KillableServer(address, "--processes", str(settings.processes)) as server:
        _wait_until_idle(server.process)
        os.sched_setaffinity(0, settings.others)
        used_before = _used(server, address)
        until = time.monotonic() + settings.seconds
        workers = [
            Annotator(server, token, project=project, pause=PACES[settings.pace], until=until) for token in tokens
        ]
        started = time.monotonic()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        elapsed = time.monotonic() - started
        used = {who: value - used_before[who] for who, value in _used(server, address).items()}
    figures = {"people": settings.people, "processes": settings.processes, "cores": settings.cores}
    figures["elapsed_s"] = round(elapsed, 1)
    for kind in ("serve", "submit"):
        figures[kind] = _percentiles([second for worker in workers for second in worker.seconds[kind]])
    num_requests = sum(figures[kind]["n"] for kind in ("serve", "submit"))
    figures["requests_per_s"] = round(num_requests / elapsed, 1)
    for who, value in used.items():
        figures[f"{who}_cpu_ms_per_request"] = round(1000 * value / max(1, num_requests), 2)
    figures["failures"] = sum(worker.failure is not None for worker in workers)
    figures["broken_connections"] = sum(worker.num_retries for worker in workers)
    return figures | _counts(database, sum(len(worker.acknowledged) for worker in workers))


def _keep_to(number):
    """Keep this process, and what it starts, to a number of cores; returns those that the people may have."""
    cores = sorted(os.sched_getaffinity(0))
    if number is None:
        return cores
    if not 0 < number < len(cores):
        raise SystemExit(f"--cores {number}: this machine has {len(cores)}, and the people need one")
    os.sched_setaffinity(0, cores[:number])
    return cores[number:]


def _used(server, address):
    """Seconds of processor time so far: of the server, of the database, and of this process, which is the people."""
    used = {"server": _used_by(server.process), "people": time.process_time()}
    _, _, folder = address.partition("?host=")
    if folder:
        used["database"] = _used_by(int((Path(folder) / "data" / "postmaster.pid").read_text().split()[0]))
    return used


def _wait_until_idle(process):
    """Wait until every process of the server has started: the port is open before the last has loaded its modules."""
    before = -1.0
    while (used := _used_by(process)) - before > 0.02:
        before = used
        time.sleep(0.5)


def _used_by(process):
    """Seconds of processor time of a process, its children, and what they have waited for."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    seconds = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return seconds + sum(_used_by(int(child)) for child in children)


def _counts(database, num_acknowledged):
    from steelyard.workbench.storage.audit_log import verify
    from steelyard.workbench.storage.tables import StoredAnswer, StoredTask

    with database.reading() as session:
        by_task = select(func.count().label("number")).select_from(StoredAnswer).group_by(StoredAnswer.task_id)
        numbers = by_task.subquery()
        over = select(func.count()).select_from(numbers).where(numbers.c.number > 2)
        num_answers = session.scalar(select(func.count()).select_from(StoredAnswer))
        answered = select(func.count()).select_from(StoredTask)
        counts = {
            "answers": num_answers,
            "acknowledged": num_acknowledged,
            "tasks_with_more_than_two": session.scalar(over),
            "tasks_reserved_beyond": session.scalar(answered.where(StoredTask.num_reserved > StoredTask.num_wanted)),
            "sum_of_answered": int(session.scalar(select(func.sum(StoredTask.num_answered))) or 0),
            "audit_log_broken_at": verify(session),
        }
    database.close()
    return counts


def large(address, settings):
    """Return the times of the common requests in a large project."""
    from steelyard.workbench.pipeline.projects import count_states
    from steelyard.workbench.storage.database import Database
    from workbench_people import answer, make_project, send, take

    database = Database(address)
    database.migrate()
    started = time.perf_counter()
    project, people = make_project(database, settings.items, 5, num_people=50)
    figures = {"items": settings.items, "import_s": round(time.perf_counter() - started, 1)}
    seconds = {"reserve": [], "submit": [], "count states": []}
    for person in people:
        ((number, shown),) = _timed(seconds["reserve"], lambda person=person: take(database, project, person))
        _timed(seconds["submit"], lambda number=number, shown=shown: send(database, number, answer(shown)))

        def count():
            with database.reading() as session:
                return count_states(session, project)

        _timed(seconds["count states"], count)
    database.close()
    return figures | {kind: _percentiles(values) for kind, values in seconds.items()}


def _timed(into, work):
    started = time.perf_counter()
    result = work()
    into.append(time.perf_counter() - started)
    return result


def _percentiles(seconds):
    """The number of requests, and milliseconds: median, 95th percentile, maximum."""
    if len(seconds) < 2:
        return {"n": len(seconds)}
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return {
        "n": len(seconds),
        **{
            name: round(1000 * value, 1) for name, value in zip(("p50_ms", "p95_ms"), (cuts[49], cuts[94]), strict=True)
        },
        "max_ms": round(1000 * max(seconds), 1),
    }


if __name__ == "__main__":
    main()
