"""Peak memory of `resolve` on ten million judgments: the resident sizes of all its processes, added up.

Run: python speed/resolve_memory.py [prompts]   (writes speed/results/resolve_memory.json; takes 10 GB under TMPDIR)

The sizes are looked up twenty times a second (psutil). Pages that processes share are counted in each, so that the sum
is an upper bound. The verdicts of 20,000 made-up prompts are repeated under new ids.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from resolve import made_up_cases

from steelyard.io.cases import encode_case

RESULTS = Path(__file__).parent / "results" / "resolve_memory.json"
NUM_PROMPTS, NUM_DIFFERENT, JUDGMENTS_A_PROMPT = 667_000, 20_000, 15


def write_repeated(path, num_prompts):
    lines = [encode_case(case) for case in made_up_cases(min(NUM_DIFFERENT, num_prompts))]
    with path.open("wb") as file:
        for number in range(num_prompts):
            old = number % len(lines)
            file.write(lines[old].replace(b'"id":"p%d"' % old, b'"id":"p%d"' % number, 1))


def watched(words):
    """Runs the command. The peak of the sum of resident sizes and of the largest process, in MiB, and the seconds."""
    start, peak, largest, most = time.perf_counter(), 0, 0, 0
    running = psutil.Popen(words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while running.poll() is None:
        try:
            sizes = [process.memory_info().rss for process in (running, *running.children(recursive=True))]
        except psutil.NoSuchProcess:
            continue
        peak, largest, most = max(peak, sum(sizes)), max(largest, *sizes), max(most, len(sizes))
        time.sleep(0.05)
    assert running.returncode == 0, f"it ended with {running.returncode}"
    return {
        "peak_mib_of_all_processes": round(peak / 2**20),
        "peak_mib_of_the_largest_process": round(largest / 2**20),
        "num_processes": most,
        "seconds": round(time.perf_counter() - start, 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompts", type=int, nargs="?", default=NUM_PROMPTS)
    num_prompts = parser.parse_args().prompts
    steelyard = str(Path(sys.executable).parent / "steelyard")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "cases.jsonl"
        write_repeated(source, num_prompts)
        num_bytes = source.stat().st_size
        found = watched([steelyard, "resolve", str(source), "--out", str(Path(folder) / "out")])
        run = json.loads((Path(folder) / "out" / "run.json").read_text(encoding="utf-8"))
    overall = run["summary"]["conflicts"]["overall"]
    report = {
        "command": "python " + " ".join(["speed/resolve_memory.py", *sys.argv[1:]]),
        "machine": f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}",
        "num_prompts": num_prompts,
        "num_judgments": overall["num_judgments"] + overall["num_none"],
        "gigabytes": round(num_bytes / 1e9, 2),
        **found,
        "load_average_at_the_end": round(os.getloadavg()[0], 2),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
