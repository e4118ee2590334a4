"""Other spellings of a prompt, a category and a language: every stage counts them as one."""

import json

import pytest

from steelyard.io.cases import read_cases, write_cases
from steelyard.stages.describe import describe
from steelyard.stages.evaluate import Config as EvaluateConfig
from steelyard.stages.evaluate import evaluate
from steelyard.stages.languages import Config as LanguagesConfig
from steelyard.stages.languages import languages
from steelyard.stages.resolve import resolve
from steelyard.stages.split import Config as SplitConfig
from steelyard.stages.split import split
from strategies import case

CODES = ("zh", "zh-CN", "zho_Hans", "ZH")
NAMES = ("Raisonne\u0301ment", "raisonnément", "ＲＡＩＳＯＮＮＥ\u0301ＭＥＮＴ", " Raisonnément")


@pytest.fixture
def spelled(tmp_path):
    """Four prompts of one category and language in four spellings, all right, and four of another, all wrong."""
    rows = [(code, name, "a>b") for code, name in zip(CODES, NAMES, strict=True)] + [("zh-Hant", "Code", "b>a")] * 4
    cases = [
        case(
            f"p{place}",
            "ab",
            language=code,
            category=(name,),
            judgments=[short],
            ranking=(("a",), ("b",)) if short == "a>b" else (("b",), ("a",)),
        )
        for place, (code, name, short) in enumerate(rows)
    ]
    write_cases(tmp_path / "cases.jsonl", cases)
    lines = [
        {"prompt": f"p{place}", "language": row[0], "scores": {"a": 1.0, "b": 0.0}} for place, row in enumerate(rows)
    ]
    (tmp_path / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return tmp_path / "cases.jsonl"


def test_means_are_over_what_the_spellings_name(spelled, tmp_path):
    config = EvaluateConfig(num_resamples=20, baselines=())
    summary = evaluate([spelled], tmp_path / "out", config, scores=tmp_path / "scores.jsonl").summary
    # One category of four prompts right and one of four wrong: 1/2. As five categories it would be 4/5.
    assert summary.accuracy.value == pytest.approx(1 / 2)
    assert {name: group.accuracy.n for name, group in summary.by_category.items()} == {"raisonnément": 4, "Code": 4}


def test_the_data_are_described_and_split_by_what_the_spellings_name(spelled, tmp_path):
    described = describe([spelled]).summary
    assert [group.num_prompts for group in described.by_category.values()] == [4, 4]
    assert {name: group.num_prompts for name, group in described.by_language.items()} == {"zh": 4, "zh-Hant": 4}
    parts = split(spelled, tmp_path / "parts", SplitConfig(parts={"train": 0.5, "test": 0.5})).summary
    # Half of each category: four strata of one prompt could not be halved.
    assert [sorted(numbers.values()) for numbers in parts.by_category.values()] == [[2, 2], [2, 2]]
    assert [sorted(numbers.values()) for numbers in parts.by_language.values()] == [[2, 2], [2, 2]]
    written = [each.prompt for name in ("train", "test") for each in read_cases(tmp_path / "parts" / f"{name}.jsonl")]
    # The files keep what was written.
    assert {prompt.language for prompt in written} == {*CODES, "zh-Hant"}
    assert {prompt.category[0] for prompt in written} == {*NAMES, "Code"}


def test_conflicts_are_by_what_the_spellings_name(spelled, tmp_path):
    conflicts = resolve(spelled, tmp_path / "resolved").summary.conflicts
    assert [group.num_prompts for group in conflicts.by_category.values()] == [4, 4]
    assert [group.num_prompts for group in conflicts.by_language.values()] == [4, 4]
    assert all(group.ratio_low is not None for group in conflicts.by_language.values())


def test_languages_are_compared_by_what_the_codes_name(tmp_path):
    codes = {"en": ["en", "EN", "eng", "en-US"], "pt": ["pt", "pt-br", "por_Latn", "pt_PT"]}
    cases = [
        case(f"p{place}", "ab", language=code, ranking=(("a",), ("b",)))
        for language in codes.values()
        for place, code in enumerate(language)
    ]
    write_cases(tmp_path / "cases.jsonl", cases)
    # English is right on all four items, Portuguese on one.
    lines = [
        {"prompt": each.prompt.id, "language": each.prompt.language, "scores": {"a": 1.0, "b": 0.0 if right else 2.0}}
        for each, right in zip(cases, [True] * 5 + [False] * 3, strict=True)
    ]
    (tmp_path / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    config = EvaluateConfig(num_resamples=20, baselines=())
    evaluate([tmp_path / "cases.jsonl"], tmp_path / "run", config, scores=tmp_path / "scores.jsonl")
    summary = languages([tmp_path / "run"], out=tmp_path / "out", config=LanguagesConfig(num_resamples=20)).summary
    assert summary.num_shared == 4
    assert sorted(summary.languages) == ["EN", "por_Latn"]
    assert summary.drop.absolute.value == pytest.approx(3 / 4)
    chosen = LanguagesConfig(num_resamples=20, languages=("eng_Latn", "pt-BR"), baseline_language="en-GB")
    assert languages([tmp_path / "run"], out=tmp_path / "chosen", config=chosen).summary.drop == summary.drop
