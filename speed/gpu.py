"""Training and scoring on one GPU, at the sizes of Qwen2.5: tokens a second, MFU, what sharing brings, peak memory.

Run: python speed/gpu.py [--sizes 0.5B 1.5B ...] [--settings cheems ...] [--seconds N]
Writes speed/results/gpu.json. Without a GPU it runs the same sides on a tiny model in CPU seconds, and writes nothing.
Weights are random. Pairs laid out as TRL lays them out (eight a batch, padded) are our own code in its layout; every
side of a training has the same pairs a step and one AdamW step. What does not fit is recorded as that. Sizes are done
in order until the seconds are over.
"""

import argparse
import sys
import time

import torch
from gpu_sides import DEVICE, IS_GPU, QWEN, TOKENS, network, prompt_repeated, score, train
from workload import SETTINGS, examples_of, where_it_ran, write_results

from steelyard.networks.packed_forward import packed_rewards
from steelyard.networks.packing import pack
from steelyard.networks.reward_network import padded
from steelyard.training.batching import Slot
from steelyard.training.config import Config
from steelyard.training.gradient_accumulation import Accumulation, objective_of
from steelyard.training.trainer import scorer_of


def accumulate(model, slots, examples, config):
    return Accumulation(scorer_of(model, config), examples, objective_of(config)).step(slots)


def exactness():
    """Packed against one answer at a time, in float32, and both in 16 bits against that: errors of the rewards."""
    torch.backends.cuda.matmul.allow_tf32 = False
    prompts = [one.rows for one in examples_of(SETTINGS["cheems"], 4)]
    scores = {}
    for name in ("float32", "bfloat16"):
        model = network("tiny", getattr(torch, name)).eval()
        with torch.inference_mode():
            scores[name, "packed"] = packed_rewards(model.backbone, model.head, pack(prompts)).cpu()
            ones = [padded([row], filler=0) for own in prompts for row in own]
            scores[name, "single"] = torch.cat([model(ids.to(DEVICE), on.to(DEVICE)).cpu() for ids, on in ones])
            ids, attended = padded([row for own in prompts for row in own], filler=0)
            scores[name, "padded"] = model(ids.to(DEVICE), attended.to(DEVICE)).cpu()
    truth = scores["float32", "single"]
    found = {
        "float32_packed": float((scores["float32", "packed"] - truth).abs().max()),
        "bfloat16_packed": float((scores["bfloat16", "packed"] - truth).abs().max()),
        "bfloat16_padded": float((scores["bfloat16", "padded"] - truth).abs().max()),
    }
    assert found["float32_packed"] < 1e-5, found
    check_gradients()
    assert found["bfloat16_packed"] <= 1.5 * found["bfloat16_padded"] + 1e-3, found
    return found


def check_gradients():
    """Two ways to the same gradients: without that, none is faster than the other."""
    examples, config, found = examples_of(SETTINGS["cheems"], 2), Config(tokens_per_forward=TOKENS), []
    slots = tuple(Slot(place, answer) for place, own in enumerate(examples) for answer in range(len(own.rows)))
    for gradients in (lambda model: accumulate(model, slots, examples, config),
                      lambda model: prompt_repeated(model, slots, examples, config)):  # fmt: skip
        model = network("tiny")
        gradients(model)
        found.append(torch.cat([one.grad.flatten() for one in model.parameters() if one.grad is not None]))
    ours, other = found
    assert (ours - other).norm() < 1e-4 * ours.norm(), "the sides have different gradients"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--sizes", nargs="*", default=list(QWEN) if IS_GPU else ["tiny"])
    options.add_argument("--settings", nargs="*", default=list(SETTINGS) if IS_GPU else ["cheems"])
    options.add_argument("--rounds", type=int, default=3 if IS_GPU else 1)
    options.add_argument("--seconds", type=float, default=540)
    asked = options.parse_args()
    end = time.monotonic() + asked.seconds
    found = {}
    report = where_it_ran() | {"tokens_a_pass": TOKENS, "exactness": exactness(), "sizes": found}
    for size in asked.sizes:
        for name in asked.settings:
            if time.monotonic() > end:
                print(f"the time is over before {size}, {name}", file=sys.stderr)
                continue
            setting = SETTINGS[name]
            tokens = setting["prompt"] + setting["num_answers"] * setting["answer"]
            examples = examples_of(setting, max(1, round((TOKENS if IS_GPU else 3000) / tokens)))
            own = {"train": train(size, examples, asked.rounds)}
            own["score"] = score(size, [one.rows for one in examples], asked.rounds)
            found.setdefault(size, {})[name] = own
            print(size, name, own["train"]["times_faster"], own["score"]["times_faster"], file=sys.stderr)
            if IS_GPU:
                write_results("gpu.json", report)
    if not IS_GPU:
        print("no GPU: a tiny model on one thread of the CPU, and no results are written")
        for name, own in found["tiny"].items():
            print(name, {stage: (part["times_faster"], part["sharing"]) for stage, part in own.items()})


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
