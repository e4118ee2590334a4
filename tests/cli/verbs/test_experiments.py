import pytest
from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError
from steelyard.io.cases import write_cases
from strategies import case


def call(*words):
    return CliRunner().invoke(build_app(), [str(word) for word in words])


def test_dry_run_lists_stages_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "test"):
        write_cases(tmp_path / f"{name}.jsonl", [case(name, "ab", text=name, ranking=(("a",), ("b",)))])
    text = (
        "experiment = 'ablation'\nbenches = ['test.jsonl']\nmodel = 'base'\n[training]\na = 'a.jsonl'\nb = 'b.jsonl'\n"
    )
    (tmp_path / "ablation.toml").write_text(text, encoding="utf-8")
    result = call("run", "ablation.toml", "--out", "ablated", "--dry-run", "--set", "seeds=[1,2,3]")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert len(lines) == 12
    assert lines[:2] == ["to run    a.1.model: train", "to run    a.1.evaluated: evaluate"]
    assert not (tmp_path / "ablated").exists()


def test_the_keys_of_an_experiment_are_explained(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ablation.toml").write_text("experiment = 'ablation'\n", encoding="utf-8")
    shown = call("run", "ablation.toml", "--explain")
    assert shown.exit_code == 0
    assert {"supervisors", "benches"} <= {line.split()[0] for line in shown.stdout.splitlines()}


@pytest.mark.parametrize(
    ("words", "text", "problem"),
    [
        (("--from", "a"), "experiment = 'ablation'\n", "--from belongs to a recipe"),
        (("--seed", "3"), "experiment = 'sweep'\n", "--seed belongs to a recipe"),
        ((), "experiment = 'ablatoin'\n", "there is no experiment 'ablatoin'"),
        ((), "benches = ['test.jsonl']\n", "'benches'"),
        (("--explain",), "[stages.a]\nverb = 'resolve'\n", "the keys of a recipe are those of its stages"),
    ],
)
def test_a_file_that_is_no_experiment_is_refused(words, text, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.toml").write_text(text, encoding="utf-8")
    result = call("run", "file.toml", *words)
    assert isinstance(result.exception, ConfigError)
    assert problem in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["file.toml"]
