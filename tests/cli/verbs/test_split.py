import json

from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError
from steelyard.io.cases import write_cases
from strategies import case


def test_help_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    twenty = [case(id=f"p{index}", text=str(index)) for index in range(20)]
    write_cases(tmp_path / "cases.jsonl", twenty)
    words = ["split", "cases.jsonl", "--out", "parts", "--part", "train=0.7", "--part", "held_out=0.1"]
    words += ["--part", "test=0.2"]
    result = CliRunner().invoke(build_app(), words)
    assert result.exit_code == 0
    sentence, written, _ = result.stdout.splitlines()
    assert sentence.startswith("20 cases are divided into train 14 (70.0%), held_out 2 (10.0%), test 4 (20.0%).")
    assert written == "written: parts/held_out.jsonl, parts/test.jsonl, parts/train.jsonl"
    assert "20 in, 20 used" in result.stdout
    again = CliRunner().invoke(build_app(), [*words, "--json"])
    assert json.loads(again.stdout)["summary"]["parts"] == {"train": 14, "held_out": 2, "test": 4}


def test_near_duplicates_and_stratify_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    poems = [case(id=f"p{index}", text=f"Write a long poem about the rain, with {index} lines") for index in range(3)]
    texts = ("什么是雪?", "Bake bread", "¿Qué hora es?")
    others = [case(id=f"q{index}", text=text) for index, text in enumerate(texts)]
    write_cases(tmp_path / "cases.jsonl", [*poems, *others])
    words = ["split", "cases.jsonl", "--out", "parts", "--near-duplicates", "0.6", "--stratify", "language"]
    result = CliRunner().invoke(build_app(), [*words, "--stratify", "source", "--part", "a=0.5", "--part", "b=0.5"])
    assert result.exit_code == 0
    assert "the largest has 3; near-duplicates joined 2." in result.stdout
    run = json.loads((tmp_path / "parts" / "run.json").read_text(encoding="utf-8"))
    assert (run["config"]["near_duplicates"], run["config"]["strata"]) == (0.6, ["language", "source"])
    refused = CliRunner().invoke(build_app(), [*words[:-1], "colour"])
    assert isinstance(refused.exception, ConfigError)


def test_duplicate_part_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_cases(tmp_path / "cases.jsonl", [case(id="p")])
    words = ["split", "cases.jsonl", "--out", "parts", "--part", "a=0.3", "--part", "a=1"]
    refused = CliRunner().invoke(build_app(), words)
    assert isinstance(refused.exception, ConfigError)
    assert "a part is given twice: a, a" in str(refused.exception)
    assert not (tmp_path / "parts").exists()
