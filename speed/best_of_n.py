"""Best-of-N curves of a million prompts with eight responses: all N at once, against one prompt and one N at a time.

Run: python speed/best_of_n.py   (writes speed/results/best_of_n.json)
"""

import json
import os
import platform
import time
from math import comb
from pathlib import Path

import numpy as np
import typer

from steelyard.core.numerics import generator
from steelyard.evaluation.best_of_n import budgets_from_one, curve_table

RESULTS = Path(__file__).parent / "results" / "best_of_n.json"
NUM_PROMPTS, NUM_RESPONSES, NUM_PLAIN, NUM_ROUNDS = 1_000_000, 8, 2_000, 3


def plain_curve(score, gold):
    """The estimator of Nakano et al. (2021) for one prompt, N by N, for scores without ties."""
    ordered = gold[np.argsort(score)]
    size = len(score)
    return [
        sum(comb(place, budget - 1) / comb(size, budget) * ordered[place] for place in range(size))
        for budget in range(1, size + 1)
    ]


def main() -> None:
    """Print the processor seconds of the curve of a million prompts."""
    random = generator(0, "best of n")
    results = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count(), "processor seconds": {}}
    prompt = np.repeat(np.arange(NUM_PROMPTS), NUM_RESPONSES)
    gold = random.normal(size=prompt.size)
    for name, score in (
        ("distinct scores", random.normal(size=prompt.size)),
        ("tied scores", random.integers(5, size=prompt.size).astype(np.float64)),
    ):
        best = np.inf
        for _ in range(NUM_ROUNDS):
            start = time.process_time()
            table = curve_table(prompt, score, gold, NUM_PROMPTS, budgets=budgets_from_one(NUM_RESPONSES))
            best = min(best, time.process_time() - start)
        results["processor seconds"][name] = round(best, 3)
        if name == "distinct scores":
            rows = slice(0, NUM_PLAIN * NUM_RESPONSES)
            start = time.process_time()
            pairs = zip(score[rows].reshape(-1, NUM_RESPONSES), gold[rows].reshape(-1, NUM_RESPONSES), strict=True)
            plain = np.array([plain_curve(*pair) for pair in pairs])
            taken = (time.process_time() - start) * NUM_PROMPTS / NUM_PLAIN
            assert np.allclose(table.chosen[:NUM_PLAIN], plain, atol=1e-12)
            results["processor seconds"]["one at a time, extrapolated"] = round(taken, 1)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    typer.run(main)
