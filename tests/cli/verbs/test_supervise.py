import json

import pytest
from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError
from supervision_files import judged, noisy, write


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "llm.jsonl", [*noisy(60, seed=1, name="l"), judged("c", llm=("a>b", "b>c", "c>a"))])
    write(tmp_path / "held_out.jsonl", noisy(400, seed=2))
    return lambda *words: CliRunner().invoke(build_app(), ["supervise", "llm.jsonl", *words])


def test_help_examples_run(invoke):
    by_hand = invoke("--model", "longer", "--out", "supervised", "--min-margin", "0.5")
    assert by_hand.exit_code == 0
    assert "The supervisor longer keeps 46 of 63 strict judgments (73.0%)" in by_hand.stdout
    assert "Where people judged the same pairs, " in by_hand.stdout
    words = [
        "--model",
        "longer",
        "--out",
        "calibrated",
        "--calibration-cases",
        "held_out.jsonl",
        "--min-precision",
        "0.9",
    ]
    assert (
        "Calibration certifies that at least 90.0% of the kept judgments are right, with confidence 95.0%."
        in invoke(*words).stdout
    )
    acyclic = invoke("--scores", "supervised/scores.jsonl", "--out", "acyclic", "--policy", "cycles")
    assert "keeps 62 of 63 strict judgments" in acyclic.stdout
    assert "dropped: least supported in a cycle 1" in acyclic.stdout


def test_json_and_settings(invoke):
    words = ["--model", "longer", "--out", "o", "--keep-ties", "--only", "judge=gpt", "--set", "human_ties=wrong"]
    run = json.loads(invoke(*words, "--json").stdout)
    assert (run["stage"], run["config"]["kind"], run["config"]["human_ties"]) == ("supervise", "longer", "wrong")
    assert run["config"]["only"]["judge"] == ["gpt"]
    assert isinstance(invoke("--model", "longer", "--out", "p", "--policy", "agrees").exception, ConfigError)
