"""`convert` into formats of ranked answers, of cases that have judgments and no ranking yet."""

import shlex
import sys
from pathlib import Path

import pytest

from example_folder import invoke
from steelyard.cli.main import main
from steelyard.core.errors import EvidenceError
from steelyard.io.cases import write_cases
from steelyard.io.rows import write_rows
from strategies import case


@pytest.mark.parametrize("name", ["cases.jsonl", "two words.jsonl"])
@pytest.mark.parametrize("kind", ["trl", "ms_swift"])
def test_judgments_without_a_ranking_are_resolved_by_the_printed_command(tmp_path, monkeypatch, name, kind):
    monkeypatch.chdir(tmp_path)
    write_cases(Path(name), [case(judgments=["a>b"])])
    refused = invoke(["convert", name, "rows.jsonl", "--to", kind])
    assert isinstance(refused.exception, EvidenceError)
    command = str(refused.exception.do).removeprefix("make rankings from judgments: ").partition(", then")[0]
    assert shlex.split(command)[:3] == ["steelyard", "resolve", name]
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit, match="0"):
        main()
    assert invoke(["convert", "resolved/cases.jsonl", "rows.jsonl", "--to", kind]).exit_code == 0


def test_judged_rows_of_another_format_become_a_case_file_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    votes = {"annotator1": 1, "annotator2": 1, "annotator3": 2}
    row = {"idx": 0, "instruction": "q", "input": "", "response1": "x", "response2": "y", **votes}
    write_rows(Path("rows.jsonl"), [row])
    refused = invoke(["convert", "rows.jsonl", "out.jsonl", "--to", "trl"])
    assert str(refused.exception.do) == (
        "make rankings from judgments: steelyard convert rows.jsonl cases.jsonl && "
        "steelyard resolve cases.jsonl --out resolved, then convert resolved/cases.jsonl"
    )
    assert not Path("out.jsonl").exists()


def test_cases_without_judgments_are_not_told_to_resolve(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_cases(Path("cases.jsonl"), [case()])
    refused = invoke(["convert", "cases.jsonl", "rows.jsonl", "--to", "trl"])
    assert refused.exception.do == "rank the responses, or list pairs"
