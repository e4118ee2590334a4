"""From case file to packed steps on one core: lines, cases, edges, rankings, pairs, steps of a token budget.

Run: python speed/chain.py [prompts]   (writes speed/results/chain.json; one process, processor seconds by part)
Tokens are taken as 0.6 of the characters: tokenising is measured elsewhere.
"""

import argparse
import json
import os
import platform
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from resolve_memory import write_repeated

from steelyard.core.errors import Place
from steelyard.core.numerics import generator
from steelyard.io.cases import decode_case
from steelyard.io.lines import read_batches
from steelyard.ranking.judgment_table import judgment_table
from steelyard.ranking.resolution import resolve_table
from steelyard.training.batching import packed_steps

RESULTS = Path(__file__).parent / "results" / "chain.json"
TOKENS_A_CHARACTER, BUDGET = 0.6, 8192


class Clock:
    """Processor seconds by part."""

    def __init__(self):
        self.seconds, self.last = {}, time.process_time()

    def lap(self, name):
        now = time.process_time()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self.last
        self.last = now


def num_tokens(case):
    characters = sum(len(one.content) for one in case.prompt.messages) + sum(len(one.text) for one in case.responses)
    return int(TOKENS_A_CHARACTER * characters)


def run(path):
    clock, sizes, num_pairs = Clock(), [], 0
    for batch in read_batches(path, size=1024):
        clock.lap("lines")

        def cases(batch=batch):
            for number, line in zip(batch.numbers, batch.lines, strict=True):
                case = decode_case(line, Place(batch.file, number))
                sizes.append(num_tokens(case))
                yield case  # and no longer kept: cases that stay alive make the next ones dearer to read

        evidence = judgment_table(cases())
        clock.lap("decode, check, columns of edges")
        tiers = resolve_table(evidence).graphs.full.tiers
        clock.lap("rankings and conflicts")
        above = (tiers[:, :, None] < tiers[:, None, :]) & (tiers[:, :, None] >= 0)
        num_pairs += len(np.stack(np.nonzero(above), axis=1))
        clock.lap("pairs")
    steps = packed_steps(sizes, BUDGET, generator(0, "order"))
    clock.lap("pack")
    return clock.seconds, {"num_pairs": num_pairs, "num_steps": len(steps), "num_prompts": len(sizes)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompts", type=int, nargs="?", default=60_000)
    num_prompts = parser.parse_args().prompts
    with tempfile.TemporaryDirectory() as folder:
        write_repeated(Path(folder) / "cases.jsonl", num_prompts)
        seconds, counts = min(
            (run(Path(folder) / "cases.jsonl") for _ in range(3)), key=lambda one: sum(one[0].values())
        )
    total = sum(seconds.values())
    report = {
        "command": "python " + " ".join(["speed/chain.py", *sys.argv[1:]]),
        "machine": f"{os.cpu_count()} cores ({platform.machine()}), one process, Python {platform.python_version()}",
        **counts,
        "processor_microseconds_a_prompt": {name: round(own / num_prompts * 1e6, 2) for name, own in seconds.items()},
        "share_of_rankings_and_conflicts": round(seconds["rankings and conflicts"] / total, 3),
        "prompts_a_second_a_core": round(num_prompts / total),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "load_average": round(os.getloadavg()[0], 2),
    }
    RESULTS.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
