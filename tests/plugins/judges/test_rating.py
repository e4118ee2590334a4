import pytest

from steelyard.core.comparison import Comparison, Reply
from steelyard.core.errors import ConfigError
from steelyard.core.plugins import build
from steelyard.core.types import Response
from strategies import prompt

SHOWN = tuple(Response(id=name, text=f"answer {name}") for name in "xyz")


def test_each_answer_has_its_number_or_its_reason():
    judge = build("judges", "rating", {})
    texts = ["good\n[[8]]", "[[11]]", "I cannot rate this."]
    answer = judge.read(
        Comparison(prompt=prompt(), responses=SHOWN, mark="0"), [Reply(request="r", text=text) for text in texts]
    )
    assert [(one.response, one.value, one.outcome) for one in answer.ratings] == [
        ("x", 8.0, None),
        ("y", None, "unparsed"),
        ("z", None, "refused"),
    ]
    assert answer.verdicts == ()


def test_each_answer_is_shown_alone():
    questions = build("judges", "rating", {"form": "letter"}).questions(
        Comparison(prompt=prompt(), responses=SHOWN, mark="0")
    )
    for question, own in zip(questions, SHOWN, strict=True):
        shown = question.messages[-1].content
        assert [one.id for one in SHOWN if one.text in shown] == [own.id]


@pytest.mark.parametrize("form", ["output", "first_token"])
def test_forms_without_numbers_are_refused(form):
    with pytest.raises(ConfigError, match="carries no rating"):
        build("judges", "rating", {"form": form})
