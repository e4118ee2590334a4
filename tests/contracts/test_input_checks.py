"""Checks of the input of an evaluation: one sentence in the terminal for each, and nothing for sound data."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from steelyard.cli.main import build_app


def write(texts, *, question="question {}", extra=None):
    rows = [
        {
            "format": 1,
            "prompt": {"id": f"p{index}", "language": "en", **(extra or {}),
                       "messages": [{"role": "user", "content": question.format(index)}]},
            "responses": [{"id": "a", "text": better}, {"id": "b", "text": worse}],
            "judgments": [], "ratings": [], "ranking": [["a"], ["b"]], "pairs": None, "meta": {},
        }
        for index, (better, worse) in enumerate(texts)
    ]  # fmt: skip
    Path("cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def checks(model="longer"):
    words = f"evaluate --bench cases.jsonl --model {model} --baselines none --set num_resamples=200 --out out --force"
    ended = CliRunner().invoke(build_app(), words.split(), catch_exceptions=False)
    findings = json.loads(Path("out/run.json").read_text(encoding="utf-8"))["findings"]
    lines = [line for line in ended.stdout.splitlines() if line.startswith("check: ")]
    assert len(lines) == len(findings)
    return {finding["check"]: (finding["count"], finding["total"]) for finding in findings}, lines


SOUND = [(f"a long answer {index}", f"short {index}") for index in range(30)]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_sound_data_have_no_finding():
    write(SOUND)
    assert checks() == ({}, [])


def test_scores_whose_direction_is_reversed_are_far_below_chance():
    write(SOUND)
    findings, lines = checks("shorter")
    assert findings == {"below_chance": (30, 30)}
    assert "change their sign" in lines[0]


def test_pairs_of_equal_or_invisible_texts_are_named():
    write([*SOUND, ("Same", "same "), ("", "\u200b"), ("答案 是", "答案是")])
    findings, lines = checks()
    assert findings == {"unwinnable_pairs": (3, 33)}
    assert "'p30', 'p31', 'p32'" in lines[0]


def test_repeated_prompts_and_pictures_are_counted():
    write(SOUND, question="the same question")
    assert checks()[0] == {"repeated_prompts": (29, 30)}
    write(SOUND, question="<image> what is {}?")
    assert checks()[0] == {"pictures": (30, 30)}
    write(SOUND, extra={"meta": {"images": ["a.png"]}})
    assert checks()[0] == {"pictures": (30, 30)}
