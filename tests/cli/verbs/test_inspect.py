import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tiny
import warm_process
from report_runs import HOSTILE, made_cases
from steelyard.cli.main import build_app, verbs_by_name
from steelyard.core.errors import ConfigError
from steelyard.io.cases import write_cases
from steelyard.io.terminal_text import width_of

OASST = Path(__file__).parents[3] / "../shared/data/oasst1_zh_rm/oaast_rm_zh.json"


def run(*words, columns=80):
    return CliRunner().invoke(
        build_app(), ["inspect", *map(str, words)], env={"COLUMNS": str(columns)}, catch_exceptions=False
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The runs that the examples of the help name, on the simulated cases that they name."""
    folder = tmp_path_factory.mktemp("made")
    for words in (
        ["demo", "--data", "--out", "simulated", "--set", "num_prompts=40"],
        ["resolve", "simulated/cases.jsonl", "--out", "resolved"],
        ["evaluate", "--bench", "resolved/cases.jsonl", "--model", tiny.save_classifier(folder / "model"),
         "--out", "evaluated", "--set", "num_resamples=20"],
    ):  # fmt: skip
        done = warm_process.run("-m", "steelyard", *words, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


def test_help_examples_run(made, monkeypatch):
    monkeypatch.chdir(made)
    examples = re.findall(r"Example: `steelyard inspect (.*)`", verbs_by_name()["inspect"].about)
    assert len(examples) == 5
    first = json.loads(run("resolved", "--limit", 1, "--json").stdout)["rows"][0]["id"]
    for example in examples:
        words = (
            example.replace("resolved/cases", "cases")
            .replace("cases.jsonl", "simulated/cases.jsonl")
            .replace("en-language-06", first)
            .split()
        )
        result = run(*words)
        assert result.exit_code == 0, result.output
        assert result.stdout


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_one_item_is_refused(made, limit):
    with pytest.raises(ConfigError, match=rf"--limit {limit}\n  allowed: 1 or more"):
        run(made / "resolved", "--limit", limit)


def test_evaluation_shows_scores_and_tokens(made):
    first = json.loads(run(made / "evaluated", "--limit", 1, "--json").stdout)["rows"][0]["id"]
    result = run(made / "evaluated", "--id", first, "--tokens", "--json")
    record = json.loads(result.stdout)
    lines = [json.loads(line) for line in (made / "evaluated" / "scores.jsonl").read_text().splitlines()]
    (own,) = [line["scores"] for line in lines if line["prompt"] == first]
    assert record["scores"][0]["scores"] == own
    assert [one["response"] for one in record["tokens"]] == [one["id"] for one in record["case"]["responses"]]
    assert all(one["ids"] for one in record["tokens"])


def test_worst_errors_of_an_evaluation_are_shown_and_exclude_other_choices(made):
    shown = run(made / "evaluated", "--worst", "2")
    assert shown.exit_code == 0
    assert re.findall(r"^(\d)\. ", shown.stdout, re.MULTILINE) == ["1", "2"]
    record = json.loads(run(made / "evaluated", "--worst", "2", "--json").stdout)
    assert record["pairs"][0]["confidence"] >= record["pairs"][1]["confidence"] >= 0
    opened = re.search(
        r"open one: steelyard inspect (\S+) --id ID", run(made / "evaluated", "--worst", "1", columns=200).stdout
    )
    assert run(opened[1], "--id", record["pairs"][0]["id"]).exit_code == 0
    for other in (["--id", "x"], ["--search", "x"], ["--tokens"], ["--scores", "x.jsonl"]):
        with pytest.raises(ConfigError, match="exclude each other"):
            run(made / "evaluated", "--worst", "2", *other)


@pytest.mark.parametrize("columns", [20, 40, 80, 160])
def test_hostile_text_fits_the_width_and_is_escaped(tmp_path, columns):
    write_cases(tmp_path / "cases.jsonl", made_cases(8, hostile=True))
    for words in ([], ["--id", HOSTILE], ["--id", "p2"], ["--id", "p3"], ["--id", "p4"], ["--id", "p6"]):
        result = run(tmp_path / "cases.jsonl", *words, columns=columns)
        assert result.exit_code == 0, result.output
        # Statistics stand before the list, as every answer does: a pipe gets whole lines. A command is pasted whole.
        listed = result.stdout[max(result.stdout.find("open one: "), 0) :].splitlines()
        lines = [line for line in listed if not line.startswith("open one: ")]
        assert all(width_of(line) <= columns for line in lines)
        assert "\x1b" not in result.stdout
    assert "السماء" in run(tmp_path / "cases.jsonl", "--id", "p2", columns=columns).stdout


def test_option_without_its_prerequisite_is_refused(tmp_path):
    write_cases(tmp_path / "cases.jsonl", made_cases(2))
    for words, told in (
        (["--tokens"], "--tokens needs --id ID"),
        (["--id", "p0", "--set", "model.x=1"], "needs --model"),
    ):
        with pytest.raises(ConfigError, match=told):
            run(tmp_path / "cases.jsonl", *words)
    with pytest.raises(ConfigError, match="unknown setting 'modl'"):
        run(tmp_path / "cases.jsonl", "--id", "p0", "--model", tmp_path, "--set", "modl.x=1")


def test_unknown_id_exits_with_2_and_suggests_nearest(tmp_path):
    write_cases(tmp_path / "cases.jsonl", made_cases(3))
    done = warm_process.run("-m", "steelyard", "inspect", "cases.jsonl", "--id", "p", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cases.jsonl: there is no item with id 'p'\n  allowed: did you mean 'p")
    assert done.stdout == ""


@pytest.mark.field
def test_real_chinese_preferences_fit_every_width(tmp_path):
    if not OASST.is_file():
        pytest.skip("../shared/data/oasst1_zh_rm is not here")
    path = tmp_path / "oasst.jsonl"
    assert CliRunner().invoke(build_app(), ["convert", str(OASST), str(path)]).exit_code == 0
    rows = json.loads(run(path, "--limit", 1000, "--json").stdout)["rows"]
    assert len(rows) == 775
    for row in rows[::25]:
        for columns in (40, 160):
            lines = run(path, "--id", row["id"], columns=columns).stdout.splitlines()
            assert all(width_of(line) <= columns for line in lines)
