import json

import pytest

from steelyard.core.errors import EvidenceError, FileError
from steelyard.files.cases import write_cases
from steelyard.stages.evaluate import Config as EvaluateConfig
from steelyard.stages.evaluate import evaluate
from steelyard.stages.languages import Config, _known, languages
from strategies import case


def evaluated(folder, names, right):
    """Ten parallel items; ``right[name]`` of them scored right."""
    cases = [
        case(f"p{index}", "ab", language=name, ranking=(("a",), ("b",)), category=("c",))
        for name in names
        for index in range(10)
    ]
    write_cases(folder / "bench.jsonl", cases)
    lines = [
        {"prompt": one.prompt.id, "scores": {"a": float(int(one.prompt.id[1:]) < right[one.prompt.language]), "b": 0.5}}
        | ({"language": one.prompt.language} if one.prompt.language else {})
        for one in cases
    ]
    (folder / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    config = EvaluateConfig(num_resamples=5, baselines=())
    evaluate([folder / "bench.jsonl"], folder / "run", config, scores=folder / "scores.jsonl")
    return folder / "run"


def test_the_languages_of_an_evaluation(tmp_path):
    names = ("eng_Latn", "heb_Hebr", "zho_Hant")
    run = evaluated(tmp_path, names, {"eng_Latn": 9, "heb_Hebr": 6, "zho_Hant": 7})
    found = languages(run, tmp_path / "out", Config(num_resamples=20))
    assert found.summary["languages"]["heb_Hebr"]["drop"]["value"] == pytest.approx(0.3)
    assert found.summary["kin"]["script"]["Hebrew"]["mean"]["value"] == pytest.approx(0.6)
    assert "0" not in found.summary["kin"]["resource_class"]
    assert languages(run, tmp_path / "out", Config(num_resamples=20)) == found


def test_english_may_be_named_and_must_be_there(tmp_path):
    run = evaluated(tmp_path, ("he", "xy"), {"he": 3, "xy": 9})
    with pytest.raises(EvidenceError, match="none of the languages is English\n  allowed: he, xy"):
        languages(run, tmp_path / "out")
    with pytest.raises(EvidenceError, match="no item is in 'xz'\n  allowed: did you mean 'xy'"):
        languages(run, tmp_path / "out", Config(english="xz"))
    found = languages(run, tmp_path / "out", Config(english="xy", num_resamples=5))
    assert found.summary["languages"]["he"]["drop"]["value"] == pytest.approx(0.6)


def test_one_language_alone_or_another_run_is_refused(tmp_path):
    run = evaluated(tmp_path, ("en",), {"en": 3})
    with pytest.raises(EvidenceError, match=r"one language alone \(en\)"):
        languages(run, tmp_path / "out")
    languages_of = tmp_path / "two"
    languages_of.mkdir()
    two = evaluated(languages_of, ("en", "he"), {"en": 3, "he": 3})
    languages(two, tmp_path / "out", Config(num_resamples=5))
    with pytest.raises(FileError, match="a run of languages"):
        languages(tmp_path / "out", tmp_path / "more")


def test_every_code_is_of_one_language_and_the_published_ones_are_there():
    from steelyard.plugins.benches.mrewardbench import LANGUAGES

    known = _known()
    assert set(LANGUAGES) <= set(known)
    # M-RewardBench, section 1: 23 languages of 8 families.
    assert len({known[code][0] for code in LANGUAGES}) == 23
    assert len({known[code][1].family for code in LANGUAGES}) == 8
