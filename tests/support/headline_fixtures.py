"""Evaluations on a whole bench whose headline ranks models in another order than accuracy does.

The bench is M-RewardBench's translation task, the smallest published one: eight subsets of 100 pairs, whose plain mean
is the headline. The first subset is one category, and the seven others are another, so that accuracy, the mean over
categories, gives the first subset half of the weight.
"""

import json

import numpy as np

from steelyard.io.cases import write_cases
from steelyard.plugins.benches.subset_benches import TRANSLATION_SUBSETS
from steelyard.stages.evaluate import Config, evaluate
from strategies import case

BENCH = "mrewardbench_translation"
FIRST, *OTHERS = TRANSLATION_SUBSETS
NUMBER = 100
SHARES = {"narrow": {"first": 0.9, "others": 0.4}, "broad": {"first": 0.5, "others": 0.6}}
"""Of each model the share of the first subset and of each other subset that it has right."""
ACCURACY = {"narrow": (0.9 + 0.4) / 2, "broad": (0.5 + 0.6) / 2}
OVERALL = {"narrow": (0.9 + 7 * 0.4) / 8, "broad": (0.5 + 7 * 0.6) / 8}
MISSING_OTHERS = dict.fromkeys(OTHERS, "0 prompts, expected 100")


def translation_runs(folder, subsets=TRANSLATION_SUBSETS):
    """Run the two evaluations on the bench, or on a part of it; return their folders by name."""
    cases = [
        case(f"{subset}/{index}", "ab", subset=subset, text=f"{subset} {index}", ranking=(("a",), ("b",)),
             category=("first" if subset == FIRST else "others",))
        for subset in subsets
        for index in range(NUMBER)
    ]  # fmt: skip
    write_cases(folder / "bench.jsonl", cases)
    places = np.random.default_rng(0).permuted(np.tile(np.arange(NUMBER) / NUMBER, (len(subsets), 1)), axis=1).ravel()
    found = {}
    for name, shares in SHARES.items():
        lines = [
            {"prompt": one.prompt.id, "scores": {"a": float(place < shares[one.prompt.category[0]]), "b": 0.5}}
            for one, place in zip(cases, places.tolist(), strict=True)
        ]
        scores = folder / f"{name}.jsonl"
        scores.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
        config = Config(bench_kind=BENCH, num_resamples=200, baselines=())
        evaluate([folder / "bench.jsonl"], folder / name, config, scores=scores)
        found[name] = folder / name
    return found
