"""Checks of the input that verbs share: one sentence for each property that makes a number other than it looks."""

import json
import shlex
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

import tiny
from steelyard.cli.main import build_app
from steelyard.core.types import Case, Judgment, Message, Pair, Prompt, Response
from steelyard.io.cases import write_cases
from steelyard.report.findings import findings_section
from steelyard.report.sources import read_sources


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def case(number, better, worse, *, language="en", question=None, verdict="left", **fields):
    content = question or f"question {number}"
    return Case(
        prompt=Prompt(id=f"p{number}", language=language, messages=(Message(role="user", content=content),)),
        responses=(Response(id="a", text=better), Response(id="b", text=worse)),
        judgments=(Judgment(left="a", right="b", verdict=verdict, judge="m", kind="llm"),),
        ranking=(("a", "b"),) if verdict == "tie" else (("a",), ("b",)),
        **fields,
    )


def sound(number=30, first=0):
    return [case(index, f"a long answer {index}", f"short {index}") for index in range(first, first + number)]


def run(words):
    ended = CliRunner().invoke(build_app(), shlex.split(words), catch_exceptions=False)
    assert ended.exit_code == 0
    return ended.stdout


def findings_of(folder="out"):
    findings = json.loads(Path(folder, "run.json").read_text(encoding="utf-8"))["findings"]
    return {finding["check"]: (finding["count"], finding["total"]) for finding in findings}


def checks(words, folder="out"):
    lines = [line for line in run(words).splitlines() if line.startswith("check")]
    findings = findings_of(folder)
    assert len(lines) == len(findings)
    return findings, lines


