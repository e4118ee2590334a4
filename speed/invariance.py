"""Scoring with the same bits in every batch, against scoring that is free to round: CPU seconds, and bits that differ.

Run: python speed/invariance.py [--prompts N] [--model FOLDER] [--dtype bfloat16] [--settings short]
Writes speed/results/invariance.json; invariance_model.json where the folder of a trained reward model is named, in
place of the toy of the other scripts. Short rows are as long as those of HalluQA, eight answers a prompt.
The first run of an invariant scorer tries the processor's products; that is measured by itself.
"""

import argparse
import time
from functools import partial

import torch
from workload import SETTINGS, examples_of, interleaved, network, times_faster, where_it_ran, write_results

from steelyard.networks.scorer import Scorer

SAME, FREE = "the same bits", "free to round"
SHORT = {"short": {"prompt": 19, "answer": 10, "num_answers": 8}}


def different(scorer, prompts):
    """Rewards whose bits differ from those of all prompts together: alone, turned, and one prompt a pass."""
    expected = scorer.rewards(prompts)
    ways = {
        "alone": torch.cat([scorer.rewards([(row,)]) for rows in prompts for row in rows]),
        "turned": scorer.rewards([rows[::-1] for rows in prompts[::-1]]).flip(0),
        "one prompt a pass": torch.cat([scorer.rewards([rows]) for rows in prompts]),
    }
    largest = max(float((rewards - expected).abs().max()) for rewards in ways.values())
    numbers = {name: int((rewards != expected).sum()) for name, rewards in ways.items()}
    return numbers | {"answers": len(expected), "largest": largest}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--prompts", type=int, default=20)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--model")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    options.add_argument("--settings", nargs="*", default=[*SETTINGS, *SHORT])
    asked = options.parse_args()
    torch.set_num_threads(asked.threads)
    model = network().eval()
    if asked.model is not None:
        from steelyard.networks.loading import load_network

        model = load_network(asked.model, dtype=asked.dtype)[0].eval()
    scorers = {SAME: Scorer(model), FREE: Scorer(model, invariant=False)}
    start = time.process_time()
    arithmetic = scorers[SAME].arithmetic
    tried = round(time.process_time() - start, 3)
    found = where_it_ran() | {
        "threads": asked.threads,
        "model_folder": asked.model is not None,
        "dtype": asked.dtype,
        "settings": {},
    }
    found |= {"seconds_of_trying": tried, "arithmetic": arithmetic._asdict()}
    for name in asked.settings:
        setting = (SETTINGS | SHORT)[name]
        number = max(2, asked.prompts * SETTINGS["cheems"]["num_answers"] // setting["num_answers"])
        number = number if name in ("cheems", "short") else max(2, number // 4)
        prompts = [tuple(map(tuple, one.rows)) for one in examples_of(setting, number)]
        sides = {side: partial(scorer.rewards, prompts) for side, scorer in scorers.items()}
        seconds = interleaved(sides, asked.rounds)
        bits = {side: different(scorer, prompts[:8]) for side, scorer in scorers.items()}
        found["settings"][name] = {
            "seconds": seconds,
            "times_as_long": {by: round(1 / times, 3) for by, times in times_faster(seconds, SAME)[FREE].items()},
            "bits_that_differ": bits,
        }
    write_results("invariance.json" if asked.model is None else "invariance_model.json", found)


if __name__ == "__main__":
    main()
