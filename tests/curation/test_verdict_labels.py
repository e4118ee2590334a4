"""Labels of verdicts by the names of the answers, and by words."""

import pytest

from steelyard.curation.verdict_labels import choice_of, named_side


@pytest.mark.parametrize(
    ("names", "label", "side"),
    [
        (("Ответ А", "Ответ Б"), "Б", "right"),
        (("الإجابة أ", "الإجابة ب"), "أ", "left"),
        (("model_a_text", "model_b_text"), "B", "right"),
        (("chosen_one", "other"), "OTHER", "right"),
        (("response-1", "response-2"), "response-2", "right"),
        (("response-0", "response-1"), "1", None),
        (("answer", "answer"), "answer", None),
        (("a", "b", "c"), "a", None),
        (("x1", "x2"), "", None),
    ],
)
def test_a_label_is_the_name_of_an_answer_or_its_end(names, label, side):
    assert named_side(label, names) == side


@pytest.mark.parametrize(
    ("label", "verdict"),
    [("Both are good", "tie"), ("前者", "left"), ("[[B>>A]]", "right"), ("2", None), ("4.0", None), ("helpful", None)],
)
def test_a_choice_is_a_word_and_no_number(label, verdict):
    assert choice_of(label, ("x", "y")) == verdict
