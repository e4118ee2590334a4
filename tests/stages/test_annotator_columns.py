"""Tables with a column for each annotator, of a winner's and a loser's text, and of results without texts."""

import re

import pytest

import steelyard as sy
from converted_tables import read, texts
from steelyard.core.errors import ConfigError, KindError, RecordError

VOTES = [
    {"prompt": "光？", "response_a": "甲", "response_b": "乙", "Anna": "A", "Ben": "B", "周": "tie", "note": "n"},
    {"prompt": "light?", "response_a": "x", "response_b": "y", "Anna": "B", "Ben": "", "周": "A", "note": "m"},
    {"prompt": "later?", "response_a": "x", "response_b": "y", "Anna": None, "Ben": " ", "周": "", "note": "l"},
]
SIDES = {"first_column": "response_a", "second_column": "response_b"}


def proposed(rows):
    """The cases of the call that the refusal of the rows proposes."""
    with pytest.raises(KindError) as refused:
        read(rows)
    return eval(str(refused.value.do).rpartition("perhaps so: ")[2]).cases


def verdicts(case):
    text = texts(case)
    return {one.judge: (one.verdict, text[one.left]) for one in case.judgments if one.verdict != "none"}


def test_each_column_of_labels_is_a_judge_by_its_name():
    first, second, third = read(VOTES, judge_column=["Anna", "Ben", "周"], **SIDES)[0]
    assert verdicts(first) == {"Anna": ("left", "甲"), "Ben": ("right", "甲"), "周": ("tie", "甲")}
    # An empty cell is no vote, and a row without votes stays as one without a verdict.
    assert verdicts(second) == {"Anna": ("right", "x"), "周": ("left", "x")}
    assert verdicts(third) == {}
    assert [judgment.verdict for judgment in third.judgments] == ["none"]
    assert first.prompt.meta == {"note": "n"}


def test_each_column_of_ratings_is_a_rater_by_its_name():
    rows = [{"prompt": "q", "response": text, "r1": low, "r2": high} for text, low, high in (("a", 1, 2), ("b", 4, 5))]
    (case,), _ = read(rows, response_column="response", judge_column=["r1", "r2"])
    text = texts(case)
    assert {(text[one.response], one.rater, one.value) for one in case.ratings} == {
        ("a", "r1", 1), ("a", "r2", 2), ("b", "r1", 4), ("b", "r2", 5),
    }  # fmt: skip
    assert [[text[name] for name in tier] for tier in case.ranking] == [["b"], ["a"]]


@pytest.mark.parametrize(
    "named",
    [
        SIDES | {"label_column": "note"},
        {"chosen_column": "response_a", "rejected_column": "response_b"},
        {"response_column": ["response_a", "response_b"]},
    ],
)
def test_columns_of_annotators_beside_others_of_their_evidence_are_refused(named):
    with pytest.raises(ConfigError, match="2 columns of judge_column"):
        read(VOTES, judge_column=["Anna", "Ben"], **named)


def test_a_column_of_an_annotator_that_is_nowhere_is_refused():
    with pytest.raises(RecordError, match="no column 'Bea' in any row"):
        read(VOTES, judge_column=["Anna", "Bea"], **SIDES)


@pytest.mark.parametrize("names", [("Anna", "Ben", "周"), ("annotator_1", "annotator_2", "annotator_3")])
@pytest.mark.parametrize("labels", [("A", "B", "tie"), ("1", "2", "0"), (1, 2, 0)])
def test_the_call_for_a_table_with_a_column_for_each_annotator_takes_all_of_them(names, labels):
    rows = [
        {"prompt": f"What is {place}?", "answer1": f"It is {place}.", "answer2": "I do not know."}
        | dict(zip(names, labels, strict=True))
        for place in range(3)
    ]
    for case in proposed(rows):
        assert {judge: verdict for judge, (verdict, _) in verdicts(case).items()} == dict(
            zip(names, ("left", "right", "tie"), strict=True)
        )


def test_the_call_for_a_table_of_ratings_by_several_people_takes_all_of_them():
    rows = [{"prompt": "q", "response": text, "Li": "1", "Wu": "2,5"} for text in ("one", "two")]
    (case,) = proposed([row | {"Wu": "2.5"} for row in rows])
    assert {(one.rater, one.value) for one in case.ratings} == {("Li", 1.0), ("Wu", 2.5)}


def test_verdicts_on_several_qualities_are_not_taken_for_those_of_people():
    row = {"prompt": "q", "answer_a": "x", "answer_b": "y", "helpfulness": "A", "safety": "B"}
    with pytest.raises(KindError) as refused:
        read([row, row | {"prompt": "r", "helpfulness": "B"}])
    assert "judge_column" not in str(refused.value.do)


