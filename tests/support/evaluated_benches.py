"""Evaluations of score files on small complete benches, for tables over several benches.

``two`` is a bench of subsets like CheemsBench: the headline is the mean of accuracy and exact match over ``open`` and
``human``, of ten prompts with three answers each. ``single`` has one pair for each of ten prompts.
"""

import json

from steelyard.io.cases import write_cases
from steelyard.stages.evaluate import Config, evaluate
from strategies import case

SUBSETS = ("open", "human")
NUMBER = 10
TWO = {"name": "two", "subsets": dict.fromkeys(SUBSETS, NUMBER), "measures": ("accuracy", "exact_match")}
ORDERS = {"r": {"a": 3.0, "b": 2.0, "c": 1.0}, "p": {"a": 3.0, "b": 1.0, "c": 2.0}, "w": {"a": 1.0, "b": 2.0, "c": 3.0}}
"""Scores of three answers: all three pairs right, two of them (partly), or none."""
FEW = Config(num_resamples=20, baselines=())


def two_cases():
    return [
        case(f"{subset}-{n}", "abc", subset=subset, ranking=(("a",), ("b",), ("c",)), text=f"{subset} {n}")
        for subset in SUBSETS
        for n in range(NUMBER)
    ]


def single_cases():
    return [case(f"s{n}", "ab", ranking=(("a",), ("b",)), text=f"single {n}") for n in range(NUMBER)]


def evaluated_on_two(folder, name, outcomes, config=FEW):
    """Evaluate scores on ``two``: ``outcomes`` has a letter of ORDERS for each prompt, by subset."""
    orders = [ORDERS[letter] for subset in SUBSETS for letter in outcomes[subset]]
    kind = {"bench_kind": "subsets", "bench": TWO}
    return _evaluated(folder / "two" / name, two_cases(), orders, name, _with(config, kind))


def evaluated_on_single(folder, name, outcomes, config=FEW):
    """Evaluate scores on ``single``: ``outcomes`` has r (right) or w (wrong) for each prompt."""
    orders = [{"a": float(letter == "r"), "b": 0.5} for letter in outcomes]
    return _evaluated(folder / "single" / name, single_cases(), orders, name, config)


def _with(config, changes):
    import msgspec

    return msgspec.structs.replace(config, **changes)


def _evaluated(out, cases, orders, name, config):
    place = out.parent
    place.mkdir(parents=True, exist_ok=True)
    bench = place / "bench" / f"{place.name}.jsonl"
    bench.parent.mkdir(exist_ok=True)
    write_cases(bench, cases)
    lines = [{"prompt": each.prompt.id, "scores": scores} for each, scores in zip(cases, orders, strict=True)]
    scores = place / "bench" / f"{name}.jsonl"
    scores.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    evaluate([bench], out, config, scores=scores)
    return out
