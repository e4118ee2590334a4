"""A GPU against the CPU in float64, rewards with equal bits, and trainings that repeat and resume.

Each test runs at its full size on a GPU, where there is one, and on a few tokens on the CPU, so that its own code is
tried on every machine. On a machine with little more than PyTorch: ``python -m pytest --noconftest -m field
tests/field/test_gpu.py``.
"""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

import tiny
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.io.cases import write_cases
from steelyard.networks.gpu_attention import varlen_kernel
from steelyard.networks.invariance import FAST, REPEATABLE
from steelyard.networks.pack_attention import attend
from steelyard.networks.pack_layout import AttentionRule, layout_of
from steelyard.networks.packing import pack
from steelyard.networks.reward_network import RewardNetwork
from steelyard.networks.scorer import Limits, Scorer
from steelyard.stages.train import train
from steelyard.training.config import Config
from steelyard.training.trainer import scorer_of

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
pytestmark = [
    pytest.mark.field,
    pytest.mark.parametrize("device", [pytest.param("cuda", marks=NEEDS_GPU), "cpu"]),
    # PyTorch and Triton warn of their own parts.
    pytest.mark.filterwarnings("default"),
]
SECONDS = 500


def draws_of(seed):
    return np.random.default_rng(seed)


def prompts_of(lengths, seed=0):
    """Prompts of token ids: the number of shared tokens and of each answer's own ones."""
    draws = draws_of(seed)
    found = []
    for shared, tails in lengths:
        prompt = draws.integers(1, 400, shared).tolist()
        # The first token of an answer is its own: no more is shared than the prompt.
        found.append(
            tuple((*prompt, 1 + n, *draws.integers(1, 400, tail - 1).tolist()) for n, tail in enumerate(tails))
        )
    return found


def random_prompts(number, longest, seed=0):
    """Prompts that end at, before and behind the ends of blocks, with one to six answers each."""
    draws = draws_of(seed)
    lengths = []
    for place in range(number):
        shared = (0, 1, 63, 64, 65, 128)[place % 6] if place < 6 else int(draws.integers(2, longest))
        lengths.append((shared, draws.integers(1, longest, int(draws.integers(1, 7))).tolist()))
    return prompts_of(lengths, seed)


def reference(query, key, value, packed, rule):
    """Attention of all tokens at once in float64, each to those before it in its own conversation."""
    number = len(packed.ids)
    is_visible = torch.zeros(number, number, dtype=torch.bool)
    for branch in packed.branches:
        for answer in range(len(branch.tails)):
            row = torch.from_numpy(branch.places(answer))
            distance = torch.arange(len(row))[:, None] - torch.arange(len(row))
            is_near = distance < (rule.window or len(row))
            is_visible[row[:, None], row] |= (distance >= 0) & is_near
    groups = query.shape[1] // key.shape[1]
    key, value = (states.repeat_interleave(groups, dim=1) for states in (key, value))
    logits = (query @ key.transpose(2, 3) * rule.scale).masked_fill(~is_visible, -torch.inf)
    return logits.softmax(-1) @ value


def relative(found, expected):
    return float((found.double().cpu() - expected).norm() / expected.norm())


@pytest.mark.parametrize("heads", [(14, 2, 64), (4, 4, 128)], ids=str)
@pytest.mark.parametrize("window", [None, 100])
@pytest.mark.parametrize("arithmetic", [FAST, REPEATABLE], ids=["varlen", "flex"])
def test_attention_and_its_gradients_are_those_of_float64(device, arithmetic, window, heads):
    draws = draws_of(1)
    prompts = ((257, 1), (130, 2), (0, 3), (70, 32)) if device == "cuda" else ((130, 2), (0, 3))
    lengths = [(shared, draws.integers(1, 40, number).tolist()) for shared, number in prompts]
    packed, rule = pack(prompts_of(lengths)), AttentionRule(heads[2] ** -0.5, window, None, 0.0)
    torch.manual_seed(0)
    exact = [torch.randn(1, n, len(packed.ids), heads[2]).bfloat16().double() for n in (heads[0], heads[1], heads[1])]
    states = [tensor.to(device, torch.bfloat16).requires_grad_() for tensor in exact]
    exact = [tensor.requires_grad_() for tensor in exact]
    layout = layout_of(packed, torch.device(device), arithmetic)
    if device == "cuda" and arithmetic is FAST:
        assert varlen_kernel() is not None
    read, expected = attend(*states, layout, rule), reference(*exact, packed, rule)
    assert (read.device.type, read.dtype) == (device, torch.bfloat16)
    weights = torch.randn(expected.shape, dtype=torch.float64)
    gradients = torch.autograd.grad((read.double() * weights.to(device)).sum(), states)
    truths = torch.autograd.grad((expected * weights).sum(), exact)
    assert relative(read.detach(), expected.detach()) < 1e-2
    assert max(relative(*pair) for pair in zip(gradients, truths, strict=True)) < 2e-2
    # In the last layer the last token of each answer is the only query.
    last = attend(states[0][:, :, layout.last], *states[1:], layout._replace(is_last=True), rule)
    assert relative(last.detach(), expected.detach()[:, :, packed.last]) < 1e-2


