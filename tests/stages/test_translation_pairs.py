import json

import pytest

import steelyard as sy
from example_folder import done
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.io.cases import read_cases
from steelyard.stages.convert import Config, convert, convert_stage
from steelyard.translation.grading import GradingConfig

MEANS = {"a": 6.0, "b": 4.5, "c": 4.0, "d": 3.5, "e": 1.0}


@pytest.fixture
def maple(tmp_path):
    """Write three sources with five translations each, by two annotators."""
    rows = [
        {
            "score_annotator_a": mean,
            "score_annotator_b": mean,
            "score": mean,
            "system": name,
            "source": text,
            "translation": f"{name} {text}",
        }
        for text in ("你好", "再见", "谢谢")
        for name, mean in MEANS.items()
    ]
    path = tmp_path / "maple.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def test_rated_translations_become_pairs_with_counts(maple, tmp_path):
    config = Config(translation_pairs="zh-en", grading=GradingConfig(num_pairs=3))
    result = convert(maple, tmp_path / "out.jsonl", config)
    assert (result.num_cases, result.num_written) == (3, 6)
    assert result.translations.pairs == {"easy": 3, "hard": 3}
    cases = list(read_cases(tmp_path / "out.jsonl"))
    assert sorted(case.prompt.subset for case in cases) == ["easy_zh_en"] * 3 + ["hard_zh_en"] * 3
    texts = {response.id: response.text for response in cases[0].responses}
    (better,), (worse,) = cases[0].ranking
    assert texts[better][0] == "a"
    assert texts[worse][0] == "e"
    assert convert(maple, tmp_path / "out.jsonl", config) == result


def test_another_seed_draws_other_requests_and_the_same_seed_the_same_file(maple, tmp_path):
    contents = []
    for number, seed in enumerate((0, 0, 1)):
        out = tmp_path / f"{number}.jsonl"
        convert(maple, out, Config(translation_pairs="zh-en", grading=GradingConfig(num_pairs=3, seed=seed)))
        contents.append(out.read_bytes())
    assert contents[0] == contents[1] != contents[2]


def test_too_few_pairs_leave_no_file(maple, tmp_path):
    with pytest.raises(EvidenceError, match="3 easy and 3 hard"):
        convert(maple, tmp_path / "out.jsonl", Config(translation_pairs="zh-en"))
    assert not (tmp_path / "out.jsonl").exists()
    with pytest.raises(ConfigError, match="not a direction"):
        convert(maple, tmp_path / "out.jsonl", Config(translation_pairs="easy"))


def test_judgments_derived_from_the_ratings_are_those_of_the_pair(maple, tmp_path):
    config = Config(translation_pairs="zh-en", grading=GradingConfig(num_pairs=3), ratings_to_judgments=True)
    convert(maple, tmp_path / "out.jsonl", config)
    for case in read_cases(tmp_path / "out.jsonl"):
        assert len(case.judgments) == 2
        (better,), _ = case.ranking
        assert {judgment.left if judgment.verdict == "left" else judgment.right for judgment in case.judgments} == {
            better
        }


def test_the_command_says_how_many_pairs_there_are_and_what_was_left_out(maple, tmp_path):
    shown = done(
        "convert", maple, tmp_path / "out.jsonl", "--translation-pairs", "zh-en", "--set", "grading.num_pairs=2"
    )
    assert "easy: 2 of 3 pairs" in shown.output
    assert "hard: 2 of 3 pairs" in shown.output


def test_pairs_are_a_stage_of_a_recipe_and_a_format_to_train_on(maple, tmp_path):
    config = Config(translation_pairs="zh-en", grading=GradingConfig(num_pairs="all"))
    run = convert_stage([maple], tmp_path / "stage", config)
    assert run.summary.translations.direction == "zh-en"
    assert (run.summary.num_written, run.summary.num_responses, run.summary.num_rankings) == (6, 12, 6)
    written = convert(tmp_path / "stage" / "cases.jsonl", tmp_path / "trl.jsonl", Config(to_kind="trl"))
    assert written.num_written == 6


def test_python_has_the_counts(maple):
    made = sy.convert(maple, translation_pairs="zh-en", grading={"num_pairs": 2})
    assert len(made.cases) == 4
    assert made.counts.translations.available == {"easy": 3, "hard": 3}
    assert "4 pairs of translations" in repr(made)


def test_a_report_shows_the_pairs_and_the_reasons_in_both_languages(maple, tmp_path):
    with maple.open("a", encoding="utf-8") as file:
        row = {"score_annotator_a": 3, "score_annotator_b": 3, "score": 3, "source": "早", "translation": "Morning"}
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
    out = tmp_path / "out.jsonl"
    convert(maple, out, Config(translation_pairs="zh-en", grading=GradingConfig(num_pairs=3)))
    done("report", f"{out}.run", "--out", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for text in ("fewer than two rated translations", "有评分的译文不足两条", "评分译文构成的偏好对"):
        assert text in page
