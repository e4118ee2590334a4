import errno
import functools

import pytest

import tiny
import warm_process
from steelyard.core.errors import OutputError
from steelyard.core.types import Case, Response
from steelyard.io.cases import write_cases
from steelyard.stages.train import Config, train
from steelyard.training.callbacks import Trackers
from steelyard.training.checkpoints import CHECKPOINT_FILE, load_checkpoint, translate_disk_full
from strategies import case

pytestmark = pytest.mark.slow

SMALL_DISK = """
import ctypes, os, shutil, subprocess, sys
from warm_process import execute

disk, size, copy, *words = sys.argv[1:]
NEW_MOUNTS = 0x00020000  # CLONE_NEWNS: nobody else sees what is mounted here
if ctypes.CDLL(None).unshare(NEW_MOUNTS):
    sys.exit("no namespace")
subprocess.run(["mount", "--make-rprivate", "/"], check=True)
os.makedirs(disk)
subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", disk], check=True)
try:
    execute(words)
finally:
    shutil.copytree(disk, copy)
"""


@pytest.fixture
def in_small_disk(tmp_path):
    """Runs a Python command line with a small disk at ``disk``, of which ``copy`` is what was left at the end."""
    run = functools.partial(warm_process.run, "-c", SMALL_DISK, tmp_path / "disk")
    if run("64k", tmp_path / "nothing", "-c", "pass").returncode:
        pytest.skip("a small disk cannot be mounted here")
    (tmp_path / "disk").rmdir()
    return run


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_an_error_of_the_user_and_no_other_is(tmp_path, code):
    with pytest.raises(OutputError, match="the disk is full"), translate_disk_full(tmp_path):
        raise OSError(code, "full")
    with pytest.raises(PermissionError), translate_disk_full(tmp_path):
        raise PermissionError(errno.EACCES, "no")
    with pytest.raises(RuntimeError, match="something else"), translate_disk_full(tmp_path):
        raise RuntimeError("something else")


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_a_full_disk_promises_the_last_checkpoint_only_where_there_is_one(tmp_path, has_checkpoint):
    if has_checkpoint:
        (tmp_path / CHECKPOINT_FILE).touch()
    with pytest.raises(OutputError) as caught, translate_disk_full(tmp_path):
        raise OSError(errno.ENOSPC, "full")
    assert ("the last checkpoint is unchanged" in caught.value.problem) == has_checkpoint
    assert (": it continues from the last checkpoint" in str(caught.value)) == has_checkpoint


WEIGHTS = """
import torch
from pathlib import Path
from safetensors.torch import save_file
from steelyard.core.errors import OutputError
from steelyard.training.checkpoints import Checkpoint, State, load_checkpoint, save_checkpoint, translate_disk_full

disk = Path({disk!r})
for step in range(1, 4):
    try:
        save_checkpoint(disk, Checkpoint(State(step, {{"w": torch.full((90_000,), float(step))}}, {{}}), [], None))
    except OutputError as error:
        print("refused", step, error.problem)
        break
print("kept", load_checkpoint(disk).state.step, load_checkpoint(disk).state.weights["w"].read().unique().item())
print("left", sorted(path.name for path in disk.iterdir()))
try:
    with translate_disk_full(disk):
        save_file({{"w": torch.zeros(400_000)}}, disk / "model.safetensors")
except OutputError as error:
    print("refused", error.problem)
"""


def test_on_a_full_disk_the_old_checkpoint_stays_whole(in_small_disk, tmp_path):
    """A disk of 600 kB holds one checkpoint of 360 kB, and never the next beside it."""
    done = in_small_disk("600k", tmp_path / "copy", "-c", WEIGHTS.format(disk=str(tmp_path / "disk")))
    assert done.stdout.splitlines() == [
        "refused 2 the disk is full; the previous file is unchanged",
        "kept 1 1.0",
        "left ['checkpoint.pt']",
        "refused the disk is full; the last checkpoint is unchanged",
    ], done.stderr


def test_a_training_on_a_full_disk_ends_with_its_reason_and_goes_on_when_there_is_room(in_small_disk, tmp_path):
    answers = (Response(id="g", text="Yes, here it is."), Response(id="b", text="no"))
    made = [Case(prompt=case(id=f"p{n}", text=f"q {n}").prompt, responses=answers, ranking=(("g",), ("b",)))
            for n in range(4)]  # fmt: skip
    write_cases(tmp_path / "train.jsonl", made)
    base = tiny.save_base(tmp_path / "base")
    words = f"-m steelyard train {tmp_path}/train.jsonl --model {base} --out {tmp_path}/disk/out --batch-size 2"
    done = in_small_disk("560k", tmp_path / "copy", *words.split(), "--set", "checkpoint_every=1")
    assert done.returncode == 2, done.stderr
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    checkpoint = load_checkpoint(tmp_path / "copy" / "out")
    assert checkpoint is not None
    assert checkpoint.state.step >= 1
    config = Config(batch_size=2, checkpoint_every=1)
    whole = train(tmp_path / "train.jsonl", tmp_path / "whole", config, model=base)
    gone_on = train(tmp_path / "train.jsonl", tmp_path / "copy" / "out", config, model=base)
    assert gone_on.outputs == whole.outputs


def test_figures_that_find_no_room_name_the_folder(tmp_path):
    class Full:
        def log(self, step, values):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OutputError, match="the disk is full") as caught:
        Trackers(tmp_path, (Full(),)).log(1, {"loss": 0.5})
    assert caught.value.where == str(tmp_path)
