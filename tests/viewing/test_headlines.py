"""The headline of each stage, worked out by hand from its summary."""

import msgspec
import pytest

from steelyard.evaluation.tables import word
from steelyard.report.page import COMMA
from steelyard.viewing.headlines import RunOverview, headline_of

ACCURACY = {"value": 0.7072, "low": 0.65, "high": 0.757, "n": 60}
USE = {"num_replies": 4, "uncounted": 0, "odd_usage": 0, "other_models": {}}


def headline(stage, summary, config=None, counts=None):
    record = {"stage": stage, "config": config or {}, "counts": counts or {}, "summary": summary}
    return headline_of(msgspec.json.decode(msgspec.json.encode(record), type=RunOverview))


@pytest.mark.parametrize(
    ("stage", "summary", "value", "about", "model"),
    [
        (
            "evaluate", {"accuracy": ACCURACY, "bench": "cases", "model": "models/小模型"}, "70.7%",
            f"{word('accuracy')}{COMMA}65.0–75.7% · cases", "小模型",
        ),
        (
            "evaluate", {"accuracy": ACCURACY, "overall": {**ACCURACY, "value": 0.81}, "bench": "cheems", "model": "m"},
            "81.0%", f"{word('bench_overall')}{COMMA}65.0–75.7% · cheems", "m",
        ),
        ("train", {"final_loss": 0.53355, "held_out": None}, "0.534", word("view_final_loss"), ""),
        (
            "train", {"final_loss": 0.53355, "held_out": {"accuracy": 0.7083, "num_pairs": 420}}, "70.8%",
            f"{word('held_out_accuracy')}{COMMA}{word('view_final_loss')} 0.534", "",
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
            "4", f"{word('view_verdicts')}{COMMA}1,200 {word('view_tokens')}{COMMA}{word('view_cost')} 1.25", "panel",
        ),
        (
            "judge",
            {
                "judge": "j", "judges": {"j": {"outcomes": {"tie": 2}}},
                "tokens": {"j": {**USE, "prompt": 5, "reply": 5, "cost": None}},
            },
            "2", f"{word('view_verdicts')}{COMMA}10 {word('view_tokens')}", "j",
        ),
        ("supervise", {"num_strict": 8, "num_strict_kept": 6}, "75.0%", f"{word('view_strict_kept')}{COMMA}6 / 8", ""),
        ("split", {"parts": {"train": 1200, "test": 30}}, "1,200 / 30", "train / test", ""),
        (
            "compare", {"models": [{"name": "甲"}, {"name": "b"}], "bench": "x"}, "2",
            f"{word('view_models_best')} 甲 · x", "",
        ),
        ("score", {"model": "/m/q", "num_responses": 1234}, "1,234", word("view_responses"), "q"),
    ],
)  # fmt: skip
def test_the_number_that_people_look_for(stage, summary, value, about, model):
    assert headline(stage, summary) == (value, about, model)


def test_languages_state_the_mean_and_the_loss_against_english():
    drop = {"absolute": {"value": 0.062, "low": 0.04, "high": 0.08, "n": 9}}
    shown = headline("languages", {"mean": ACCURACY, "languages": {"zh": {}, "he": {}}, "model": "m", "drop": drop})
    assert shown.value == "70.7%"
    assert shown.about.endswith(f"2 {word('view_languages')}{COMMA}{word('view_to_english')} \N{MINUS SIGN}6.2")


@pytest.mark.parametrize("stage", ["merge", "resolve", "something.else"])
def test_any_other_run_states_the_cases_it_used(stage):
    shown = headline(stage, {"odd": [1]}, {"model": "a/b"}, {"num_in": 1000, "num_used": 990})
    assert shown == ("990", f"{word('view_of')} 1,000 {word('view_cases_used')}", "b")
