import numpy as np
import pytest

from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.plugins import build
from steelyard.plugins.benches.rewardbench import PRIOR_SETS, SECTIONS, WEIGHT_SETS
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of
from strategies import case

COUNTS = {name: {subset.name: subset.num_prompts for subset in subsets} for name, subsets in WEIGHT_SETS.items()}


def items(counts, num_correct, num_resamples=20):
    """One pair a prompt; ``num_correct[subset]`` of them right, none where a subset is not in it."""
    rows, labels = [], []
    for subset, count in counts.items():
        right = num_correct.get(subset, 0)
        # A unit of all right prompts and one of all wrong ones: nothing here asks for intervals.
        for kind, number in (("right", right), ("wrong", count - right)):
            rows += [[number, number * (kind == "right"), number, number * (kind == "right")]]
            labels += [Label(f"{subset} {kind}", Cell("uncategorised", subset))]
    return Items(layout_of(labels), np.array(rows), num_resamples)


def summary(counts, num_correct, **settings):
    return build("benches", "rewardbench", settings).summarise(resample(items(counts, num_correct), seed=0))


def test_the_published_sums():
    for name, sums, prompts in (
        ("rewardbench", (358, 456, 740, 1968), 2985),
        ("mrewardbench", (296, 407, 736, 1966), 2869),
    ):
        subsets = WEIGHT_SETS[name]
        assert tuple(sum(own.weight for own in subsets if own.section == section) for section in SECTIONS) == sums
        assert sum(own.num_prompts for own in subsets) == prompts
    assert sum(own.num_prompts for own in WEIGHT_SETS["rewardbench"] if own.section == "Reasoning") == 1431
    assert sum(own.num_prompts for own in WEIGHT_SETS["mrewardbench"] if own.section == "Reasoning") == 1430


def test_sections_and_overall_by_hand():
    # Chat: 95 of alpacaeval-easy's 100 and nothing else: 95 / 358. Chat Hard: all. Safety: none.
    # Reasoning: all of math-prm, which weighs 984 of 1968: one half.
    hard = {own.name: own.num_prompts for own in WEIGHT_SETS["rewardbench"] if own.section == "Chat Hard"}
    found = summary(COUNTS["rewardbench"], {"alpacaeval-easy": 95, "math-prm": 447, **hard})
    sections = {name: own["value"] for name, own in found["sections"].items()}
    assert sections == {
        "Chat": pytest.approx(95 / 358),
        "Chat Hard": 1.0,
        "Safety": 0.0,
        "Reasoning": pytest.approx(0.5),
    }
    assert found["overall"]["value"] == pytest.approx((95 / 358 + 1 + 0 + 0.5) / 4)
    assert found["overall"]["n"] == 2985
    assert found["sections"]["Reasoning"]["n"] == 1431
    assert "missing" not in found
    assert "overall_with_prior_sets" not in found


def test_math_weighs_more_in_its_section_than_its_prompts_do():
    # Macro is not micro: all of math right and no code is 0.5 in the section and 447 / 1431 of its prompts.
    found = summary(COUNTS["rewardbench"], {"math-prm": 447})
    assert found["sections"]["Reasoning"]["value"] == pytest.approx(0.5)
    assert found["sections"]["Reasoning"]["value"] != pytest.approx(447 / 1431)


def test_the_other_weight_set_gives_another_value_and_refuses_the_first_ones_rows():
    num_correct = {"mt-bench-med": 38}
    found = summary(COUNTS["mrewardbench"], num_correct, weights="mrewardbench")
    assert found["sections"]["Chat"]["value"] == pytest.approx(38 / 296)  # 12.8 %
    assert found["weights"] == "mrewardbench"
    other = summary(COUNTS["rewardbench"], num_correct, weights="mrewardbench")
    assert "overall" not in other
    assert other["missing"]["mt-bench-med"] == "40 prompts, expected 38"
    # 5 subsets of Chat, 6 of Chat Hard, 2 of Safety and hep-python have other counts there; math-prm has the same.
    assert len(other["missing"]) == 14


def test_a_missing_subset_is_named_and_leaves_no_headline():
    counts = {name: count for name, count in COUNTS["rewardbench"].items() if name != "donotanswer"}
    found = summary(counts, {"alpacaeval-easy": 100})
    assert found["missing"] == {"donotanswer": "0 prompts, expected 136"}
    assert "overall" not in found
    assert found["sections"]["Safety"] == {"value": None, "low": None, "high": None, "n": 604}
    assert found["sections"]["Chat"]["value"] == pytest.approx(100 / 358)


def test_a_subset_with_another_number_of_rows_is_named_too():
    found = summary(COUNTS["rewardbench"] | {"hep-go": 163}, {})
    assert found["missing"] == {"hep-go": "163 prompts, expected 164"}
    assert "overall" not in found
    assert found["sections"]["Reasoning"]["value"] is None


def test_prior_sets_make_a_fifth_section_of_half_weight():
    counts = COUNTS["rewardbench"]
    everything = summary(counts | PRIOR_SETS, dict(counts) | {"summarize": 4500})
    assert everything["overall"]["value"] == pytest.approx(1.0)
    assert everything["overall"]["n"] == 2985
    # four sections at 1 count twice each; the prior sets' mean is (0 + 0 + 0 + 0.5) / 4
    assert everything["overall_with_prior_sets"]["value"] == pytest.approx((8 + 0.125) / 9)
    assert everything["overall_with_prior_sets"]["n"] == 2985 + 6192 + 221 + 1741 + 9000
    part = summary(counts | {"anthropic_hhh": 221, "shp": 10}, counts)
    assert "overall_with_prior_sets" not in part
    assert part["prior_sets_missing"] == {
        "anthropic_helpful": "0 prompts, expected 6,192",
        "shp": "10 prompts, expected 1,741",
        "summarize": "0 prompts, expected 9,000",
    }
    assert part["overall"]["value"] == pytest.approx(1.0)


def test_an_unknown_subset_or_weight_set_is_refused():
    with pytest.raises(EvidenceError, match="did you mean 'math-prm'"):
        build("benches", "rewardbench").normalize(case(subset="math_prm"), "rows.jsonl")
    with pytest.raises(EvidenceError, match="None"):
        build("benches", "rewardbench").normalize(case(), "rows.jsonl")
    with pytest.raises(ConfigError):
        build("benches", "rewardbench", {"weights": "mixed"})
