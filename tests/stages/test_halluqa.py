import json
import lzma
from pathlib import Path

import halluqa_package
import pytest

from steelyard.io.cases import read_cases
from steelyard.stages.halluqa import FOLDER, Config, HalluqaRow, gpt4_case, halluqa, people_case, read_questions

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "halluqa"
ASKED = HalluqaRow(
    id="7",
    question="1+1 等于几？",
    category=("Knowledge", "常识"),
    best=("二。", "等于二。", "二。"),
    wrong=("三。", "二。"),
    answers=((0, "二", False), (1, "三", True), (2, "二", False), (1, "四", True), (2, "四", False), (0, " ", False)),
)


def test_packaged_file_has_the_published_numbers():
    # README of HalluQA: 450 questions, 24 models; 10,800 answers, of which 13 labels could not be read.
    models, questions = read_questions()
    assert (len(models), len(questions)) == (24, 450)
    labels = [label for question in questions for _, _, label in question.answers]
    assert (len(labels), sum(labels)) == (10_787, 6_464)
    assert {len(question.best) for question in questions} <= {1, 2, 3, 4}
    assert len({question.id for question in questions}) == 450


def test_licence_and_notice_are_packaged():
    assert "Apache License" in (FOLDER / "LICENSE").read_text(encoding="utf-8")
    notice = (FOLDER / "NOTICE").read_text(encoding="utf-8")
    assert "OpenMOSS" in notice
    assert "Left out" in notice


@pytest.mark.field
@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="needs ../shared/data/halluqa: the published files")
def test_script_makes_the_packaged_bytes(tmp_path):
    halluqa_package.main(
        str(PUBLISHED / "HalluQA.json"), str(PUBLISHED / "Chinese_LLMs_outputs" / "open_generation"), str(tmp_path)
    )
    assert (tmp_path / halluqa_package.FILE).read_bytes() == (FOLDER / halluqa_package.FILE).read_bytes()


def test_script_keeps_readable_labels_alone(tmp_path):
    row = {"question_id": 1, "Question": "问？", "Category": "Knowledge", "Class": "常识", "Source": "s"}
    row |= {"Best Answer1": "对", "Best Answer2": "", "Wrong_Answer1": "错"}
    (tmp_path / "questions.json").write_text(json.dumps([row]), encoding="utf-8")
    folder = tmp_path / "answers"
    folder.mkdir()
    for model, label in (("a", True), ("b", "Invalid_Judge")):
        answer = {"question_id": 1, "response": f"由 {model}", "is_hallucination": label}
        (folder / f"{model}_output_qa.json").write_text(json.dumps([answer]), encoding="utf-8")
    halluqa_package.main(str(tmp_path / "questions.json"), str(folder), str(tmp_path))
    text = lzma.decompress((tmp_path / halluqa_package.FILE).read_bytes()).decode("utf-8")
    header, line = map(json.loads, text.splitlines())
    assert header == {"models": ["a", "b"]}
    assert line == {
        "id": "1",
        "question": "问？",
        "category": ["Knowledge", "常识"],
        "best": ["对"],
        "wrong": ["错"],
        "answers": [[0, "由 a", True]],
    }


def test_people_prefer_each_best_answer_to_each_wrong_one():
    case = people_case(ASKED)
    assert [response.text for response in case.responses] == ["二。", "等于二。", "三。"]
    assert {(one.left, one.right, one.verdict) for one in case.judgments} == {
        ("best-1", "wrong-1", "left"),
        ("best-2", "wrong-1", "left"),
    }


def test_gpt4_prefers_truthful_answers_and_contradicting_labels_are_left_out():
    case = gpt4_case(ASKED, ("甲", "乙", "丙"), Config())
    # "四" has both labels, and the empty answer is none.
    assert {response.text for response in case.responses} == {"二", "三"}
    assert {rating.value for rating in case.ratings} == {0.0, 1.0}
    (judgment,) = case.judgments
    texts = {response.id: response.text for response in case.responses}
    better = judgment.left if judgment.verdict == "left" else judgment.right
    assert (texts[better], judgment.judge, judgment.kind) == ("二", "gpt-4", "llm")


def test_responses_of_one_question_have_different_ids():
    models, questions = read_questions()
    for question in questions:
        ids = [response.id for response in gpt4_case(question, models, Config(num_answers=24)).responses]
        assert len(set(ids)) == len(ids)


def test_stage_writes_both_files_of_the_same_questions(tmp_path):
    run = halluqa(tmp_path / "out", Config(num_questions=12, num_answers=3))
    people, labelled = (list(read_cases(tmp_path / "out" / f"{name}.jsonl")) for name in ("people", "gpt4"))
    assert [case.key for case in people] == [case.key for case in labelled]
    assert run.counts.num_used == len(people) == 12
    assert all(1 <= len(case.responses) <= 3 for case in labelled)
    assert sum(run.summary.num_answers.values()) == sum(len(case.ratings) for case in labelled)
    assert {"LICENSE", "NOTICE"} <= set(run.outputs)
