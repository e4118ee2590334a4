"""A verb is two source files and its words: command, function, settings and answer are made from them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from parallel_cases import parallel_cases
from steelyard.io.cases import write_cases

PACKAGE = Path(__file__).parents[2] / "src" / "steelyard"
STAGE = '''
"""The verb `lengths`: how long the responses of cases are."""

from pathlib import Path

from steelyard.core.config import Config as BaseConfig
from steelyard.core.types import Counts, Run
from steelyard.io.cases import read_cases
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import CASES, CaseFile, Option, SettingOption, Verb
from steelyard.views.lengths import LengthsSummary


class Config(BaseConfig, frozen=True):
    """Settings of the lengths."""

    least: int = 0
    """The shortest length that counts."""


_DEFAULT = Config()
VERB = Verb("Data", 27, (CASES, Option("out", "The folder for run.json."), SettingOption("least")))


def lengths(cases: CaseFile, out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Run[LengthsSummary]:
    """Measure the mean length of responses.

    Only those of at least ``least`` characters count.

    Example: `steelyard lengths cases.jsonl --out measured`

    Raises RecordError for a broken case.
    """

    def write(result: Result) -> None:
        known = [len(each.text or "") for case in read_cases(cases) for each in case.responses]
        counted = [length for length in known if length >= config.least]
        result.counts = Counts(num_in=len(known), num_used=len(counted), dropped={"short": len(known) - len(counted)})
        result.summary = LengthsSummary(mean=sum(counted) / len(counted))

    return run_stage(out, "lengths", Run[LengthsSummary], write, config=config, inputs={"cases": cases}, force=force)
'''
VIEW = '''
"""Lengths: their mean."""

from collections.abc import Iterator

from steelyard.core.types import Record
from steelyard.evaluation.tables import Sentence, decimal
from steelyard.views.view import StageRun, View, report_step


class LengthsSummary(Record, frozen=True, kw_only=True):
    """The mean length."""

    mean: float


def _sentences(run: StageRun[LengthsSummary]) -> Iterator[Sentence]:
    yield Sentence("say_lengths", {"run": run.name, "mean": decimal(run.summary.mean, 1)})


VIEW = View(160, "lengths", LengthsSummary, "lengths", _sentences, next_step=report_step("shows it"))
'''
WORDS = """
[lengths]
en = "Lengths"
zh = "长度"
[say_lengths]
en = "{run}: {mean} characters on average."
zh = "{run}：平均 {mean} 个字符。"
"""
PYTHON = """
import steelyard as sy
measured = sy.lengths(sy.read_cases("cases.jsonl"), least=10)
print(sy.lengths.__doc__.split(chr(10))[0], measured.summary.mean, measured.counts.dropped, measured)
"""


@pytest.mark.slow
def test_a_verb_is_two_source_files_and_its_words(tmp_path):
    package = tmp_path / "src" / "steelyard"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "stages" / "lengths.py").write_text(STAGE.lstrip())
    (package / "views" / "lengths.py").write_text(VIEW.lstrip())
    (package / "report" / "templates" / "sections" / "lengths.toml").write_text(WORDS)
    write_cases(tmp_path / "cases.jsonl", parallel_cases())

    def run(*words):
        environment = os.environ | {"PYTHONPATH": str(tmp_path / "src"), "COLUMNS": "100"}
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    steelyard = ("-m", "steelyard")
    assert "lengths" in run(*steelyard, "--help").stdout
    shown = run(*steelyard, "lengths", "--help").stdout
    assert "Only those of at least `--least` characters count." in shown
    assert "--least <int>" in shown
    assert "Raises" not in shown
    assert "The shortest length that counts." in run(*steelyard, "lengths", "--settings").stdout
    done = run(*steelyard, "lengths", "cases.jsonl", "--least", "10", "--out", "measured")
    assert done.stdout.splitlines()[0] == "20.0 characters on average."
    assert "40 dropped" in done.stdout or "short 40" in done.stdout
    assert "steelyard report measured --out report.html" in done.stdout
    in_python = run("-c", PYTHON).stdout
    assert in_python.startswith("Measure the mean length of responses. 20.0 {'short': 40}")
    assert "20.0 characters on average." in in_python
    wrong = run(*steelyard, "lengths", "cases.jsonl", "--set", "most=3", "--out", "other")
    assert wrong.returncode == 2
    assert "most" in wrong.stderr
    reported = run(*steelyard, "report", "measured", "--out", "report.html")
    assert reported.returncode == 0, reported.stderr
    assert "20.0" in (tmp_path / "report.html").read_text(encoding="utf-8")
