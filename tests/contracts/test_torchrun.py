"""Training in two processes, killed and gone on with, ends where one process does."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

import tiny
from many_processes import alone, ended_together
from steelyard.core.types import Case, Response
from steelyard.io.cases import write_cases
from steelyard.stages.train import Config, train
from strategies import case
from warm_process import Ended

pytestmark = pytest.mark.slow

TORCHRUN = Path(sys.executable).parent / "torchrun"
DIES = """
import os, signal, sys
from steelyard.cli.main import main

def kill(event, args):
    # The second checkpoint is about to take its name.
    if event == "os.rename" and str(args[1]).endswith("checkpoint.pt"):
        left[0] -= 1
        if left[0] == 0:
            os.kill(VICTIM, signal.SIGKILL)

left = [2]
sys.addaudithook(kill)
main()
"""


def cases(number, name):
    return [
        Case(
            prompt=case(id=f"{name}{index}", text=f"{name} 第{index}个问题").prompt,
            responses=(Response(id="g", text="好的，明白了。" * (1 + index % 3)), Response(id="b", text="no")),
            ranking=(("g",), ("b",)),
        )
        for index in range(number)
    ]


@pytest.fixture
def words(tmp_path):
    write_cases(tmp_path / "train.jsonl", cases(7, "p"))
    write_cases(tmp_path / "held.jsonl", cases(3, "q"))
    tiny.save_base(tmp_path / "base")
    words = ["train", tmp_path / "train.jsonl", "--model", tmp_path / "base", "--held-out", tmp_path / "held.jsonl"]
    words += ["--epochs", "2", "--learning-rate", "3e-3", "--batch-size", "4", "--set", "checkpoint_every=1"]
    return [*map(str, words), "--set", "trackers=[]"]


def by_torchrun(*words):
    command = [str(TORCHRUN), "--standalone", "--nproc-per-node", "2", *map(str, words)]
    ended = subprocess.run(command, env=alone(), capture_output=True, text=True, check=False, timeout=400)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def by_forks(*words):
    """Two processes that meet as torchrun's do, without its imports; the code is that of the first."""
    codes, texts, errors = zip(*ended_together(*words), strict=True)
    return Ended(codes[0], "".join(texts), "".join(errors))


# A launch and who dies: torchrun with all that it started, or the first of two processes.
LAUNCHES = [
    pytest.param(by_forks, "os.getpid()", id="forks"),
    pytest.param(by_torchrun, "os.getppid()", id="torchrun", marks=pytest.mark.field),
]


def tie_head(folder):
    from transformers import Qwen2Config, Qwen2ForCausalLM

    settings = Qwen2Config.from_pretrained(folder, tie_word_embeddings=True)
    Qwen2ForCausalLM(settings).save_pretrained(folder)


def curve(folder):
    return [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]


WAYS = {
    "all weights": ({}, "model.safetensors", "score.weight"),
    "an adapter and the head": (
        {"adapter": "dora", "save_adapter": "adapter"}, "adapter_model.safetensors", "base_model.model.score.weight",
    ),
    "the best of a policy whose head is its embedding": (
        {"kind": "implicit", "keep": "best", "evaluate_every": 1}, "model.safetensors", "model.embed_tokens.weight",
    ),
}  # fmt: skip


# What adapters and policies come to in two processes is tested on its own too.
FIELD = [way if way == "all weights" else pytest.param(way, marks=pytest.mark.field) for way in WAYS]


@pytest.mark.parametrize(("launched", "victim"), LAUNCHES)
@pytest.mark.parametrize("way", FIELD)
def test_two_processes_killed_and_started_again_end_where_one_does(words, tmp_path, way, launched, victim):
    settings, file, trained_too = WAYS[way]
    if "implicit" in settings.values():
        tie_head(tmp_path / "base")
    words = [*words, *(word for name, value in settings.items() for word in ("--set", f"{name}={value}"))]
    (tmp_path / "dies.py").write_text(DIES.replace("VICTIM", victim))
    two, one = tmp_path / "two", tmp_path / "one"
    killed = launched(tmp_path / "dies.py", *words, "--out", two)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (two / "checkpoint.pt").exists()
    again = launched("-m", "steelyard", *words, "--out", two)
    assert again.returncode == 0, again.stderr
    assert len(re.findall("continuing after step [12] of 4", again.stderr)) == 1, again.stderr
    assert again.stdout.count("Training took 4 steps over 7 pairs of 7 prompts") == 1
    config = Config(epochs=2, learning_rate=3e-3, batch_size=4, checkpoint_every=1, trackers=(), **settings)
    alone_run = train(Path(words[1]), one, config, model=words[3], held_out=Path(words[5]))
    assert {path.name for path in one.iterdir()} == {path.name for path in two.iterdir()}
    for ours, theirs in zip(curve(one), curve(two), strict=True):
        assert ours.keys() == theirs.keys()
        assert all(theirs[key] == pytest.approx(ours[key], rel=2e-6, abs=1e-6) for key in ours if key != "held_out")
        assert theirs.get("held_out") == ours.get("held_out")
    weights, expected = load_file(two / file), load_file(one / file)
    assert weights.keys() == expected.keys()
    assert trained_too in expected
    for name, weight in expected.items():
        assert (weight - weights[name]).abs().max() < 1e-5, name
    assert json.loads((two / "run.json").read_text())["summary"]["num_pairs"] == alone_run.summary.num_pairs
    means = [json.loads((folder / "steelyard.json").read_text())["reference"]["mean"] for folder in (one, two)]
    assert means[1] == pytest.approx(means[0], abs=1e-5)


@pytest.mark.parametrize(("launched", "victim"), LAUNCHES)
def test_a_wrong_setting_is_said_once_and_every_process_ends_with_2(words, tmp_path, launched, victim):
    ended = launched("-m", "steelyard", *words, "--out", tmp_path / "out", "--set", "tokens_per_step=0")
    assert ended.stderr.count("tokens_per_step is 0") == 1, ended.stderr
    assert ended.returncode == 2 or "exitcode  : 2" in ended.stderr
    assert not (tmp_path / "out").exists()
