"""The aggregation code against the papers' printed tables: fed with counts that have exactly the printed shares."""

import csv
from pathlib import Path

import numpy as np
import pytest

from steelyard.core.plugins import build
from steelyard.methods.measures.aggregation import language_average
from steelyard.methods.measures.resampling import Items, resample
from steelyard.methods.measures.strata import Cell, Label, layout_of

PUBLISHED = Path(__file__).parent / "published"
SLIPS = {"GPT4o"}  # printed 0.457; its own four columns give 0.474
HALF_OF_LAST_DIGIT = 0.5000001


def rows(name):
    with (PUBLISHED / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def prompts_with(accuracy, exact_match):
    """1,000 prompts of 4 pairs each whose accuracy and exact match are the two printed figures, to the digit."""
    num_exact, num_correct = round(1000 * exact_match), round(4000 * accuracy)
    others = num_correct - 4 * num_exact
    assert 0 <= others <= 3 * (1000 - num_exact), "no such scores can exist"
    share, rest = divmod(others, 1000 - num_exact)
    correct = [4] * num_exact + [share + (index < rest) for index in range(1000 - num_exact)]
    return [[4, number, 1, int(number == 4)] for number in correct]


def cheemsbench_items(row):
    table, labels = [], []
    for subset, column in (("open_prompt", "open"), ("human_instruction", "human")):
        own = prompts_with(float(row[f"{column}_accuracy"]), float(row[f"{column}_exact_match"]))
        table += own
        labels += [Label(f"{subset}{index}", Cell("c", subset)) for index in range(len(own))]
    return Items(layout_of(labels), np.array(table), num_resamples=10)


@pytest.mark.parametrize("row", rows("cheemsbench_full.csv"), ids=lambda row: row["model"])
def test_cheemsbench_overall(row):
    found = build("benches", "cheemsbench").summarise(resample(cheemsbench_items(row), seed=0))
    assert found["subsets"]["open_prompt"]["accuracy"]["value"] == pytest.approx(float(row["open_accuracy"]))
    assert found["subsets"]["human_instruction"]["exact_match"]["value"] == pytest.approx(
        float(row["human_exact_match"])
    )
    distance = abs(found["overall"]["value"] - float(row["overall"]))
    if row["model"] in SLIPS:
        assert distance == pytest.approx(0.01725)
    else:
        assert distance <= 0.001 * HALF_OF_LAST_DIGIT


def test_every_row_is_held_against_the_code():
    sizes = [len(rows(path.name)) for path in sorted(PUBLISHED.glob("*.csv"))]
    assert sizes == [36, 23, 23]
    assert {row["model"] for row in rows("cheemsbench_full.csv")} >= SLIPS


@pytest.mark.parametrize("row", rows("mrewardbench_languages.csv"), ids=lambda row: row["model"])
def test_mrewardbench_average_over_languages(row):
    scores = {name: float(score) for name, score in row.items() if name not in ("model", "type", "avg", "var")}
    assert len(scores) == 22
    assert abs(language_average(scores) - float(row["avg"])) <= 0.1 * HALF_OF_LAST_DIGIT


@pytest.mark.parametrize("row", rows("mrewardbench_translation.csv"), ids=lambda row: row["model"])
def test_mrewardbench_average_over_translation_subsets(row):
    scores = {name: float(score) for name, score in row.items() if name not in ("model", "type", "avg")}
    assert len(scores) == 8
    assert abs(language_average(scores) - float(row["avg"])) <= 0.1 * HALF_OF_LAST_DIGIT
