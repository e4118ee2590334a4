"""Forms of alignment and review for questions: what was sent is the answer, and what no page sends is refused."""

import pytest

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.task_kinds import kind_named, kind_names
from steelyard.core.errors import ConfigError
from steelyard.workbench.projects import ProjectSettings
from steelyard.workbench.question_words import catalogues_of
from steelyard.workbench.settling_forms import EnteredForm, answer_of_questions, question_fields
from task_kind_cases import simulated

CATALOGUES = catalogues_of(ProjectSettings())
QUESTION_KINDS = [name for name in kind_names() if name != "triple"]


@pytest.mark.parametrize("name", QUESTION_KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_a_form_that_was_filled_in_with_an_answer_gives_that_answer(name, seed):
    shown, answer = simulated(name, CATALOGUES, seed=seed)
    questions = kind_named(name).questions(tuple(shown), CATALOGUES)
    fields = {field.name: [field.value] for field in question_fields(questions, answer)}
    for field in question_fields(questions, answer):
        if field.question.input == "marks":
            fields[field.name] = ["0"]
    assert answer_of_questions(questions, tuple(shown), EnteredForm(fields), [answer]) == answer


def test_marks_are_taken_from_those_who_answered():
    questions = kind_named("span_marking").questions(("a",), CATALOGUES)
    first = TaskAnswer(spans={"a": ((0, 4, "other", None), (10, 12, "harmful", "why"))})
    second = TaskAnswer(spans={"a": ((2, 6, "other", None),)})

    def taken(value):
        form = EnteredForm({"question-0": [value], "remark": [" so "]})
        return answer_of_questions(questions, ("a",), form, [first, second])

    assert taken("1").spans == second.spans
    assert taken("1").remark == "so"
    assert taken("all").spans == {"a": ((0, 4, "other", None), (2, 6, "other", None), (10, 12, "harmful", "why"))}
    assert taken("common").spans == {"a": ((0, 4, "other", None),)}
    assert taken("none").spans == {}
    for wrong in ("2", "-1", "x", "１"):
        with pytest.raises(ConfigError):
            taken(wrong)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("pairwise", {"question-0": ["third"]}),
        ("translation_quality", {"question-0": ["none"], "question-1": ["101"]}),
        ("translation_quality", {"question-0": ["none"], "question-1": ["-1"]}),
        ("translation_quality", {"question-0": ["none"], "question-1": ["9" * 5000]}),
    ],
)
def test_what_no_page_sends_is_an_error(name, fields):
    shown, _ = simulated(name, CATALOGUES)
    questions = kind_named(name).questions(tuple(shown), CATALOGUES)
    with pytest.raises(ConfigError):
        answer_of_questions(questions, tuple(shown), EnteredForm(fields), [])


def test_a_discarded_response_of_a_pair_leaves_no_order():
    questions = kind_named("pairwise").questions(("a", "b"), CATALOGUES)
    form = EnteredForm({"question-0": ["first"], "discard": ["", "garbled"]})
    answer = answer_of_questions(questions, ("a", "b"), form, [])
    assert answer == TaskAnswer(discarded={"b": "garbled"})
    assert kind_named("pairwise").contradictions(answer, ("a", "b")) == ()


def test_entries_that_do_not_apply_any_more_are_left_out():
    questions = kind_named("prompt_review").questions((), CATALOGUES)
    names = [question.name for question in questions]
    sent = {"decision": "drop", "revised_text": "x", "drop_reason": "unsafe", "category": "code", "difficulty": "easy"}
    form = EnteredForm({f"question-{place}": [sent.get(name, "")] for place, name in enumerate(names)})
    assert answer_of_questions(questions, (), form, []).entries == {"decision": "drop", "drop_reason": "unsafe"}
