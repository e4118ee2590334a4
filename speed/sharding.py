"""Dividing packed steps of 30,000 prompts of five answers among devices: imbalance of tokens, pairs lost, speed.

Run: python speed/sharding.py   (writes speed/results/sharding.json; one thread)
A device is given about so many tokens of each step; the plan of steps is the same whatever the number of devices.
"""

import argparse
import time

import numpy as np
from packing import NUM_ANSWERS, NUM_PROMPTS, PAIRS, lengths
from workload import where_it_ran, write_results

from steelyard.core.numerics import generator
from steelyard.networks.packing import process_shares
from steelyard.training.batching import packed_steps

WORLD_SIZES = (1, 2, 4, 8)


def imbalance(sizes, parts):
    """By what share the fullest process has more tokens than the mean; 0 is even."""
    totals = [sum(sizes[position] for position in part) for part in parts]
    return max(totals) * len(totals) / sum(totals) - 1 if any(totals) else 0.0


def report(sizes, tokens_a_device, num_devices):
    steps = packed_steps(sizes, tokens_a_device * num_devices, generator(0, "order"))
    own = [[sizes[prompt] for prompt in step] for step in steps]
    start = time.process_time()
    parts = [process_shares(one, num_devices) for one in own]
    seconds = time.process_time() - start
    given = [step[place] for step, devices in zip(steps, parts, strict=True) for one in devices for place in one]
    uneven = np.array([imbalance(one, devices) for one, devices in zip(own, parts, strict=True)])
    full = np.array([sum(one) > 0.9 * tokens_a_device * num_devices for one in own])
    # A prompt comes whole to one device: its pairs are lost only if it is.
    kept = len(set(given)) * len(PAIRS) if len(given) == len(set(given)) else 0
    return {
        "num_steps": len(steps),
        "pairs_lost": NUM_PROMPTS * len(PAIRS) - kept,
        "imbalance_mean": round(float(uneven[full].mean()), 6),
        "imbalance_of_99_percent_of_steps": round(float(np.quantile(uneven[full], 0.99)), 6),
        "imbalance_most": round(float(uneven[full].max()), 6),
        "steps_not_full": int((~full).sum()),
        "milliseconds_a_step": round(1000 * seconds / len(steps), 3),
    }


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    prompts, answers = lengths()
    assert answers.shape == (NUM_PROMPTS, NUM_ANSWERS)
    sizes = (prompts + answers.sum(axis=1)).tolist()
    found = where_it_ran()
    found["tokens_a_device"] = {
        str(tokens): {str(number): report(sizes, tokens, number) for number in WORLD_SIZES}
        for tokens in (8192, 16_384, 32_768)
    }
    for by_number in found["tokens_a_device"].values():
        for one in by_number.values():
            assert one["pairs_lost"] == 0
            assert one["imbalance_of_99_percent_of_steps"] <= 0.02
    write_results("sharding.json", found)


if __name__ == "__main__":
    main()
