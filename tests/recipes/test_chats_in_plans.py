"""Plans of recipes whose stages ask a chat: records hold its settings with defaults, recipes only some."""

import pytest

from chat_server import chatting
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.io.cases import write_cases
from steelyard.recipes.recipe import read_recipe
from steelyard.recipes.run import plan, run
from translators import ANSWERS, QUESTION, as_asked

STAGES = {
    "translated": 'verb = "translate"\nconfig.to = ["ru"]',
    "screened": 'verb = "prompts"\nconfig.near_duplicates = "off"',
    "sorted": 'verb = "prompts"\nconfig.near_duplicates = "off"',
}


@pytest.fixture
def recipe(tmp_path):
    cases = [
        Case(
            prompt=Prompt(
                id=f"p{number}", messages=(Message(role="user", content=QUESTION.format(number)),), language="en"
            ),
            responses=tuple(Response(id=name, text=answer) for name, answer in zip("ab", ANSWERS, strict=True)),
            ranking=(("a",), ("b",)),
        )
        for number in range(3)
    ]
    write_cases(tmp_path / "cases.jsonl", cases)
    path = tmp_path / "recipe.toml"

    def write(name):
        path.write_text(f'[stages.{name}]\ncases = "cases.jsonl"\n{STAGES[name]}\n', encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("name", "key", "reply"),
    [("translated", "chat", as_asked), ("screened", "chat", "no"), ("sorted", "classify", "code")],
)
def test_a_finished_stage_that_asked_a_chat_is_finished_in_the_plan(recipe, tmp_path, name, key, reply):
    path, out = recipe(name), tmp_path / "out"
    with chatting(reply) as server:
        chat = {"base_url": server.url, "model": "m"}
        asked = read_recipe(path, {name: {key: chat}})
        run(asked, out)
        assert [(each.state, each.why) for each in plan(asked, out)] == [("finished", "")]
        assert run(asked, out)[0].was_finished
        spelled = read_recipe(path, {name: {key: chat | {"kind": "openai_compatible", "num_tries": 2}}})
        assert [each.state for each in plan(spelled, out)] == ["finished"]
    other = read_recipe(path, {name: {key: chat | {"temperature": 0.5}}})
    assert [(each.state, each.why) for each in plan(other, out)] == [("differs", f"other settings: {key}")]


def test_another_file_of_a_chat_is_another_content(recipe, tmp_path):
    path, out, replies = recipe("sorted"), tmp_path / "out", tmp_path / "replies.jsonl"
    replies.write_text('{"text": "code"}\n', encoding="utf-8")
    asked = read_recipe(path, {"sorted": {"classify": {"kind": "recorded", "path": str(replies), "name": "m"}}})
    run(asked, out)
    assert [each.state for each in plan(asked, out)] == ["finished"]
    replies.write_text('{"text": "safety"}\n', encoding="utf-8")
    assert [each.why for each in plan(asked, out)] == [f"another content of classify.path: {replies}"]
