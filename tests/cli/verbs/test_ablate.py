from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.io.cases import write_cases
from strategies import case


def call(*words):
    return CliRunner().invoke(build_app(), [str(word) for word in words])


def test_dry_run_lists_stages_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "test"):
        write_cases(tmp_path / f"{name}.jsonl", [case(name, "ab", text=name, ranking=(("a",), ("b",)))])
    text = "benches = ['test.jsonl']\nmodel = 'base'\n[training]\na = 'a.jsonl'\nb = 'b.jsonl'\n"
    (tmp_path / "ablation.toml").write_text(text, encoding="utf-8")
    result = call("ablate", "ablation.toml", "--out", "ablated", "--dry-run", "--set", "seeds=[1,2,3]")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert len(lines) == 12
    assert lines[:2] == ["to run    a.1.model: train", "to run    a.1.evaluated: evaluate"]
    assert not (tmp_path / "ablated").exists()
