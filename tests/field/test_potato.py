"""Tasks into Potato itself, the answer of somebody in its pages, and back from what it keeps."""

import os
import socket
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from browser import CHROMIUM
from browser_tab import Tab
from exchange_cases import exchanged_cases
from steelyard.annotation.answers import BucketComparison, TaskAnswer
from steelyard.annotation.external_answers import task_answer
from steelyard.cli.main import build_app
from steelyard.io.cases import read_cases, write_cases
from steelyard.workbench.exchange.external_tools import read_export

PROGRAM = Path(__file__).parents[2] / ".peers" / "potato" / "bin" / "potato"
LONGEST_WAIT = 120.0
pytestmark = [
    pytest.mark.field,
    pytest.mark.skipif(not PROGRAM.exists(), reason="not installed here: `make peers` does it, with a network"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]


@contextmanager
def potato(folder):
    """Start Potato in a folder as the how-to says. Yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [PROGRAM, "start", "config.yaml", "-p", str(port)]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    address, end = f"http://127.0.0.1:{port}", time.monotonic() + LONGEST_WAIT
    try:
        while True:
            assert process.poll() is None, "Potato has ended"
            try:
                urllib.request.urlopen(address, timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < end, "Potato does not answer"
                time.sleep(0.5)
        yield address
    finally:
        process.terminate()
        process.wait(60)


def run(*words):
    result = CliRunner().invoke(build_app(), ["workbench", *map(str, words)])
    assert result.exit_code == 0, result.exception
    return result.output


def test_what_somebody_chooses_in_its_pages_comes_back(tmp_path):
    cases, out = tmp_path / "cases.jsonl", tmp_path / "out"
    write_cases(cases, exchanged_cases())
    run("tasks", cases, "--format", "potato", "--out", out)
    folder = out / "triples_by_2"
    form = "{method: 'POST', headers: {'Content-Type': 'application/x-www-form-urlencoded'}, body: "
    chosen = ["place_a_2", "place_a_1", "place_b_1", "place_c_3", "score_a_4", "score_b_4", "score_c_2"]
    with potato(folder) as address, Tab(tmp_path / "profile", height=3200) as tab:
        tab.open(address)
        tab.value(f"fetch('/register', {form}'action=signup&email=ada&pass=a-password'}}).then(reply => reply.text())")
        tab.open(f"{address}/annotate")
        tab.wait("document.getElementById('place_a_1_radio')")
        time.sleep(2)
        for name in [*chosen, "discard_a_none"]:
            # As a hand does: of clicks right behind each other some were lost.
            time.sleep(1)
            tab.click(f"#{name}_radio")
            tab.wait(f"document.getElementById('{name}_radio').checked")
        tab.click("textarea")
        tab.type("纽约 & <b>\nline 2")
        tab.value("document.querySelector('textarea').blur()")
        end = time.monotonic() + LONGEST_WAIT
        # The page saves by itself.
        while not (read := read_export([folder], out)).answers or read.answers[0].remark is None:
            assert time.monotonic() < end, "the page does not save"
            time.sleep(0.5)
    (answer,) = read_export([folder / "annotation_output"], out).answers
    entry = read.manifest.by_key[answer.task]
    assert (answer.person, answer.seconds is not None and answer.seconds > 0) == ("ada", True)
    assert task_answer(answer, entry.letters, has_scores=True) == TaskAnswer(
        scores={"A": 4, "B": 4, "C": 2},
        comparisons=(BucketComparison(first="A", second="B", choice="same"),),
        ranking=(("A", "B"), ("C",)),
        remark="纽约 & <b>\nline 2",
    )
    run("answers", folder, "--tasks", out, "--cases", cases, "--out", tmp_path / "judged.jsonl")
    judgments = [each for case in read_cases(tmp_path / "judged.jsonl") for each in case.judgments]
    assert {each.judge for each in judgments} == {"ada"}
    assert len(judgments) == 3
