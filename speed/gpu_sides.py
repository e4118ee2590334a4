"""The sides that speed/gpu.py compares, on a GPU or on its twin, the CPU, and how one of them is measured."""

import gc
import random
import time

import torch
from train import OURS
from workload import MODEL

from steelyard.networks.devices import best_device
from steelyard.networks.packed_forward import packed_rewards
from steelyard.networks.packing import num_packed_tokens, pack
from steelyard.networks.reward_network import RewardNetwork, padded
from steelyard.networks.scorer import Limits, Scorer
from steelyard.training.batching import Slot, pairs_in
from steelyard.training.config import Config
from steelyard.training.gradient_accumulation import Accumulation, objective_of
from steelyard.training.losses import PairBatch, bradley_terry_loss
from steelyard.training.throughput import decoder_shape, num_attended, peak_of, training_flops
from steelyard.training.trainer import scorer_of

TOKENS = 16_384
PAIRS_A_BATCH_OF_TRL = 8
KEYS = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
QWEN = {
    "0.5B": (896, 4864, 24, 14, 2),
    "1.5B": (1536, 8960, 28, 12, 2),
    "3B": (2048, 11_008, 36, 16, 2),
    "7B": (3584, 18_944, 28, 28, 4),
}
DEVICE = best_device()
IS_GPU = DEVICE.type == "cuda"


def accumulate(model, slots, examples, config):
    return Accumulation(scorer_of(model, config), examples, objective_of(config)).step(slots)


def network(size, dtype=torch.float32):
    """The published shape with its vocabulary of 151,936, which costs memory; ids are drawn below that of the twin."""
    from transformers import Qwen2Config, Qwen2ForSequenceClassification

    torch.manual_seed(0)
    shape = dict(zip(KEYS, QWEN[size], strict=True)) | {"vocab_size": 151_936} if size in QWEN else {}
    with torch.device(DEVICE):
        made = Qwen2ForSequenceClassification(Qwen2Config(**MODEL | shape))
    torch.nn.init.normal_(made.score.weight, std=made.config.hidden_size**-0.5)
    made.to(dtype).score.float()
    return RewardNetwork(made)


def now():
    if IS_GPU:
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def measured(function, rounds):
    """Least seconds of some runs after one to warm up, and the peak of memory beyond what was held before, in GiB."""
    gc.collect()
    try:
        function()
        if IS_GPU:
            torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated() if IS_GPU else 0
        seconds = []
        for _ in range(rounds):
            start = now()
            function()
            seconds.append(now() - start)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return {"seconds": None, "why": "out of memory"}
    peak = {"peak_gib_beyond_weights": round((torch.cuda.max_memory_allocated() - held) / 2**30, 2)} if IS_GPU else {}
    return {"seconds": round(min(seconds), 4)} | peak


def as_trl_lays_them_out(model, examples, config):
    """All pairs in random order, eight a batch, both rows of each padded to the longest of the batch."""
    pairs = [(own.rows[one.better], own.rows[one.worse]) for own in examples for one in own.pairs]
    random.Random(0).shuffle(pairs)
    for start in range(0, len(pairs), PAIRS_A_BATCH_OF_TRL):
        rows = [row for pair in pairs[start : start + PAIRS_A_BATCH_OF_TRL] for row in pair]
        ids, attended = padded(rows, filler=0)
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=config.dtype == "bfloat16"):
            scores = model(ids.to(DEVICE), attended.to(DEVICE))
        loss = -torch.nn.functional.logsigmoid(scores[0::2] - scores[1::2]).sum() / len(pairs)
        (loss + config.weight_of_squares * scores.square().sum() / (2 * len(pairs))).backward()


def prompt_repeated(model, slots, examples, config):
    """The same kernel and the same passes of so many tokens, each answer a prompt of its own: scores, then gradients.

    The sum over prompts is the same however it is cut, so each prompt's loss is worked out behind its own pass.
    """
    share = 1 / len(examples)
    for place in range(len(examples)):
        own = [slot for slot in slots if slot.prompt == place]
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=config.dtype == "bfloat16"):
            scores = packed_rewards(
                model.backbone, model.head, pack([(examples[place].rows[slot.response],) for slot in own])
            )
        pairs = PairBatch(*(column.to(scores.device) for column in pairs_in(own, examples)))
        loss = bradley_terry_loss(scores, pairs)
        (share * (loss + config.weight_of_squares * scores.square().mean())).backward()


def train(size, examples, rounds):
    """Seconds of a step on each side, what sharing brings of what it could, MFU and peak memory of ours."""
    config = Config(tokens_per_forward=TOKENS, dtype="bfloat16" if IS_GPU else "float32")
    model = network(size)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6)
    slots = tuple(Slot(place, answer) for place, own in enumerate(examples) for answer in range(len(own.rows)))

    def step(gradients):
        def run():
            gradients()
            optimiser.step()
            optimiser.zero_grad()

        return run

    sides = {
        OURS: lambda: accumulate(model, slots, examples, config),
        "packed, the prompt repeated": lambda: prompt_repeated(model, slots, examples, config),
        "pairs as TRL lays them out": lambda: as_trl_lays_them_out(model, examples, config),
    }
    found = {name: measured(step(side), rounds) for name, side in sides.items()}
    shape, ours = decoder_shape(model), found[OURS]["seconds"]
    flops = sum(training_flops(own.rows, shape) for own in examples)
    return {"sides": found, **compared(found, examples), "mfu": share_of_peak(flops, ours)}


def score(size, prompts, rounds):
    """Seconds of scoring everything once on each side, and the MFU of ours."""
    model = network(size, torch.bfloat16 if IS_GPU else torch.float32).eval()
    scorer, rows = Scorer(model, kernel="packed", limits=Limits(TOKENS)), [row for own in prompts for row in own]

    def one_at_a_time():
        with torch.inference_mode():
            return [model(*(one.to(DEVICE) for one in padded([row], filler=0))).item() for row in rows]

    sides = {
        OURS: lambda: scorer.rewards([tuple(map(tuple, rows)) for rows in prompts]).tolist(),
        "packed, the prompt repeated": lambda: scorer.rewards([(tuple(row),) for row in rows]).tolist(),
        "one at a time": one_at_a_time,
    }
    found = {name: measured(side, rounds) for name, side in sides.items()}
    shape = decoder_shape(model)
    tokens = sum(map(num_packed_tokens, prompts))
    flops = 2 * shape.num_weights * tokens + 4 * shape.attention * sum(map(num_attended, prompts))
    return {"sides": found, **compared(found, prompts), "mfu": share_of_peak(flops, found[OURS]["seconds"])}


def compared(found, prompts):
    """How many times faster ours is, and how much of sharing's limit is reached."""
    rows = [getattr(own, "rows", own) for own in prompts]
    limit = sum(len(row) for own in rows for row in own) / sum(map(num_packed_tokens, rows))
    ours = found[OURS]["seconds"]
    times = {
        name: round(own["seconds"] / ours, 2) for name, own in found.items() if ours and own["seconds"] and name != OURS
    }
    gain = times.get("packed, the prompt repeated")
    efficiency = {"gain": gain, "limit": round(limit, 3), "share": gain and round(gain / limit, 3)}
    return {"times_faster": times, "sharing": efficiency}


def share_of_peak(flops, seconds):
    """MFU; null on a CPU, where seconds are of the processor and no data sheet tells a peak."""
    return round(flops / seconds / peak_of(DEVICE, "bfloat16").flops, 3) if IS_GPU and seconds else None
