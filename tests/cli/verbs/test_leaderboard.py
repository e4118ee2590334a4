import json

import pytest
from typer.testing import CliRunner

from headline_fixtures import translation_runs
from steelyard.cli.main import build_app
from steelyard.io.cases import write_cases
from steelyard.stages.evaluate import Config, evaluate
from strategies import case


@pytest.fixture
def folders(tmp_path):
    write_cases(
        tmp_path / "bench.jsonl", [case(f"p{index}", "abc", ranking=(("a",), ("b", "c"))) for index in range(9)]
    )
    for model in ("first", "longer"):
        config = Config(num_resamples=5, baselines=())
        evaluate([tmp_path / "bench.jsonl"], tmp_path / model, config, model=model)
    return [str(tmp_path / model) for model in ("first", "longer")]


def run(*words):
    found = CliRunner().invoke(build_app(), ["leaderboard", *words], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


def test_prints_ranks_and_page(folders, tmp_path):
    shown = run(*folders, "--out", str(tmp_path / "out"), "--set", "num_resamples=200")
    # first scores a above b and c in every case; longer ties them all, and a tie is wrong
    rows = [line.split() for line in shown.splitlines()]
    assert ["first", "1", "a", "100.0%"] in [row[:4] for row in rows]
    assert ["longer", "2", "b", "0.0%"] in [row[:4] for row in rows]
    assert str(tmp_path / "out" / "leaderboard.html") in shown


def test_json_option_prints_the_run(folders, tmp_path):
    found = json.loads(run(*folders, "--out", str(tmp_path / "out"), "--set", "num_resamples=50", "--json"))
    assert (found["stage"], found["config"]["num_resamples"]) == ("leaderboard", 50)
    assert [row["name"] for row in found["summary"]["rows"]] == ["first", "longer"]


def test_ranked_by_headline_with_accuracy_beside_it(tmp_path):
    folders = translation_runs(tmp_path)
    shown = run(*map(str, folders.values()), "--out", str(tmp_path / "out"), "--set", "num_resamples=300", "--verbose")
    assert shown.startswith("broad ranks first of 2 models on mrewardbench_translation: 58")
    rows = [line.split() for line in shown.splitlines()]
    assert [row[0] for row in rows if len(row) > 3 and row[1] in ("1", "2")] == ["broad", "narrow"]
