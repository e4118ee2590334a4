"""Training with the prompt once, against one forward an answer, padded batches, and TRL's RewardTrainer.

Run: python speed/train.py [--prompts N] [--rounds N] [--peer-python PATH]   (writes speed/results/train.json)
TRL takes minutes for the long prompts: ``--peer-settings cheems`` leaves them out, ``--settings cheems`` for all sides.
``--peer-python`` is the Python of an environment that has TRL. One thread, CPU seconds of forward, backward and AdamW
over the same prompts, pairs and weights on every side; TRL has its pairs in random order, as many a step as ours.
"""

import argparse
import json
import subprocess
import sys
import tempfile

import torch
from peers.memory import peak, resident
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

from steelyard.networks.packed_forward import packed_rewards
from steelyard.networks.packing import forward_groups, num_packed_tokens, num_shared_tokens, pack
from steelyard.networks.reward_network import padded
from steelyard.training.batching import Slot, pairs_in
from steelyard.training.config import Config
from steelyard.training.gradient_accumulation import Accumulation, objective_of, read_losses
from steelyard.training.losses import bradley_terry_loss
from steelyard.training.trainer import scorer_of

CONFIG = Config(tokens_per_forward=16_384)
PAIRS_A_STEP_OF_TRL = {"cheems": 20, "long": 4}  # 28 of the long ones at once need more than 12 GB there
OURS = "packed, the prompt once"


def accumulate(model, slots, examples, config):
    return Accumulation(scorer_of(model, config), examples, objective_of(config)).step(slots)


def one_by_one(model, rows):
    return torch.cat([model(*padded([row], filler=0)) for row in rows])


def in_padded_rows(model, rows, rows_a_pass=10):
    """As the official trainer collates: answers in the order in which they stand."""
    passes = [rows[start : start + rows_a_pass] for start in range(0, len(rows), rows_a_pass)]
    return torch.cat([model(*padded(own, filler=0)) for own in passes])


def in_sorted_rows(model, rows):
    groups = forward_groups([len(row) for row in rows], max_tokens=2048)
    scores = torch.cat([model(*padded([rows[index] for index in group], filler=0)) for group in groups])
    return torch.empty_like(scores).index_copy(0, torch.tensor([one for group in groups for one in group]), scores)


def step_of(score):
    """A step's loss and gradients where all its scores come from one function, with all their graphs."""

    def gradients(model, slots, examples):
        scores = score(model, slots, examples)
        squares = CONFIG.weight_of_squares * scores.square().mean()
        loss = bradley_terry_loss(scores, pairs_in(slots, examples)) + squares
        loss.backward()
        return loss.item()

    return gradients


def of_rows(score):
    return step_of(
        lambda model, slots, examples: score(model, [examples[one.prompt].rows[one.response] for one in slots])
    )


def of_packs(prompts_of, **settings):
    return step_of(
        lambda model, slots, examples: packed_rewards(
            model.backbone, model.head, pack(prompts_of(slots, examples)), **settings
        )
    )


def whole(slots, examples):
    return [examples[prompt].rows for prompt in dict.fromkeys(one.prompt for one in slots)]


def ours(model, slots, examples):
    (found,) = read_losses([accumulate(model, slots, examples, CONFIG)])
    return found.pair_loss + CONFIG.weight_of_squares * found.regulariser


SIDES = {
    OURS: ours,
    "packed, last layer whole": of_packs(whole, is_pruned=False),
    "packed, the prompt repeated": of_packs(
        lambda slots, examples: [(examples[one.prompt].rows[one.response],) for one in slots]
    ),
    "one by one": of_rows(one_by_one),
    "padded 10": of_rows(in_padded_rows),
    "padded, sorted by length": of_rows(in_sorted_rows),
}


