from steelyard.core.types import Case, Message, Response
from steelyard.plugins.models._text import prompt_text, response_text
from strategies import case, prompt


def test_a_response_is_its_text_or_all_of_its_turns():
    turns = (Message(role="user", content="再问"), Message(role="assistant", content="再答"))
    assert response_text(Response(id="a", text="")) == ""
    assert response_text(Response(id="a", text="שלום 👋🏽")) == "שלום 👋🏽"
    assert response_text(Response(id="a", messages=turns)) == "再问\n再答"


def test_a_prompt_is_its_whole_conversation():
    messages = (Message(role="system", content="be kind"), Message(role="user", content="hi"))
    assert prompt_text(case()) == "What is it?"
    assert prompt_text(Case(prompt=prompt().__class__(id="p", messages=messages), responses=())) == "be kind\nhi"
