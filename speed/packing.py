"""Packing 30,000 prompts of five answers into steps: samples a second, what is left unused, pairs lost, balance.

Run: python speed/packing.py   (writes speed/results/packing.json; one thread)
Beside it what fixed numbers of answers a step lose and pad, by the paper's sentence and by shuffled batches.
"""

import argparse
import time

import numpy as np
from workload import where_it_ran, write_results

from steelyard.core.numerics import generator
from steelyard.training.batching import greedy_steps, packed_steps, share_in_steps

NUM_PROMPTS, NUM_ANSWERS = 30_000, 5
PAIRS = [(one, two) for one in range(NUM_ANSWERS) for two in range(one + 1, NUM_ANSWERS)]


def lengths():
    """Tokens of prompts, shape (prompt,), and of their answers, shape (prompt, answer): log-normal, means 138, 264."""
    random = generator(0, "packing")

    def drawn(mean, shape, least):
        return np.maximum(least, random.lognormal(np.log(mean) - 0.125, 0.5, shape)).astype(int)

    return drawn(138, NUM_PROMPTS, 8), drawn(264, (NUM_PROMPTS, NUM_ANSWERS), 4)


def packed_report(sizes, budget):
    seconds, steps = float("inf"), ()
    for _ in range(3):
        start = time.process_time()
        steps = packed_steps(sizes, budget, generator(0, "order"))
        seconds = min(seconds, time.process_time() - start)
    used = np.array([sum(sizes[one] for one in step) for step in steps])
    fitting = used[used <= budget]
    seen = sorted(one for step in steps for one in step)
    assert seen == list(range(len(sizes))), "a prompt is lost or split"
    return {
        "samples_a_second": round(NUM_PROMPTS * NUM_ANSWERS / seconds),
        "unused": round(1 - fitting.sum() / (budget * len(fitting)), 5),
        "pairs_lost": 0.0,  # the assertion above: every prompt whole in one step
        "prompts_over_the_budget": int((used > budget).sum()),
        "imbalance": {str(ranks): imbalance(steps, sizes, ranks) for ranks in (2, 8, 64)},
    }


def balanced(steps, sizes, num_ranks):
    """Steps in an order in which each run of ``num_ranks`` has nearly equal tokens: what devices compute together."""
    by_size = sorted(range(len(steps)), key=lambda place: sum(sizes[member] for member in steps[place]))
    by_size = by_size[len(by_size) % num_ranks :] + by_size[: len(by_size) % num_ranks]
    runs = [by_size[start : start + num_ranks] for start in range(0, len(steps), num_ranks)]
    whole = sorted((run for run in runs if len(run) == num_ranks), key=min)
    rest = [run for run in runs if len(run) < num_ranks]
    return tuple(tuple(steps[place]) for run in (*whole, *rest) for place in run)


def imbalance(steps, sizes, ranks):
    """How much more than the mean the fullest device has, averaged over runs of as many steps as devices."""
    totals = np.array([sum(sizes[one] for one in step) for step in balanced(steps, sizes, ranks)])
    runs = totals[: len(totals) // ranks * ranks].reshape(-1, ranks)
    return round(float((runs.max(axis=1) / runs.mean(axis=1) - 1).mean()), 5)


def fixed_report(rows, slots):
    steps = greedy_steps([NUM_ANSWERS] * NUM_PROMPTS, slots, generator(0, "order"))
    kept = share_in_steps(steps, [PAIRS] * NUM_PROMPTS)
    own = [[rows[slot.prompt, slot.response] for slot in step] for step in steps]
    padded = sum(len(step) * max(step) for step in own)
    return {"pairs_lost": round(1 - kept, 4), "padding": round(1 - rows.sum() / padded, 4)}


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    prompts, answers = lengths()
    sizes = (prompts + answers.sum(axis=1)).tolist()
    found = where_it_ran()
    found["packed"] = {str(budget): packed_report(sizes, budget) for budget in (4096, 8192, 16_384, 32_768)}
    found["slots_a_step"] = {str(slots): fixed_report(prompts[:, None] + answers, slots) for slots in (2, 5, 8, 32)}
    goal = found["packed"]["8192"]
    assert goal["unused"] <= 0.005
    assert goal["imbalance"]["8"] < 0.02
    write_results("packing.json", found)


if __name__ == "__main__":
    main()
