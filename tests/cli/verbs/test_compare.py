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
    assert sentence.startswith("random is better than longer (+0.")
    assert "2 models on cases, ranked by accuracy (95% intervals)" in lines
    assert any(line.startswith("longer minus random: accuracy -") for line in lines)
    for measure in ("Kendall's tau-b", "first choice", "regret in tiers", "length-matched accuracy"):
        # the model that likes the longer answer gives equal scores here, and has no correlation at all
        is_told = any(line.startswith(f"  {measure} ") for line in lines)
        assert is_told == (measure != "Kendall's tau-b")
    told = json.loads(call("compare", "evaluated-a", "evaluated-b", "--out", "compared", "--set", "num_resamples=100",
                           "--json").stdout)  # fmt: skip
    assert told["summary"]["comparisons"][0]["only_first"] == 0


def test_headline_precedes_accuracy(tmp_path):
    folders = translation_runs(tmp_path)
    words = [*map(str, folders.values()), "--out", str(tmp_path / "out"), "--set", "num_resamples=300"]
    sentence, *_ = call("compare", *words).stdout.splitlines()
    assert sentence.startswith("broad is better than narrow (+0.125 [")
    shown = call("compare", *words, "--verbose").stdout
    lines = shown.partition("\n\n")[2].splitlines()
    assert lines[0] == "2 models on mrewardbench_translation, ranked by overall (95% intervals)"
    assert lines[1].startswith("  broad: overall 0.58")
    assert lines[3].startswith("narrow minus broad: overall -0.125 [")
    assert lines[4].startswith("  accuracy +0.100 [")
    assert lines[5].startswith("  p ")


def test_incomplete_bench_names_missing_parts(tmp_path):
    folders = translation_runs(tmp_path, subsets=(FIRST,))
    words = [*map(str, folders.values()), "--out", str(tmp_path / "out"), "--set", "num_resamples=100"]
    lines = call("compare", *words).stdout.splitlines()
    assert " accuracy, p " in lines[0]
    assert lines[1].startswith("no headline: missing easy_en_de (0 prompts, published with 100), ")


def test_prompts_too_few_for_any_difference_are_said_to_be_so(tmp_path, monkeypatch):
    """With 6 prompts the detectable difference would exceed 1, which no two shares differ by."""
    monkeypatch.chdir(tmp_path)
    write_cases(tmp_path / "test.jsonl", [case(f"p{index}", "ab", ranking=(("a",), ("b",))) for index in range(6)])
    for model in ("first", "longer"):
        call("evaluate", "--bench", "test.jsonl", "--model", model, "--out", model, "--set", "num_resamples=5")
    sentence = call("compare", "first", "longer", "--out", "compared").stdout.splitlines()[0]
    assert sentence.startswith("first does not differ significantly from longer (+1.000 [")
    assert sentence.endswith("; too few prompts to detect any difference).")