def test_the_call_for_texts_of_a_winner_and_a_loser_takes_them_as_pairs():
    (case,) = proposed([{"prompt": "q", "winner": "the good one", "loser": "the bad one"}])
    text = texts(case)
    assert [[text[name] for name in tier] for tier in case.ranking] == [["the good one"], ["the bad one"]]
    named = {"prompt": "q", "answer_a": "x", "answer_b": "y", "winner": "gpt 4", "loser": "gemma 3"}
    with pytest.raises(KindError) as refused:
        read([named])
    assert "chosen_column" not in str(refused.value.do)


@pytest.mark.parametrize(
    "row",
    [
        {"idx": 1, "motivation_app": "x", "cmp_key": "bloom-7b_cerebras-gpt-6.7B", "annotator1": 1, "annotator2": 2},
        {"id": 1, "model_a": "m1", "model_b": "m2", "winner": "model_a"},
        {"model": "m1", "score": "0.5", "elo": "1000"},
    ],
)
def test_of_results_without_texts_no_column_is_proposed_as_a_prompt(row):
    with pytest.raises(sy.errors.KindError) as refused:
        read([row])
    assert "join results without texts with the prompts and answers" in str(refused.value.do)
    assert "perhaps so" not in str(refused.value.do)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("好回答", "差回答"), ("优选", "劣选"), ("选中_回答", "拒绝_回答"), ("選択", "却下"),
        ("선택 답변", "거부 답변"),
        ("elegida", "rechazada"), ("respuesta_elegida", "respuesta_rechazada"), ("escolhida", "rejeitada"),
        ("choisie", "rejetée"), ("bevorzugt", "abgelehnt"), ("Bessere Antwort", "Schlechtere Antwort"),
        ("лучший ответ", "худший ответ"), ("الإجابة المختارة", "الإجابة المرفوضة"), ("נבחרה", "נדחתה"),
        ("चयनित", "अस्वीकृत"), ("winner_response", "loser_response"),
    ],
)  # fmt: skip
def test_a_pair_of_columns_is_known_in_any_language(better, worse):
    (case,), _ = read([{"prompt": "天为什么是蓝的？", better: "Yes, it is.", worse: "No, it is not."}])
    text = texts(case)
    assert [[text[name] for name in tier] for tier in case.ranking] == [["Yes, it is."], ["No, it is not."]]


@pytest.mark.parametrize(
    ("better", "worse"), [("胜者", "败者"), ("ganador", "perdedor"), ("Gewinner", "Verlierer"), ("승자", "패자")]
)
def test_columns_that_may_name_models_are_proposed_and_not_guessed(better, worse):
    (case,) = proposed([{"prompt": "天为什么是蓝的？", better: "Yes, it is.", worse: "No, it is not."}])
    text = texts(case)
    assert [[text[name] for name in tier] for tier in case.ranking] == [["Yes, it is."], ["No, it is not."]]


def annotated(*annotations, **fields):
    row = {"prompt": "Which is larger?", "response_a": "one", "response_b": "two", "annotations": list(annotations)}
    return row | fields


def test_each_annotation_of_a_list_is_a_judgment_of_its_annotator():
    rows = [
        annotated({"annotator": "ann", "preference": "A"}, {"annotator": "bob", "preference": "tie", "note": "hard"}),
        annotated(prompt="And which is smaller?"),
        annotated(prompt="And which is odd?", annotations=None),
    ]
    judged, *others = read(rows)[0]
    assert verdicts(judged) == {"ann": ("left", "one"), "bob": ("tie", "one")}
    assert judged.judgments[1].meta["row"] == {"annotations": {"note": "hard"}}
    assert [judgment.verdict for case in others for judgment in case.judgments] == ["none", "none"]


def test_ratings_of_several_annotators_in_a_list_are_proposed_with_their_names():
    ratings = [{"annotator": "ann", "score": 4}, {"annotator": "bob", "score": 2}]
    (case,) = proposed([{"prompt": "Which?", "response": "one", "annotations": ratings}])
    assert [(rating.rater, rating.value) for rating in case.ratings] == [("ann", 4), ("bob", 2)]


def test_annotations_with_unknown_labels_are_proposed_with_their_annotators():
    with pytest.raises(KindError) as refused:
        read([annotated({"worker": "ann", "verdict": "x"}, {"worker": "bob", "verdict": "y"})])
    assert {"annotations.verdict", "annotations.worker"} <= set(re.findall(r"annotations\.\w+", str(refused.value.do)))


def test_the_answer_of_prodigys_compare_names_the_better_output():
    row = {"accept": {"text": "one"}, "reject": {"text": "two"}, "mapping": {"A": "reject", "B": "accept"}}
    answers = ("accept", "reject", "ignore")
    cases, _ = read([row | {"id": answer, "input": {"text": answer}, "answer": answer} for answer in answers])
    assert [case.judgments[0].verdict for case in cases] == ["left", "right", "none"]
    assert [*texts(cases[0]).values()] == ["one", "two"]
