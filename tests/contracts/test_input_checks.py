"""Checks of the input of an evaluation: one sentence in the terminal for each, and nothing for sound data."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.errors import EvidenceError


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


def checks(model="longer", bench="--bench cases.jsonl"):
    words = f"evaluate {bench} --model {model} --baselines none --set num_resamples=200 --out out --force"
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


EQUAL = [
    ("Same", "same "),
    ("", "\u200b"),
    ("答案 是", "答案是"),
    ("é", "e\u0301"),
    ("مُحَمَّد", "محمد"),
    ("कृपया", "कृपया\u200d"),
]
CODE = [("```\nif x:\n    y()\n    z()\n```", "```\nif x:\n    y()\nz()\n```"), ("$N$ is a number", "$n$ is a number")]


def summary():
    return json.loads(Path("out/run.json").read_text(encoding="utf-8"))["summary"]


def test_tied_scores_are_not_reversed_ones():
    write([(f"tied {index}", f"Same {index}") for index in range(10, 40)])
    assert checks() == ({}, [])


def test_pairs_of_equal_or_invisible_texts_are_named_and_change_no_number():
    mixed = [*SOUND, *CODE, ("short", "the longer answer is worse")]
    write(mixed)
    assert checks() == ({}, [])
    without = summary()
    assert "num_left_out" not in without
    assert without["accuracy_micro"]["n"] == 33
    write([*mixed, *EQUAL])
    findings, lines = checks()
    assert findings == {"unwinnable_pairs": (len(EQUAL), 33 + len(EQUAL))}
    assert "are left out" in lines[0]
    assert "'p33', 'p34', 'p35'" in lines[0]
    mixed_in = summary()
    assert mixed_in.pop("num_left_out") == len(EQUAL)
    assert {name for name in without if mixed_in[name] != without[name]} == {"self_test", "coverage"}
    counts = json.loads(Path("out/run.json").read_text(encoding="utf-8"))["counts"]
    assert counts["dropped"] == {"only pairs of equal texts": len(EQUAL)}
    assert counts["num_used"] == 33
    page = CliRunner().invoke(build_app(), ["report", "out", "--out", "page.html"], catch_exceptions=False)
    assert page.exit_code == 0
    assert "are left out" in Path("page.html").read_text(encoding="utf-8")


def test_a_ranking_that_repeats_a_text_has_its_other_pairs():
    responses = [("a", "a long answer"), ("b", "A  long answer "), ("c", "short")]
    write(SOUND)
    case = json.loads(Path("cases.jsonl").read_text(encoding="utf-8").splitlines()[0])
    case |= {
        "prompt": case["prompt"] | {"id": "triple"},
        "responses": [{"id": name, "text": text} for name, text in responses],
        "ranking": [["a"], ["b"], ["c"]],
    }
    with Path("cases.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(case) + "\n")
    assert checks()[0] == {"unwinnable_pairs": (1, 33), "repeated_prompts": (1, 31)}
    assert summary()["accuracy_micro"]["value"] == 1
    assert summary()["exact_match"]["value"] == 1
    assert summary()["num_left_out"] == 1


@pytest.mark.parametrize("settings", ["--bench rewardbench=cases.jsonl", "--bench cases.jsonl --metric-compat cheems"])
def test_published_arithmetic_counts_pairs_of_equal_texts_and_says_so(settings):
    write([*SOUND[:8], *EQUAL[:2]], extra={"subset": "alpacaeval-easy", "category": ["Chat"]})
    findings, lines = checks(bench=settings)
    assert findings["unwinnable_pairs_counted"] == (2, 10)
    assert "by the published rule" in "".join(lines)
    assert summary()["accuracy_micro"]["value"] == 0.8
    assert "num_left_out" not in summary()


def test_a_file_of_equal_texts_alone_is_refused():
    write(EQUAL)
    with pytest.raises(EvidenceError, match=f"{len(EQUAL)} pairs have two equal texts each"):
        checks()
    assert not Path("out/run.json").exists()


def test_better_answers_without_text_and_languages_spelled_in_two_ways_are_named():
    write([*SOUND, ("", "an answer")])
    findings, lines = checks()
    assert findings == {"hollow_answers": (1, 31)}
    assert "'p30'" in lines[0]
    write(SOUND)
    rows = [json.loads(line) for line in Path("cases.jsonl").read_text(encoding="utf-8").splitlines()]
    rows[0]["prompt"]["language"] = "eng"
    rows[1]["prompt"]["language"] = None
    Path("cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    findings, lines = checks()
    assert findings == {"language_spellings": (1, 30), "no_language": (1, 30)}
    assert "'en', 'eng'" in "".join(lines)


def test_repeated_prompts_and_pictures_are_counted():
    write(SOUND, question="the same question")
    assert checks()[0] == {"repeated_prompts": (29, 30)}
    write(SOUND, question="<image> what is {}?")
    assert checks()[0] == {"pictures": (30, 30)}
    write(SOUND, extra={"meta": {"images": ["a.png"]}})
    assert checks()[0] == {"pictures": (30, 30)}
