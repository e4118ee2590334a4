import json

from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.io.cases import read_cases


def call(*words):
    return CliRunner().invoke(build_app(), ["demo", "--data", *map(str, words)])


def test_output_says_simulated_and_cases_are_written(tmp_path):
    result = call("--out", tmp_path / "out", "--set", "num_prompts=32", "--seed", 3)
    assert result.exit_code == 0, result.output
    assert "simulated" in result.stdout
    assert all(one.meta["simulated"] for one in read_cases(tmp_path / "out" / "cases.jsonl"))


def test_json_option_prints_the_run(tmp_path):
    result = call("--out", tmp_path / "out", "--set", "num_prompts=32", "--json", "--seed", 3)
    run = json.loads(result.stdout)
    assert (run["stage"], run["seed"]) == ("simulate", 3)
    assert sum(run["summary"]["num_prompts"].values()) == 32
