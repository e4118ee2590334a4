"""Benches whose subsets, sections and languages are settings: arithmetic by hand, and settings that are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.plugins import build
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of
from strategies import case


def totals(rows):
    """From (subset, category, language, [pairs, correct, prompts, exact])."""
    labels = [Label(str(place), Cell(category, subset, code)) for place, (subset, category, code, _) in enumerate(rows)]
    return resample(Items(layout_of(labels), np.array([counts for *_, counts in rows]), num_resamples=20), seed=0)


def bench(**settings):
    return build("benches", "subsets", settings)


ROWS = [
    ("chat", "poems", None, [4, 3, 2, 1]),
    ("chat", "letters", None, [2, 1, 1, 0]),
    ("数学", "sums", None, [5, 1, 1, 0]),
    ("code", "python", None, [2, 2, 1, 1]),
]


def test_the_headline_is_the_mean_of_the_measures_over_the_subsets():
    # chat: accuracy (3/4 + 1/2) / 2 = 5/8, exact (1/2 + 0) / 2 = 1/4; 数学: 1/5 and 0; code: 1 and 1.
    own = bench(subsets={"chat": 3, "数学": 1, "code": 1}, measures=["accuracy", "exact_match"])
    found = own.summarise(totals(ROWS))
    assert found["overall"]["value"] == pytest.approx(((5 / 8 + 1 / 4) / 2 + (1 / 5 + 0) / 2 + 1) / 3)
    assert found["overall"]["n"] == 5
    assert found["overall"]["low"] < found["overall"]["value"] < found["overall"]["high"]
    assert found["subsets"]["chat"]["accuracy"]["value"] == 0.625
    assert found["subsets"]["chat"]["by_category"]["letters"]["accuracy"]["value"] == 0.5
    assert "sections" not in found


def test_a_subset_can_be_pooled_over_its_pairs():
    own = bench(subsets={"chat": 3, "数学": 1, "code": 1}, by_category=False)
    found = own.summarise(totals(ROWS))
    assert found["overall"]["value"] == pytest.approx((4 / 6 + 1 / 5 + 1) / 3)
    assert "by_category" not in found["subsets"]["chat"]


WEIGHTED = {"Talk": {"chat": 1}, "Work": {"数学": 3, "code": 1}}


def test_sections_are_weighted_means_of_their_subsets():
    found = bench(subsets={"chat": 3}, sections=WEIGHTED).summarise(totals(ROWS))
    assert found["sections"]["Talk"]["value"] == 0.625
    assert found["sections"]["Work"]["value"] == pytest.approx((3 / 5 + 1) / 4)
    assert found["overall"]["value"] == pytest.approx((0.625 + 0.4) / 2)


@given(st.floats(0.01, 100))
def test_only_the_ratios_of_weights_in_a_section_matter(factor):
    scaled = {name: {subset: factor * weight for subset, weight in own.items()} for name, own in WEIGHTED.items()}
    headline = bench(sections=scaled).summarise(totals(ROWS))["overall"]
    assert headline["value"] == pytest.approx((0.625 + 0.4) / 2)


def test_a_part_with_another_number_of_prompts_is_named_and_leaves_no_headline():
    own = bench(subsets={"chat": 4, "数学": "any", "code": 1, "law": 2, "art": "any"})
    found = own.summarise(totals(ROWS))
    assert found["headline"] is None
    assert found["missing"] == {
        "chat": "3 prompts, expected 4", "law": "0 prompts, expected 2", "art": "no cases of it"
    }  # fmt: skip
    # A prompt of which no pair can be compared is there all the same.
    assert "chat" not in own.summarise(totals(ROWS), {Cell("poems", "chat"): 1})["missing"]


def test_a_section_with_an_incomplete_subset_has_no_value_unless_it_is_its_only_one():
    sections = bench(subsets={"chat": 9, "code": 9}, sections=WEIGHTED).summarise(totals(ROWS))["sections"]
    assert sections["Work"]["value"] is None
    assert sections["Talk"]["value"] == 0.625


def in_languages(shares, baseline=None):
    """Ten prompts of two subsets in each language, of which so many are right, by subset."""
    return totals(
        [
            (subset, "c", code, [10, right, 10, right])
            for code, own in shares.items()
            for subset, right in zip(("a", "b"), own, strict=True)
        ]
    )


LANGUAGES = {
    "subsets": {"a": 10, "b": 10},
    "languages": ["de", "ar", ["zh-Hans", "zh-Hant"]],
    "baseline_language": "en",
}
SHARES = {"de": (8, 4), "ar": (5, 5), "zh-Hans": (10, 6), "zh-Hant": (0, 4), "en": (9, 9)}


def test_languages_are_averaged_without_the_baseline_and_some_of_them_first():
    found = bench(**LANGUAGES).summarise(in_languages(SHARES))
    values = [0.6, 0.5, (0.8 + 0.2) / 2]
    assert found["languages"]["zh-Hant"]["overall"]["value"] == pytest.approx(0.2)
    assert found["overall"]["value"] == pytest.approx(sum(values) / 3)
    assert found["variance"]["value"] == pytest.approx(np.var(values, ddof=1))
    assert found["drop_from_baseline"]["absolute"]["value"] == pytest.approx(0.9 - sum(values) / 3)
    assert found["drop_from_baseline"]["sections"]["b"]["absolute"]["value"] == pytest.approx(
        0.9 - (0.4 + 0.5 + 0.5) / 3
    )


def test_a_language_that_is_absent_or_incomplete_is_named():
    shares = {name: own for name, own in SHARES.items() if name != "ar"}
    found = bench(**LANGUAGES | {"subsets": {"a": 10, "b": 11}}).summarise(in_languages(shares))
    assert found["headline"] is None
    assert found["missing"]["ar"] == "no cases of it"
    assert found["missing"]["de"] == "1 subset incomplete (b: 10 prompts, expected 11)"
    assert "en" not in found["missing"]


def test_the_baseline_may_be_absent_and_written_in_another_code():
    without = {name: own for name, own in SHARES.items() if name != "en"}
    assert "drop_from_baseline" not in bench(**LANGUAGES).summarise(in_languages(without))
    found = bench(**LANGUAGES).summarise(in_languages(without | {"eng_Latn": (9, 9)}))
    assert found["drop_from_baseline"]["absolute"]["value"] == pytest.approx(0.9 - 1.6 / 3)


def test_a_single_language_has_no_variance():
    found = bench(subsets={"a": 10, "b": 10}, languages=["de"]).summarise(in_languages({"de": (8, 4)}))
    assert found["overall"]["value"] == pytest.approx(0.6)
    assert "variance" not in found


def test_cases_are_of_the_subset_that_they_or_their_file_or_the_settings_name():
    own = bench(subsets={"chat": 1, "rest": "any"}, default_subset="rest")
    assert own.normalize(case(subset="chat"), "rest.jsonl").prompt.subset == "chat"
    assert own.normalize(case(), "chat.jsonl.gz").prompt.subset == "chat"
    assert own.normalize(case(), "cases.jsonl").prompt.subset == "rest"
    assert (own.subset_of("chat.parquet"), own.subset_of("cases.jsonl")) == ("chat", None)


def test_cases_of_no_subset_or_language_of_the_bench_are_refused():
    own = bench(subsets={"chat": 1, "math": 1}, languages=["de", "fr"], baseline_language="en")
    with pytest.raises(EvidenceError, match="has no subset") as refused:
        own.normalize(case(language="de"), "cases.jsonl")
    assert refused.value.allowed == "chat, math"
    with pytest.raises(EvidenceError, match="did you mean 'chat'"):
        own.normalize(case(subset="chatt", language="de"), "cases.jsonl")
    with pytest.raises(EvidenceError, match="has no language"):
        own.normalize(case(subset="chat"), "cases.jsonl")
    with pytest.raises(EvidenceError, match="is in 'it'") as refused:
        own.normalize(case(subset="chat", language="it"), "cases.jsonl")
    assert refused.value.allowed == "de, en, fr"
    assert own.normalize(case(subset="chat", language="eng_Latn"), "cases.jsonl").prompt.language == "eng_Latn"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "has no subset"),
        ({"subsets": {"a": 0}}, "subsets.a is 0"),
        ({"subsets": {"a": "some"}}, "subsets.a is 'some'"),
        ({"subsets": {"a": 1}, "measures": []}, "the measures are"),
        ({"subsets": {"a": 1}, "measures": ["accuracy", "accuracy"]}, "the measures are"),
        ({"subsets": {"a": 1}, "measures": ["acuracy"]}, "did you mean 'accuracy'"),
        ({"sections": {"S": {"a": 1}, "T": {"a": 2}}}, "the subset 'a' is in 2 sections: S, T"),
        ({"subsets": {"chta": 1}, "sections": {"S": {"chat": 1}}}, "'chta' is in no section\n  allowed: did you mean"),
        ({"sections": {"S": {}}}, "a section without subsets"),
        ({"sections": {"S": {"a": 0}}}, "number above 0"),
        ({"sections": {"S": {"a": float("inf")}}}, "the weight is inf"),
        ({"subsets": {"a": 1}, "default_subset": "b"}, "there is no subset 'b'"),
        ({"subsets": {"a": 1}, "languages": ["deu_Latn", ["fr", "de"]]}, "'deu_Latn' and 'de' are one language"),
        ({"subsets": {"a": 1}, "languages": ["de", ["fr", "de"]]}, "'de' and 'de' are one language"),
        ({"subsets": {"a": 1}, "languages": [[]]}, "a list without languages"),
        ({"subsets": {"a": 1}, "baseline_language": "en"}, "a baseline without languages"),
        ({"subsets": {"a": 1}, "languages": ["eng"], "baseline_language": "en"}, "among the languages, as 'eng'"),
        ({"subset": {"a": 1}}, "did you mean 'subsets'"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, message):
    with pytest.raises(ConfigError) as refused:
        bench(**settings)
    assert message in str(refused.value)
