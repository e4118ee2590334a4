"""Evaluations on a bench whose own headline ranks models otherwise than accuracy does: shared by stages that rank."""

import json

import numpy as np

from steelyard.files.cases import write_cases
from steelyard.stages.evaluate import Config, evaluate
from strategies import case

SHARES = {
    "open": {"open_prompt": 0.9, "human_instruction": 0.4},
    "both": {"open_prompt": 0.7, "human_instruction": 0.8},
}
"""Of 150 open prompts and 50 human instructions, the share that each of two models has right.

Accuracy over everything: 0.775 and 0.725. CheemsBench's overall, in which both subsets weigh alike: 0.65 and 0.75.
"""
OVERALL = {"open": (0.9 + 0.4) / 2, "both": (0.7 + 0.8) / 2}
NUMBERS = {"open_prompt": 150, "human_instruction": 50}


def cheemsbench_runs(folder, subsets=tuple(NUMBERS)):
    """Two evaluations on CheemsBench, or on a part of it, by name."""
    cases = [
        case(f"{subset}{index}", "ab", subset=subset, text=f"{subset} {index}", ranking=(("a",), ("b",)))
        for subset in subsets
        for index in range(NUMBERS[subset])
    ]
    write_cases(folder / "bench.jsonl", cases)
    rng = np.random.default_rng(0)
    places = {subset: rng.permutation(number) / number for subset, number in NUMBERS.items()}
    found = {}
    for name, shares in SHARES.items():
        lines = [
            {"prompt": one.prompt.id, "scores": {"a": float(places[subset][index] < shares[subset]), "b": 0.5}}
            for subset in subsets
            for index, one in enumerate([one for one in cases if one.prompt.subset == subset])
        ]
        scores = folder / f"{name}.jsonl"
        scores.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
        config = Config(bench_kind="cheemsbench", num_resamples=200, baselines=())
        evaluate([folder / "bench.jsonl"], folder / name, config, scores=scores)
        found[name] = folder / name
    return found