def epoch(model, gradients, examples, prompts_a_step):
    """Every step with its optimiser; the losses."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6)
    losses = []
    for start in range(0, len(examples), prompts_a_step):
        chosen = range(start, min(start + prompts_a_step, len(examples)))
        slots = tuple(Slot(prompt, answer) for prompt in chosen for answer in range(len(examples[prompt].rows)))
        losses.append(gradients(model, slots, examples))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
    return losses


def check_equal(examples, setting):
    """The same loss on every side to 1e-5: without that, no side is faster than another."""
    losses = {name: epoch(network(), side, examples, setting["prompts_a_step"])[0] for name, side in SIDES.items()}
    assert max(losses.values()) - min(losses.values()) < 1e-5, losses


def peak_memory(name, setting_name, number):
    """Megabytes of one step beyond what its side holds before it, optimiser included, in a process of its own."""
    command = [sys.executable, __file__, "--alone", name, setting_name, str(number)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def alone(name, setting_name, number):
    setting = SETTINGS[setting_name]
    model, examples = network(), examples_of(setting, int(number))
    held = resident()
    epoch(model, SIDES[name], examples, setting["prompts_a_step"])
    print(peak() - held)


def measure(name, number, asked):
    setting = SETTINGS[name]
    examples = examples_of(setting, number)
    check_equal(examples[: setting["prompts_a_step"]], setting)
    model = network()
    sides = {
        side: lambda step=step: epoch(model, step, examples, setting["prompts_a_step"]) for side, step in SIDES.items()
    }
    seconds = interleaved(sides, asked.rounds)
    found = {**setting, "num_prompts": number, "seconds": seconds}
    if asked.peer_python and name in asked.peer_settings:
        with tempfile.TemporaryDirectory() as folder:
            work = {
                "prompts": [one.rows for one in examples[: asked.peer_prompts]],
                "pairs_a_step": PAIRS_A_STEP_OF_TRL[name],
                "vocab_size": model.classifier.config.vocab_size,
            }
            peer = run_peer("trl_trainer.py", asked.peer_python, work, folder)
        share = min(1.0, asked.peer_prompts / number)
        found["trl"] = peer | {"num_prompts": min(number, asked.peer_prompts)}
        for how in ("as it comes", "a pair at a time"):
            seconds[f"TRL, {how}"] = dict.fromkeys(("least", "median"), round(peer[how] / share, 3))
    once, repeated = sum(num_packed_tokens(one.rows) for one in examples), sum(len(r) for e in examples for r in e.rows)
    answers = once - sum(num_shared_tokens(one.rows) for one in examples)
    gain = seconds["packed, the prompt repeated"]["least"] / seconds[OURS]["least"]  # the last layer pruned in both
    pruned = seconds["packed, last layer whole"]["least"] / seconds[OURS]["least"]
    return found | {
        "tokens_with_the_prompt_once": once,
        "tokens_one_by_one": repeated,
        "answer_tokens_a_second": {side: round(answers / own["least"]) for side, own in seconds.items()},
        "times_faster": times_faster(seconds, OURS),
        "last_layer_pruning": {"gain": round(pruned, 3)},
        "sharing": {"gain": round(gain, 3), "limit": round(repeated / once, 3)},
        "peak_memory_mb": {side: peak_memory(side, name, setting["prompts_a_step"]) for side in SIDES},
    }


def main():
    if sys.argv[1:2] == ["--alone"]:
        return alone(*sys.argv[2:])
    options = argparse.ArgumentParser()
    options.add_argument("--prompts", type=int, default=8)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--peer-python")
    options.add_argument("--peer-prompts", type=int, default=4)
    options.add_argument("--peer-settings", nargs="*", default=list(PAIRS_A_STEP_OF_TRL))
    options.add_argument("--settings", nargs="*", default=list(SETTINGS), help="those measured anew; others are kept")
    asked = options.parse_args()
    numbers = {"cheems": asked.prompts, "long": max(1, asked.prompts // 4), "best of 32": max(1, asked.prompts // 8)}
    before = HERE / "results" / "train.json"
    kept = json.loads(before.read_text(encoding="utf-8"))["settings"] if before.exists() else {}
    here = where_it_ran()
    own = {name: {"command": here["command"]} | measure(name, numbers[name], asked) for name in asked.settings}
    write_results("train.json", here | {"settings": kept | own})
    return None


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
