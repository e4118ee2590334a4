from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.io.cases import write_cases
from strategies import case


def test_help_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_cases(tmp_path / "human.jsonl", [case(judgments=["a>b"])])
    write_cases(tmp_path / "llm.jsonl", [case(judgments=["b>a"])])
    result = CliRunner().invoke(build_app(), ["merge", "human.jsonl", "llm.jsonl", "--out", "merged"])
    assert result.stdout == "merged/cases.jsonl has 1 case.\n2 in, 2 used; noted: joined 1\n"
