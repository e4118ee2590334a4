import errno
import os
import shutil
import subprocess
import sys

import pytest

import tiny
from steelyard.core.errors import OutputError
from steelyard.core.types import Case, Response
from steelyard.files.cases import write_cases
from steelyard.stages.train import Config, train
from steelyard.stages.train.checkpoints import load_checkpoint
from steelyard.stages.train.disk import room_on_disk
from strategies import case

MOUNT = "mkdir -p {disk} && mount -t tmpfs -o size={size} none {disk}"


def in_small_disk(disk, size, *commands):
    """Commands in a mount of their own, which nobody else sees."""
    words = ["unshare", "-m", "sh", "-c", " && ".join([MOUNT.format(disk=disk, size=size), *commands])]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ)


@pytest.fixture
def disk(tmp_path):
    if shutil.which("unshare") is None or in_small_disk(tmp_path / "disk", "64k", "true").returncode:
        pytest.skip("a small disk cannot be mounted here")
    return tmp_path / "disk"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_an_error_of_the_user_and_no_other_is(tmp_path, code):
    with pytest.raises(OutputError, match="the disk is full"), room_on_disk(tmp_path):
        raise OSError(code, "full")
    with pytest.raises(PermissionError), room_on_disk(tmp_path):
        raise PermissionError(errno.EACCES, "no")
    with pytest.raises(RuntimeError, match="something else"), room_on_disk(tmp_path):
        raise RuntimeError("something else")


WEIGHTS = """
import torch
from pathlib import Path
from safetensors.torch import save_file
from steelyard.core.errors import OutputError
from steelyard.stages.train.checkpoints import Checkpoint, State, load_checkpoint, save_checkpoint
from steelyard.stages.train.disk import room_on_disk

disk = Path({disk!r})
for step in range(1, 4):
    try:
        save_checkpoint(disk, Checkpoint(State(step, {{"w": torch.full((90_000,), float(step))}}, {{}}), [], None))
    except OutputError as error:
        print("refused", step, error.found)
        break
print("kept", load_checkpoint(disk).state.step, load_checkpoint(disk).state.weights["w"].read().unique().item())
print("left", sorted(path.name for path in disk.iterdir()))
try:
    with room_on_disk(disk):
        save_file({{"w": torch.zeros(400_000)}}, disk / "model.safetensors")
except OutputError as error:
    print("refused", error.found)
"""


def test_on_a_full_disk_the_old_checkpoint_stays_whole(disk):
    """A disk of 600 kB holds one checkpoint of 360 kB, and never the next beside it."""
    script = disk.parent / "weights.py"
    script.write_text(WEIGHTS.format(disk=str(disk)))
    done = in_small_disk(disk, "600k", f"{sys.executable} {script}")
    assert done.stdout.splitlines() == [
        "refused 2 the disk is full: what stood there before is untouched",
        "kept 1 1.0",
        "left ['checkpoint.pt']",
        "refused the disk is full: what stood there before is untouched",
    ], done.stderr


def test_a_training_on_a_full_disk_ends_with_its_reason_and_goes_on_when_there_is_room(disk, tmp_path):
    answers = (Response(id="g", text="Yes, here it is."), Response(id="b", text="no"))
    made = [Case(prompt=case(id=f"p{n}", text=f"q {n}").prompt, responses=answers, ranking=(("g",), ("b",)))
            for n in range(4)]  # fmt: skip
    write_cases(tmp_path / "train.jsonl", made)
    base = tiny.save_base(tmp_path / "base")
    words = f"-m steelyard train {tmp_path}/train.jsonl --model {base} --out {disk}/out --prompts-per-step 2"
    again = f"{sys.executable} {words} --set checkpoint_every=1"
    kept = f"cp -r {disk}/out {tmp_path}/kept"
    done = in_small_disk(disk, "560k", f"{{ {again}; echo $? > {tmp_path}/code; {kept}; }}")
    assert (tmp_path / "code").read_text().strip() == "2", done.stderr
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    checkpoint = load_checkpoint(tmp_path / "kept")
    assert checkpoint is not None
    assert checkpoint.state.step >= 1
    config = Config(prompts_per_step=2, checkpoint_every=1)
    whole = train(tmp_path / "train.jsonl", tmp_path / "whole", config, model=base)
    gone_on = train(tmp_path / "train.jsonl", tmp_path / "kept", config, model=base)
    assert gone_on.outputs == whole.outputs
