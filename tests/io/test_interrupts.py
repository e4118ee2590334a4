"""The first Ctrl-C is answered in order, the second ends at once, and what is kept is told."""

import os
import signal
import subprocess
import sys

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
