import pytest

import tiny
from recipe_files import SMALL, small_recipe
from steelyard.core.errors import ConfigError, EvidenceError, KindError, UserError
from steelyard.io.cases import write_cases
from steelyard.recipes.ablate import EXPERIMENT, Ablation
from steelyard.recipes.preconditions import check_recipe
from steelyard.recipes.recipe import read_recipe
from strategies import case


def prompts(folder, name, *ids, language="en", **changes):
    cases = [case(one, "ab", text=f"question {one}", language=language, judgments=("a>b",), **changes) for one in ids]
    write_cases(folder / name, cases)


@pytest.fixture
def folder(tmp_path):
    prompts(tmp_path, "human.jsonl", "h1", "h2")
    prompts(tmp_path, "llm.jsonl", "l1", "l2")
    prompts(tmp_path, "test.jsonl", "t1", "t2", ranking=(("a",), ("b",)))
    tiny.save_base(tmp_path / "base")
    return tmp_path


def check(folder, **changes):
    given = {"benches": ("test.jsonl",), "model": "base", "human": "human.jsonl", "llm": "llm.jsonl"}
    check_recipe(EXPERIMENT.recipe(Ablation(**given | changes), folder / "a.toml"), folder / "out")
    assert not (folder / "out").exists()


def test_valid_ablation_passes_and_writes_nothing(folder):
    check(folder, supervisors=("longer",))


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"supervisors": ("longr",)}, KindError, "did you mean 'longer'"),
        ({"train": {"learning_rate": -1.0}}, ConfigError, "learning_rate is -1.0"),
        ({"supervise": {"confidence": 0.9}}, ConfigError, "confidence without calibration_cases"),
        ({"evaluate": {"matched_ratio": 0.5}}, ConfigError, "matched_ratio is 0.5"),
        ({"evaluate": {"baselines": ["ngram"]}}, ConfigError, "ngram baseline needs training cases"),
    ],
)
def test_invalid_settings_and_models_are_refused_before_running(folder, changes, error, said):
    with pytest.raises(error, match=said):
        check(folder, **changes)


def test_a_folder_with_settings_of_a_bench_is_checked_before_running(folder):
    (folder / "mine").mkdir()
    prompts(folder, "mine/cases.jsonl", "t1", "t2", ranking=(("a",), ("b",)), subset="chat")
    for bench in ("mine", "subsets=mine"):
        (folder / "mine" / "bench.toml").write_text("[subsets]\nchat = 2\n", encoding="utf-8")
        check(folder, benches=(bench,))
        (folder / "mine" / "bench.toml").write_text("[subsets]\nchatt = 2\n", encoding="utf-8")
        with pytest.raises(EvidenceError, match="is of subset 'chat', which mine does not have"):
            check(folder, benches=(bench,))


def test_bench_overlap_with_training_is_refused_unless_allowed(folder):
    prompts(folder, "test.jsonl", "t1", "h2", ranking=(("a",), ("b",)))
    with pytest.raises(EvidenceError, match=r"stage human\.0\.evaluated: the model was trained on 1 of 2 prompts"):
        check(folder)
    # Through the merged arm too, which no single file names.
    prompts(folder, "test.jsonl", "t1", "l1", ranking=(("a",), ("b",)))
    with pytest.raises(EvidenceError, match="the first: 'l1'"):
        check(folder)
    check(folder, evaluate={"allow_overlap": True})


def test_bench_without_comparable_pairs_is_refused(folder):
    prompts(folder, "test.jsonl", "t1")
    with pytest.raises(EvidenceError, match="none of 1 case has a comparable pair"):
        check(folder)


def test_supervisor_trained_on_judged_prompts_is_refused(folder):
    prompts(folder, "llm.jsonl", "l1", "h1")
    with pytest.raises(EvidenceError, match=r"supervisor human\.0\.model was trained on 1 of 2 prompts"):
        check(folder)
    prompts(folder, "llm.jsonl", "l1", language="zh")
    with pytest.raises(EvidenceError, match=r"supervisor human\.0\.model was not trained on: zh"):
        check(folder)
    check(folder, supervise={"allow_other_languages": True})


def test_inputs_from_stages_not_yet_run_are_not_checked(tmp_path):
    recipe = read_recipe(small_recipe(tmp_path))
    check_recipe(recipe, tmp_path / "out")
    with pytest.raises(UserError, match="no 'shortr' in models"):
        check_recipe(read_recipe(small_recipe(tmp_path, SMALL.replace("shorter", "shortr"))), tmp_path / "out")
