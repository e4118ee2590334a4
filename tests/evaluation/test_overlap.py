import pytest

import tiny
from steelyard.core.errors import EvidenceError
from steelyard.evaluation.config import Config
from steelyard.evaluation.overlap import check_overlap, overlap_findings
from steelyard.io.cases import write_cases
from steelyard.io.trained_on import TRAINED_ON_FILE, write_trained_on
from steelyard.plugins.reward_models import choose_model
from steelyard.stages.evaluate import evaluate
from steelyard.stages.score import score
from steelyard.stages.train import Config as Training
from steelyard.stages.train import train
from strategies import case

RANKED = (("a",), ("b",))


def asked(texts):
    return tuple(case(f"p{index}", "ab", text=text, ranking=RANKED) for index, text in enumerate(texts))


@pytest.fixture
def model(tmp_path):
    write_cases(tmp_path / "train.jsonl", asked(["one", "two", "three"]))
    train(tmp_path / "train.jsonl", tmp_path / "rm", Training(epochs=1), model=tiny.save_base(tmp_path / "base"))
    (tmp_path / "train.jsonl").unlink()
    return tmp_path / "rm"


def test_a_model_is_not_measured_on_what_it_was_trained_on(model, tmp_path):
    assert (model / TRAINED_ON_FILE).is_file()
    write_cases(tmp_path / "fresh.jsonl", asked(["four", "five"]))
    write_cases(tmp_path / "seen.jsonl", asked(["four", " ONE "]))
    config = Config(baselines=())
    run = evaluate([tmp_path / "fresh.jsonl"], tmp_path / "out", config, model=str(model))
    assert "prompts that the model was trained on" not in run.counts.noted
    with pytest.raises(EvidenceError, match="trained on 1 of 2 prompts, the first: 'p1'"):
        evaluate([tmp_path / "seen.jsonl"], tmp_path / "x", config, model=str(model))
    assert not (tmp_path / "x").exists()
    allowed = Config(baselines=(), allow_overlap=True)
    run = evaluate([tmp_path / "seen.jsonl"], tmp_path / "y", allowed, model=str(model))
    assert run.counts.noted["prompts that the model was trained on"] == 1
    assert [(each.check, each.count, each.total) for each in run.findings] == [("trained_on", 1, 2)]
    score(tmp_path / "seen.jsonl", tmp_path / "scored", model=str(model))
    with pytest.raises(EvidenceError, match="trained on 1 of 2 prompts"):
        evaluate([tmp_path / "seen.jsonl"], tmp_path / "x", config, scores=tmp_path / "scored" / "scores.jsonl")


def test_the_members_of_a_panel_are_asked_too(tmp_path):
    for name, text in (("a", "one"), ("b", "two")):
        (tmp_path / name).mkdir()
        write_trained_on(tmp_path / name / TRAINED_ON_FILE, asked([text]), base=tmp_path)
    choice = choose_model("panel", {"members": [str(tmp_path / name) for name in "ab"]})
    with pytest.raises(EvidenceError, match="2 of 3 prompts"):
        check_overlap(asked(["one", "two", "three"]), choice=choice, scores=None, is_allowed=False)


def in_language(language, texts):
    return tuple(
        case(f"p{index}", "ab", text=text, ranking=RANKED, language=language) for index, text in enumerate(texts)
    )


def findings(cases, *, choice=None, scores=None, train_cases=()):
    known = overlap_findings(cases, {}, choice=choice, scores=scores, train_cases=train_cases)
    return [(each.check, each.count, each.total) for each in known]


def test_translations_of_training_prompts_are_found_by_their_id(tmp_path):
    write_cases(tmp_path / "train.jsonl", in_language("zh", ["一", "二", "三"]))
    files = {"scores": tmp_path / "scores.jsonl", "train_cases": [tmp_path / "train.jsonl"]}
    assert findings(in_language("en", ["one", "two"]), **files) == [("translated_training_prompts", 2, 2)]
    # Another spelling of the language is no other language, and other prompts of that language are no translations.
    assert findings(in_language("zh-CN", ["四", "五"]), **files) == []
    assert findings(in_language("zh", ["一", "四"]), **files) == [("in_train_cases", 1, 2)]
    other = (case("q9", "ab", text="nine", ranking=RANKED, language="en"),)
    assert findings(other, **files) == []


def test_a_trained_model_has_the_ids_of_its_prompts_and_an_untrained_one_no_training_file(tmp_path):
    (tmp_path / "rm").mkdir()
    write_trained_on(tmp_path / "rm" / TRAINED_ON_FILE, in_language("zh", ["一", "二"]), base=tmp_path)
    choice = choose_model("panel", {"members": [str(tmp_path / "rm")]})
    assert findings(in_language("ar", ["واحد"]), choice=choice) == [("translated_training_prompts", 1, 1)]
    assert findings(in_language("zh", ["四"]), choice=choice) == []
    write_cases(tmp_path / "train.jsonl", in_language("zh", ["一"]))
    assert (
        findings(in_language("ar", ["واحد"]), choice=choose_model("longer"), train_cases=[tmp_path / "train.jsonl"])
        == []
    )


def test_models_and_scores_without_a_record_say_nothing(tmp_path):
    cases = asked(["one"])
    assert check_overlap(cases, choice=choose_model("longer"), scores=None, is_allowed=False) == {}
    assert check_overlap(cases, choice=None, scores=tmp_path / "scores.jsonl", is_allowed=False) == {}