def network_of(kind, device):
    """A reward network; on a GPU in 16 bits, with heads of a published size."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    shape = {"hidden_size": 896, "intermediate_size": 2432, "num_attention_heads": 14, "head_dim": 64}
    if device == "cpu":
        shape = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "head_dim": 16}
    windows = {"gemma2": {"sliding_window": 200}, "mistral": {"sliding_window": 100}}
    settings = {
        "vocab_size": 400, "num_hidden_layers": 4, "num_key_value_heads": 2, "max_position_embeddings": 32_768,
        "num_labels": 1, "pad_token_id": 0, **shape, **windows.get(kind, {}),
    }  # fmt: skip
    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForSequenceClassification.from_config(AutoConfig.for_model(kind, **settings))
        torch.nn.init.normal_(model.score.weight, std=0.1)
    # On a CPU rounding to 8 bits would hide what other texts change.
    model.to(torch.bfloat16 if device == "cuda" else torch.float32).score.float()
    return RewardNetwork(model).eval()


def rewards_of(model, prompts, *, size=None, tokens=8192):
    scorer, size = Scorer(model, limits=Limits(tokens)), size or len(prompts)
    parts = [scorer.rewards(prompts[start : start + size]) for start in range(0, len(prompts), size)]
    return torch.cat(parts).cpu()


@pytest.mark.parametrize("kind", ["qwen2", "gemma2", "mistral"])
def test_no_bit_of_a_reward_depends_on_other_texts(device, kind):
    number, longest = (300, 400) if device == "cuda" else (8, 40)
    model, prompts = network_of(kind, device), random_prompts(number, longest)
    expected = rewards_of(model, prompts)
    assert len(expected) > 1000 or device == "cpu"
    assert torch.isfinite(expected).all()
    assert len(set(expected.tolist())) > 0.9 * len(expected)
    alone = [(row,) for rows in prompts for row in rows]
    halves = [half for rows in prompts for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :]) if half]
    ways = {
        **{f"packs of {size}": rewards_of(model, prompts, size=size) for size in (1, 7, 32)},
        **{f"{tokens} tokens": rewards_of(model, prompts, tokens=tokens) for tokens in (1024, 32_768)},
        "reversed": rewards_of(model, [rows[::-1] for rows in prompts[::-1]]).flip(0),
        "halves": rewards_of(model, halves),
        "alone": rewards_of(model, alone, size=1),
        "apart": rewards_of(model, alone),
    }
    assert {name: int((rewards != expected).sum()) for name, rewards in ways.items()} == dict.fromkeys(ways, 0)


def test_long_prompts_with_many_answers_keep_their_bits(device):
    length = 8000 if device == "cuda" else 200
    model = network_of("qwen2", device)
    (rows,) = prompts_of([(length, draws_of(2).integers(1, 90, 32).tolist())])
    others = random_prompts(5, 60, seed=3)
    expected = rewards_of(model, [rows], tokens=20_000)
    assert len(set(expected.tolist())) > 28
    for number in (1, 2, 7, 32):
        assert torch.equal(rewards_of(model, [rows[:number]]), expected[:number])
        assert torch.equal(rewards_of(model, [*others, rows[:number]], tokens=40_000)[-number:], expected[:number])
    # Within 9,000 tokens the answers are divided among several packs.
    assert torch.equal(rewards_of(model, [rows], tokens=9000), expected)


@pytest.mark.parametrize("is_deterministic", [False, True])
def test_packs_of_all_lengths_compile_nothing_after_the_first(device, is_deterministic):
    from torch._dynamo.utils import counters

    config = Config(dtype="bfloat16", deterministic=is_deterministic, tokens_per_forward=16_384)
    model = network_of("qwen2", device).float().train()
    scorer = scorer_of(model, config)
    number = 50 if device == "cuda" else 12
    scorer.forward([((1, 2, 3),)]).sum().backward()  # sizes of one are compiled apart
    graphs = []
    for seed in range(number):
        prompts = random_prompts(6 + seed % 7, 300 if device == "cuda" else 20, seed)[seed % 6 :]
        scorer.forward(prompts).sum().backward()
        with torch.no_grad():
            scorer.forward(prompts[:1])
        graphs.append(counters["stats"]["unique_graphs"])
    assert graphs[-1] == graphs[9], graphs
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters() if weight.grad is not None)


@pytest.fixture
def folder(tmp_path, device):
    """A folder with cases in several scripts and a small model, whose heads have a size that a GPU takes."""
    from transformers import Qwen2ForCausalLM

    sizes = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4} if device == "cuda" else {}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        Qwen2ForCausalLM(tiny.config(**sizes)).save_pretrained(tmp_path / "base")
    tiny.tokenizer().save_pretrained(tmp_path / "base")
    write_cases(tmp_path / "cases.jsonl", map(case_of, range(48)))
    return tmp_path


def case_of(number):
    words = ("yes", "好", "نعم", "כן", "हाँ")[number % 5]
    texts = {f"r{place}": f"{words} " * (1 + (3 * number + 7 * place) % 19) for place in range(4)}
    return Case(
        prompt=Prompt(id=f"p{number}", messages=(Message(role="user", content=f"问题 {number}? " * (1 + number % 9)),)),
        responses=tuple(Response(id=name, text=text) for name, text in texts.items()),
        ranking=tuple((name,) for name in texts),
    )


def settings_of(is_deterministic):
    return {
        "dtype": "bfloat16", "deterministic": is_deterministic, "epochs": 3, "batch_size": 4, "tokens_per_forward": 512,
        "checkpoint_every": 3, "trackers": ["jsonl"],
    }  # fmt: skip


def trained(folder, name, is_deterministic):
    settings = settings_of(is_deterministic) | {"trackers": ("jsonl",)}
    train(folder / "cases.jsonl", folder / name, Config(**settings), model=str(folder / "base"))
    return folder / name


def weights_of(out):
    return {path.name: path.read_bytes() for path in out.glob("*.safetensors")}


def losses_of(out):
    lines = map(json.loads, (out / "curve.jsonl").read_text(encoding="utf-8").splitlines())
    return [line["loss"] for line in lines if "loss" in line]


def test_a_deterministic_training_has_the_same_bits_twice(device, folder):
    first, second = (trained(folder, name, is_deterministic=True) for name in ("first", "second"))
    assert weights_of(first)
    assert weights_of(first) == weights_of(second)
    assert losses_of(first) == losses_of(second)
    assert len(losses_of(first)) == 36


@pytest.mark.parametrize("is_deterministic", [True, False])
def test_a_killed_training_goes_on(device, folder, is_deterministic, capsys):
    whole = trained(folder, "whole", is_deterministic)
    words = [
        word
        for name, value in settings_of(is_deterministic).items()
        for word in ("--set", f"{name}={json.dumps(value).strip(chr(34))}")
    ]
    command = [sys.executable, "-m", "steelyard", "train", "cases.jsonl", "--model", "base", "--out", "killed", *words]
    checkpoint = folder / "killed" / "checkpoint.pt"
    for _ in range(2):
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
        kill_after_checkpoint(process, checkpoint, before)
        assert not (folder / "killed" / "run.json").exists()
    capsys.readouterr()
    ended = trained(folder, "killed", is_deterministic)
    assert "continuing after step" in capsys.readouterr().err
    if is_deterministic or device == "cpu":
        assert weights_of(ended) == weights_of(whole)
        assert losses_of(ended) == losses_of(whole)
    else:
        assert losses_of(ended) == pytest.approx(losses_of(whole), rel=0.02)


def kill_after_checkpoint(process, checkpoint, before):
    """Kill a training as soon as it has written another checkpoint."""
    end = time.monotonic() + SECONDS
    try:
        while not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before:
            assert process.poll() is None, "it ended before it was killed"
            assert time.monotonic() < end, "no checkpoint was written"
            time.sleep(0.002)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(SECONDS) == -signal.SIGKILL
