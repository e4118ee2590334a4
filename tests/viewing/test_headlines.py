"""The headline of each stage, worked out by hand from its summary."""

import msgspec
import pytest

from steelyard.evaluation.tables import word
from steelyard.report.page import COLON, COMMA
from steelyard.viewing.runs import RunOverview, headline_of

MEAN = {"value": 0.5, "low": None, "high": None, "n": 2}
ACCURACY = {"value": 0.7072, "low": 0.65, "high": 0.757, "n": 60}
USE = {"num_replies": 4, "uncounted": 0, "odd_usage": 0, "other_models": {}}


def tokens(inputs, outputs):
    return f"{inputs} {word('view_tokens_in')}{COMMA}{outputs} {word('view_tokens_out')}"


def headline(stage, summary, config=None, counts=None):
    record = {"stage": stage, "config": config or {}, "counts": counts or {}, "summary": summary}
    return headline_of(msgspec.json.decode(msgspec.json.encode(record), type=RunOverview))


@pytest.mark.parametrize(
    ("stage", "summary", "value", "about", "model"),
    [
        (
            "evaluate", {"accuracy": ACCURACY, "bench": "cases", "model": "models/小模型"}, "70.7%",
            f"{word('accuracy')}{COMMA}{word('interval_95')} 65.0–75.7% · cases", "小模型",
        ),
        (
            "evaluate", {"accuracy": ACCURACY, "overall": {**ACCURACY, "value": 0.81}, "bench": "cheems", "model": "m"},
            "81.0%", f"{word('bench_overall')}{COMMA}{word('interval_95')} 65.0–75.7% · cheems", "m",
        ),
        (
            "convert", {"from_kind": "trl", "to_kind": "cases", "num_written": 1200}, "1,200",
            f"{word('view_cases_written')} · trl → {word('convert_case_file')}", "",
        ),
        ("train", {"final_loss": 0.53355, "held_out": None}, "0.534", word("view_final_loss"), ""),
        (
            "train", {"final_loss": 0.53355, "held_out": {"accuracy": 0.7083, "num_pairs": 420}}, "70.8%",
            f"{word('held_out_accuracy')}{COMMA}n = 420{COMMA}{word('view_final_loss')} 0.534", "",
        ),
        (
            "resolve", {"conflicts": {"overall": {"ratio": 0.2222, "num_judgments": 1646}}}, "22.2%",
            f"{word('conflict_ratio')}{COMMA}1,646 {word('judgments')}", "",
        ),
        (
            "judge",
            {
                "judge": "panel", "judges": {"panel": {"outcomes": {"left": 3, "unreadable": 1}}},
                "tokens": {
                    "a": {**USE, "prompt": 900, "reply": 100, "cost": 0.25},
                    "b": {**USE, "prompt": 200, "reply": 0, "cost": 1.0},
                },
            },
            "3", f"{word('view_verdicts')}{COMMA}{tokens('1,100', '100')}{COMMA}{word('view_cost')} 1.2500", "panel",
        ),
        (
            "judge",
            {
                "judge": "j", "judges": {"j": {"outcomes": {"refused": 1}, "ratings": {"3": 4, "7": 1}, "other": []}},
                "tokens": {"j": {**USE, "prompt": 5, "reply": 5, "cost": None}},
            },
            "5", f"{word('view_ratings')}{COMMA}{tokens('5', '5')}", "j",
        ),
        (
            "judge",
            {
                "judge": "j", "judges": {"j": {"outcomes": {"tie": 2}}},
                "tokens": {"j": {**USE, "prompt": 5, "reply": 5, "cost": None}},
            },
            "2", f"{word('view_verdicts')}{COMMA}{tokens('5', '5')}", "j",
        ),
        (
            "sample",
            {
                "models": {"a": {"num_responses": 30}, "b": {"num_responses": 12}},
                "tokens": {"a": {**USE, "prompt": 900, "reply": 100, "cost": 0.25}},
            },
            "42", f"{word('view_written')}{COMMA}{tokens('900', '100')}{COMMA}{word('view_cost')} 0.2500", "",
        ),
        ("supervise", {"num_strict": 8, "num_strict_kept": 6}, "75.0%", f"{word('view_strict_kept')}{COMMA}6 / 8", ""),
        ("split", {"parts": {"train": 1200, "test": 30}}, "1,200 / 30", "train / test", ""),
        (
            "compare", {"models": [{"name": "甲"}, {"name": "b"}], "bench": "x"}, "2",
            f"{word('view_models_best')} 甲 · x", "",
        ),
        (
            "language_table",
            {"models": [{"model": "甲", "mean": MEAN}, {"model": "b", "mean": ACCURACY}], "bench": "x.csv"}, "2",
            f"{word('view_models_best')} b · x.csv", "",
        ),
        (
            "language_table", {"models": [{"model": "甲"}, {"model": "b"}], "bench": "x.csv"}, "2",
            f"{word('number_of_models')} · x.csv", "",
        ),
        ("score", {"model": "/m/q", "num_responses": 1234}, "1,234", word("view_responses"), "q"),
    ],
)  # fmt: skip
def test_the_number_that_people_look_for(stage, summary, value, about, model):
    assert headline(stage, summary) == (value, about, model)


def test_experiments_state_their_best_arm():
    arms = [{"name": "llm", "accuracy": ACCURACY | {"value": 0.5}}, {"name": "人", "accuracy": ACCURACY}]
    for stage in ("ablate", "sweep"):
        shown = headline(stage, {"arms": arms})
        assert shown.value == "70.7%"
        assert shown.about.endswith(f" · 人{COMMA}{word('view_best_of')} 2")


def test_a_stage_that_counts_pairs_does_not_call_them_cases():
    shown = headline("debias", {}, {}, {"num_in": 540, "num_used": 276})
    assert (shown.value, shown.about) == ("276", f"{word('view_of')} 540 {word('view_pairs_kept')}")


@pytest.mark.parametrize(("stage", "unit"), [("prompts", "view_prompts_kept"), ("clean", "view_responses_kept")])
def test_a_stage_that_drops_prompts_or_responses_names_them(stage, unit):
    shown = headline(stage, {}, {}, {"num_in": 648, "num_used": 432})
    assert (shown.value, shown.about) == ("432", f"{word('view_of')} 648 {word(unit)}")


def test_languages_state_the_mean_without_the_baseline_and_the_drop_from_it():
    drop = {"absolute": {"value": 0.062, "low": 0.04, "high": 0.08, "n": 9}}
    languages = {"mean": ACCURACY, "languages": {"zh": {}, "he": {}, "en": {}}, "model": "m", "drop": drop}
    shown = headline("languages", {**languages, "baseline_language": "zh"})
    interval = f"{word('interval_95')} 65.0–75.7%"
    assert shown.value == "70.7%"
    drop = f"{word('view_drop')}{COLON}+6.2"
    assert shown.about == f"{word('view_mean_without')}{word('name_of_zh', 'Chinese')}{COMMA}{interval}{COMMA}{drop}"


@pytest.mark.parametrize("stage", ["merge", "resolve", "something.else"])
def test_any_other_run_states_the_cases_it_used(stage):
    shown = headline(stage, {"odd": [1]}, {"model": "a/b"}, {"num_in": 1000, "num_used": 990})
    assert shown == ("990", f"{word('view_of')} 1,000 {word('view_cases_used')}", "b")
