import json

from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.io.cases import write_cases
from strategies import case


def run(*words):
    return CliRunner().invoke(build_app(), ["inspect", *words], catch_exceptions=False)


def test_help_example_runs_and_the_report_command_can_be_pasted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cases = [case(f"p{n}", "abc", text="甲乙", category=(f"c{n}",), ranking=(("a",), ("b", "c"))) for n in range(7)]
    write_cases(tmp_path / "cases.jsonl", cases)
    result = run("cases.jsonl", "--out", "described")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "7 prompts have 21 responses and 14 comparisons without ties."
    assert any(line.split()[-1] == "3.00" for line in lines if line.split())
    (following,) = [line for line in lines if line.startswith("next: ")]
    words = following.removeprefix("next: steelyard ").partition("  #")[0].split()
    assert CliRunner().invoke(build_app(), words, catch_exceptions=False).exit_code == 0
    assert "Data statistics" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "c6" in run("cases.jsonl", "--verbose").stdout
    assert "c6" not in run("cases.jsonl").stdout


def test_the_remedy_for_cases_without_a_ranking_makes_comparisons(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_cases(tmp_path / "judged.jsonl", [case("p", "ab", judgments=["a>b"])])
    result = run("judged.jsonl")
    assert result.stdout.startswith("1 prompt has 2 responses and 0 comparisons without ties.")
    assert "1 prompt has judgments and no ranking: `steelyard resolve` makes comparisons" in result.stdout
    CliRunner().invoke(build_app(), ["resolve", "judged.jsonl", "--out", "resolved"], catch_exceptions=False)
    assert run("resolved/cases.jsonl").stdout.startswith("1 prompt has 2 responses and 1 comparison without ties.")


def test_json_is_the_record(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_cases(tmp_path / "cases.jsonl", [case("p", "ab", ranking=(("a",), ("b",)))])
    summary = json.loads(run("cases.jsonl", "--json").stdout)["statistics"]
    assert summary["overall"]["num_comparisons"] == 1
    assert summary["overall"]["characters"] == {"prompt": 11.0, "response": 8.0, "chosen": 8.0, "rejected": 8.0}
