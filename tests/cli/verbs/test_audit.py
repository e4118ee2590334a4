import json

from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError
from steelyard.io.cases import write_cases
from strategies import case


def called(*words):
    return CliRunner().invoke(build_app(), ["audit", "cases.jsonl", "--out", "audited", *words])


def test_the_findings_are_a_line_each(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    circle = case(responses="abc", judgments=["a>b", "b>c", "c>a"], text="为什么？")
    write_cases(tmp_path / "cases.jsonl", [circle, case(id="q", responses="ab", ranking=(("a",), ("b",)))])
    result = called()
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "The judgments of 1 of 2 prompts conflict, before any vote on the pairs."
    assert any(line.startswith("The labels were not checked: 1 prompt has an ordered pair") for line in lines)
    assert not any("empty" in line for line in lines)
    record = json.loads(called("--json").stdout)
    assert record["summary"]["conflicted"][0]["shown"] == "A > B > C > A"


def test_judgments_without_a_ranking_have_a_next_step(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_cases(tmp_path / "cases.jsonl", [case(responses="ab", judgments=["a>b"], text="为什么？")])
    result = called()
    assert result.stdout.splitlines()[:2] == [
        "The labels were not checked: 0 prompts have an ordered pair, 20 are needed.",
        "1 prompt has judgments and no ranking: `steelyard resolve` makes comparisons.",
    ]
    assert "next: steelyard resolve cases.jsonl --out resolved" in result.output
    judged = called("--set", "pairs=judged", "--force")
    assert "resolve" not in judged.output


def test_labels_are_checked_where_there_are_enough(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cases = [case(id=f"p{at}", text=f"问题 {at}", responses="ab", ranking=(("a",), ("b",))) for at in range(20)]
    write_cases(tmp_path / "cases.jsonl", cases)
    assert "right on 100.0% of 20 labels" in called().stdout
    assert isinstance(called("--confidence", "0.4", "--force").exception, ConfigError)
