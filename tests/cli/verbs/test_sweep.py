from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.io.cases import write_cases
from strategies import case

FILE = """
experiment = "sweep"
training = "train.jsonl"
benches = ["test.jsonl"]
shares = [0.5, 1.0]
models = [{name = "a", model = "base"}]
"""


def call(*words):
    return CliRunner().invoke(build_app(), [str(word) for word in words])


def test_dry_run_lists_stages_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("train", "test"):
        write_cases(tmp_path / f"{name}.jsonl", [case(name, "ab", text=name, ranking=(("a",), ("b",)))])
    (tmp_path / "sweep.toml").write_text(FILE, encoding="utf-8")
    result = call("run", "sweep.toml", "--out", "swept", "--dry-run")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert len(lines) == 15
    assert {"to run    50%.0.part: split", "to run    a_100%.2.evaluated: evaluate"} <= {*lines}
    assert not (tmp_path / "swept").exists()


def test_sweep_of_one_training_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.toml").write_text(FILE, encoding="utf-8")
    result = call("run", "sweep.toml", "--set", "shares=[1.0]")
    assert result.exit_code != 0
    assert "a sweep of one training" in str(result.exception)
