import numpy as np
import pytest

from steelyard.core.errors import EvidenceError
from steelyard.core.plugins import build
from steelyard.methods.measures.resampling import Items, resample
from steelyard.methods.measures.strata import Cell, Label, layout_of
from steelyard.plugins.benches._rewardbench import WEIGHT_SETS
from steelyard.plugins.benches.mrewardbench import LANGUAGES
from strategies import case


def items(right_sections, num_resamples=5, short=()):
    """Every prompt of each language; those of the sections named are right. ``short``: languages without a subset."""
    rows, labels = [], []
    for language, sections in right_sections.items():
        for subset in WEIGHT_SETS["mrewardbench"]:
            if language in short and subset.name == "hep-go":
                continue
            is_right = int(subset.section in sections)
            rows += [[1, is_right, 1, is_right]] * subset.num_prompts
            labels += [
                Label(f"{subset.name}{index}", Cell("uncategorised", subset.name, language))
                for index in range(subset.num_prompts)
            ]
    return Items(layout_of(labels), np.array(rows), num_resamples)


def test_overall_is_the_mean_over_languages_without_english():
    right = dict.fromkeys(LANGUAGES, ("Chat",)) | {
        "zho_Hans": ("Chat", "Safety", "Reasoning"),
        "eng_Latn": ("Chat",) * 2,
    }
    right["eng_Latn"] = ("Chat", "Chat Hard", "Safety", "Reasoning")
    found = build("benches", "mrewardbench").summarise(resample(items(right), seed=0))
    assert found["languages"]["zho_Hans"]["overall"]["value"] == pytest.approx(0.75)
    assert found["languages"]["heb_Hebr"]["sections"]["Chat"]["value"] == 1.0
    mean = (22 * 0.25 + 0.75) / 23
    assert found["overall"]["value"] == pytest.approx(mean)
    assert found["overall"]["n"] == 23 * 2869
    assert found["drop_from_english"]["value"] == pytest.approx(1 - mean)
    # Whole sections are right or wrong: whatever is drawn, the values stay.
    assert found["overall"]["low"] == pytest.approx(mean) == found["overall"]["high"]


def test_languages_that_are_absent_or_incomplete_leave_no_headline():
    right = {"zho_Hans": ("Chat",), "heb_Hebr": ("Chat",)}
    found = build("benches", "mrewardbench").summarise(resample(items(right, short=("heb_Hebr",)), seed=0))
    assert "overall" not in found
    assert found["missing"]["heb_Hebr"] == "1 subsets incomplete"
    assert found["missing"]["arb_Arab"] == "no cases of it"
    assert "zho_Hans" not in found["missing"]
    assert found["languages"]["heb_Hebr"]["missing"] == {"hep-go": "0 prompts, published with 164"}
    assert found["languages"]["heb_Hebr"]["sections"]["Reasoning"]["value"] is None
    assert found["languages"]["heb_Hebr"]["sections"]["Chat"]["value"] == 1.0


def test_a_case_without_a_language_or_of_another_subset_is_refused():
    bench = build("benches", "mrewardbench")
    with pytest.raises(EvidenceError, match="has no language"):
        bench.prepared(case(subset="hep-go"), "f")
    with pytest.raises(EvidenceError, match="did you mean 'hep-go'"):
        bench.prepared(case(subset="hep-og", language="zho_Hans"), "f")
