import numpy as np
import pytest

from steelyard.core.errors import EvidenceError
from steelyard.core.plugins import build
from steelyard.plugins.benches.rewardbench import LANGUAGES, WEIGHT_SETS
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of
from strategies import case

BENCH = build("benches", "mrewardbench")
SECTIONS = ("Chat", "Chat Hard", "Safety", "Reasoning")


def items(right_sections, num_resamples=5, short=()):
    """A row for all prompts of a subset in a language; those of the sections named are right.

    ``short``: languages without a subset.
    """
    rows, labels = [], []
    for language, sections in right_sections.items():
        for subset in WEIGHT_SETS["mrewardbench"]:
            if language in short and subset.name == "hep-go":
                continue
            right = subset.num_prompts * (subset.section in sections)
            rows.append([subset.num_prompts, right, subset.num_prompts, right])
            labels.append(Label(subset.name, Cell("uncategorised", subset.name, language)))
    return Items(layout_of(labels), np.array(rows), num_resamples)


def test_overall_is_the_mean_over_22_columns_without_english():
    right = dict.fromkeys(LANGUAGES, ("Chat",)) | {"zho_Hans": SECTIONS[:3], "eng_Latn": SECTIONS}
    found = BENCH.summarise(resample(items(right), seed=0))
    assert found["languages"]["zho_Hans"]["overall"]["value"] == pytest.approx(0.75)
    assert found["languages"]["heb_Hebr"]["sections"]["Chat"]["value"] == 1.0
    # 21 columns of 0.25, and Chinese: the mean of 0.75 and 0.25.
    mean = (21 * 0.25 + 0.5) / 22
    assert found["overall"]["value"] == pytest.approx(mean)
    assert found["overall"]["n"] == 23 * 2869
    assert found["variance"]["value"] == pytest.approx((21 * (0.25 - mean) ** 2 + (0.5 - mean) ** 2) / 21)
    assert (found["variance"]["low"], found["variance"]["n"]) == (None, 22)
    drop = found["drop_from_baseline"]
    assert drop["absolute"]["value"] == pytest.approx(1 - mean)
    assert drop["relative"]["value"] == pytest.approx(1 - mean)
    assert drop["sections"]["Chat"]["absolute"]["value"] == 0.0
    assert drop["sections"]["Safety"]["relative"]["value"] == pytest.approx(1 - 0.5 / 22)
    # Whole sections are right or wrong, so that every resample has the same value: that is no certainty.
    assert found["overall"]["low"] < mean < found["overall"]["high"]


def test_english_with_all_prompts_of_rewardbench_has_no_drop_and_says_why():
    whole = items(dict.fromkeys([*LANGUAGES, "eng_Latn"], ("Chat",)))
    english = np.array([whole.layout.cells[cell].language == "eng_Latn" for cell in whole.layout.cell])
    whole.statistics[english, 2] += 5
    found = BENCH.summarise(resample(whole, seed=0))
    assert found["headline"] == "overall"
    assert found["drop_from_baseline"]["absolute"]["value"] is None
    assert "eng_Latn has 2,984 prompts" in found["drop_from_baseline"]["why"]  # 5 more in each of 23 subsets


def test_languages_that_are_absent_or_incomplete_leave_no_headline():
    right = {"zho_Hans": ("Chat",), "heb_Hebr": ("Chat",)}
    found = BENCH.summarise(resample(items(right, short=("heb_Hebr",)), seed=0))
    assert "overall" not in found
    assert found["missing"]["heb_Hebr"] == "1 subset incomplete (hep-go: 0 prompts, expected 164)"
    assert found["missing"]["arb_Arab"] == "no cases of it"
    assert "zho_Hans" not in found["missing"]
    assert found["languages"]["heb_Hebr"]["missing"] == {"hep-go": "0 prompts, expected 164"}
    assert found["languages"]["heb_Hebr"]["sections"]["Reasoning"]["value"] is None
    assert found["languages"]["heb_Hebr"]["sections"]["Chat"]["value"] == 1.0


def test_a_case_without_a_language_or_of_another_subset_is_refused():
    bench = build("benches", "mrewardbench")
    with pytest.raises(EvidenceError, match="has no language"):
        bench.normalize(case(subset="hep-go"), "f")
    with pytest.raises(EvidenceError, match="did you mean 'hep-go'"):
        bench.normalize(case(subset="hep-og", language="zho_Hans"), "f")
