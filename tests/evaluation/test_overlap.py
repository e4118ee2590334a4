import pytest

import tiny
from steelyard.core.errors import EvidenceError
from steelyard.evaluation.config import Config
from steelyard.evaluation.overlap import check_overlap
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


def test_models_and_scores_without_a_record_say_nothing(tmp_path):
    cases = asked(["one"])
    assert check_overlap(cases, choice=choose_model("longer"), scores=None, is_allowed=False) == {}
    assert check_overlap(cases, choice=None, scores=tmp_path / "scores.jsonl", is_allowed=False) == {}
