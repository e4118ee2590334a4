import pytest

import tiny
from steelyard.core.errors import ConfigError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Response
from steelyard.io.cases import write_cases
from strategies import prompt


def two(id, better, worse, text=None):
    return Case(
        prompt=prompt(id, text or f"question {id}"),
        responses=(Response(id="b", text=better), Response(id="w", text=worse)),
        ranking=(("b",), ("w",)),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.save_base(tmp_path_factory.mktemp("backbone") / "model")


def trained(folder, place, cases, **settings):
    write_cases(place / "train.jsonl", cases)
    given = {"path": folder, "train": str(place / "train.jsonl"), "cache": str(place / "cache")}
    return build("models", "features", given | settings)


def margin(model, given):
    (line,) = model.score([given])
    return line.scores["b"] - line.scores["w"]


@pytest.mark.parametrize("head", ["ensemble", "nested"])
def test_it_learns_what_the_better_answers_have_in_common(folder, tmp_path, head):
    model = trained(
        folder, tmp_path, [two(str(index), f"好的{index}", f"不行{index}") for index in range(20)], head=head
    )
    assert margin(model, two("new", "好的99", "不行99")) > 0
    assert margin(model, two("new", "不行99", "好的99")) < 0
    assert margin(model, two("new", "same", "same")) == 0


def test_a_prompt_of_the_training_cases_is_scored_by_a_model_that_has_not_seen_it(folder, tmp_path):
    # Every other case says the contrary of this one: only a model that learnt from it by heart would be with it.
    cases = [two(str(index), f"aaa {index}", f"bbb {index}") for index in range(20)]
    own = [two(f"own{index}", f"bbb {index}", f"aaa {index}", text="the leaked question") for index in range(60)]
    model = trained(folder, tmp_path, [*cases, *own])
    assert margin(model, own[0]) < 0
    assert margin(model, two("new", "bbb 0", "aaa 0", text="another")) > 0


def test_the_protocol_tells_what_scores_depend_on(folder, tmp_path):
    cases = [two(str(index), "a", "b") for index in range(4)]
    first = trained(folder, tmp_path, cases).protocol()
    second = trained(folder, tmp_path, cases, layers=(1,), head="nested").protocol()
    assert {key for key in first if first[key] != second[key]} == {"layers", "head", "inner_folds"}
    assert first["folds"] == 5


def test_settings_that_make_no_sense_are_refused(folder):
    given = {"path": folder, "train": "train.jsonl"}
    for settings, said in (
        ({"path": ""}, "backbone"),
        ({"train": ""}, "training cases"),
        ({"folds": 1}, "folds"),
        ({"poolings": []}, "poolings"),
        ({"inverse_regularisation": [0.0]}, "inverse_regularisation"),
        ({"inverse_regularisation": [1.0, 2.0]}, "head=nested"),
    ):
        with pytest.raises(ConfigError, match=said):
            build("models", "features", given | settings)
