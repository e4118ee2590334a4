import msgspec
import pytest

import tiny
from steelyard.core.errors import ModelError
from steelyard.core.types import Case, Message, Response
from steelyard.networks.conversation import Rendering
from steelyard.training.examples import check_template
from strategies import case

ANSWERS = (Response(id="a", text="one"), Response(id="b", text="another"))
TURNS = (Message(role="system", content=" אנא "), Message(role="user", content="问题？"))
ANSWER_FIRST = "{{ messages[-1].content }}{% for message in messages[:-1] %}{{ message.content }}{% endfor %}"
LENGTH_FIRST = "{{ messages[-1].content | length }}" + tiny.CHATML


def given(answers=ANSWERS):
    return Case(prompt=msgspec.structs.replace(case(id="p").prompt, messages=TURNS), responses=answers)


@pytest.mark.parametrize("template", [tiny.CHATML, tiny.WITH_BOS])
def test_templates_that_write_the_prompt_first_are_taken(template):
    check_template([given()], tiny.tokenizer(), Rendering(template=template))


@pytest.mark.parametrize("template", [ANSWER_FIRST, LENGTH_FIRST])
def test_a_template_that_changes_the_prompt_with_the_answer_is_refused(template):
    with pytest.raises(ModelError, match="p: the chat template changes the prompt with the answer: its system text"):
        check_template([given()], tiny.tokenizer(), Rendering(template=template))


def test_cases_that_show_nothing_are_passed_over():
    rendering = Rendering(template=ANSWER_FIRST)
    check_template([given(ANSWERS[:1])], tiny.tokenizer(), rendering)
    check_template([], tiny.tokenizer(), rendering)
