import json
import shutil

import pytest

import tiny
from steelyard.core.errors import ConfigError, FileError, RecordError
from steelyard.io.cases import write_cases
from steelyard.io.run_folder import result_folder
from steelyard.report.case_scores import find_scores
from steelyard.report.case_sources import choose_rule, look_up
from steelyard.stages.evaluate import Config as EvaluateConfig
from steelyard.stages.evaluate import evaluate
from steelyard.stages.merge import merge
from steelyard.stages.resolve import Config as ResolveConfig
from steelyard.stages.resolve import resolve
from steelyard.stages.score import score
from steelyard.stages.split import Config as SplitConfig
from steelyard.stages.split import split
from strategies import case, judgment


@pytest.fixture
def cases(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = ["why", "how so", "water", "moon light", "bread", "a long way"]
    path = tmp_path / "cases.jsonl"
    write_cases(path, [case(f"p{n}", "abc", ["a>b", "b>c"], text=text * 3) for n, text in enumerate(texts)])
    return path


def names(files):
    return [file.path.name for file in files]


def test_a_file_stands_for_itself(cases):
    target = look_up(cases)
    assert names(target.listed) == ["cases.jsonl"]
    assert (target.scores, target.model, target.rule.aggregate) == ((), None, "none")


def test_resolve_has_its_own_cases_its_rule_and_what_it_read(cases, tmp_path):
    config = ResolveConfig(only=choose_rule(["kind=human"], None).only, aggregate="majority")
    resolve(cases, tmp_path / "resolved", config)
    target = look_up(tmp_path / "resolved")
    assert [file.path for file in target.listed] == [tmp_path / "resolved" / "cases.jsonl"]
    assert [file.path for file in target.others] == [cases]
    assert str(target.rule) == "CHEEMS algorithm 1, only kind=human, majority vote on each pair"


def test_split_lists_every_part_and_merge_its_one_file(cases, tmp_path):
    split(cases, tmp_path / "parts", SplitConfig(parts={"train": 0.5, "test": 0.5}))
    assert names(look_up(tmp_path / "parts").listed) == ["test.jsonl", "train.jsonl"]
    write_cases(tmp_path / "more.jsonl", [case("q")])
    merge([cases, tmp_path / "more.jsonl"], tmp_path / "merged")
    assert names(look_up(tmp_path / "merged").listed) == ["cases.jsonl"]
    assert names(look_up(tmp_path / "merged").others) == ["cases.jsonl", "more.jsonl"]


def test_score_and_evaluate_have_the_cases_that_they_read_and_their_scores(cases, tmp_path):
    score(cases, tmp_path / "scored", model="longer")
    target = look_up(tmp_path / "scored")
    assert [file.path for file in target.listed] == [cases]
    assert target.listed[0].role == "read by score as cases"
    assert file_names(target.scores) == ["scores.jsonl"]
    assert (target.items, target.model) == (None, None)
    resolve(cases, tmp_path / "resolved")
    evaluate([tmp_path / "resolved" / "cases.jsonl"], tmp_path / "evaluated", model="longer")
    target = look_up(tmp_path / "evaluated")
    assert [file.path for file in target.listed] == [tmp_path / "resolved" / "cases.jsonl"]
    assert target.items == tmp_path / "evaluated" / "items.jsonl"


def file_names(paths):
    return [path.name for path in paths]


def test_a_run_moved_with_its_input_finds_it(cases, tmp_path):
    resolve(cases, tmp_path / "a" / "resolved")
    score(tmp_path / "a" / "resolved" / "cases.jsonl", tmp_path / "a" / "scored", model="longer")
    shutil.move(tmp_path / "a", tmp_path / "b")
    target = look_up(tmp_path / "b" / "scored")
    assert [file.path for file in target.listed] == [tmp_path / "b" / "resolved" / "cases.jsonl"]
    assert target.remarks == ()


def test_an_input_that_has_changed_is_said_to_have(cases, tmp_path):
    score(cases, tmp_path / "scored", model="longer")
    write_cases(cases, [case("other")])
    assert look_up(tmp_path / "scored").remarks == (f"{cases} has CHANGED since score read it",)


def test_a_run_whose_cases_are_gone_says_what_to_do(cases, tmp_path):
    score(cases, tmp_path / "scored", model="longer")
    cases.unlink()
    with pytest.raises(FileError) as error:
        look_up(tmp_path / "scored")
    assert f"{cases}, which score read as cases, is gone" in str(error.value)
    assert f"steelyard inspect CASES with scores={tmp_path / 'scored' / 'scores.jsonl'}" in str(error.value)


def test_an_output_that_is_gone_is_said_to_be(cases, tmp_path):
    split(cases, tmp_path / "parts", SplitConfig(parts={"train": 0.5, "test": 0.5}))
    (tmp_path / "parts" / "test.jsonl").unlink()
    target = look_up(tmp_path / "parts")
    assert names(target.listed) == ["train.jsonl"]
    assert target.remarks == (f"{tmp_path / 'parts' / 'test.jsonl'}, which split wrote, is gone",)


def test_a_run_without_any_cases_and_a_folder_without_a_run_are_refused(cases, tmp_path):
    with result_folder(tmp_path / "odd", "odd", config={}, inputs={}) as result:
        result.path("notes.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(FileError, match=r"no cases are known of this run \(odd\): it neither wrote nor read any"):
        look_up(tmp_path / "odd")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="no finished run"):
        look_up(tmp_path / "empty")
    (tmp_path / "empty" / "started.json").write_text("{}")
    with pytest.raises(FileError, match="did not finish"):
        look_up(tmp_path / "empty")


def test_raw_rows_of_a_benchmark_are_read_as_the_evaluation_did(tmp_path):
    raw = tmp_path / "rewardbench.jsonl"
    rows = [
        {"id": n, "prompt": f"q{n}", "chosen": "longer answer", "rejected": "no", "subset": "alpacaeval-easy",
         "chosen_model": "m", "rejected_model": "n"}
        for n in range(3)
    ]  # fmt: skip
    raw.write_text("".join(json.dumps(row) + "\n" for row in rows))
    evaluate([raw], tmp_path / "out", EvaluateConfig(bench_kind="rewardbench"), model="longer")
    (file,) = look_up(tmp_path / "out").listed
    lines = [json.loads(line) for line in (tmp_path / "out" / "items.jsonl").read_text().splitlines()]
    found = list(file.cases())
    assert [one.prompt.id for one in found] == [line["prompt"] for line in lines]
    assert [one.prompt.subset for one in found] == ["alpacaeval-easy"] * 3


def test_the_model_of_a_run_is_the_folder_that_it_scored_with(cases, tmp_path):
    model = tiny.save_classifier(tmp_path / "model")
    score(cases, tmp_path / "scored", model=model)
    target = look_up(tmp_path / "scored")
    assert target.model is not None
    assert target.model.kind == "classifier"
    assert target.model.files == {"path": tmp_path / "model"}
    assert target.protocol is not None
    shutil.move(model, tmp_path / "elsewhere")
    gone = look_up(tmp_path / "scored")
    assert gone.model is None
    assert gone.remarks == (f"{model}, the model of the run, is gone; name another model to see tokens",)


def test_rules_are_named_as_in_resolve():
    assert choose_rule([], None) is None
    rule = choose_rule(["judge=ann", "judge=bob"], "majority")
    assert (rule.only.judge, rule.aggregate) == (("ann", "bob"), "majority")
    assert rule.only.admits([judgment("a>b", judge="ann")]) == [True]
    with pytest.raises(ConfigError, match="did you mean 'majority'"):
        choose_rule([], "majorty")
    with pytest.raises(ConfigError, match="unknown key 'kin'"):
        choose_rule(["kin=human"], None)


@pytest.fixture
def write(tmp_path):
    def write(*rows, name="scores.jsonl"):
        path = tmp_path / name
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return path

    return write


ITEM = case("p", "ab", language="zh")


def test_the_line_of_the_language_is_found_before_one_without(write):
    path = write(
        {"prompt": "o", "scores": {"a": 9}},
        {"prompt": "p", "scores": {"a": 1, "b": 2}},
        {"prompt": "p", "language": "en", "scores": {"a": 3, "b": 4}},
        {"prompt": "p", "language": "zh", "scores": {"a": 5, "b": None}},
    )
    scored, sentence = find_scores(path, ITEM)
    assert scored.scores.scores == {"a": 5, "b": None}
    assert scored.scores.unscored == {"b": "no reason given"}
    assert sentence == f"scores: {path}:4"
    scored, sentence = find_scores(path, case("p", "ab", language="fr"))
    assert scored.scores.scores == {"a": 1, "b": 2}
    assert sentence == f"scores: {path}:2"


def test_no_line_and_one_that_does_not_fit_are_said(write):
    path = write({"prompt": "p", "language": "zh", "scores": {"a": 1}})
    assert find_scores(path, case("q", "ab")) == (None, f"scores: {path} has no line for this item")
    scored, sentence = find_scores(path, ITEM)
    assert scored is None
    assert sentence == f"scores: {path}:1 does NOT FIT this item: it gives no score for response 'b' of prompt 'p'"


def test_a_table_of_scores_is_read_and_an_absent_row_is_no_score(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("id,language,response,score\nq,zh,a,2\np,zh,a,1.5\n", encoding="utf-8")
    scored, sentence = find_scores(path, ITEM)
    assert scored.scores.scores == {"a": 1.5, "b": None}
    assert sentence == f"scores: {path}:3"


def test_the_result_of_an_evaluation_is_beside_its_scores(write):
    path = write({"prompt": "p", "language": "zh", "scores": {"a": 1, "b": 2}})
    counts = dict.fromkeys(("num_pairs", "num_correct", "num_tied"), 1) | {"category": "c", "exact_match": None}
    items = write({"prompt": "p", "language": "zh", **counts, "new": 0}, name="items.jsonl")
    scored, sentence = find_scores(path, ITEM, items)
    assert (scored.outcome.num_pairs, scored.outcome.num_correct) == (1, 1)
    assert sentence == f"scores: {path}:1; its result: {items}:1"


@pytest.mark.parametrize("line", ['{"prompt": "p"}', '{"prompt": "p", "scores": {"a": "high"}}', '{"prompt": '])
def test_a_broken_line_is_named(write, line):
    path = write({"prompt": "o", "scores": {}}, line)
    with pytest.raises(RecordError, match=r"scores\.jsonl:2"):
        find_scores(path, ITEM)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        find_scores(tmp_path / "none.jsonl", ITEM)
