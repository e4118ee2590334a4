"""How long `steelyard --help` takes, as a whole process, beside an interpreter that does nothing.

Run: .venv/bin/python speed/startup.py   (writes speed/results/startup.json; no other load)
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "startup.json"
NUM_RUNS = 15


def seconds(words):
    started = time.perf_counter()
    subprocess.run(words, capture_output=True, check=True)
    return time.perf_counter() - started


def main():
    steelyard = str(Path(sys.executable).parent / "steelyard")
    commands = {"steelyard --help": [steelyard, "--help"], "python -c pass": [sys.executable, "-c", "pass"]}
    for words in commands.values():
        seconds(words)
    taken = {name: sorted(seconds(words) for _ in range(NUM_RUNS)) for name, words in commands.items()}
    found = {
        "command": "python speed/startup.py",
        "machine": f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}",
        "num_runs": NUM_RUNS,
        "seconds": {
            name: {"min": own[0], "median": statistics.median(own), "max": own[-1]} for name, own in taken.items()
        },
    }
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
