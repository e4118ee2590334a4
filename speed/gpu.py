"""Training and scoring on one GPU, at the sizes of Qwen2.5, beside TRL and transformers in the same run.

Run: python speed/gpu.py --parts train trl --sizes 0.5B --settings cheems   (adds to speed/results/gpu.json by card)

Weights are random. Parts, each of which can be run by itself:
  train       a step of the Trainer, 320 pairs with the lengths of CHEEMS, and the same without sharing the prompt
  score       rewards with equal bits, free to round and without sharing; transformers in padded batches by length
  trl         TRL's RewardTrainer on the same pairs and weights, as it comes and at its best
  real        `steelyard train` and TRL on HalluQA's pairs, from files to a saved model
  invariance  bits of rewards that differ between packs, orders and limits: there must be none
  exactness   packed rewards and gradients against one answer at a time

Without a GPU all parts run on a tiny model in CPU seconds, and nothing is written. A part that has begun is finished
after the ``--seconds``; those after it are left out. The first step is cold in the first training of a process alone:
run each size by itself. Without TRL its parts are left out.
"""

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import torch
from gpu_sides import (
    DEVICE,
    FREE,
    IS_GPU,
    LORA,
    PROMPTS,
    QWEN,
    classifier,
    config_of,
    invariance,
    network,
    release,
    score,
    train,
    unshare,
    workload,
)
from train import OURS
from workload import HERE, SETTINGS, where_it_ran

from steelyard.io.cases import read_cases
from steelyard.networks.packed_forward import packed_rewards
from steelyard.networks.packing import pack
from steelyard.networks.reward_network import padded
from steelyard.stages.convert import Config as ConvertConfig
from steelyard.stages.convert import convert
from steelyard.stages.halluqa import Config as HalluqaConfig
from steelyard.stages.halluqa import halluqa
from steelyard.stages.resolve import resolve
from steelyard.training.batching import Slot
from steelyard.training.gradient_accumulation import Accumulation, objective_of
from steelyard.training.trainer import scorer_of

RESULTS = HERE / "results" / "gpu.json"
AS_IT_COMES = "TRL as it comes"
MFU = {"0.5B": ">= 0.3", "1.5B": ">= 0.45", "3B": ">= 0.5", "7B-LoRA": ">= 0.5"}
VOCABULARY = 8000
TEMPLATE = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"


def exactness(setting, tokens):
    """Packed against one answer at a time, in float32, and both in 16 bits against that: errors of the rewards."""
    torch.backends.cuda.matmul.allow_tf32 = False
    prompts = [own.rows for own in workload(setting, 4)]
    scores = {}
    for name in ("float32", "bfloat16"):
        model = network("tiny", getattr(torch, name)).eval()
        with torch.inference_mode():
            scores[name, "packed"] = packed_rewards(model.backbone, model.head, pack(prompts)).cpu()
            ones = [padded([row], filler=0) for rows in prompts for row in rows]
            scores[name, "single"] = torch.cat([model(ids.to(DEVICE), on.to(DEVICE)).cpu() for ids, on in ones])
            ids, attended = padded([row for rows in prompts for row in rows], filler=0)
            scores[name, "padded"] = model(ids.to(DEVICE), attended.to(DEVICE)).cpu()
    truth = scores["float32", "single"]
    errors = {" ".join(key): float((rewards - truth).abs().max()) for key, rewards in scores.items()}
    errors["gradients"] = difference_of_gradients(workload(setting, 2), tokens)
    return errors


def difference_of_gradients(examples, tokens):
    """The relative difference of the gradients with and without sharing, without which neither is faster."""
    config, gradients = config_of("tiny", tokens_per_forward=tokens), []
    slots = tuple(Slot(place, answer) for place, own in enumerate(examples) for answer in range(len(own.rows)))
    for is_shared in (True, False):
        model = network("tiny")
        scorer = scorer_of(model, config)
        Accumulation(scorer if is_shared else unshare(scorer), examples, objective_of(config)).step(slots)
        gradients.append(torch.cat([w.grad.flatten() for w in model.parameters() if w.grad is not None]))
    return float((gradients[0] - gradients[1]).norm() / gradients[1].norm())


