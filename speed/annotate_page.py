"""How long the annotator's page takes from a key to the frame that shows what it did, and the keys that a triple takes.

Run: python speed/annotate_page.py --tasks 60   (writes speed/results/annotate_page.json; no other load)

It needs Chromium, which it drives as the tests do. A time is from the key (the browser's time stamp of the event) to
the end of the frame after it. `score`: a digit; `next task`: Enter, up to the next card. Tasks are answered by a person
who gives the scores 4, 4, 2, compares the equal ones, submits, and thinks for as long as the next tasks take to load.
`slow` is the same with a connection on which every request takes two seconds: the page must not wait for it.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from browser_tab import Tab
from steelyard.annotation.pipeline import PipelineRules
from steelyard.core.numerics import generator
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.workbench.accounts.people import make_key
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.storage.database import Database
from workbench_server import Login, ServedWorkbench

RESULTS = Path(__file__).parent / "results" / "annotate_page.json"
KEYS = ("4", "4", "2", "g", "Enter")
SLOW_MS = 2000
WATCH = """
window.taken = [];
window.addEventListener("keydown", (event) => {
  const before = document.querySelector(".task"), start = event.timeStamp, key = event.key;
  requestAnimationFrame(() => setTimeout(() => {
    window.taken.push([key, performance.now() - start, document.querySelector(".task") !== before]);
  }));
}, { capture: true });
"""
READY = "document.querySelector('[data-state=task] .response')"


def text_of(random, number):
    """Return a Markdown text of about 300 words with a list, code and a formula."""
    words = ["".join(chr(97 + letter) for letter in random.integers(0, 26, random.integers(2, 9))) for _ in range(300)]
    lines = [" ".join(words[at : at + 60]) for at in range(0, 300, 60)]
    rest = f"```\n{lines[3]}\n```\n\n$x^{number} + \\frac{{1}}{{2}}$ {lines[4]}"
    return f"{lines[0]}\n\n- {lines[1]}\n- {lines[2]}\n\n{rest}"


def make(database, num_tasks):
    """Make a project of a task for each case; returns its id."""
    random = generator(0, "annotate page")

    def work(session):
        settings = ProjectSettings(rules=PipelineRules(gold_share=0))
        project = add_project(session, "speed", settings, by=None, at=time.time())
        cases = [
            Case(
                prompt=Prompt(id=f"q{at}", messages=(Message(role="user", content=f"Question {at}?"),)),
                responses=tuple(Response(id=f"r{place}", text=text_of(random, place)) for place in range(3)),
            )
            for at in range(num_tasks)
        ]
        import_cases(session, project, cases, batch="b", by=None, at=time.time())
        return project.id

    return database.write(work)


def times_of(tab, address, num_tasks, *, latency):
    """Answer tasks and return the milliseconds of each key."""
    tab.open(address)
    tab.wait(READY)
    tab.delay(latency)
    tab.value(WATCH)
    for _ in range(num_tasks):
        before = tab.value("window.taken.length")
        for at, key in enumerate(KEYS, start=1):
            tab.press(key)
            tab.wait(f"window.taken.length === {before + at}")
        tab.wait(READY)
        # Loading is awaited, as by a person who reads: the figures are about painting alone.
        time.sleep(0.1 + 2.5 * latency / 1000)
    taken = tab.value("window.taken")
    tab.delay(0)
    shown = [took for key, took, is_next in taken if key == "Enter" and is_next]
    return {"score": [took for key, took, _ in taken if key in "42"], "next task": shown}


def spread(times):
    """Return the number, median, 95th percentile and maximum of milliseconds."""
    ordered = sorted(times)
    return {
        "n": len(ordered),
        "median": round(statistics.median(ordered), 1),
        "p95": round(ordered[int(0.95 * (len(ordered) - 1))], 1),
        "max": round(ordered[-1], 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--slow-tasks", type=int, default=20)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        address = f"sqlite:///{folder}/workbench.db"
        database = Database(address)
        database.migrate()
        database.write(make_key)
        project = make(database, asked.tasks + asked.slow_tasks + 10)
        server = ServedWorkbench(address)
        login = Login(database, "annotator")
        with Tab(f"{folder}/profile") as tab:
            tab.set_cookie(server.origin, "steelyard_workbench", login.cookie)
            page = f"{server.origin}/annotate?project={project}"
            times = {
                "connected": times_of(tab, page, asked.tasks, latency=0),
                "slow": times_of(tab, page, asked.slow_tasks, latency=SLOW_MS),
            }
        server.kill()
        database.close()
    results = {
        "command": f"python speed/annotate_page.py --tasks {asked.tasks} --slow-tasks {asked.slow_tasks}",
        "machine": f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}",
        "keys_of_a_triple": len(KEYS),
        "milliseconds": {name: {key: spread(own) for key, own in each.items()} for name, each in times.items()},
        "load_average": round(os.getloadavg()[0], 2),
    }
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
