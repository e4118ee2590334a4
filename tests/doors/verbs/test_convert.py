import json

from typer.testing import CliRunner

from steelyard.doors.cli import build_app


def test_the_examples_of_the_help_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = '[{"instruction": "问", "output": ["好", "中", "坏"]}]'
    (tmp_path / "oasst.json").write_text(row, encoding="utf-8")
    result = CliRunner().invoke(build_app(), ["convert", "oasst.json", "cases.jsonl", "--language", "zh"])
    assert (result.exit_code, result.stdout) == (0, "llamafactory_ranked to cases: 1 cases, 1 rows in cases.jsonl\n")
    result = CliRunner().invoke(build_app(), ["convert", "cases.jsonl", "pairs.jsonl", "--to", "trl"])
    first, *rest = result.stdout.splitlines()
    assert first == "cases to trl: 1 cases, 3 rows in pairs.jsonl"
    assert "  lost: response ids 3" in rest
    result = CliRunner().invoke(
        build_app(), ["convert", "cases.jsonl", "pairs.jsonl", "--to", "trl", "--force", "--json"]
    )
    assert json.loads(result.stdout)["lost"]["more than two responses"] == 1
    given = ["convert", "cases.jsonl", "inside.jsonl", "--to", "trl", "--set", "implicit=true"]
    assert CliRunner().invoke(build_app(), given).exit_code == 0
    assert "prompt" not in json.loads((tmp_path / "inside.jsonl").read_text(encoding="utf-8").splitlines()[0])
