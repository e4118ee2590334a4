import json

from typer.testing import CliRunner

from steelyard.doors.cli import build_app
from steelyard.files.cases import write_cases
from strategies import case


def test_the_example_of_the_help_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    twenty = [case(id=f"p{index}", text=str(index)) for index in range(20)]
    write_cases(tmp_path / "cases.jsonl", twenty)
    words = ["split", "cases.jsonl", "--out", "parts", "--part", "train=0.7", "--part", "held_out=0.1"]
    words += ["--part", "test=0.2"]
    result = CliRunner().invoke(build_app(), words)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:2] == [
        "train: 14 cases in parts/train.jsonl",
        "held_out: 2 cases in parts/held_out.jsonl",
    ]
    assert "20 in, 20 used" in result.stdout
    again = CliRunner().invoke(build_app(), [*words, "--json"])
    assert json.loads(again.stdout)["summary"]["parts"] == {"train": 14, "held_out": 2, "test": 4}
