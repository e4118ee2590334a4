"""Scoring with the prompt once, against one conversation at a time, padded batches, and RewardBench's pipeline.

Run: python speed/score.py [--prompts N] [--rounds N] [--peer-python PATH]   (writes speed/results/score.json)
``--peer-python`` is the Python of an environment that has RewardBench. One thread, CPU seconds of the forward passes
over the same token ids and weights on every side; padded batches take conversations in the order of the data.
"""

import argparse
import json
import tempfile

import torch
from workload import (
    HERE,
    SETTINGS,
    examples_of,
    interleaved,
    network,
    run_peer,
    times_faster,
    where_it_ran,
    write_results,
)

from steelyard.networks.packed_forward import packed_rewards, wanted_tokens
from steelyard.networks.packing import num_packed_tokens, pack, pack_groups
from steelyard.networks.reward_network import padded
from steelyard.networks.scorer import Limits, Scorer

LIMITS = Limits(tokens_per_pass=16_384)
OURS = "packed, the prompt once"
NUMBERS = {"cheems": 1.0, "best of 32": 0.125, "long": 0.1}
PADDED = {"cheems": (8, 64), "best of 32": (8, 64), "long": (8,)}


def rewards(model, prompts):
    return Scorer(model, kernel="packed", limits=LIMITS).rewards([tuple(map(tuple, rows)) for rows in prompts]).tolist()


def ours(model, prompts):
    return rewards(model, prompts)


def unpruned(model, prompts):
    found = []
    groups = pack_groups(
        prompts, max_tokens=LIMITS.tokens_per_pass, wanted_tokens=wanted_tokens(model.head.weight.device)
    )
    with torch.inference_mode():
        for group in groups:
            rows = [[prompts[part.prompt][answer] for answer in part.answers] for part in group]
            found += packed_rewards(model.backbone, model.head, pack(rows), is_pruned=False).tolist()
    return found


def repeated(model, prompts):
    return rewards(model, [[row] for rows in prompts for row in rows])


def one_at_a_time(model, prompts):
    rows = [row for rows in prompts for row in rows]
    with torch.inference_mode():
        return [model(*padded([row], filler=0)).item() for row in rows]


def sorted_rows(model, prompts):
    rows = [tuple(row) for rows in prompts for row in rows]
    return Scorer(model, kernel="padded", limits=Limits(tokens_per_pass=2048)).rewards([tuple(rows)]).tolist()


def padded_in_order(batch):
    def score(model, prompts):
        rows = [row for rows in prompts for row in rows]
        with torch.inference_mode():
            parts = [model(*padded(rows[place : place + batch], filler=0)) for place in range(0, len(rows), batch)]
        return torch.cat(parts).tolist()

    return score


def measure(name, asked):
    setting = SETTINGS[name]
    number = max(2, round(asked.prompts * NUMBERS[name]))
    prompts = [one.rows for one in examples_of(setting, number)]
    model = network().eval()
    functions = {
        OURS: ours,
        "packed, last layer whole": unpruned,
        "packed, the prompt repeated": repeated,
        "one at a time": one_at_a_time,
        "padded, sorted by length": sorted_rows,
        **{f"padded {batch}, order of the data": padded_in_order(batch) for batch in PADDED[name]},
    }
    found = {side: function(model, prompts[:2]) for side, function in functions.items()}
    furthest = max(abs(a - b) for scores in found.values() for a, b in zip(scores, found["one at a time"], strict=True))
    assert furthest < 1e-4, furthest
    seconds = interleaved({side: lambda own=own: own(model, prompts) for side, own in functions.items()}, asked.rounds)
    report = {**setting, "num_prompts": number, "largest_difference_of_scores": furthest, "seconds": seconds}
    if asked.peer_python and name == "cheems":
        report |= against_rewardbench(model, prompts[: asked.peer_prompts], asked, seconds, number)
    once, every = sum(map(num_packed_tokens, prompts)), sum(len(row) for rows in prompts for row in rows)
    least = {side: own["least"] for side, own in seconds.items()}
    return report | {
        "tokens_with_the_prompt_once": once,
        "tokens_one_by_one": every,
        "times_faster": times_faster(seconds, OURS),
        "last_layer_pruning": {"gain": round(least["packed, last layer whole"] / least[OURS], 3)},
        "sharing": {
            "gain": round(least["packed, the prompt repeated"] / least[OURS], 3), "limit": round(every / once, 3)
        },
    }  # fmt: skip


def against_rewardbench(model, prompts, asked, seconds, number):
    """Its pipeline on the same conversations; seconds are scaled up where it had fewer of them."""
    work = {
        "prompts": prompts,
        "batches": list(PADDED["cheems"]),
        "rounds": 2,
        "vocab_size": model.classifier.config.vocab_size,
    }
    with tempfile.TemporaryDirectory() as folder:
        peer = run_peer("rewardbench_pipeline.py", asked.peer_python, work, folder)
    own = one_at_a_time(model, prompts)
    furthest = max(abs(a - b) for a, b in zip(peer["scores"], own, strict=True))
    assert furthest < 1e-4, furthest
    for batch, spent in peer["seconds"].items():
        scaled = round(spent * number / len(prompts), 3)
        seconds[f"RewardBench pipeline, batch {batch}"] = {"least": scaled, "median": scaled}
    return {"rewardbench": {"version": peer["version"], "num_prompts": len(prompts), "difference": furthest}}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--prompts", type=int, default=40)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--peer-python")
    options.add_argument("--peer-prompts", type=int, default=16)
    options.add_argument("--settings", nargs="*", default=list(NUMBERS), help="those measured anew; others are kept")
    asked = options.parse_args()
    before = HERE / "results" / "score.json"
    kept = json.loads(before.read_text(encoding="utf-8"))["settings"] if before.exists() else {}
    here = where_it_ran()
    own = {name: {"command": here["command"]} | measure(name, asked) for name in asked.settings}
    write_results("score.json", here | {"settings": {name: own.get(name, kept.get(name)) for name in NUMBERS}})


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
