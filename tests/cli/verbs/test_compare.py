import json

from typer.testing import CliRunner

from headline_fixtures import FIRST, translation_runs
from steelyard.cli.main import build_app
from steelyard.io.cases import write_cases
from strategies import case


def call(*words):
    return CliRunner().invoke(build_app(), [str(word) for word in words])


def test_help_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_cases(tmp_path / "test.jsonl", [case(f"p{index}", "ab", ranking=(("a",), ("b",))) for index in range(20)])
    for name, model in (("evaluated-a", "longer"), ("evaluated-b", "random")):
        call("evaluate", "--bench", "test.jsonl", "--model", model, "--out", name, "--set", "num_resamples=5")
    result = call("compare", "evaluated-a", "evaluated-b", "--out", "compared", "--set", "num_resamples=100",
                  "--verbose")  # fmt: skip
    assert result.exit_code == 0, result.output
    sentence, *lines = result.stdout.splitlines()
    assert sentence.startswith("random is better than longer: +")
    assert any(line.startswith("2 models on test are compared by Accuracy: 1 of 1 difference is") for line in lines)
    assert any(line.startswith("longer – random") for line in lines)
    told = json.loads(call("compare", "evaluated-a", "evaluated-b", "--out", "compared", "--set", "num_resamples=100",
                           "--json").stdout)  # fmt: skip
    assert told["summary"]["comparisons"][0]["only_first"] == 0


def test_headline_precedes_accuracy(tmp_path):
    folders = translation_runs(tmp_path)
    words = [*map(str, folders.values()), "--out", str(tmp_path / "out"), "--set", "num_resamples=300"]
    sentence, *_ = call("compare", *words).stdout.splitlines()
    assert sentence.startswith("broad is better than narrow: +12.5 points of Overall score of the benchmark (95% ")
    shown = " ".join(call("compare", *words, "--verbose").stdout.split())
    assert "Overall score of the benchmark 58" in shown
    difference = shown.index("Overall score of the benchmark −12.5 [")
    assert "Accuracy +10.0 [" in shown[difference:]


def test_incomplete_bench_names_missing_parts(tmp_path):
    folders = translation_runs(tmp_path, subsets=(FIRST,))
    words = [*map(str, folders.values()), "--out", str(tmp_path / "out"), "--set", "num_resamples=100"]
    lines = call("compare", *words).stdout.splitlines()
    assert " points of Accuracy (" in lines[0]
    assert lines[2].startswith("The benchmark has no headline here; missing: easy_en_de (0 prompts, expected 100), ")


def test_prompts_too_few_for_any_difference_are_said_to_be_so(tmp_path, monkeypatch):
    """With 6 prompts the detectable difference would exceed 1, which no two shares differ by."""
    monkeypatch.chdir(tmp_path)
    write_cases(tmp_path / "test.jsonl", [case(f"p{index}", "ab", ranking=(("a",), ("b",))) for index in range(6)])
    for model in ("first", "longer"):
        call("evaluate", "--bench", "test.jsonl", "--model", model, "--out", model, "--set", "num_resamples=5")
    sentence = call("compare", "first", "longer", "--out", "compared").stdout.splitlines()[0]
    assert sentence.startswith("first and longer do not differ significantly: +100.0 points of Accuracy (")
    assert sentence.endswith("; these prompts are too few to show any difference.")
