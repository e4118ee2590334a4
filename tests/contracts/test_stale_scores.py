"""Scores belong to the texts that were scored: every command that takes --scores refuses those of other texts."""

import json
import shlex
from hashlib import sha256
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hostile_files import GOOD
from steelyard.cli.main import build_app
from steelyard.core.errors import UserError

COMMANDS = {
    "evaluate": "evaluate --bench {cases} --scores {scores} --baselines none --set num_resamples=10 --out out",
    "audit": "audit {cases} --scores {scores} --out out",
    "debias": "debias {cases} --scores {scores} --out out",
    "supervise": "supervise {cases} --scores {scores} --set min_margin=0 --out out",
    "judge": "judge {cases} --chat recorded --set chat.path=replies.jsonl --pairs unsure --scores {scores}"
    " --set max_margin=1 --out out",
}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [json.loads(line) for line in GOOD.splitlines()]
    for number, row in enumerate(rows):
        row["judgments"] = [{"left": "a", "right": "b", "verdict": "left", "judge": "m", "kind": "llm"}]
        row["prompt"]["id"] = f"p{number}"
    write("cases.jsonl", rows)
    rows[7]["responses"][1]["text"] += "!"
    write("changed.jsonl", rows)
    (tmp_path / "replies.jsonl").write_text('{"text": "[[A]]"}\n')
    run("score cases.jsonl --model longer --out scored")


def write(name, rows):
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def run(words):
    return CliRunner().invoke(build_app(), shlex.split(words), catch_exceptions=False)


@pytest.mark.parametrize("verb", COMMANDS)
def test_scores_of_changed_texts_are_refused(verb):
    with pytest.raises(UserError, match=r"scores\.jsonl:8: .*prompt 'p7': response '.*' has changed") as caught:
        run(COMMANDS[verb].format(cases="changed.jsonl", scores="scored/scores.jsonl"))
    assert "steelyard score" in str(caught.value)


@pytest.mark.parametrize("verb", [verb for verb in COMMANDS if verb != "judge"])
def test_scores_of_other_tools_are_used_and_said(verb):
    lines = [json.loads(line) for line in Path("scored/scores.jsonl").read_text(encoding="utf-8").splitlines()]
    write("foreign.jsonl", [{key: line[key] for key in ("prompt", "language", "scores")} for line in lines])
    ended = run(COMMANDS[verb].format(cases="changed.jsonl", scores="foreign.jsonl"))
    assert "24 of 24 prompts do not say which texts were scored" in ended.stdout
    own = run(COMMANDS[verb].format(cases="cases.jsonl", scores="scored/scores.jsonl") + " --force")
    assert "do not say" not in own.stdout


def test_old_scores_are_known_by_the_files_that_their_record_names():
    lines = [json.loads(line) for line in Path("scored/scores.jsonl").read_text(encoding="utf-8").splitlines()]
    write("scored/scores.jsonl", [{**line, "hashes": {}} for line in lines])
    record = json.loads(Path("scored/run.json").read_text(encoding="utf-8"))
    record["outputs"]["scores.jsonl"] = sha256(Path("scored/scores.jsonl").read_bytes()).hexdigest()
    Path("scored/run.json").write_text(json.dumps(record), encoding="utf-8")
    for verb in ("evaluate", "audit", "debias", "supervise"):
        same = run(COMMANDS[verb].format(cases="cases.jsonl", scores="scored/scores.jsonl") + " --force")
        assert "(scores.jsonl)" not in same.stdout
        other = run(COMMANDS[verb].format(cases="changed.jsonl", scores="scored/scores.jsonl") + " --force")
        assert "check (scores.jsonl): the scores of 24 of 24 prompts" in other.stdout
        assert "files with another content" in other.stdout
    record["outputs"]["scores.jsonl"] = "0" * 64  # the file was changed after its record
    Path("scored/run.json").write_text(json.dumps(record), encoding="utf-8")
    ended = run(COMMANDS["audit"].format(cases="cases.jsonl", scores="scored/scores.jsonl") + " --force")
    assert "do not say which texts were scored" in ended.stdout


def test_a_judge_says_that_scores_have_no_hashes():
    lines = [json.loads(line) for line in Path("scored/scores.jsonl").read_text(encoding="utf-8").splitlines()]
    write("foreign.jsonl", [{key: line[key] for key in ("prompt", "language", "scores")} for line in lines])
    Path("replies.jsonl").write_text('{"text": "[[A]]"}\n' * 200, encoding="utf-8")
    words = (
        COMMANDS["judge"].format(cases="cases.jsonl", scores="foreign.jsonl").replace("max_margin=1", "max_margin=99")
    )
    assert "check (foreign.jsonl): the scores of 24 of 24 prompts do not say" in run(words).stdout
