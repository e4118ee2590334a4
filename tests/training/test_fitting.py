import json

import pytest

import tiny
from steelyard.core.types import Case, Response
from steelyard.io.cases import write_cases
from steelyard.stages.train import Config, train
from strategies import case


@pytest.fixture
def given(tmp_path):
    answers = (Response(id="g", text="Yes, here it is."), Response(id="b", text="no"))
    made = [
        Case(
            prompt=case(id=f"p{index}", text=f"question {index}", category=("ab"[index % 2],), language="he").prompt,
            responses=answers,
            ranking=(("g",), ("b",)),
        )
        for index in range(8)
    ]
    write_cases(tmp_path / "train.jsonl", made[:6])
    write_cases(tmp_path / "held.jsonl", made[6:])
    return tmp_path / "train.jsonl", tmp_path / "held.jsonl", tiny.save_base(tmp_path / "base")


def test_every_step_is_told_with_its_speed_and_every_evaluation_by_category_and_language(given, tmp_path):
    file, held_out, base = given
    config = Config(epochs=2, batch_size=3, learning_rate=1e-3)
    train(file, tmp_path / "out", config, model=base, held_out=held_out)
    lines = [json.loads(line) for line in (tmp_path / "out" / "progress.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "train/loss" in line]
    assert [line["step"] for line in steps] == [1, 2, 3, 4]
    assert all(line["speed/tokens_per_second"] > 0 and line["speed/mfu"] > 0 for line in steps)
    assert steps[-1]["speed/seconds_left"] == 0
    (last,) = [line for line in lines if line["step"] == 4 and "held_out/accuracy" in line]
    assert {"held_out/by_category/a/accuracy", "held_out/by_language/he/exact_match"} <= set(last)
    curve = [json.loads(line) for line in (tmp_path / "out" / "curve.jsonl").read_text().splitlines()]
    (measured,) = [line["held_out"] for line in curve if line["step"] == 4 and "held_out" in line]
    assert measured["by_category"]["a"]["num_prompts"] == measured["by_category"]["b"]["num_prompts"] == 1
    assert measured["by_language"]["he"]["accuracy"] == measured["accuracy"]


def test_who_watches_changes_no_run(given, tmp_path):
    file, _, base = given
    run = train(file, tmp_path / "out", Config(epochs=1), model=base)
    again = train(file, tmp_path / "out", Config(epochs=1, trackers=()), model=base)
    assert again == run
    assert not {"progress.jsonl", "tensorboard"} & set(run.outputs)
