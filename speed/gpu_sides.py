"""The sides that speed/gpu.py compares, on a GPU or on its twin, the CPU, and how one of them is measured.

Ours are the objects that users run: the `Trainer`, with all its steps, and the `Scorer`. Sharing is measured by the
same objects with each answer as a prompt of its own.
"""

import gc
import itertools
import random
import statistics
import time
from collections.abc import Iterator

import torch
from msgspec.structs import replace
from train import OURS
from workload import MODEL, SETTINGS, examples_of

from steelyard.networks.devices import best_device
from steelyard.networks.packing import num_packed_tokens
from steelyard.networks.reward_network import RewardNetwork, padded
from steelyard.networks.scorer import Limits, Scorer
from steelyard.training.config import Config, with_defaults
from steelyard.training.throughput import decoder_shape, num_attended, peak_of, training_flops
from steelyard.training.trained_network import prepare_network
from steelyard.training.trainer import Callback, Trainer

REPEATED, FREE = "packed, the prompt repeated", "packed, the prompt once, free to round"
KEYS = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
LORA = "-LoRA"
QWEN = {
    "0.5B": (896, 4864, 24, 14, 2),
    "1.5B": (1536, 8960, 28, 12, 2),
    "3B": (2048, 11_008, 36, 16, 2),
    "7B-LoRA": (3584, 18_944, 28, 28, 4),
}
"""The published shapes; the largest is trained by low-rank factors."""
DEVICE = best_device()
IS_GPU = DEVICE.type == "cuda"
TWIN = {"prompt": 20, "answer": 30, "num_answers": 3}
"""The lengths of the twin, whose model is tiny."""
PROMPTS = {"cheems": (32, 256), "long": (8, 32), "best of 32": (2, 40), "twin": (2, 3)}
"""Prompts of a step, and prompts that are scored."""


def workload(setting, number):
    """Examples of a setting of `speed/workload.py`, or of the twin, with every pair of their answers."""
    return examples_of(TWIN if setting == "twin" else SETTINGS[setting], number)


def classifier(size, dtype=torch.float32):
    """The published shape with its vocabulary of 151,936, which costs memory; ids are drawn below that of the twin."""
    from transformers import Qwen2Config, Qwen2ForSequenceClassification

    torch.manual_seed(0)
    shape = dict(zip(KEYS, QWEN[size], strict=True)) | {"vocab_size": 151_936} if size in QWEN else {}
    with torch.device(DEVICE):
        made = Qwen2ForSequenceClassification(Qwen2Config(**MODEL | shape))
        torch.nn.init.normal_(made.score.weight, std=made.config.hidden_size**-0.5)
    return made.to(dtype)


def network(size, dtype=torch.float32):
    """A reward network whose head computes in float32, as a loaded one does."""
    made = classifier(size, dtype)
    made.score.float()
    return RewardNetwork(made)


def unshare(scorer):
    """Let a scorer compute a prompt anew for each of its answers, in the same passes and with the same kernel."""
    forward = scorer.forward
    scorer.forward = lambda prompts: forward([(row,) for rows in prompts for row in rows])
    scorer.size = lambda rows: sum(map(len, rows))
    return scorer


def config_of(size, **settings):
    """The settings of a training: LoRA where the size says so."""
    dtype = "bfloat16" if IS_GPU else "float32"
    return Config(dtype=dtype, adapter="lora" if size.endswith(LORA) else None, **settings)


def now():
    """Seconds: of the wall on a GPU, when all that was begun has ended; of the processor on its twin."""
    if IS_GPU:
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def timed(function):
    start = now()
    function()
    return now() - start


def release():
    """Give back the memory that earlier sides have left."""
    gc.collect()
    torch.cuda.empty_cache()


