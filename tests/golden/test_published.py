"""The aggregation code against the papers' printed tables: fed with counts that have exactly the printed shares."""

import csv
from pathlib import Path

import numpy as np
import pytest

from each_value import each
from steelyard.core.plugins import build
from steelyard.plugins.benches.rewardbench import WEIGHT_SETS
from steelyard.plugins.benches.subset_benches import translation_subset
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of

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
    """1,000 of each subset's published prompts with pairs, of the printed shares."""
    table, labels = [], []
    for subset, column in (("open_prompt", "open"), ("human_instruction", "human")):
        own = prompts_with(float(row[f"{column}_accuracy"]), float(row[f"{column}_exact_match"]))
        table += own
        labels += [Label(f"{subset}{index}", Cell("c", subset)) for index in range(len(own))]
    return Items(layout_of(labels), np.array(table), num_resamples=10)


LEFT_OUT = {Cell("c", "open_prompt"): 1146 - 1000, Cell("c", "human_instruction"): 1346 - 1000}


@each("row", rows("cheemsbench_full.csv"))
def test_cheemsbench_overall(row):
    found = build("benches", "cheemsbench").summarise(resample(cheemsbench_items(row), seed=0), LEFT_OUT)
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
    sizes = {path.stem: len(rows(path.name)) for path in PUBLISHED.glob("*.csv")}
    assert sizes == {
        "cheems_ablation": 8, "cheems_datasets": 13, "cheemsbench_full": 36, "cheemsbench_top": 17,
        "mrewardbench_category_drop": 10, "mrewardbench_languages": 23, "mrewardbench_translation": 23,
    }  # fmt: skip
    assert {row["model"] for row in rows("cheemsbench_full.csv")} >= SLIPS


CODES = {
    "ar": "arb_Arab", "cs": "ces_Latn", "de": "deu_Latn", "el": "ell_Grek", "fr": "fra_Latn", "he": "heb_Hebr",
    "hi": "hin_Deva", "id": "ind_Latn", "it": "ita_Latn", "jp": "jpn_Jpan", "kr": "kor_Hang", "nl": "nld_Latn",
    "fa": "pes_Arab", "pl": "pol_Latn", "pt": "por_Latn", "ro": "ron_Latn", "ru": "rus_Cyrl", "es": "spa_Latn",
    "tr": "tur_Latn", "uk": "ukr_Cyrl", "vi": "vie_Latn",
}  # fmt: skip


def scored(labels, numbers, points):
    """A row a label for so many prompts of 1,000 pairs each, of which ``points`` of a hundred are right."""
    correct = [round(number * 10 * own) for number, own in zip(numbers, points, strict=True)]
    rows = [[1000 * number, right, number, 0] for number, right in zip(numbers, correct, strict=True)]
    return resample(Items(layout_of(labels), np.array(rows), num_resamples=0), seed=0)


@each("row", rows("mrewardbench_languages.csv"))
def test_mrewardbench_average_and_variance_over_languages(row):
    # Simplified and traditional Chinese lie apart, and their mean is what is printed.
    printed = {CODES[name]: float(row[name]) for name in CODES}
    printed |= {"zho_Hans": float(row["zh"]) + 3, "zho_Hant": float(row["zh"]) - 3}
    keys = [(language, subset) for language in printed for subset in WEIGHT_SETS["mrewardbench"]]
    labels = [Label(subset.name, Cell("c", subset.name, language)) for language, subset in keys]
    totals = scored(labels, [own.num_prompts for _, own in keys], [printed[language] for language, _ in keys])
    found = build("benches", "mrewardbench").summarise(totals)
    assert found["languages"]["arb_Arab"]["overall"]["value"] == pytest.approx(printed["arb_Arab"] / 100)
    assert abs(100 * found["overall"]["value"] - float(row["avg"])) <= 0.1 * HALF_OF_LAST_DIGIT
    # A column is printed to 0.1, so that it may be off by 0.05, and the variance by twice its standard deviation of it.
    variance = 100**2 * found["variance"]["value"]
    assert abs(variance - float(row["var"])) <= 0.05 + 2 * variance**0.5 * 0.05


@each("row", rows("mrewardbench_translation.csv"))
def test_mrewardbench_average_over_translation_subsets(row):
    printed = {name: float(score) for name, score in row.items() if name not in ("model", "type", "avg")}
    labels = [Label(name, Cell("c", name)) for name in map(translation_subset, printed)]
    found = build("benches", "mrewardbench_translation").summarise(scored(labels, [100] * 8, list(printed.values())))
    assert abs(100 * found["overall"]["value"] - float(row["avg"])) <= 0.1 * HALF_OF_LAST_DIGIT
