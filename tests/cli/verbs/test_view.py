"""`steelyard view` as a process: it follows a training to its end, refuses what it cannot serve, ends on Ctrl-C."""

import html
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tiny
from many_processes import alone
from steelyard.cli.main import build_app
from steelyard.core.errors import FileError, OutputError
from steelyard.io.cases import write_cases
from toy_prompts import toy_prompts

SECONDS = 600
PAUSING = """
import time
from pathlib import Path
from steelyard.core.config import Config

class Pausing:
    def log(self, step, values):
        while not Path("is_watched").exists() and step >= 20:
            time.sleep(0.05)
        if not Path("is_watched").exists():
            time.sleep(0.2)
    def close(self):
        pass

def build(config, **_):
    return Pausing()
"""
"""A tracker that makes a training slow, and holds it at step 20, until there is a file `is_watched`."""
VIEW = [sys.executable, "-m", "steelyard", "view"]


@contextmanager
def viewing(folder, *words):
    """Serve a folder in a process of its own, and yield the process and the address."""
    process = subprocess.Popen(
        [*VIEW, str(folder), "--port", "0", *words],
        env=alone(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process, process.stdout.readline().split(": ")[-1].strip()
    finally:
        process.kill()
        process.communicate()


def answer(address):
    with urllib.request.urlopen(address, timeout=SECONDS) as page:
        return page.read().decode()


def until(read, is_reached):
    """Ask until it is so, and return every answer that differed from the one before."""
    seen = [read()]
    end = time.monotonic() + SECONDS
    while not is_reached(seen[-1]):
        assert time.monotonic() < end, seen
        time.sleep(0.1)
        now = read()
        if now != seen[-1]:
            seen.append(now)
    return seen


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with cases and a tiny model, and the words of a training that does not end unwatched."""
    folder = tmp_path_factory.mktemp("live")
    write_cases(folder / "题目.jsonl", toy_prompts(24, right=True))
    tiny.save_base(folder / "base")
    words = ["train", "题目.jsonl", "--model", "base", "--out", "runs/训练 one", "--max-length", "256"]
    (folder / "lab").mkdir()
    (folder / "lab" / "pausing.py").write_text(PAUSING)
    (folder / "lab" / "__init__.py").write_text("")
    words += ["--set", 'trackers=["jsonl", "lab.pausing"]', "--set", "checkpoint_every=5", "--set", "seed=3"]
    return folder, [*words, "--batch-size", "2", "--epochs", "4"]


@pytest.mark.slow
def test_a_training_is_seen_live_killed_continued_by_the_printed_command_and_finished(trained):
    folder, words = trained
    (folder / "runs").mkdir()
    command, environment = [sys.executable, "-m", "steelyard", *words], alone()
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), environment.get("PYTHONPATH"))))
    with viewing(folder / "runs") as (_, address):
        training = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.DEVNULL)
        try:
            ((identifier, _),) = until(lambda: rows(address), bool)[-1].items()
            live = f"{address}runs/{identifier}/live"
            seen = until(lambda: steps(answer(live)), lambda done: len(done) > 0 and done[0] > 6)
            assert [done[0] for done in seen if done] == sorted(done[0] for done in seen if done)
            assert "<polyline" in json.loads(answer(live))["html"]
        finally:
            training.kill()
            training.wait()
        until(lambda: json.loads(answer(live))["state"], lambda state: state == "interrupted")
        page = answer(f"{address}runs/{identifier}")
        line = html.unescape(re.search(r"<pre dir=\"ltr\">(.*?)</pre>", page, flags=re.DOTALL)[1])
        assert "--epochs 4" in line
        (folder / "is_watched").touch()
        continued = subprocess.run(
            line, shell=True, env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
        assert continued.returncode == 0, continued.stderr
        assert "continuing after step" in continued.stderr
        until(lambda: json.loads(answer(live))["state"], lambda state: state == "finished")
        assert "final loss" in rows(address)[identifier]
        assert "<title>训练 one</title>" in answer(f"{address}runs/{identifier}")


def rows(address):
    return json.loads(answer(f"{address}changes?after=-1"))["rows"]


def steps(text):
    """Return steps done and in all, as the page of a run shows them; nothing before the training begins."""
    words = re.sub("<[^>]+>", "", json.loads(text).get("html", ""))
    shown = re.search(r"([\d,]+) of ([\d,]+)", words)
    return [int(number.replace(",", "")) for number in shown.groups()] if shown else []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_signal_ends_it_in_order(tmp_path, number):
    with viewing(tmp_path) as (process, address):
        assert "No runs here yet" in answer(address)
        os.kill(process.pid, number)
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (0, "")
    assert err.splitlines() == ["Ctrl-C ends it", "stopped"]


def test_a_taken_port_is_refused_with_a_remedy_that_works(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = CliRunner().invoke(build_app(), ["view", str(tmp_path), "--port", str(port)]).exception
    assert isinstance(refused, OutputError)
    assert f"127.0.0.1:{port} cannot be opened" in refused.problem
    assert "--port 0" in refused.do
    with viewing(tmp_path) as (_, address):
        assert answer(address)


def test_an_unknown_host_and_an_absent_folder_are_refused(tmp_path):
    unknown = CliRunner().invoke(build_app(), ["view", str(tmp_path), "--host", "999.1.1.1"]).exception
    assert isinstance(unknown, OutputError)
    for name, problem in (("absent", "there is no such folder"), ("file", "this is a file")):
        (tmp_path / "file").write_text("")
        refused = CliRunner().invoke(build_app(), ["view", str(tmp_path / name)]).exception
        assert isinstance(refused, FileError)
        assert refused.problem == problem


def test_a_host_that_others_reach_is_named_with_a_warning(tmp_path):
    with viewing(tmp_path, "--host", "0.0.0.0") as (process, address):
        assert "No runs here yet" in answer(address.replace("0.0.0.0", "127.0.0.1"))
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
    assert err.startswith("0.0.0.0: everyone who reaches this machine can read these runs")


def test_without_its_packages_the_remedy_names_the_extra(tmp_path):
    code = "import sys; sys.modules['starlette'] = None; from steelyard.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code, "view", str(tmp_path)], env=alone(), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "pip install 'steelyard[view]'" in ended.stderr


def test_a_run_folder_is_not_changed_by_looking(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text('{"stage": "other", "config": {}}')
    before = {path: path.stat().st_mtime_ns for path in (tmp_path, *tmp_path.rglob("*"))}
    with viewing(tmp_path) as (_, address):
        (identifier,) = rows(address)
        assert answer(f"{address}runs/{identifier}")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path, *Path(tmp_path).rglob("*"))} == before
