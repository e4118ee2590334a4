"""The memory estimate compared with trainings: peak resident memory on a CPU, allocated memory on a GPU.

Each shape trains in a process of its own, after a tiny training that has loaded all libraries.
Run: python speed/memory.py [--out speed/results/memory.json]
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SHAPES = {
    "wide": {"hidden": 512, "inner": 2048, "layers": 4, "vocabulary": 2000},
    "deep": {"hidden": 256, "inner": 1024, "layers": 12, "vocabulary": 2000},
    "words": {"hidden": 384, "inner": 1024, "layers": 4, "vocabulary": 60_000},
}
RUNS = [
    ("wide", {"gradient_checkpointing": "none"}),
    ("wide", {"gradient_checkpointing": "mlp"}),
    ("wide", {"gradient_checkpointing": "layers"}),
    ("deep", {"gradient_checkpointing": "none"}),
    ("deep", {"gradient_checkpointing": "mlp"}),
    ("deep", {"gradient_checkpointing": "layers"}),
    ("words", {"gradient_checkpointing": "none"}),
    ("wide", {"gradient_checkpointing": "none", "adapter": "lora"}),
    ("wide", {"gradient_checkpointing": "none", "adapter": "dora"}),
    ("wide", {"gradient_checkpointing": "none", "dtype": "bfloat16"}),
    ("wide", {"gradient_checkpointing": "none", "trainable": "last:2"}),
    ("deep", {"gradient_checkpointing": "none", "kernel": "padded"}),
]
CLOSED = [
    ("wide", {"gradient_checkpointing": "none"}),
    ("wide", {"gradient_checkpointing": "layers"}),
    ("words", {"gradient_checkpointing": "none"}),
]
"""Runs that are repeated as where memory is scarce: without holes in the heap."""


def network_of(shape, settings):
    import torch
    from transformers import Qwen2Config, Qwen2ForSequenceClassification

    from steelyard.networks.adapters import put_adapter, store_frozen
    from steelyard.networks.reward_network import RewardNetwork
    from steelyard.training.config import num_last_layers
    from steelyard.training.trained_network import adapter_of, choose_trainable

    torch.manual_seed(0)
    heads = shape["hidden"] // 64
    config = Qwen2Config(
        vocab_size=shape["vocabulary"], hidden_size=shape["hidden"], intermediate_size=shape["inner"],
        num_hidden_layers=shape["layers"], num_attention_heads=heads, num_key_value_heads=max(1, heads // 2),
        num_labels=1, pad_token_id=0,
    )  # fmt: skip
    network = RewardNetwork(Qwen2ForSequenceClassification(config))
    adapter = adapter_of(settings)
    if adapter is not None:
        put_adapter(network, adapter, seed=0)
    list(choose_trainable(network, num_last_layers(settings.trainable)))
    if settings.dtype == "bfloat16":
        store_frozen(network)
    return network


def examples_of(number, vocabulary, prompt=200, answer=100):
    import numpy as np

    from steelyard.ranking.pairs import IndexedPair
    from steelyard.training.examples import Example

    rng = np.random.default_rng(0)
    pairs = tuple(IndexedPair(better, worse, 1.0, 0.0) for better in range(4) for worse in range(better + 1, 4))
    found = []
    for _ in range(number):
        shared = rng.integers(1, vocabulary, prompt).tolist()
        found.append(Example(tuple((*shared, *rng.integers(1, vocabulary, answer).tolist()) for _ in range(4)), pairs))
    return found


def trained(shape, settings, examples, *, is_closed):
    """Train; gives the estimate in bytes and the peak on a GPU or null."""
    import torch

    from steelyard.networks.devices import best_device, device_memory, map_large_tensors
    from steelyard.training.memory import choose_modes, decoder_of, estimate, heap_size, pass_plan
    from steelyard.training.trainer import Trainer

    network = network_of(shape, settings)
    trainer = Trainer(network, examples, settings)
    decoder, passes = decoder_of(network, settings), pass_plan(trainer.scorer, examples, trainer.plan, settings)
    assert not is_closed or map_large_tensors(), "this needs the GNU C library"
    mode = choose_modes(trainer.scorer, examples, trainer.plan, settings)
    network.to(best_device())
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    trainer.run()
    measured = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None
    needed = estimate(decoder, passes._replace(gradient_checkpointing=mode)).total
    return needed if is_closed else heap_size(needed, device_memory()), measured


def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def one(name, asked, *, is_closed):
    from steelyard.training.config import Config

    settings = Config(epochs=1, batch_size=12, learning_rate=5e-6, tokens_per_forward=3600, **asked)
    small = {"hidden": 64, "inner": 64, "layers": 2, "vocabulary": 200}
    trained(small, settings, examples_of(4, 200, 20, 10), is_closed=is_closed)
    before, top, is_over = resident(), [0], threading.Event()

    def watch():
        while not is_over.is_set():
            top[0] = max(top[0], resident())
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.monotonic()
    needed, on_gpu = trained(SHAPES[name], settings, examples_of(24, SHAPES[name]["vocabulary"]), is_closed=is_closed)
    seconds = time.monotonic() - began
    is_over.set()
    watcher.join()
    top[0] = max(top[0], resident())
    measured = on_gpu if on_gpu is not None else top[0] - before
    high_water = resource.getrusage(0).ru_maxrss * 1024
    print(json.dumps({"estimate": needed, "measured": measured, "high_water": high_water, "seconds": seconds}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", nargs=3)
    parser.add_argument("--only", type=int, nargs="*", help="these of the runs, counted from 0")
    given = parser.parse_args()
    if given.one:
        one(given.one[0], json.loads(given.one[1]), is_closed=given.one[2] == "closed")
        return
    import torch

    has_gpu = torch.cuda.is_available()
    print(torch.cuda.get_device_name() if has_gpu else "no GPU: peak resident memory on the CPU")
    rows = []
    runs = [*((*run, "holes") for run in RUNS), *((*run, "closed") for run in CLOSED)]
    for name, asked, heap in [runs[place] for place in given.only or range(len(runs))]:
        command = [sys.executable, __file__, "--one", name, json.dumps(asked), heap]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        found = json.loads(done.stdout.splitlines()[-1])
        row = {"shape": name, **SHAPES[name], "settings": asked, "heap": heap, **found}
        row["ratio"] = row["estimate"] / row["measured"]
        rows.append(row)
        print(f"{name:6} {heap:6} {json.dumps(asked):55} estimate {row['estimate'] / 2**20:6.0f} MiB, measured "
              f"{row['measured'] / 2**20:6.0f} MiB, ratio {row['ratio']:.2f}", flush=True)  # fmt: skip
        if given.out:
            write(given.out, rows, has_gpu)


def write(path, rows, has_gpu):
    import torch

    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "torch": torch.__version__, "gpu": has_gpu}
    machine |= {"load": os.getloadavg(), "threads": torch.get_num_threads()}
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        json.dump({"command": "python " + " ".join(sys.argv), "machine": machine, "runs": rows}, file, indent=1)
    Path(file.name).replace(path)


if __name__ == "__main__":
    main()
