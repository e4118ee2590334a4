"""`steelyard evaluate --scores` and `steelyard report` of large benches, from file to file.

Run: python speed/evaluate.py [NUM_PROMPTS ...]   (writes speed/results/evaluate.json; 20,000 and 200,000 by default)
Each prompt has five Chinese answers of 15 to 180 characters, a ranking of four tiers and given scores: 1.5 kB a line,
written by `json.dumps`. CPU seconds are of all processes together, peak memory is that of the largest one.
"""

import argparse
import json
import os
import platform
import random
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from steelyard.core.types import Case

RESULTS = Path(__file__).parent / "results" / "evaluate.json"
SIZES = (20_000, 200_000)
NUM_RESPONSES, LANGUAGES, CATEGORIES = 5, ("zh", "en", "ar"), [f"c{index}" for index in range(10)]


def write_bench(folder, num_prompts, seed=0):
    """A bench, and scores that agree with its rankings more often than not."""
    draw = random.Random(seed)
    with (folder / "bench.jsonl").open("w") as bench, (folder / "scores.jsonl").open("w") as scores:
        for index in range(num_prompts):
            names = [f"r{place}" for place in range(NUM_RESPONSES)]
            responses = [{"id": name, "text": "回答 " * draw.randint(5, 60)} for name in names]
            best, second, third, fourth, last = order = draw.sample(names, NUM_RESPONSES)
            prompt = {
                "id": f"p{index}",
                "messages": [{"role": "user", "content": f"问题 {index}"}],
                "language": draw.choice(LANGUAGES),
                "category": [draw.choice(CATEGORIES)],
            }
            case = {
                "format": 1,
                "prompt": prompt,
                "responses": responses,
                "judgments": [],
                "ratings": [],
                "ranking": [[best], [second, third], [fourth], [last]],
                "pairs": None,
                "meta": {},
            }
            bench.write(json.dumps(case, ensure_ascii=False) + "\n")
            own = {name: round(draw.gauss(0, 1.5) - place, 4) for place, name in enumerate(order)}
            scores.write(json.dumps({"prompt": prompt["id"], "language": None, "scores": own}) + "\n")


def run(*words):
    """Wall and CPU seconds of a command with all its processes, and the memory of the largest."""
    start = time.monotonic()
    child = os.posix_spawn(sys.executable, [sys.executable, "-m", "steelyard", *map(str, words)], os.environ)
    _, status, used = os.wait4(child, 0)
    assert status == 0, f"steelyard {words[0]} ended with {status}"
    return {
        "seconds": round(time.monotonic() - start, 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "peak_megabytes": round(used.ru_maxrss / 1024),
    }


def decoding_seconds(path):
    """CPU seconds of reading the lines and decoding them as typed cases, and nothing else: no way around these."""
    decoder = msgspec.json.Decoder(Case)
    start = time.process_time()
    with path.open("rb") as file:
        for line in file:
            decoder.decode(line)
    return time.process_time() - start


def measure(num_prompts):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_bench(folder, num_prompts)
        bench, scores, out = (folder / part for part in ("bench.jsonl", "scores.jsonl", "out"))
        evaluated = run("evaluate", "--bench", bench, "--scores", scores, "--out", out)
        return {
            "num_prompts": num_prompts,
            "megabytes": round(bench.stat().st_size / 1e6, 1),
            "evaluate": {"prompts_per_second": round(num_prompts / evaluated["seconds"]), **evaluated},
            "report": run("report", out, "--out", folder / "report.html"),
            "decoding_alone_cpu_seconds": round(decoding_seconds(bench), 2),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompts", type=int, nargs="*", default=SIZES)
    sizes = parser.parse_args().prompts
    found = {
        "command": "python speed/evaluate.py",
        "machine": f"{os.cpu_count()} cores ({platform.machine()}), Python {sys.version.split()[0]}",
        "load_before": os.getloadavg()[0],
        "rows": [measure(size) for size in sizes],
        "load_after": os.getloadavg()[0],
    }
    RESULTS.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
