"""Training to equal held-out accuracy: Steelyard and TRL's RewardTrainer on the same real pairs, text and weights.

Run: python speed/accuracy.py CASES.jsonl --model FOLDER [--template plain] [--peer-python PATH]
(adds to speed/results/accuracy.json: a row for each arm as it ends, then the differences over all rows of one key)

Both sides train the last layers and the head of one saved start on the token ids of one encoding. ``--ours`` are arms
of prompts a step, epochs and rate (4:2:1e-4), ``--trl`` of pairs a step. For each arm and seed: held-out accuracy
over pairs with a 95% interval (2,000 resamples of prompts), CPU seconds of the loop and of the whole process, one
thread, and peak memory; then paired differences of accuracy with their intervals, and how many times fewer CPU seconds
ours took. Ours is `steelyard train` without the scoring of a reference set (`--set reward_reference_prompts=0`); its
loop holds the pass through the frozen layers. TRL's weights are measured by our scorer.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from peers.memory import peak
from safetensors.torch import load_file
from workload import HERE, where_it_ran

from steelyard.core.numerics import generator
from steelyard.io.atomic import write_text
from steelyard.io.cases import read_cases, write_cases
from steelyard.networks.conversation import Rendering, choose_template, complete_template
from steelyard.networks.loading import initialise_head, load_network, load_tokenizer
from steelyard.stages.train import Config, train
from steelyard.training.examples import EvidenceChoice, make_examples
from steelyard.training.held_out import prompt_statistics_of, rewards_of
from steelyard.training.trained_network import choose_trainable
from steelyard.training.trainer import Trainer, scorer_of

RESULTS = HERE / "results" / "accuracy.json"
NUM_RESAMPLES = 2000
KEY = ("data", "model", "trainable", "dtype", "train_prompts", "split", "max_length")


def split(path, asked):
    """Cases to train on and to test on, no conversation on both sides."""
    cases = [case for case in read_cases(Path(path)) if len(case.ranking or ()) > 1]
    conversations = sorted({case.prompt.messages for case in cases}, key=lambda messages: messages[-1].content)
    order = generator(asked.split, "split").permutation(len(conversations))
    sides = [{conversations[place] for place in part} for part in (order[: asked.train], order[-asked.test :])]
    return [[case for case in cases if case.prompt.messages in side] for side in sides]


def save_start(asked, folder):
    """The start of both sides: the backbone with one fresh head, in float32."""
    network, _ = load_network(asked.model, dtype="float32")
    initialise_head(network, seed=0)
    network.classifier.save_pretrained(folder)
    tokenizer = load_tokenizer(asked.model)
    template = choose_template(tokenizer, asked.template, model=asked.model)
    tokenizer.chat_template = complete_template(tokenizer, template, strip=True)
    tokenizer.save_pretrained(folder)
    return network, tokenizer


def ours_alone(work_path):
    """One training in a process of its own; prints the CPU seconds of its loop, frozen layers included."""
    work = json.loads(Path(work_path).read_text(encoding="utf-8"))
    seconds, starts, run, cache = [], [], Trainer.run, Trainer.cached_features

    def cached(trainer):
        starts.append(time.process_time())
        return cache(trainer)

    def timed(*given, **named):
        found = run(*given, **named)
        seconds.append(time.process_time() - starts[-1])
        return found

    Trainer.run, Trainer.cached_features = timed, cached
    train(Path(work["cases"]), Path(work["out"]), Config(**work["config"]), model=work["start"])
    print(json.dumps({"loop_seconds": seconds[0], "peak_mb": peak()}))


def timed_process(command):
    """What a process printed in its last line, and its CPU seconds from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{command[1]} failed:\n{done.stderr[-3000:]}")
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout.strip().splitlines()[-1]) | {"process_seconds": seconds}


def ours(asked, folder, step, seed):
    out, work = folder / f"ours-{'-'.join(map(str, step))}-{seed}", folder / "work.json"
    config = {
        "chat_template": None, "trainable": asked.trainable, "dtype": asked.dtype, "batch_size": int(step[0]),
        "epochs": int(step[1]), "learning_rate": float(step[2]), "seed": seed, "max_length": asked.max_length,
        "reward_reference_prompts": 0,
    }  # fmt: skip
    work.write_text(
        json.dumps(
            {"cases": str(folder / "train.jsonl"), "out": str(out), "start": str(folder / "start"), "config": config}
        )
    )
    found = timed_process([sys.executable, __file__, "--alone", str(work)])
    return found, load_network(str(out), dtype=asked.dtype)[0]