def within_memory(measure, *arguments):
    """What a side measures, with the peak of memory in GiB, weights included; or that its memory did not suffice."""
    release()
    if IS_GPU:
        torch.cuda.reset_peak_memory_stats()
    try:
        figures = measure(*arguments)
    except torch.OutOfMemoryError:
        return {"seconds": None, "why": "out of memory"}
    return figures | {"peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2)}


def repeated(function, rounds):
    """Seconds of the first run, and the median and least of the others."""
    first, *others = [timed(function) for _ in range(1 + rounds)]
    return {
        "seconds": round(statistics.median(others), 4),
        "least": round(min(others), 4),
        "first_seconds": round(first, 3),
    }


TRAININGS = itertools.count()
"""Trainings of this process: the first step of the first one loads and compiles all kernels."""


class FirstStep(Callback):
    """The time at which the first step has ended."""

    end = None

    def after_step(self, trainer, record):
        self.end = self.end or now()
        return True


def train_steps(size, examples, config, side):
    """Seconds of the first step and of a later one of the `Trainer`, all examples in each step.

    Runs of one and of many steps differ by the steps alone: neither the optimiser's start nor the check at the end of a
    run counts, and the losses may be read whenever the trainer does.
    """
    model, is_cold = network(size), next(TRAININGS) == 0
    prepare_network(model, config)
    num_weights = sum(weight.numel() for weight in model.parameters())
    settings = with_defaults(
        replace(config, batch_size=len(examples)), num_weights=num_weights, num_prompts=len(examples)
    )
    trainer, first = Trainer(model, examples, settings), FirstStep()
    if side == REPEATED:
        unshare(trainer.scorer)
    trainer.distribute()
    plan = trainer.plan
    trainer.plan, start = plan[:1], now()
    loss = trainer.run([first])[0]["pair_loss"]
    alone = timed(trainer.run)
    trainer.plan = plan
    seconds = (timed(trainer.run) - alone) / (len(plan) - 1)
    flops = sum(training_flops(own.rows, decoder_shape(trainer.undivided)) for own in examples)
    return {
        "seconds": round(seconds, 4),
        "first_seconds": round(first.end - start, 3),
        "is_cold": is_cold,
        "tokens_per_pass": trainer.scorer.tokens_per_pass,
        "first_loss": loss,
        "mfu": share_of_peak(flops, seconds),
    }


def train(size, setting, budgets, rounds):
    """Steps of ours as it comes and in variants, and without sharing the prompt in the best of them.

    Variants are limits of a pass in tokens, on a GPU with compiled parts and without; a training of few steps has none
    by default.
    """
    examples = workload(setting, PROMPTS[setting][0])
    variants = {"as it comes": {}}
    for is_compiled in (False, True) if IS_GPU else (False,):
        for tokens in budgets:
            name = f"within {tokens:,} tokens" + is_compiled * ", compiled"
            variants[name] = {"tokens_per_forward": tokens, "compile": is_compiled}
    configs = {name: config_of(size, epochs=1 + rounds, **settings) for name, settings in variants.items()}
    ours = {name: within_memory(train_steps, size, examples, config, OURS) for name, config in configs.items()}
    fitting = {name: side["seconds"] for name, side in ours.items() if side["seconds"]}
    if not fitting:
        return {"ours": ours}
    best = min(fitting, key=fitting.get)
    again = within_memory(train_steps, size, examples, configs[best], REPEATED)
    return {
        "ours": ours,
        "best": best,
        REPEATED: again,
        "sharing": sharing(ours[best], again, [own.rows for own in examples]),
        "num_pairs": sum(len(own.pairs) for own in examples),
        "num_tokens": sum(num_packed_tokens(own.rows) for own in examples),
    }


def padded_scores(model, rows, batch):
    """Scores as transformers has them: rows sorted by length, in padded batches."""
    order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    parts = []
    with torch.inference_mode():
        for start in range(0, len(rows), batch):
            ids, attended = padded([rows[place] for place in order[start : start + batch]], filler=0)
            read = model(input_ids=ids.to(DEVICE), attention_mask=attended.long().to(DEVICE), use_cache=False)
            parts.append(read.logits[:, 0])
    scores = torch.cat(parts).float().cpu()
    return torch.empty_like(scores).index_copy(0, torch.tensor(order), scores)


def score(size, setting, tokens, rounds, batches=(8, 32, 128)):
    """Seconds of scoring everything once on each side, with rewards of equal bits and without."""
    prompts = [own.rows for own in workload(setting, PROMPTS[setting][1])]
    rows = [row for own in prompts for row in own]
    model = classifier(size, torch.bfloat16 if IS_GPU else torch.float32).eval()
    sides, scores = {}, {}

    def measure(name, function):
        def run():
            scores[name] = function()

        sides[name] = within_memory(repeated, run, rounds)

    for batch in batches:
        measure(f"transformers, padded by length, batch {batch}", lambda batch=batch: padded_scores(model, rows, batch))
    model.score.float()
    reward_network = RewardNetwork(model)
    # What keeps the bits stays in the network: it comes last.
    for name, is_invariant, is_shared in ((FREE, False, True), (REPEATED, False, False), (OURS, True, True)):
        scorer = Scorer(reward_network, kernel="packed", limits=Limits(tokens), invariant=is_invariant)
        parts = prompts if is_shared else [(row,) for row in rows]
        measure(name, lambda scorer=scorer, parts=parts: scorer.rewards(parts).float().cpu())
    shape = decoder_shape(reward_network)
    flops = 2 * shape.num_weights * sum(map(num_packed_tokens, prompts))
    flops += 4 * shape.attention * sum(map(num_attended, prompts))
    differences = [float((scores[OURS] - others).abs().max()) for others in scores.values() if OURS in scores]
    return {
        "sides": sides,
        "sharing": sharing(sides[FREE], sides[REPEATED], prompts),
        "mfu": share_of_peak(flops, sides[OURS]["seconds"]),
        "largest_difference_of_scores": max(differences, default=None),
        "num_rows": len(rows),
    }


def sharing(ours, again, prompts):
    """The gain by sharing, its limit (all tokens by those computed once), and the share of it that is reached."""
    limit = sum(len(row) for rows in prompts for row in rows) / sum(map(num_packed_tokens, prompts))
    gain = again["seconds"] / ours["seconds"] if ours["seconds"] and again["seconds"] else None
    return {"gain": gain and round(gain, 3), "limit": round(limit, 3), "share": gain and round(gain / limit, 3)}


def share_of_peak(flops, seconds):
    """MFU; null on a CPU, where seconds are of the processor and no data sheet tells a peak."""
    return round(flops / seconds / peak_of(DEVICE, "bfloat16").flops, 3) if IS_GPU and seconds else None


def ways(model, prompts, tokens, budgets) -> Iterator[tuple[str, torch.Tensor]]:
    """Rewards of the same rows in every way that they can be packed, in the order of the rows."""

    def rewards(parts, size=None, tokens=tokens):
        scorer, size = Scorer(model, kernel="packed", limits=Limits(tokens)), size or len(parts)
        return torch.cat([scorer.rewards(parts[start : start + size]) for start in range(0, len(parts), size)]).cpu()

    alone = [(row,) for rows in prompts for row in rows]
    shuffled = random.Random(0).sample(range(len(alone)), len(alone))
    mixed = rewards([alone[place] for place in shuffled])
    yield "all", rewards(prompts)
    yield from ((f"packs of {size} prompts", rewards(prompts, size)) for size in (1, 7, 32))
    yield "reversed", rewards([rows[::-1] for rows in prompts[::-1]]).flip(0)
    yield "each answer alone", rewards(alone, 1)
    yield "answers apart and mixed", torch.empty_like(mixed).index_copy(0, torch.tensor(shuffled), mixed)
    yield from ((f"{budget:,} tokens a pass", rewards(prompts, tokens=budget)) for budget in budgets)


def invariance(size, setting, tokens, budgets, num_rows):
    """Rewards whose bits differ from those of all rows together, in every way."""
    number = max(2, num_rows // len(workload(setting, 1)[0].rows))
    prompts = [own.rows for own in workload(setting, number)]
    model = network(size, torch.bfloat16 if IS_GPU else torch.float32).eval()
    (_, expected), *others = ways(model, prompts, tokens, budgets)
    return {
        "num_rows": len(expected),
        "num_distinct": len(set(expected.tolist())),
        "bits_that_differ": {name: int((rewards != expected).sum()) for name, rewards in others},
        "largest_difference": max(float((rewards - expected).abs().max()) for _, rewards in others),
    }
