"""What the scripts of training and scoring speed share: a small model, prompts of given lengths, and fair timing.

Lengths are log-normal with the means of CHEEMS (108 tokens a prompt and 30 of template, 264 an answer), or 2,000 and
500 in the long setting. The answers of a prompt share its tokens; the first is the best, and every pair counts.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from steelyard.core.numerics import generator
from steelyard.networks.reward_network import RewardNetwork
from steelyard.ranking.pairs import IndexedPair
from steelyard.training.examples import Example

HERE = Path(__file__).parent
SETTINGS = {
    "cheems": {"prompt": 138, "answer": 264, "num_answers": 5, "prompts_a_step": 2},
    "long": {"prompt": 2000, "answer": 500, "num_answers": 8, "prompts_a_step": 1},
    "best of 32": {"prompt": 138, "answer": 264, "num_answers": 32, "prompts_a_step": 1},
}
MODEL = {
    "vocab_size": 8000, "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 32_768, "num_labels": 1, "pad_token_id": 0,
}  # fmt: skip
SPREAD = 0.5  # of the logarithm of a length


def network():
    """The same random weights each time; a head whose rewards have a spread of about one."""
    from transformers import Qwen2Config, Qwen2ForSequenceClassification

    torch.manual_seed(0)
    made = Qwen2ForSequenceClassification(Qwen2Config(**MODEL))
    torch.nn.init.normal_(made.score.weight, std=MODEL["hidden_size"] ** -0.5)
    return RewardNetwork(made)


def examples_of(setting, number):
    """Examples with every pair of their answers."""
    random = generator(0, "lengths", setting["prompt"], setting["num_answers"])

    def tokens(mean, least):
        length = int(random.lognormal(np.log(mean) - SPREAD**2 / 2, SPREAD))
        return random.integers(1, MODEL["vocab_size"], max(least, length)).tolist()

    size = setting["num_answers"]
    pairs = tuple(IndexedPair(one, two, 1.0, 0.0) for one in range(size) for two in range(one + 1, size))
    found = []
    for _ in range(number):
        prompt = tokens(setting["prompt"], 8)
        found.append(Example(tuple((*prompt, *tokens(setting["answer"], 4)) for _ in range(size)), pairs))
    return found


def interleaved(sides, rounds):
    """CPU seconds of each side: least and median. Sides take turns, so that a busy machine slows all of them."""
    seconds = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            start = time.process_time()
            side()
            seconds[name].append(time.process_time() - start)
            print(f"{name}: {seconds[name][-1]:.2f} s", file=sys.stderr)
    return {
        name: {"least": round(min(own), 3), "median": round(statistics.median(own), 3)} for name, own in seconds.items()
    }


def times_faster(seconds, name):
    """How many times faster the side of this name is than each other one, by the least and by the median."""
    return {
        other: {by: round(own[by] / seconds[name][by], 2) for by in own}
        for other, own in seconds.items()
        if other != name
    }


def run_peer(script, python, work, folder):
    """What a peer's script found, run by the Python of an environment where the peer is installed; null without one."""
    if python is None:
        return None
    task = Path(folder) / "task.json"
    task.write_text(json.dumps(work), encoding="utf-8")
    network().classifier.save_pretrained(Path(folder) / "model")
    done = subprocess.run(
        [python, str(HERE / "peers" / script), str(task), str(Path(folder) / "model")],
        capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{script} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def where_it_ran():
    """The command, the machine and the versions."""
    return {
        "command": "python speed/" + " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "machine": f"{os.cpu_count()} cores ({platform.machine()}), one thread, Python {platform.python_version()}",
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU",
        "versions": {name: version(name) for name in ("torch", "transformers") if find_spec(name)},
        "model": MODEL,
        "spread_of_lengths": SPREAD,
        "load_average": round(os.getloadavg()[0], 2),
    }


def write_results(name, found):
    """Into speed/results, and to the screen."""
    path = HERE / "results" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))
