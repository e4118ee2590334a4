"""Best-of-N curves: all N of a million prompts with eight responses, and all N with their tests up to 1,024 responses.

Run: python speed/best_of_n.py   (writes speed/results/best_of_n.json)

Seconds are those of the clock, the least of three rounds, next to processor seconds; the load of the machine is noted.
The peer computes one prompt and one N at a time.
"""

import json
import os
import platform
import time
from collections.abc import Callable
from math import comb
from pathlib import Path

import numpy as np
import typer

from steelyard.core.numerics import generator
from steelyard.evaluation.best_of_n import budgets_from_one, curve_table, draw_curves, estimate_curve
from steelyard.statistics.bootstrap import draw_blocks
from steelyard.statistics.groups import Cell, Label

RESULTS = Path(__file__).parent / "results" / "best_of_n.json"
NUM_PROMPTS, NUM_RESPONSES, NUM_PLAIN, NUM_ROUNDS = 1_000_000, 8, 2_000, 3
TESTED = ((10_000, 256), (1_000, 1024))


def plain_curve(score, gold):
    """The estimator of Nakano et al. (2021) for one prompt, N by N, for scores without ties."""
    ordered = gold[np.argsort(score)]
    size = len(score)
    return [
        sum(comb(place, budget - 1) / comb(size, budget) * ordered[place] for place in range(size))
        for budget in range(1, size + 1)
    ]


def fastest(step: Callable[[], object]) -> dict[str, float]:
    """The least seconds of some rounds, by the clock and of the processor."""
    rounds = []
    for _ in range(NUM_ROUNDS):
        start, processor = time.perf_counter(), time.process_time()
        step()
        rounds.append((time.perf_counter() - start, time.process_time() - processor))
    clock, processor = map(min, zip(*rounds, strict=True))
    return {"clock": round(clock, 2), "processor": round(processor, 2)}


def main() -> None:
    """Print the seconds of curves, and of curves with intervals and tests."""
    random = generator(0, "best of n")
    seconds: dict[str, dict[str, float]] = {}
    results = {
        "machine": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load at the start": round(os.getloadavg()[0], 1),
        "seconds": seconds,
    }
    budgets = budgets_from_one(NUM_RESPONSES)
    prompt = np.repeat(np.arange(NUM_PROMPTS), NUM_RESPONSES)
    gold = random.normal(size=prompt.size)
    tied = random.integers(5, size=prompt.size).astype(np.float64)
    for name, score in (("distinct scores", random.normal(size=prompt.size)), ("tied scores", tied)):
        title = f"{NUM_PROMPTS:,} prompts of {NUM_RESPONSES}, {name}"
        seconds[title] = fastest(lambda score=score: curve_table(prompt, score, gold, NUM_PROMPTS, budgets=budgets))
    score = random.normal(size=NUM_PLAIN * NUM_RESPONSES)
    pairs = [part[: score.size].reshape(-1, NUM_RESPONSES) for part in (score, gold)]
    start = time.process_time()
    plain = np.array([plain_curve(*pair) for pair in zip(*pairs, strict=True)])
    taken = (time.process_time() - start) * NUM_PROMPTS / NUM_PLAIN
    table = curve_table(prompt[: score.size], score, gold[: score.size], NUM_PLAIN, budgets=budgets)
    assert np.allclose(table.chosen, plain, atol=1e-12)
    seconds["one at a time, extrapolated"] = {"processor": round(taken, 1)}
    for num_prompts, size in TESTED:
        prompt = np.repeat(np.arange(num_prompts), size)
        score, gold = random.normal(size=(2, prompt.size))
        labels = [Label(f"p{place}", Cell("all")) for place in range(num_prompts)]
        budgets = budgets_from_one(size)

        def tested(prompt=prompt, score=score, gold=gold, labels=labels, budgets=budgets) -> None:
            table = curve_table(prompt, score, gold, len(labels), budgets=budgets)
            estimate_curve(draw_curves(draw_blocks(labels, num_resamples=1000, seed=0), table), table)

        seconds[f"{num_prompts:,} prompts of {size}, all {len(budgets)} N with tests"] = fastest(tested)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    typer.run(main)