def peer(task, folder):
    """What speed/peers/trl_gpu.py prints for a task, and the seconds of the whole process."""
    path = Path(folder) / "task.json"
    path.write_text(json.dumps(task), encoding="utf-8")
    return process([sys.executable, str(HERE / "peers" / "trl_gpu.py"), str(path)])


def process(command):
    """The last line that a command prints, and the wall seconds of its process."""
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    return done.stdout.strip().rpartition("\n")[2], round(time.perf_counter() - start, 2)


def variant(batch, accumulated=1, *, checkpointing=False, by_length=False):
    return {"batch": batch, "accumulated": accumulated, "checkpointing": checkpointing, "by_length": by_length}


def trl(size, setting, options, seconds):
    """TRL's trainer on the pairs of a step of ours: as it comes, and at its best (without checkpointing)."""
    examples = workload(setting, PROMPTS[setting][0])
    pairs = [(own.rows[pair.better], own.rows[pair.worse]) for own in examples for pair in own.pairs]
    random.Random(0).shuffle(pairs)
    batches = [batch for batch in options.batches if not len(pairs) % batch]
    variants = {AS_IT_COMES: variant(8, len(pairs) // 8, checkpointing=True)} if not len(pairs) % 8 else {}
    for batch in batches:
        for words, by_length in (("", False), (", by length", True)):
            variants[f"TRL, batch {batch}{words}"] = variant(batch, len(pairs) // batch, by_length=by_length)
    is_adapted = size.endswith(LORA)
    with tempfile.TemporaryDirectory() as folder:
        # LoRA's base is stored in 16 bits on both sides.
        classifier(size, torch.bfloat16 if is_adapted else torch.float32).cpu().save_pretrained(f"{folder}/model")
        release()
        task = {
            "model": f"{folder}/model", "pairs": pairs, "epochs": 1 + options.rounds, "adapter": is_adapted,
            "seconds": seconds, "variants": variants,
        }  # fmt: skip
        return json.loads(peer(task, folder)[0]) | {"num_pairs": len(pairs)}


def save_model(size, folder, texts):
    """A model folder with random weights and a byte-level tokenizer, which is trained on the texts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = ["<|pad|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    inner.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, pad_token=special[0], eos_token=special[2])
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    classifier(size).cpu().save_pretrained(folder)
    release()


def command_line(cases, folder, **settings):
    """`steelyard train` as a user runs it: seconds of process, loop and first step, and MFU by its log."""
    out = Path(folder) / "-".join(["trained", *map(str, settings.values())])
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "steelyard", "train", str(cases), "--model", f"{folder}/model", "--out", str(out)]
    _, seconds = process([*command, "--epochs", "1", *words])
    lines = map(json.loads, (out / "progress.jsonl").read_text(encoding="utf-8").splitlines())
    steps = [line for line in lines if "train/num_pairs" in line]
    pairs = list(itertools.accumulate(line["train/num_pairs"] for line in steps))
    seconds_until = [number / line["speed/pairs_per_second"] for number, line in zip(pairs, steps, strict=True)]
    # Losses of several steps may be read at once, and their lines then have one time.
    start = min(line["time"] - until for line, until in zip(steps, seconds_until, strict=True))
    return {
        "process_seconds": seconds,
        "loop_seconds": round(steps[-1]["time"] - start, 2),
        "first_seconds": round(seconds_until[0], 2),
        "mfu": round(steps[-1]["speed/mfu"], 4) if IS_GPU else None,
        "num_steps": len(steps),
        "num_pairs": pairs[-1],
    }


def real(size, options, seconds):
    """HalluQA's pairs of people's answers, from a file to a saved model: the command line, and TRL on the same text."""
    end, sides = time.monotonic() + seconds, {}
    with tempfile.TemporaryDirectory() as folder:
        halluqa(Path(folder) / "halluqa", HalluqaConfig(num_questions=options.questions))
        resolve(Path(folder) / "halluqa" / "people.jsonl", Path(folder) / "ranked")
        cases = Path(folder) / "ranked" / "cases.jsonl"
        texts = [part.text for case in read_cases(cases) for part in case.responses]
        texts += [message.content for case in read_cases(cases) for message in case.prompt.messages]
        save_model(size, f"{folder}/model", texts)
        convert(cases, Path(folder) / "pairs.jsonl", ConvertConfig(to_kind="trl"))
        for prompts in (None, *options.prompts):
            name = f"ours, {prompts} prompts a step" if prompts else "ours as it comes"
            sides[name] = command_line(cases, folder, **({"batch_size": prompts} if prompts else {}))
        variants = {AS_IT_COMES: variant(8, checkpointing=True)}
        variants |= {f"TRL, batch {batch}": variant(batch) for batch in options.real_batches}
        for name, settings in variants.items() if find_spec("trl") else ():
            left = end - time.monotonic()
            task = {"model": f"{folder}/model", "file": f"{folder}/pairs.jsonl", "epochs": 1, "adapter": False}
            line, spent = peer(task | {"seconds": left, "variants": {name: settings}}, folder)
            sides[name] = json.loads(line)["sides"][name] | {"process_seconds": spent}
    return {"sides": sides}


def train_ratios(parts):
    """Times faster than TRL, MFU, sharing and the first step: (name, value, aim)."""
    for (size, setting), figures in cells(parts, "train"):
        if "best" not in figures:
            continue
        peers = parts.get("trl", {}).get(size, {}).get(setting, {}).get("sides", {})
        seconds = {side: own["seconds"] for side, own in peers.items() if own["seconds"]}
        least = min((value for side, value in seconds.items() if side != AS_IT_COMES), default=None)
        aims = (">= 12", ">= 20") if setting == "cheems" else (None, None)
        for name in dict.fromkeys((figures["best"], "as it comes")):
            words, ours = f"{size}, {setting}, ours {name}: ", figures["ours"][name]
            for peer, value, aim in zip(
                ("TRL at its best", AS_IT_COMES), (least, seconds.get(AS_IT_COMES)), aims, strict=True
            ):
                times = value and ours["seconds"] and value / ours["seconds"]
                yield f"{words}times faster than {peer}", times, aim
            yield words + "MFU", ours.get("mfu"), MFU.get(size)
            if ours.get("is_cold"):
                yield words + "first step, s", ours["first_seconds"], "<= 3"
        yield f"{size}, {setting}: share of sharing's limit", figures["sharing"]["share"], ">= 0.9"


def score_ratios(parts):
    """Times faster than transformers, the cost of equal bits, and sharing."""
    for (size, setting), figures in cells(parts, "score"):
        name, sides = f"{size}, {setting}, scoring: ", figures["sides"]
        free, ours = sides[FREE]["seconds"], sides[OURS]["seconds"]
        peers = [own["seconds"] for side, own in sides.items() if side.startswith("transformers") and own["seconds"]]
        if free and peers:
            yield name + "times faster than transformers", min(peers) / free, ">= 3.5" if setting == "long" else ">= 2"
        if free and ours:
            yield name + "times as long with equal bits", ours / free, "<= 1.2"
        yield name + "share of sharing's limit", figures["sharing"]["share"], ">= 0.9"


def other_ratios(parts):
    """Times faster than TRL at its best on real text, and rewards whose bits differ."""
    for size, figures in parts.get("real", {}).items():
        peers = [side for name, side in figures["sides"].items() if name.startswith("TRL") and side["seconds"]]
        for name, side in figures["sides"].items():
            for stage, aim in (("process", ">= 3"), ("loop", ">= 5")) if name.startswith("ours") else ():
                least = min((peer[f"{stage}_seconds"] for peer in peers), default=None)
                value = least and least / side[f"{stage}_seconds"]
                yield f"{size}, HalluQA, {name}: times faster than TRL at its best, {stage}", value, aim
    for size, figures in parts.get("invariance", {}).items():
        yield f"{size}: rewards whose bits differ", sum(figures["bits_that_differ"].values()), "<= 0"
    if errors := parts.get("exactness"):
        yield "error of packed rewards in float32", errors["float32 packed"], "<= 1e-05"
        share = errors["bfloat16 packed"] / errors["bfloat16 padded"]
        yield "error of packed rewards in bfloat16, by that of padded rows", share, "<= 1.5"
        # Under autocast each product rounds to 8 bits.
        yield "relative difference of gradients without sharing", errors["gradients"], "<= 0.05 (float32: 1e-05)"


def cells(parts, part):
    for size, by_setting in parts.get(part, {}).items():
        for setting, figures in by_setting.items():
            yield (size, setting), figures


def show(parts):
    for name, value, aim in (*train_ratios(parts), *score_ratios(parts), *other_ratios(parts)):
        print(f"{name}: {'not measured' if value is None else f'{value:.3g}'}" + (f" (aim {aim})" if aim else ""))


def jobs_of(options):
    """Every part that is asked for with its size and setting, and the function that measures it."""
    tokens = options.tokens[-1]
    for part in options.parts:
        if part == "exactness":
            yield (part,), lambda _: exactness(options.settings[0], tokens)
            continue
        for size in options.sizes:
            if part == "real" and not size.endswith(LORA):
                yield (part, size), lambda left, size=size: real(size, options, left)
            if part == "invariance":
                asked = (size, options.settings[0], tokens, options.budgets, options.rows)
                yield (part, size), lambda _, asked=asked: invariance(*asked)
            for setting in options.settings:
                asked = (size, setting)
                if part == "train":
                    yield (part, *asked), lambda _, asked=asked: train(*asked, options.tokens, options.rounds)
                elif part == "score":
                    yield (part, *asked), lambda _, asked=asked: score(*asked, tokens, options.rounds)
                elif part == "trl" and find_spec("trl"):
                    yield (part, *asked), lambda left, asked=asked: trl(*asked, options, left)


def put(results, keys, figures):
    for key in keys[:-1]:
        results = results.setdefault(key, {})
    results[keys[-1]] = figures


def main(arguments=None):
    parts = ("train", "score", "trl", "real", "invariance", "exactness")
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--parts", nargs="*", choices=parts, default=parts)
    options.add_argument("--sizes", nargs="*", default=[*QWEN] if IS_GPU else ["tiny", "tiny-LoRA"])
    options.add_argument("--settings", nargs="*", default=[*SETTINGS] if IS_GPU else ["twin"])
    options.add_argument("--tokens", nargs="*", type=int, default=[16_384, 32_768] if IS_GPU else [150, 300])
    options.add_argument("--batches", nargs="*", type=int, default=[8, 16, 32] if IS_GPU else [3])
    options.add_argument("--real-batches", nargs="*", type=int, default=[20, 64] if IS_GPU else [])
    options.add_argument("--prompts", nargs="*", type=int, default=[8] if IS_GPU else [])
    options.add_argument("--budgets", nargs="*", type=int, default=[1024, 8192, 32_768] if IS_GPU else [64, 128])
    options.add_argument("--rows", type=int, default=1000 if IS_GPU else 24)
    options.add_argument("--questions", type=int, default=None if IS_GPU else 8)
    options.add_argument("--rounds", type=int, default=3 if IS_GPU else 1)
    options.add_argument("--seconds", type=float, default=540)
    options = options.parse_args(arguments)
    end, figures_here = time.monotonic() + options.seconds, {}
    for keys, measure in jobs_of(options):
        left = end - time.monotonic()
        if left < 0:
            print(f"no time is left for {', '.join(keys)}", file=sys.stderr)
            continue
        here = where_it_ran()
        figures = measure(left) | {"command": here["command"], "versions": here["versions"]}
        put(figures_here, keys, figures)
        print(json.dumps({"part": keys, **figures}), file=sys.stderr)
        if IS_GPU:
            results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
            put(results, (here["device"], *keys), figures)
            RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
            figures_here = results[here["device"]]
    if not IS_GPU:
        print("no GPU: a tiny model on one thread of the CPU, and no results are written")
    show(figures_here)
    return figures_here


if __name__ == "__main__":
    if not IS_GPU:
        torch.set_num_threads(1)
        os.environ["OMP_NUM_THREADS"] = "1"
    main()
