import pytest

import tiny
import tiny_families
from steelyard.core.errors import ModelError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Message, Prompt, Response
from strategies import prompt


@pytest.mark.parametrize(
    ("marks", "text"),
    [("card", "<s>[INST] why? [\\INST] 因为。"), ("mistral", "<s>[INST] why? [/INST] 因为。</s>")],
)
def test_the_reward_is_one_product_at_the_last_token_of_the_published_text(tmp_path, marks, text):
    folder = tiny_families.save_eurus_rm(tmp_path)
    one = Case(prompt=prompt("p", "why?"), responses=(Response(id="a", text="因为。"),))
    (line,) = build("models", "eurus_rm", {"path": folder, "marks": marks}).score([one])
    ids = tiny.tokenizer(None)(text).input_ids
    expected = tiny_families.stored(folder)["regression_head.weight"].double().numpy()[0]
    assert line.scores["a"] == pytest.approx(expected @ tiny_families.hidden_states(folder, ids)[-1], abs=1e-4)


def test_earlier_turns_stand_between_the_same_marks(tmp_path):
    folder = tiny_families.save_eurus_rm(tmp_path)
    talk = (
        Message(role="user", content="a"),
        Message(role="assistant", content="b"),
        Message(role="user", content="c"),
    )
    one = Case(prompt=Prompt(id="p", messages=talk), responses=(Response(id="r", text="d"),))
    model = build("models", "eurus_rm", {"path": folder, "marks": "mistral"})
    (line,) = model.score([one])
    ids = tiny.tokenizer(None)("<s>[INST] a [/INST] b</s>[INST] c [/INST] d</s>").input_ids
    weight = tiny_families.stored(folder)["regression_head.weight"].double().numpy()[0]
    assert line.scores["r"] == pytest.approx(weight @ tiny_families.hidden_states(folder, ids)[-1], abs=1e-4)


def test_a_system_prompt_is_refused_and_not_taken_for_a_question(tmp_path):
    talk = (Message(role="system", content="be brief"), Message(role="user", content="why?"))
    one = Case(prompt=Prompt(id="p", messages=talk), responses=(Response(id="r", text="d"),))
    model = build("models", "eurus_rm", {"path": tiny_families.save_eurus_rm(tmp_path)})
    with pytest.raises(ModelError, match="no system role"):
        list(model.score([one]))


def test_a_named_template_goes_before_the_marks(tmp_path):
    folder = tiny_families.save_eurus_rm(tmp_path)
    protocols = [
        build("models", "eurus_rm", {"path": folder} | named).protocol()["template_hash"]
        for named in ({}, {"marks": "mistral"}, {"chat_template": "plain"})
    ]
    assert len(set(protocols)) == 3
