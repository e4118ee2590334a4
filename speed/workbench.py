"""Load on a workbench: many people at once through HTTP, with exact counts; and how long serving takes in a large one.

Run: python speed/workbench.py load --people 100 --pause 20 --seconds 60 [--database postgresql://…]
     python speed/workbench.py load --people 20 --pause 0 --seconds 30
     python speed/workbench.py large --items 100000
(adds a row to speed/results/workbench.json; without --database, SQLite in a temporary folder)

``load``: `steelyard workbench serve` in one process, the people in another. Each person asks for a task, pauses for a
random time about ``--pause`` seconds (0: machine speed), submits, and goes on. 95th percentiles are over all requests
of a kind; the counts are checked afterwards: never more than two answers a task, no answer twice, the log whole.
``large``: a project of that many cases with five responses; times of reserving a task, of submitting and of counting
states, medians and maxima over 50 calls, in one process.
"""

import argparse
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from sqlalchemy import func, select

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
RESULTS = HERE / "results" / "workbench.json"


def main():
    """Measure, print the row and add it to the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("load", "large"))
    parser.add_argument("--database")
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--pause", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--items", type=int, default=2000)
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        address = settings.database or f"sqlite:///{folder}/workbench.db"
        figures = load(address, settings) if settings.what == "load" else large(address, settings)
    row = {
        "command": "python speed/workbench.py " + " ".join(_without_address(sys.argv[1:])),
        "system": address.partition(":")[0],
        "machine": f"{os.cpu_count()} shared cores ({platform.machine()}), Python {platform.python_version()}",
        "load_average_before": settings.load_average,
        **figures,
    }
    rows = msgspec.json.decode(RESULTS.read_bytes()) if RESULTS.exists() else []
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode([*rows, row]), indent=1) + b"\n")
    print(msgspec.json.format(msgspec.json.encode(row)).decode())


def load(address, settings):
    """Let people work for a time and return the times of requests, and the counts afterwards."""
    from steelyard.workbench.database import Database
    from workbench_clients import Annotator, KillableServer, tokens_of
    from workbench_people import make_project

    database = Database(address)
    database.migrate()
    project, people = make_project(database, settings.items, 5, num_people=settings.people)
    tokens = tokens_of(database, people)
    settings.load_average = round(os.getloadavg()[0], 2)
    with KillableServer(address) as server:
        until = time.monotonic() + settings.seconds
        pause = lambda: random.uniform(0, 2 * settings.pause)  # noqa: E731 - a value of the workers
        workers = [Annotator(server, token, project=project, pause=pause, until=until) for token in tokens]
        started = time.monotonic()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        elapsed = time.monotonic() - started
    figures = {"people": settings.people, "pause_s": settings.pause, "elapsed_s": round(elapsed, 1)}
    for kind in ("serve", "submit"):
        figures[kind] = _percentiles([second for worker in workers for second in worker.seconds[kind]])
    figures["failures"] = sum(worker.failure is not None for worker in workers)
    figures["broken_connections"] = sum(worker.num_retries for worker in workers)
    return figures | _counts(database, sum(len(worker.acknowledged) for worker in workers))


def _counts(database, num_acknowledged):
    from steelyard.workbench.audit_log import verify
    from steelyard.workbench.tables import StoredAnswer, StoredTask

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
    from steelyard.workbench.database import Database
    from steelyard.workbench.projects import count_states
    from workbench_people import answer, make_project, send, take

    database = Database(address)
    database.migrate()
    settings.load_average = round(os.getloadavg()[0], 2)
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


def _without_address(arguments):
    """The arguments without the database: its address may hold a password."""
    hidden = {number + 1 for number, argument in enumerate(arguments) if argument == "--database"}
    return ["postgresql://…" if number in hidden else argument for number, argument in enumerate(arguments)]


if __name__ == "__main__":
    main()
