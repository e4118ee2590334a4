"""How long `steelyard --help` and `import steelyard` take, as whole processes, beside an interpreter that does nothing.

Run: .venv/bin/python speed/startup.py   (writes speed/results/startup.json; no other load)
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "startup.json"
NUM_RUNS = 7


HEAVY = ("torch", "transformers", "pyarrow", "numba", "sklearn")


def seconds(words):
    """Wall-clock seconds, and the processor seconds of the finished process."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, capture_output=True, check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - started, processor


def heavy_modules():
    """Which of the heavy packages `import steelyard` has loaded."""
    asked = f"import sys, steelyard; print(*[name for name in {HEAVY} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", asked], capture_output=True, check=True, text=True).stdout.split()


def spread(own):
    own = sorted(own)
    return {"min": round(own[0], 3), "median": round(statistics.median(own), 3), "max": round(own[-1], 3)}


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    steelyard = str(Path(sys.executable).parent / "steelyard")
    commands = {
        "steelyard --help": [steelyard, "--help"],
        "import steelyard": [sys.executable, "-c", "import steelyard"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    for words in commands.values():
        seconds(words)
    taken = {name: [seconds(words) for _ in range(NUM_RUNS)] for name, words in commands.items()}
    found = {
        "command": "python speed/startup.py",
        "machine": f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}",
        "num_runs": NUM_RUNS,
        "seconds": {name: spread([wall for wall, _ in own]) for name, own in taken.items()},
        "processor_seconds": {name: spread([used for _, used in own]) for name, own in taken.items()},
        "heavy_modules_that_import_steelyard_loads": heavy_modules(),
        "load_average": round(os.getloadavg()[0], 2),
    }
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
