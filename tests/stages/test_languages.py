import json

import pytest

from steelyard.core.errors import EvidenceError, FileError
from steelyard.evaluation.language_groups import known_languages
from steelyard.io.cases import write_cases
from steelyard.stages.evaluate import Config as EvaluateConfig
from steelyard.stages.evaluate import evaluate
from steelyard.stages.languages import Config, languages
from strategies import case


def evaluated(folder, right, numbers=None, bench="cases", goal="c", **columns):
    """Ten parallel items or as many as ``numbers`` says; ``right[name]`` of them, from the first, scored right."""
    folder.mkdir(exist_ok=True)
    cases = [
        case(f"p{index}", "ab", language=name, ranking=(("a",), ("b",)), category=(goal,), **columns)
        for name in right
        for index in range((numbers or {}).get(name, 10))
    ]
    write_cases(folder / "bench.jsonl", cases)
    lines = [
        {"prompt": one.prompt.id, "scores": {"a": float(int(one.prompt.id[1:]) < right[one.prompt.language]), "b": 0.5}}
        | ({"language": one.prompt.language} if one.prompt.language else {})
        for one in cases
    ]
    (folder / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    config = EvaluateConfig(bench_kind=bench, num_resamples=5, baselines=())
    evaluate([folder / "bench.jsonl"], folder / "run", config, scores=folder / "scores.jsonl")
    return folder / "run"


def test_the_languages_of_an_evaluation(tmp_path):
    run = evaluated(tmp_path, {"eng_Latn": 9, "heb_Hebr": 6, "zho_Hans": 7, "zho_Hant": 5})
    found = languages([run], out=tmp_path / "out", config=Config(num_resamples=20))
    assert found.summary.languages["heb_Hebr"].drop.absolute.value == pytest.approx(0.3)
    assert found.summary.languages["heb_Hebr"].drop.relative.value == pytest.approx(1 / 3)
    assert found.summary.kin["script"]["Hebrew"].mean.value == pytest.approx(0.6)
    # Simplified and traditional Chinese are one column.
    assert found.summary.mean.value == pytest.approx((0.6 + 0.6) / 2)
    assert "0" not in found.summary.kin["resource_class"]
    assert (found.summary.num_shared, found.summary.left_out) == (10, {})
    assert languages([run], out=tmp_path / "out", config=Config(num_resamples=20)) == found


def test_languages_are_compared_on_the_items_that_all_have(tmp_path):
    # The first five items are right in both; English has five more, and gets them wrong.
    run = evaluated(tmp_path, {"en": 5, "he": 5}, {"en": 10, "he": 5})
    found = languages([run], out=tmp_path / "out", config=Config(num_resamples=20))
    drop = found.summary.languages["he"].drop.absolute
    assert drop.value == 0.0
    assert drop.low < 0 < drop.high  # five items leave room for much
    assert found.summary.languages["en"].overall.value == 1.0
    assert (found.summary.num_shared, found.summary.left_out) == (5, {"en": 5})
    assert (found.counts.num_in, found.counts.num_used) == (15, 10)
    assert found.counts.dropped == {"not in every language": 5}


def test_a_language_with_few_items_can_be_left_out(tmp_path):
    run = evaluated(tmp_path, {"en": 9, "he": 6, "zh": 1}, {"zh": 1})
    assert languages([run], out=tmp_path / "three", config=Config(num_resamples=5)).summary.num_shared == 1
    found = languages([run], out=tmp_path / "two", config=Config(num_resamples=5, languages=("en", "he")))
    assert list(found.summary.languages) == ["en", "he"]
    assert found.summary.num_shared == 10
    assert found.counts.dropped == {"language not compared": 1}
    with pytest.raises(EvidenceError, match="no item is in 'zhh'\n  allowed: did you mean 'zh'"):
        languages([run], out=tmp_path / "none", config=Config(languages=("en", "zhh")))


def test_languages_without_a_common_item_are_refused(tmp_path):
    run = evaluated(tmp_path, {"en": 5, "he": 5}, {"he": 0})
    with pytest.raises(EvidenceError, match="the only language is"):
        languages([run], out=tmp_path / "out")
    items = tmp_path / "run" / "items.jsonl"
    rows = [json.loads(line) for line in items.read_text("utf-8").splitlines()]
    rows += [row | {"language": "he", "prompt": f"q{index}"} for index, row in enumerate(rows)]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(EvidenceError, match=r"no item is in all of 2 languages \(en 10, he 10 items\)"):
        languages([tmp_path / "run"], out=tmp_path / "out")
    rows += [rows[0] | {"language": "ar"}]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(EvidenceError, match=r"""languages=\["ar","en"\]"""):
        languages([tmp_path / "run"], out=tmp_path / "out")


def test_columns_of_a_bench_are_used(tmp_path):
    # One pair a prompt of RMB: exact match by section, and not accuracy by category.
    run = evaluated(tmp_path, {"en": 8, "he": 4}, bench="rmb", subset="Pairwise_set", goal="Helpfulness")
    found = languages([run], out=tmp_path / "out", config=Config(num_resamples=5))
    assert list(found.summary.languages["he"].sections) == ["Helpfulness, pairwise"]
    assert found.summary.missing["Helpfulness, pairwise"] == "10 prompts, expected 10,067"


@pytest.mark.parametrize(
    ("right", "numbers", "baseline"),
    [
        # Most items; then the highest class of Joshi et al.: 5 of Spanish, 4 of Korean, 2 of Swahili; then the code.
        ({"es": 5, "sw": 5}, {"es": 9}, "sw"),
        ({"sw": 5, "ko": 5, "es": 5}, {}, "es"),
        ({"xz": 5, "xy": 5}, {}, "xy"),
    ],
)
def test_without_english_the_language_with_the_most_items_or_resources_is_the_baseline(
    tmp_path, right, numbers, baseline
):
    run = evaluated(tmp_path, right, numbers)
    assert languages([run], out=tmp_path / "out", config=Config(num_resamples=5)).summary.baseline_language == baseline


def test_a_baseline_may_be_named_and_must_be_there(tmp_path):
    run = evaluated(tmp_path, {"he": 3, "xy": 9})
    with pytest.raises(EvidenceError, match="no item is in 'xz'\n  allowed: did you mean 'xy'"):
        languages([run], out=tmp_path / "out", config=Config(baseline_language="xz"))
    found = languages([run], out=tmp_path / "out", config=Config(baseline_language="xy", num_resamples=5))
    assert found.summary.languages["he"].drop.absolute.value == pytest.approx(0.6)


def test_one_language_alone_or_another_run_is_refused(tmp_path):
    run = evaluated(tmp_path, {"en": 3})
    with pytest.raises(EvidenceError, match=r"the only language is en"):
        languages([run], out=tmp_path / "out")
    two = evaluated(tmp_path / "two", {"en": 3, "he": 3})
    languages([two], out=tmp_path / "out", config=Config(num_resamples=5))
    with pytest.raises(FileError, match="a run of languages"):
        languages([tmp_path / "out"], out=tmp_path / "more")


def test_a_record_that_names_no_benchmark_is_refused(tmp_path):
    run = evaluated(tmp_path, {"en": 3, "he": 3})
    record = json.loads((run / "run.json").read_text("utf-8"))
    del record["config"]["bench_kind"]
    (run / "run.json").write_text(json.dumps(record), "utf-8")
    with pytest.raises(FileError, match="does not name a benchmark"):
        languages([run], out=tmp_path / "out", config=Config(num_resamples=5))
    assert not (tmp_path / "out").exists()


def test_every_code_is_of_one_language_and_the_published_ones_are_there():
    from steelyard.plugins.benches.rewardbench import LANGUAGES

    known = known_languages({*LANGUAGES})
    assert set(LANGUAGES) <= set(known)
    # M-RewardBench, section 1: 23 languages of 8 families.
    assert len({known[code][0] for code in LANGUAGES}) == 23
    assert len({known[code][1].family for code in LANGUAGES}) == 8
