from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.io.cases import write_cases
from strategies import case


def test_help_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_cases(tmp_path / "human.jsonl", [case(judgments=["a>b"])])
    write_cases(tmp_path / "llm.jsonl", [case(judgments=["b>a"])])
    result = CliRunner().invoke(build_app(), ["merge", "human.jsonl", "llm.jsonl", "--out", "merged"])
    assert result.stdout == (
        "2 cases of 2 files become 1: 1 have the key of another and add their evidence to it.\n"
        "written: merged/cases.jsonl\n2 in, 2 used; noted: joined 1\n"
    )
