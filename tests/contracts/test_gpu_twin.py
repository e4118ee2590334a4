"""The script of GPU speed on its twin, the CPU: all parts, every line, and no tensor left on another device."""

import ast
import importlib
import inspect
import io
import itertools
import sys
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import pytest
import torch
from torch.overrides import TorchFunctionMode

from fake_gpu import GPU, fake_gpu, on_fake_gpu
from steelyard.networks.reward_network import RewardNetwork
from steelyard.training.batching import Slot
from steelyard.training.gradient_accumulation import Accumulation, objective_of
from steelyard.training.trainer import scorer_of

pytestmark = pytest.mark.slow

SPEED = Path(__file__).parents[2] / "speed"
SCRIPTS = [str(SPEED / name) for name in ("gpu.py", "gpu_sides.py")]
ALL_PARTS = ["--sizes", "tiny"]
WITH_ADAPTER = ["--parts", "train", "--sizes", "tiny-LoRA", "--tokens", "300"]


@pytest.fixture(scope="module")
def scripts():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SPEED))
        yield importlib.import_module("gpu"), importlib.import_module("gpu_sides")


@contextmanager
def lines_run(paths):
    """Collect the lines of functions of these files that run within it."""
    lines = {path: set() for path in paths}

    def line(frame, _, __):
        lines[frame.f_code.co_filename].add(frame.f_lineno)
        return line

    before = sys.gettrace()
    sys.settrace(lambda frame, *event: line(frame, *event) if frame.f_code.co_filename in lines else None)
    try:
        yield lines
    finally:
        sys.settrace(before)


def lines_to_run(path):
    """Return every line of a function of a file, but those below ``if IS_GPU``."""
    source = Path(path).read_text(encoding="utf-8")
    branches = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.If) and names_gpu(node.test)]
    of_gpu = {n for node in branches for part in node.body for n in range(part.lineno, part.end_lineno + 1)}
    codes = [part for part in compile(source, path, "exec").co_consts if hasattr(part, "co_lines")]
    lines = set()
    while codes:
        code = codes.pop()
        codes += [part for part in code.co_consts if hasattr(part, "co_lines")]
        if code.co_flags & inspect.CO_OPTIMIZED:  # a function, not the body of a class
            lines |= {number for *_, number in code.co_lines() if number is not None}
    return lines - of_gpu


def names_gpu(test):
    return any(isinstance(node, ast.Name) and node.id == "IS_GPU" for node in ast.walk(test))


@pytest.fixture(scope="module")
def twin(scripts):
    """The figures of all parts, what was printed, and the lines that ran."""
    gpu, sides = scripts
    results = gpu.RESULTS.read_bytes() if gpu.RESULTS.exists() else None
    with pytest.MonkeyPatch.context() as patch, lines_run(SCRIPTS) as lines, redirect_stdout(io.StringIO()) as printed:
        patch.setattr(sides, "TRAININGS", itertools.count())
        figures = gpu.main(ALL_PARTS)
        adapted = gpu.main(WITH_ADAPTER)
        run_out_of_memory(gpu)
        gpu.main(["--seconds", "-1"])
        with pytest.raises(SystemExit, match="failed"):
            gpu.process([sys.executable, "-c", "raise SystemExit(3)"])
    assert results == (gpu.RESULTS.read_bytes() if gpu.RESULTS.exists() else None)
    return figures, adapted, printed.getvalue(), lines


def run_out_of_memory(gpu):
    def step(*_):
        raise torch.OutOfMemoryError("simulated")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", step)
        figures = gpu.main(["--parts", "train", "--sizes", "tiny"])
    ours = figures["train"]["tiny"]["twin"]["ours"]
    assert len(ours) == 3
    assert all(side == {"seconds": None, "why": "out of memory"} for side in ours.values())


@pytest.mark.parametrize("path", SCRIPTS)
def test_the_twin_runs_every_line_but_those_of_a_gpu(twin, path):
    expected = lines_to_run(path)
    assert len(expected) > 100
    assert sorted(expected - twin[3][path]) == []


def test_all_sides_have_the_same_loss(twin, scripts):
    figures, adapted, _, _ = twin
    trained, peers = figures["train"]["tiny"]["twin"], figures["trl"]["tiny"]["twin"]["sides"]
    assert (len(trained["ours"]), len(peers)) == (3, 2)
    assert trained["num_pairs"] == figures["trl"]["tiny"]["twin"]["num_pairs"] == 2 * 3
    sides = [*trained["ours"].values(), trained["packed, the prompt repeated"], *peers.values()]
    # LoRA's factors change nothing before the first step.
    sides += adapted["train"]["tiny-LoRA"]["twin"]["ours"].values()
    losses = [side["first_loss"] for side in sides]
    assert max(losses) - min(losses) < 1e-5
    errors = figures["exactness"]
    assert max(errors["float32 packed"], errors["gradients"]) < 1e-5
    assert 0 < errors["bfloat16 packed"] <= 1.5 * errors["bfloat16 padded"] + 1e-3


def test_all_sides_have_the_same_scores_and_no_bit_differs(twin):
    figures = twin[0]
    assert figures["score"]["tiny"]["twin"]["largest_difference_of_scores"] < 1e-5
    assert len(figures["score"]["tiny"]["twin"]["sides"]) == 6
    bits = figures["invariance"]["tiny"]
    assert set(bits["bits_that_differ"].values()) == {0}
    assert (len(bits["bits_that_differ"]), bits["num_rows"]) == (8, 24)
    assert bits["num_distinct"] > 20


def test_the_command_line_and_trl_train_on_the_same_text(twin):
    sides = twin[0]["real"]["tiny"]["sides"]
    ours, peer = sides["ours as it comes"], sides["TRL as it comes"]
    assert ours["num_pairs"] == 128  # of HalluQA's first eight questions
    assert peer["num_steps"] == 128 // 8
    assert 0 < ours["loop_seconds"] < ours["process_seconds"]
    assert 0 < peer["loop_seconds"] < peer["process_seconds"]


def test_ratios_with_aims_are_printed(twin):
    printed = twin[2]
    for words in ("times faster than TRL at its best", "MFU", "first step, s", "scoring: times faster", "(aim >= 5)"):
        assert words in printed
    assert "tiny: rewards whose bits differ: 0 (aim <= 0)" in printed


class WithoutNumbers(TorchFunctionMode):
    """Go on where a number is read of a tensor that has none, and leave out the backward pass."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        tensor = torch.Tensor
        if func in {tensor.item, tensor.__float__, tensor.__bool__}:
            return 1.0
        return None if func is tensor.backward else func(*args, **(kwargs or {}))


def test_no_tensor_of_a_side_stays_on_the_cpu(scripts, monkeypatch):
    _, sides = scripts
    examples, config = sides.workload("twin", 3), sides.config_of("tiny", tokens_per_forward=300)
    rows = [row for example in examples for row in example.rows]
    slots = tuple(Slot(place, answer) for place, own in enumerate(examples) for answer in range(len(own.rows)))
    plain, model = sides.classifier("tiny", torch.bfloat16), sides.network("tiny")
    monkeypatch.setattr(sides, "DEVICE", GPU)
    with torch.no_grad(), fake_gpu(), WithoutNumbers():
        on_fake_gpu(RewardNetwork(plain), torch.bfloat16)
        assert sides.padded_scores(plain, rows, 4).shape == (len(rows),)
        on_fake_gpu(model, torch.bfloat16)
        for scorer in (scorer_of(model, config), sides.unshare(scorer_of(model, config))):
            assert scorer.device == GPU
            Accumulation(scorer, examples, objective_of(config)).step(slots)