VERBS = {
    "audit": "audit cases.jsonl --out out",
    "debias": "debias cases.jsonl --out out --set by=markdown",
    "supervise": "supervise cases.jsonl --model longer --set min_margin=0 --out out",
    "train": "train cases.jsonl --model base --set epochs=1 --set preflight=false --out out",
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_names_pairs_of_equal_texts_repeated_prompts_and_pictures(verb):
    if verb == "train":
        tiny.save_base(Path("base"))
    cases = [*sound(24), case(24, "**Yes**", "no"), case(25, "no", "**Yes**")]
    write_cases(Path("cases.jsonl"), cases)
    assert checks(VERBS[verb]) == ({}, [])
    odd = [
        case(30, "Same", "same\u200b "),
        case(31, "", "an answer"),
        case(32, "yes, it is", "no", question="<image> what is this?"),
        case(33, "yes, it is", "no", question="Question  1"),
        case(34, "yes, it is", "no", language="eng"),
    ]
    write_cases(Path("cases.jsonl"), [*cases, *odd])
    assert checks(f"{VERBS[verb]} --force")[0] == {
        "unwinnable_pairs_used": (1, 31),
        "hollow_answers": (1, 31),
        "pictures": (1, 31),
        "repeated_prompts": (1, 31),
        "language_spellings": (1, 31),
    }
    run("report out --out page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    for words in (
        "no model can tell them apart",
        "has no visible text",
        "come with pictures",
        "repeat the text",
        "spell",
    ):
        assert words in page


@pytest.mark.parametrize("verb", ["audit", "debias", "supervise"])
def test_every_verb_with_scores_names_those_far_below_chance(verb):
    write_cases(Path("cases.jsonl"), [*sound(40), case(50, "**Yes** indeed", "no"), case(51, "no", "**Yes** indeed")])
    run("score cases.jsonl --model shorter --out scored")
    words = VERBS[verb].replace("--model longer", "").replace("min_margin=0", "policy=cycles")
    findings, lines = checks(f"{words} --scores scored/scores.jsonl")
    assert findings == {"below_chance": (41, 42)}
    assert "change their sign" in lines[0]


def test_scores_name_pictures_and_repeated_prompts():
    write_cases(Path("cases.jsonl"), [case(0, "a", "b", question="<image> what?"), *sound(3, 1), *sound(1, 8)])
    assert checks("score cases.jsonl --model longer --out out")[0] == {"pictures": (1, 5)}


def test_a_comparison_repeats_the_findings_of_its_evaluations_once():
    write_cases(Path("cases.jsonl"), [*sound(), case(40, "Same", "same")])
    for model in ("longer", "shorter"):
        run(f"evaluate --bench cases.jsonl --model {model} --baselines none --set num_resamples=50 --out {model}")
    findings, lines = checks("compare longer shorter --set num_resamples=50 --out out")
    assert findings == {"unwinnable_pairs": (1, 31), "below_chance": (30, 30)}
    assert "shorter is far below chance" in lines[1]


def test_a_rule_by_language_names_prompts_without_one():
    cases = [case(0, "**Yes**", "no", language=None), case(1, "no", "**Yes**", language=None)]
    write_cases(Path("cases.jsonl"), cases)
    assert checks(VERBS["debias"])[0] == {}
    assert checks(f"{VERBS['debias']} --set within=language --force")[0] == {"no_language": (2, 2)}


def test_ties_of_unranked_cases_are_no_share_of_the_pairs():
    unranked = [replace(case(index, f"an answer {index}", "no", verdict="tie"), ranking=None) for index in range(8)]
    write_cases(Path("cases.jsonl"), unranked)
    findings, lines = checks("audit cases.jsonl --out out")
    assert "unread_ties" not in findings
    assert not any("judged equal" in line for line in lines)
    write_cases(Path("cases.jsonl"), [*unranked, case(8, "an answer", "other", verdict="tie"), case(9, "yes", "no")])
    assert checks("audit cases.jsonl --out out --force")[0]["unread_ties"] == (1, 2)


def test_training_names_ties_weights_and_margins():
    tiny.save_base(Path("base"))
    weights = [
        Pair(better="a", worse="b"),
        Pair(better="a", worse="b", weight=1e6),
        Pair(better="a", worse="b", margin=80),
    ]
    cases = [case(index, f"an answer {index}", "no", pairs=(weights[0],)) for index in range(8)]
    write_cases(Path("cases.jsonl"), cases)
    words = f"{VERBS['train']} --batch-size 10"
    assert checks(words)[0] == {}
    cases += [case(8, "an answer", "no", pairs=(weights[1],)), case(9, "an answer", "no", pairs=(weights[2],))]
    cases.append(case(10, "an answer", "other", verdict="tie"))
    write_cases(Path("cases.jsonl"), cases)
    findings, lines = checks(f"{words} --force")
    assert findings == {"unread_ties": (1, 11), "large_margins": (1, 10), "heavy_pairs": (1, 1)}
    assert "above 10, the largest 80" in "".join(lines)
    assert "'p8'" in lines[2]
    assert set(checks(f"{words} --loss davidson --force")[0]) == {"large_margins", "heavy_pairs"}
    negative = case(9, "an answer", "no", pairs=(Pair(better="a", worse="b", margin=-5),))
    # A step of two pairs, as small data have: half of its loss is a pair's share, and nearly all of it is not.
    write_cases(Path("cases.jsonl"), [cases[0], cases[8], negative])
    findings, lines = checks(f"{VERBS['train']} --batch-size 2 --force")
    assert findings == {"negative_margins": (1, 3), "heavy_pairs": (1, 2)}
    write_cases(Path("cases.jsonl"), cases[:8])
    findings, lines = checks(f"{words} --loss davidson --force")
    assert findings == {"no_ties": (0, 8)}
    assert "take --loss bradley-terry." in lines[0]
    (on_page,) = findings_section(read_sources([Path("out")])).sentences
    assert on_page.values["remedy"] == "loss=bradley-terry"


def test_training_names_held_out_cases_that_are_learned_the_other_way_round():
    tiny.save_base(Path("base"))
    good, bad = "yes yes yes yes", "no no no no"
    write_cases(Path("cases.jsonl"), [case(index, f"{good} {index}", f"{bad} {index}") for index in range(40)])
    held = [case(index, f"{bad} {index}", f"{good} {index}") for index in range(100, 130)]
    write_cases(Path("held.jsonl"), [*held, case(131, "Same", "same")])
    words = "train cases.jsonl --held-out held.jsonl --model base --set learning_rate=0.01 --set epochs=8 --out out"
    findings, lines = checks(words)
    assert findings["unwinnable_pairs_used"] == (1, 31)
    assert "(held.jsonl)" in lines[0]
    assert findings["held_out_below_chance"][1] == 30


def test_a_leaderboard_names_the_findings_of_its_evaluations_and_their_runs():
    repeated = [case(index, f"a long answer {index}", "no", question=f"question {index % 30}") for index in range(60)]
    write_cases(Path("cases.jsonl"), repeated)
    for model in ("longer", "shorter"):
        run(f"evaluate --bench cases.jsonl --model {model} --baselines none --set num_resamples=50 --out {model}")
    findings, lines = checks("leaderboard longer shorter --set num_resamples=50 --out out")
    assert findings == {"repeated_prompts": (30, 60), "below_chance": (60, 60)}
    assert "(longer, shorter): 30 of 60 prompts repeat" in lines[0]
    assert "(shorter): shorter is far below chance" in lines[1]
    page = Path("out/leaderboard.html").read_text(encoding="utf-8")
    assert "repeat the text of another one" in page
    assert "与同语言的另一提示词文本相同" in page
    write_cases(Path("second.jsonl"), sound())
    run("evaluate --bench second.jsonl --model longer --baselines none --set num_resamples=50 --out second")
    _, lines = checks("leaderboard longer second --set num_resamples=50 --out both", "both")
    assert "(longer · cases): 30 of 60 prompts repeat" in lines[0]


def test_the_best_of_repeated_prompts_names_them():
    repeated = [case(index, f"a long answer {index}", "no", question=f"question {index % 3}") for index in range(6)]
    write_cases(Path("cases.jsonl"), repeated)
    run("score cases.jsonl --model longer --out scored")
    findings, _ = checks("best-of-n cases.jsonl --scores scored/scores.jsonl --gold judgments --out out")
    assert findings == {"repeated_prompts": (3, 6)}
