"""Every measure of an evaluation, with 1,000 resamples, on 30,000 prompts with five responses: CPU seconds.

Run: OMP_NUM_THREADS=1 .venv/bin/python speed/measures.py   (writes speed/results/measures.json)
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np

from steelyard.core.plugins import build
from steelyard.core.types import Case, Message, Prompt, Response, Scores
from steelyard.evaluation.bench_pairs import lay_out_pairs
from steelyard.evaluation.columns import bench_columns, score_columns
from steelyard.evaluation.config import Config
from steelyard.evaluation.evaluated_bench import Evaluation, headline_columns
from steelyard.evaluation.headline import summarise

RESULTS = Path(__file__).parent / "results" / "measures.json"
NUM_PROMPTS, NUM_RESAMPLES, NUM_CATEGORIES, NUM_LANGUAGES, IDS = 30_000, 1000, 8, 5, "abcde"


def made_up(seed=0):
    """Full rankings, scores that agree with them more often than not, and texts of 10 to 400 letters."""
    random = np.random.default_rng(seed)
    scores = random.normal(size=(NUM_PROMPTS, len(IDS))) - np.arange(len(IDS)) * 0.5
    lengths = random.integers(10, 400, scores.shape)
    asked = (Message(role="user", content="?"),)
    cases = [
        Case(
            prompt=Prompt(
                id=f"p{index}",
                messages=asked,
                category=(f"c{index % NUM_CATEGORIES}",),
                language=f"l{index % NUM_LANGUAGES}",
            ),
            responses=tuple(Response(id=name, text="x" * length) for name, length in zip(IDS, own, strict=True)),
            ranking=tuple((name,) for name in IDS),
        )
        for index, own in enumerate(lengths.tolist())
    ]
    lines = [
        Scores(prompt=case.prompt.id, scores=dict(zip(IDS, own, strict=True)))
        for case, own in zip(cases, scores.tolist(), strict=True)
    ]
    return cases, lines


def cpu_seconds(function, repeats=5):
    """The least CPU seconds of some runs."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        found.append(time.process_time() - start)
    return min(found)


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    cases, lines = made_up()
    bench = build("benches", "cases")
    start = time.process_time()
    bench_pairs = lay_out_pairs(bench_columns(cases, None, "strict", bench.resample_ids), "strict")
    questions_seconds = time.process_time() - start
    config = Config(num_resamples=NUM_RESAMPLES)
    bench_pairs = lay_out_pairs(
        bench_columns(cases, config.pairs, config.exact_rule, bench.resample_ids), config.exact_rule
    )
    headline = headline_columns(bench, cases, lines, bench_pairs.columns)
    evaluation = Evaluation(bench_pairs, bench, config, score_columns(lines), headline, {})
    summarise(evaluation)
    found = {
        "command": "OMP_NUM_THREADS=1 python speed/measures.py",
        "machine": f"{os.cpu_count()} cores ({platform.machine()}), Python {sys.version.split()[0]}",
        "numpy": np.__version__,
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "load": os.getloadavg()[0],
        "num_prompts": NUM_PROMPTS,
        "num_responses": len(IDS),
        "num_resamples": NUM_RESAMPLES,
        "questions_cpu_seconds": questions_seconds,
        "summary_cpu_seconds": cpu_seconds(lambda: summarise(evaluation)),
    }
    RESULTS.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
