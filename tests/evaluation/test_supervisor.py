import pytest
from msgspec.structs import replace

from steelyard.core.errors import EvidenceError
from steelyard.evaluation.supervisor import Supervisor, check_may_judge, supervisor_of_model, supervisor_of_scores
from steelyard.plugins.reward_models import build_model, choose_model
from steelyard.stages.score import score
from strategies import case
from supervision_files import write

TRAINED = [case("t1", text="Ｗhat  is IT?", language="en"), case("t2", text="什么?", language="zh")]


def supervisor(file):
    return Supervisor(name="rm", protocol=None, trained_on=str(file), is_cross_fitted=False)


def check(supervisor, cases, *, compare_ids=True, allow_other_languages=False):
    check_may_judge(supervisor, cases, compare_ids=compare_ids, allow_other_languages=allow_other_languages)


@pytest.fixture
def trained(tmp_path):
    return supervisor(write(tmp_path / "train.jsonl", TRAINED))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (case("x", text="what is it?", language="en"), "1 of 2 prompts .1 by their text., the first: 'x'"),
        (
            case("t2", text="别的", language="zh"),
            "1 of 2 prompts .0 by their text, 1 by their id alone., the first: 't2'",
        ),
        (case("x", text="Was?", language="de"), "1 of 2 cases is in languages .*: de"),
    ],
)
def test_seen_prompts_and_foreign_languages_are_refused(trained, tmp_path, given, message):
    cases = write(tmp_path / "c.jsonl", [case("new", text="new", language="en"), given])
    with pytest.raises(EvidenceError, match=message):
        check(trained, cases)


def test_what_is_said_to_be_fine_is_taken(trained, tmp_path):
    chance = write(tmp_path / "c.jsonl", [case("t2", text="别的", language="zh"), case("y", text="?", language=None)])
    check(trained, chance, compare_ids=False)
    check(trained, write(tmp_path / "d.jsonl", [case("x", language="de", text="Was?")]), allow_other_languages=True)
    check(replace(trained, is_cross_fitted=True), write(tmp_path / "e.jsonl", TRAINED))
    check(replace(trained, trained_on=None), write(tmp_path / "f.jsonl", TRAINED))


def test_a_file_without_languages_refuses_none(tmp_path):
    unnamed = supervisor(write(tmp_path / "t.jsonl", [case("t")]))
    check(unnamed, write(tmp_path / "c.jsonl", [case("x", text="other", language="de")]))


def test_a_model_says_by_its_settings_what_it_learnt_from(tmp_path):
    file = write(tmp_path / "train.jsonl", [case("t", "ab", ranking=(("a",), ("b",)))])
    choice = choose_model("ngram", {"train": str(file)})
    found = supervisor_of_model(choice, build_model(choice).protocol(), None)
    assert (found.name, found.trained_on, found.is_cross_fitted) == ("ngram", str(file), True)
    baseline = choose_model("longer")
    assert supervisor_of_model(baseline, build_model(baseline).protocol(), None).trained_on is None
    assert supervisor_of_model(baseline, {}, file).trained_on == str(file)


def test_scores_are_known_by_the_run_beside_them(tmp_path, capsys):
    file = write(
        tmp_path / "train.jsonl",
        [case(f"t{index}", "ab", text=f"q{index}", ranking=(("a",), ("b",))) for index in range(4)],
    )
    cases = write(tmp_path / "c.jsonl", [case("p", text="other")])
    from steelyard.stages.score import Config as Scoring

    score(cases, tmp_path / "scored", Scoring(model={"train": str(file), "min_documents": 1}), model="ngram")
    found = supervisor_of_scores(tmp_path / "scored" / "scores.jsonl", None, None)
    assert (found.name, found.trained_on, found.is_cross_fitted) == ("ngram", str(file), True)
    (tmp_path / "bare.jsonl").write_bytes((tmp_path / "scored" / "scores.jsonl").read_bytes())
    bare = supervisor_of_scores(tmp_path / "bare.jsonl", None, None)
    assert (bare.protocol, bare.trained_on, bare.is_cross_fitted) == (None, None, False)
    assert "are unknown" in capsys.readouterr().err
    assert supervisor_of_scores(tmp_path / "bare.jsonl", None, file).trained_on == str(file)
