import json
import os
import re
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace

import tiny
import warm_process
from steelyard.core.checks import check_case, text_hashes
from steelyard.core.errors import ConfigError, EvidenceError, FileError, ModelError, OutputError, RecordError
from steelyard.core.types import Rating
from steelyard.evaluation.coverage import UnscoredResponses
from steelyard.io.cases import write_cases
from steelyard.stages.report import report
from steelyard.stages.score import Config, score
from strategies import case

CASES = [case("p", "ab", language="zh"), case("q", "xyz", text="שאלה 👋🏽")]


@pytest.fixture
def cases(tmp_path):
    write_cases(tmp_path / "cases.jsonl", CASES)
    return tmp_path / "cases.jsonl"


def lines(folder):
    return [json.loads(line) for line in (folder / "scores.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_line_a_case_in_order(cases, tmp_path):
    run = score(cases, tmp_path / "out", model="first")
    written = lines(tmp_path / "out")
    # Hashes of equal texts are equal, and there is one for each response.
    assert [line.pop("hashes") for line in written] == [text_hashes(one) for one in CASES]
    assert written == [
        {"prompt": "p", "language": "zh", "scores": {"a": 0.0, "b": -1.0}, "unscored": {}, "cut": []},
        {"prompt": "q", "language": None, "scores": {"x": 0.0, "y": -1.0, "z": -2.0}, "unscored": {}, "cut": []},
    ]
    assert (run.counts.num_in, run.counts.num_used) == (2, 2)
    assert run.summary.num_responses == 5
    assert run.summary.unscored == UnscoredResponses(0, {})
    assert run.config == {"kind": "first", "model": {}, "self_test": True}


def test_an_equal_run_is_not_repeated_and_another_one_is_refused(cases, tmp_path):
    first = score(cases, tmp_path / "out", model="random")
    assert score(cases, tmp_path / "out", model="random") == first
    with pytest.raises(OutputError, match="other inputs or settings"):
        score(cases, tmp_path / "out", Config(model={"seed": 1}), model="random")
    assert score(cases, tmp_path / "out", Config(model={"seed": 1}), model="random", force=True) != first


def test_files_of_the_model_are_inputs_known_by_content(cases, tmp_path):
    ranked = [case(str(index), "ab", text=f"question {index}", ranking=(("a",), ("b",))) for index in range(3)]
    write_cases(tmp_path / "train.jsonl", ranked)
    write_cases(tmp_path / "moved.jsonl", ranked)
    here, there = (
        Config(model={"train": str(tmp_path / name), "min_documents": 1}) for name in ("train.jsonl", "moved.jsonl")
    )
    run = score(cases, tmp_path / "out", here, model="ngram")
    assert set(run.inputs) == {"cases", "model.train"}
    assert score(cases, tmp_path / "out", there, model="ngram") == run


UNSURE = """
from steelyard.core.config import Config as BaseConfig
from steelyard.core.types import Scores

class Config(BaseConfig, frozen=True):
    score: float = 1.0

class Model:
    def __init__(self, score): self.value = score
    def score(self, cases):
        for case in cases:
            first, *others = (response.id for response in case.responses)
            scores = {first: self.value, **dict.fromkeys(others)}
            yield Scores(prompt=case.prompt.id, scores=scores, unscored=dict.fromkeys(others, "cut"))
    def protocol(self): return {"model": "unsure"}

def build(config): return Model(config.score)
"""


@pytest.fixture
def outside(tmp_path, monkeypatch):
    (tmp_path / "my_lab_models").mkdir()
    (tmp_path / "my_lab_models" / "__init__.py").write_text("")
    (tmp_path / "my_lab_models" / "unsure.py").write_text(UNSURE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "my_lab_models.unsure"


def test_a_model_from_outside_may_leave_responses_unscored_with_a_reason(cases, tmp_path, outside):
    run = score(cases, tmp_path / "out", Config(self_test=False), model=outside)
    assert lines(tmp_path / "out")[1]["scores"] == {"x": 1.0, "y": None, "z": None}
    assert lines(tmp_path / "out")[1]["unscored"] == {"y": "cut", "z": "cut"}
    assert run.summary.unscored == UnscoredResponses(3, {"cut": 3})
    unscored = {"unscored responses": 3, "unscored responses, unknown": 2, "unscored responses, zh": 1}
    assert run.counts.noted == {"responses": 5, "unscored: cut": 3, **unscored}


def test_a_score_that_is_no_number_leaves_nothing_behind(cases, tmp_path, outside):
    with pytest.raises(EvidenceError, match="nan for response 'a' of prompt 'p'"):
        score(cases, tmp_path / "out", Config(model={"score": float("nan")}, self_test=False), model=outside)
    assert not (tmp_path / "out" / "scores.jsonl").exists()
    assert not (tmp_path / "out" / "run.json").exists()


def test_a_model_is_tested_before_it_scores(cases, tmp_path, outside):
    with pytest.raises(ModelError, match=r"1 of 1 self-tests failed.*finite: 2 of 4 scores are NaN or infinite"):
        score(cases, tmp_path / "out", Config(model={"score": float("nan")}), model=outside)
    # It gives a number to the first answer of a case alone, so that each answer by itself has one.
    with pytest.raises(ModelError, match=r"alone: prompt 'q', answer 'z' scores nothing with others and 1 by itself"):
        score(cases, tmp_path / "out", model=outside)
    assert not (tmp_path / "out" / "scores.jsonl").exists()
    tested = score(cases, tmp_path / "first", model="longer").summary.self_test
    assert tested.state == "passed"
    assert {name: test.state for name, test in tested.tests.items()} == dict.fromkeys(
        ("finite", "alone", "order"), "passed"
    )


def test_a_run_says_that_its_model_was_not_tested(cases, tmp_path, outside):
    run = score(cases, tmp_path / "out", Config(self_test=False), model=outside)
    assert run.summary.self_test.state == "off"
    assert run.config["self_test"] is False


def test_answers_that_do_not_fit_are_counted_by_language_and_scored_as_null(tmp_path):
    folder = tiny.save_classifier(tmp_path / "model")
    long = [case("p", "ab", language="zh"), case("q", "a", text="很长的问题。" * 60, language="he")]
    write_cases(tmp_path / "long.jsonl", long)
    run = score(tmp_path / "long.jsonl", tmp_path / "out", Config(model={"max_length": 100}), model=str(folder))
    figures = run.summary.self_test.tests["length"].figures
    assert (figures["num_too_long"], figures["max_length"]) == (1, 100)
    assert figures["by_language"] == {
        "he": {"num_too_long": 1, "num_answers": 1},
        "zh": {"num_too_long": 0, "num_answers": 2},
    }
    hebrew = run.summary.coverage.by_language["he"]
    assert (hebrew.num_responses, hebrew.num_cut, hebrew.num_unscored) == (1, 0, 1)
    assert set(run.summary.self_test.tests) >= {
        "alone",
        "packing",
        "beginning_mark",
        "last_token",
        "trained_head",
    }
    assert run.summary.unscored.num_responses == 1


@pytest.mark.parametrize("value", [1e308, -2e150])
def test_a_score_whose_differences_are_infinite_is_refused(cases, tmp_path, outside, value):
    with pytest.raises(EvidenceError, match="for response 'a' of prompt 'p'") as caught:
        score(cases, tmp_path / "out", Config(model={"score": value}, self_test=False), model=outside)
    assert "at most 1e+150" in str(caught.value)
    rated = replace(
        case("p", "ab"), ratings=(Rating(response="a", rater="r", kind="human", dimension="d", value=value),)
    )
    with pytest.raises(RecordError, match="the value is"):
        check_case(rated)


@pytest.mark.parametrize("kind", ["classifier", "implicit"])
def test_a_limit_that_no_answer_meets_is_refused_with_what_would_do(tmp_path, kind):
    folder = (tiny.save_classifier if kind == "classifier" else tiny.save_base)(tmp_path / "model")
    write_cases(tmp_path / "long.jsonl", [case("p", "ab", language="zh"), case("q", "a", text="很长的问题。" * 60)])
    settings = {"path": str(folder), "max_length": 3}
    with pytest.raises(ModelError, match="3 of 3 answers are longer than 3 tokens") as caught:
        score(tmp_path / "long.jsonl", tmp_path / "out", Config(model=settings), model=kind)
    assert "no answer is left" in caught.value.problem
    assert "over_length=left" in caught.value.do
    assert "max_length=" in caught.value.do
    assert not (tmp_path / "out" / "scores.jsonl").exists()


@pytest.mark.parametrize("kind", ["classifier", "implicit", "grm", "remote"])
@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_one_token_is_refused(cases, tmp_path, kind, limit):
    needed = {"url": "http://127.0.0.1", "dialect": "sglang"} if kind == "remote" else {"path": str(tmp_path)}
    with pytest.raises(ConfigError, match=f"max_length is {limit}"):
        score(cases, tmp_path / "out", Config(model=needed | {"max_length": limit}), model=kind)


def test_cases_without_a_response_are_refused(tmp_path):
    write_cases(tmp_path / "bare.jsonl", [case("p", ""), case("q", "")])
    with pytest.raises(EvidenceError, match="no case has a response"):
        score(tmp_path / "bare.jsonl", tmp_path / "out", model="longer")


def test_an_absent_file_is_the_users_error(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        score(tmp_path / "absent.jsonl", tmp_path / "out", model="longer")


DYING = """
import os, signal
from pathlib import Path
from steelyard.core.config import Config as BaseConfig
from steelyard.core.types import Scores

class Config(BaseConfig, frozen=True):
    log: str = ""

class Model:
    def __init__(self, log): self.log = Path(log)
    def score(self, cases):
        for case in cases:
            said = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
            if len(said) == 3:
                self.log.write_text("\\n".join([*said, "died"]) + "\\n", encoding="utf-8")
                os.kill(os.getpid(), signal.SIGKILL)
            self.log.write_text("\\n".join([*said, case.prompt.id]) + "\\n", encoding="utf-8")
            yield Scores(prompt=case.prompt.id, scores={one.id: float(len(case.prompt.id)) for one in case.responses})
    def protocol(self): return {"model": "dying"}

def build(config): return Model(config.log)
"""


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["score", "evaluate"])
def test_nothing_is_scored_twice_after_a_kill(tmp_path, monkeypatch, stage):
    (tmp_path / "dying.py").write_text(DYING, encoding="utf-8")
    write_cases(tmp_path / "cases.jsonl", [case(f"p{index}", "ab", ranking=(("a",), ("b",))) for index in range(7)])
    log = tmp_path / "log.txt"
    asked = ["cases.jsonl"] if stage == "score" else ["--bench", "cases.jsonl", "--baselines", "none"]
    asked.append("--no-self-test")
    words = [stage, *asked, "--model", "my.dying", "--set", f"model.log={log}", "--out", "out"]
    (tmp_path / "my").mkdir()
    (tmp_path / "dying.py").rename(tmp_path / "my" / "dying.py")
    code = "from steelyard.cli.main import main; main()"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    runs = [warm_process.run("-c", code, *words, cwd=tmp_path, env=environment) for _ in range(2)]
    assert runs[0].returncode == -signal.SIGKILL
    assert runs[1].returncode == 0, runs[1].stderr
    assert "3 of 7 cases were scored before this run was stopped" in runs[1].stderr
    assert log.read_text("utf-8").split() == ["p0", "p1", "p2", "died", "p3", "p4", "p5", "p6"]
    assert [line["prompt"] for line in lines(tmp_path / "out")] == [f"p{index}" for index in range(7)]
    assert not list((tmp_path / "out").glob("*.part.jsonl"))


def test_a_folder_and_a_pattern_of_case_files_are_scored_in_order(tmp_path):
    (tmp_path / "in").mkdir()
    for name, one in zip(("b.jsonl", "a.jsonl"), CASES, strict=True):
        write_cases(tmp_path / "in" / name, [one])
    for out, cases in (("folder", tmp_path / "in"), ("pattern", tmp_path / "in" / "?.jsonl")):
        run = score(cases, tmp_path / out, model="first")
        assert [line["prompt"] for line in lines(tmp_path / out)] == ["q", "p"]
        assert {role: Path(file.path).name for role, file in run.inputs.items()} == {
            "cases.1": "a.jsonl", "cases.2": "b.jsonl"
        }  # fmt: skip
    write_cases(tmp_path / "in" / "a.jsonl", [CASES[0]])
    with pytest.raises(RecordError, match=r"'p'.*is also in .*a\.jsonl"):
        score(tmp_path / "in", tmp_path / "twice", model="first")


@pytest.mark.parametrize(
    ("center", "sentence", "note"),
    [
        ("data", "a score plus 3.000 is a rating of stars", "so that scores of two prompts compare"),
        ("prompt", "scores of two prompts do not compare", "Only differences within a prompt carry meaning"),
    ],
)
def test_the_page_of_a_model_of_ratings_says_what_its_scores_mean(tmp_path, center, sentence, note):
    ratings = [Rating(response=name, rater="x", kind="human", dimension="stars", value=value, range=(1, 5))
               for name, value in (("a", 5.0), ("b", 1.0))]  # fmt: skip
    rated = [replace(case(str(number), "ab", text=f"問 {number}"), ratings=tuple(ratings)) for number in range(6)]
    write_cases(tmp_path / "rated.jsonl", rated)
    settings = {"train": str(tmp_path / "rated.jsonl"), "loss": "mean-squared-error", "rating_center": center}
    score(tmp_path / "rated.jsonl", tmp_path / "scored", Config(model=settings | {"min_documents": 1}), model="ngram")
    report([tmp_path / "scored"], tmp_path / "page.html")
    page = re.sub(r"</?(b|bdi|strong)[^>]*>", "", (tmp_path / "page.html").read_text("utf-8"))
    assert sentence in page
    assert note in page
