"""How long `steelyard --help` and `import steelyard` take, as whole processes, beside an interpreter that does nothing.

With a training it also measures the time before the first step, by the messages of the process, which is then killed.

Run: .venv/bin/python speed/startup.py   (writes speed/results/startup.json; no other load)
     .venv/bin/python speed/startup.py --train CASES --model MODEL   (writes only the part `train` of that file)
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "startup.json"
NUM_RUNS = 7
NUM_TRAININGS = 3
MESSAGES = {
    "inputs are encoded and weights are loaded": "training (",
    "the first step begins": "the first prompt shares",
}
"""The beginnings of the messages that stand at these moments."""


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


def before_first_step(words):
    """Seconds from the start of a training to each of the messages, and processor seconds to the last."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    reached, started = {}, time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        words = [*words, "--out", f"{folder}/model", "--verbose"]
        with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
            for line in process.stderr:
                reached |= {
                    moment: time.perf_counter() - started for moment, text in MESSAGES.items() if line.startswith(text)
                }
                if len(reached) == len(MESSAGES):
                    break
            process.kill()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if len(reached) < len(MESSAGES):
        sys.exit(f"the training ended before its first step: {' '.join(words)}")
    return reached, used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime


def measure_training(steelyard, cases, model):
    words = [steelyard, "train", cases, "--model", model, "--set", "dtype=bfloat16"]
    before_first_step(words)  # warms the disk
    runs = [before_first_step(words) for _ in range(NUM_TRAININGS)]
    return {
        "command": f"python speed/startup.py --train {Path(cases).name} --model {Path(model).name}",
        "machine": f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}",
        "num_runs": NUM_TRAININGS,
        "seconds": {moment: spread([reached[moment] for reached, _ in runs]) for moment in MESSAGES},
        "processor_seconds": spread([used for _, used in runs]),
        "load_average": round(os.getloadavg()[0], 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", metavar="CASES")
    parser.add_argument("--model")
    options = parser.parse_args()
    steelyard = str(Path(sys.executable).parent / "steelyard")
    if options.train:
        found = json.loads(RESULTS.read_text()) | {"train": measure_training(steelyard, options.train, options.model)}
        RESULTS.write_text(json.dumps(found, indent=2) + "\n")
        print(json.dumps(found["train"], indent=2))
        return
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
    measured = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    found |= {"train": measured["train"]} if "train" in measured else {}
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