def trl(asked, folder, step, seed, *, examples, trained):
    pairs = [
        {
            "chosen_ids": one.rows[pair.better],
            "rejected_ids": one.rows[pair.worse],
            "length": max(len(one.rows[end]) for end in pair[:2]),
        }
        for one in examples
        for pair in one.pairs
    ]
    num_steps = -(-len(pairs) // int(step[0])) * int(step[1])
    task = {
        "start": str(folder / "start"), "trained": trained, "pairs": pairs, "pairs_a_step": int(step[0]),
        "epochs": int(step[1]), "rate": float(step[2]), "warmup_steps": round(0.1 * num_steps), "seed": seed,
        "dtype": asked.dtype,
    }  # fmt: skip
    (folder / "task.json").write_text(json.dumps(task))
    weights = folder / "trl.safetensors"
    script = str(HERE / "peers" / "trl_accuracy.py")
    found = timed_process([asked.peer_python, script, str(folder / "task.json"), str(weights)])
    network, _ = load_network(str(folder / "start"), dtype="float32")
    network.classifier.load_state_dict(load_file(weights), strict=False)
    network.backbone.to(getattr(torch, asked.dtype))
    return found, network


def measured(network, examples, asked):
    """Right pairs and pairs of each test prompt."""
    config = Config(dtype=asked.dtype, trainable=asked.trainable)
    statistics = prompt_statistics_of(rewards_of(scorer_of(network, config), examples), examples)
    return statistics.num_correct, statistics.num_pairs


def interval(correct, pairs, *, other=None):
    """Accuracy over pairs, or its difference from another side's, with the 95% interval over prompts."""
    drawn = generator(0, "resamples").integers(0, len(pairs), (NUM_RESAMPLES, len(pairs)))
    own = correct if other is None else correct - other
    low, high = np.quantile(own[drawn].sum(1) / pairs[drawn].sum(1), [0.025, 0.975])
    return [round(float(one), 4) for one in (own.sum() / pairs.sum(), low, high)]


def options():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("cases")
    made.add_argument("--model", required=True)
    made.add_argument("--template")
    made.add_argument("--trainable", default="last:2")
    made.add_argument("--dtype", default="bfloat16")
    made.add_argument("--train", type=int, default=315)
    made.add_argument("--test", type=int, default=135)
    made.add_argument("--split", type=int, default=0)
    made.add_argument("--max-length", type=int, default=512)
    made.add_argument("--ours", nargs="*", default=["4:2:1e-4"], help="PROMPTS:EPOCHS:RATE")
    made.add_argument("--trl", nargs="*", default=["32:1:1e-4"], help="PAIRS:EPOCHS:RATE")
    made.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    made.add_argument("--peer-python")
    return made.parse_args()


def main():
    if sys.argv[1:2] == ["--alone"]:
        return ours_alone(sys.argv[2])
    asked = options()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sides = split(asked.cases, asked)
        write_cases(folder / "train.jsonl", sides[0])
        network, tokenizer = save_start(asked, folder / "start")
        rendering = Rendering(template=tokenizer.chat_template, max_length=asked.max_length)
        examples = [
            make_examples(own, tokenizer, rendering, EvidenceChoice(), where=asked.cases).examples for own in sides
        ]
        layers = Config(trainable=asked.trainable).trainable
        number = {"head": 0}.get(layers) if not layers.startswith("last:") else int(layers[5:])
        trained = list(choose_trainable(network, number))
        del network
        arms = [("ours", step) for step in asked.ours]
        arms += [("trl", step) for step in asked.trl] if asked.peer_python else []
        key = {
            "data": Path(asked.cases).stem, "model": Path(asked.model).name, "trainable": asked.trainable,
            "dtype": asked.dtype, "train_prompts": len(sides[0]), "split": asked.split, "max_length": asked.max_length,
        }  # fmt: skip
        for seed in asked.seeds:
            for side, step in arms:
                parts = step.split(":")
                if side == "ours":
                    cost, model = ours(asked, folder, parts, seed)
                else:
                    cost, model = trl(asked, folder, parts, seed, examples=examples[0], trained=trained)
                right, pairs = measured(model, examples[1], asked)
                add(
                    key
                    | {"side": side, "step": step, "seed": seed}
                    | {name: round(value, 1) if isinstance(value, float) else value for name, value in cost.items()}
                    | {"accuracy": interval(right, pairs), "right": right.tolist(), "pairs": pairs.tolist()}
                )
    return None


def add(row):
    """Put a row into the results, in place of one of the same arm, and compare the sides anew."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"] if RESULTS.exists() else []
    same = (*KEY, "side", "step", "seed")
    rows = [other for other in rows if any(other[name] != row[name] for name in same)] + [row]
    rows.sort(key=lambda one: [str(one[name]) for name in same])
    print(json.dumps({name: value for name, value in row.items() if name not in ("right", "pairs")}), file=sys.stderr)
    here = where_it_ran()
    machine = {name: here[name] for name in ("machine", "device", "versions", "load_average")}
    parts = {"rows": rows, "differences": differences(rows)}
    lines = [f'"{name}": [\n' + ",\n".join(map(json.dumps, own)) + "\n]" for name, own in parts.items()]
    write_text(RESULTS, f'{{"machine": {json.dumps(machine)},\n' + ",\n".join(lines) + "}\n")


def differences(rows):
    """Ours minus TRL's, arm by arm, over the seeds that both have; how many times fewer CPU seconds and megabytes."""
    compared = []
    arms = {(tuple(row[name] for name in KEY), row["side"], row["step"]) for row in rows}
    for key, step, peer_step in sorted(
        (key, step, peer_step)
        for key, side, step in arms
        for peer_key, peer_side, peer_step in arms
        if (side, peer_side) == ("ours", "trl") and key == peer_key
    ):
        both = [_of_arm(rows, key, side, arm) for side, arm in (("ours", step), ("trl", peer_step))]
        seeds = sorted(set(both[0]) & set(both[1]))
        if not seeds:
            continue
        right = [sum(np.array(arm[seed]["right"]) for seed in seeds) for arm in both]
        pairs = sum(np.array(both[0][seed]["pairs"]) for seed in seeds)
        cost = {
            f"times_{name}": round(
                float(np.divide(*(np.mean([arm[seed][name] for seed in seeds]) for arm in both[::-1]))), 2
            )
            for name in ("loop_seconds", "process_seconds", "peak_mb")
        }
        compared.append(
            dict(zip(KEY, key, strict=True))
            | {"ours": step, "trl": peer_step, "seeds": seeds}
            | {"accuracy": interval(right[0], pairs, other=right[1])}
            | cost
        )
    return compared


def _of_arm(rows, key, side, step):
    """The rows of one arm by seed."""
    own = [row for row in rows if tuple(row[name] for name in KEY) == key]
    return {row["seed"]: row for row in own if (row["side"], row["step"]) == (side, step)}


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
