import json
import random

import msgspec
import pytest
from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.types import Judgment
from steelyard.io.cases import write_cases
from strategies import case


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Forty pairs of which ada and ben say the same, and a model the opposite on every second."""
    folder = tmp_path_factory.mktemp("raters")
    rng = random.Random(1)
    cases = []
    for number in range(40):
        verdicts = ["a>b" if rng.random() < 0.5 else "b>a"]
        verdicts.append(verdicts[0])
        verdicts.append(verdicts[0][::-1].replace("<", ">") if number % 2 else verdicts[0])
        kinds = {"ada": "human", "ben": "human", "model": "llm"}
        cases.append(_judged(f"p{number}", dict(zip(kinds, verdicts, strict=True)), kinds))
    write_cases(folder / "judged.jsonl", cases)
    return folder


def _judged(name, verdicts, kinds):
    judgments = tuple(
        Judgment(left="a", right="b", verdict="left" if verdict[0] == "a" else "right", judge=judge, kind=kinds[judge])
        for judge, verdict in verdicts.items()
    )
    return msgspec.structs.replace(case(name, "ab"), judgments=judgments)


def run(*words):
    return CliRunner().invoke(build_app(), ["audit", *words], catch_exceptions=False)


def test_who_contradicts_is_last_and_the_report_can_be_pasted(judged, monkeypatch):
    monkeypatch.chdir(judged)
    result = run("judged.jsonl", "--out", "rated")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "3 raters gave 120 answers to 40 of 40 prompts that several of them judged." in lines
    assert any(line.startswith("Least accurate: model, ") for line in lines)
    (following,) = [line for line in lines if line.startswith("next: ")]
    words = following.removeprefix("next: steelyard ").partition("  #")[0].split()
    assert CliRunner().invoke(build_app(), words, catch_exceptions=False).exit_code == 0
    assert "Accuracy and ties of each rater" in (judged / "report.html").read_text(encoding="utf-8")
    verbose = run("judged.jsonl", "--out", "rated", "--verbose").stdout
    table = verbose[verbose.index("Accuracy and ties of each rater") :].splitlines()
    names = [line.split()[0] for line in table if line.split()]
    assert [name for name in names if name in ("ada", "ben", "model")][-1] == "model"


def test_json_has_estimates_and_only_takes_people(judged, monkeypatch):
    monkeypatch.chdir(judged)
    summary = json.loads(run("judged.jsonl", "--out", "all", "--json").stdout)["summary"]["raters"]
    best, *_, worst = summary["raters"]
    assert worst["rater"] == "model"
    assert worst["kinds"] == ["llm"]
    assert worst["accuracy"]["high"] < best["accuracy"]["value"]
    assert worst["accuracy"]["low"] < worst["accuracy"]["value"] < worst["accuracy"]["high"]
    words = ("--only", "kind=human", "--out", "people", "--json")
    people = json.loads(run("judged.jsonl", *words).stdout)["summary"]["raters"]
    assert {row["rater"] for row in people["raters"]} == {"ada", "ben"}
    assert people["num_answers"] == 80


def test_one_rater_alone_has_nothing_to_compare_with(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_cases(tmp_path / "alone.jsonl", [_judged("p", {"ada": "a>b"}, {"ada": "human"})])
    assert json.loads(run("alone.jsonl", "--out", "rated", "--json").stdout)["summary"].get("raters") is None


def test_a_withheld_estimate_has_its_reason_in_every_output(tmp_path, monkeypatch):
    """Two people who judge all three pairs of a prompt one by one: one of three answers can be used."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(2)
    cases = []
    for number in range(30):
        judgments = tuple(
            Judgment(left=left, right=right, verdict=rng.choice(("left", "right")), judge=judge, kind="human")
            for judge in ("ada", "ben")
            for left, right in ("ab", "bc", "ac")
        )
        cases.append(msgspec.structs.replace(case(f"p{number}", "abc"), judgments=judgments))
    write_cases(tmp_path / "judged.jsonl", cases)
    reason = "it could use 30 of 90"
    lines = run("judged.jsonl", "--out", "rated").stdout.splitlines()
    assert [line.split()[0] for line in lines if reason in line] == ["ada", "ben"]
    for row in json.loads(run("judged.jsonl", "--out", "rated", "--json").stdout)["summary"]["raters"]["raters"]:
        assert row["accuracy"]["value"] is row["ties"]["value"] is None
        assert reason in row["accuracy"]["why"]
        assert reason in row["ties"]["why"]
