import pytest

import tiny
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.integrations.reward_function import RewardFunction, conversations
from steelyard.plugins.reward_models import build_model, choose_model

TEXTS = ["杆秤是什么？", "ما هو الميزان؟", "$x^2$ ```code```"]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    return tiny.save_classifier(tmp_path_factory.mktemp("model"))


def test_the_longer_completion_has_the_greater_reward():
    rewards = RewardFunction("longer")
    assert rewards(["q", "q", "r"], ["four", "sixsix", "1"], completion_ids=[[1], [2], [3]], step=4) == [4, 6, 1]
    assert rewards.__name__ == "longer"


def test_completions_of_one_prompt_are_one_case_whatever_their_order():
    turn = [{"role": "user", "content": "q"}]
    cases, places = conversations(["q", "r", turn], ["a", "b", [{"role": "assistant", "content": "c"}]])
    assert [len(case.responses) for case in cases] == [2, 1]
    assert list(places.values()) == [[0, 2], [1]]
    assert cases[0].responses[0].text == "a"
    assert cases[0].responses[1].messages == (Message(role="assistant", content="c"),)


def test_rewards_are_those_of_the_model_itself(model_folder):
    prompts, completions = [*TEXTS, TEXTS[0]], ["ja", "नमस्ते", "a b", "nein"]
    rewards = RewardFunction(model_folder)(prompts, completions)
    model = build_model(choose_model(model_folder))
    for prompt, completion, reward in zip(prompts, completions, rewards, strict=True):
        messages = (Message(role="user", content=prompt),)
        case = Case(prompt=Prompt(id="p", messages=messages), responses=(Response(id="r", text=completion),))
        (line,) = model.score([case])
        assert reward == pytest.approx(line.scores["r"], abs=1e-5)


def test_a_completion_over_the_limit_has_no_reward_unless_one_is_named(model_folder):
    model = build_model(choose_model(model_folder, {"max_length": 30}))
    long = "word " * 50
    with pytest.raises(EvidenceError, match="completion 1 has no reward") as raised:
        RewardFunction(model)(["q", "q"], ["short", long])
    assert "unscored=REWARD" in str(raised.value.do)
    rewards = RewardFunction(model, unscored=-7.5)(["q", "q"], ["short", long])
    assert rewards[1] == -7.5
    assert rewards[0] != -7.5


@pytest.mark.parametrize(
    "completion", [[], [{"role": "assistant", "content": None}], [{"role": "assistant", "content": [{"type": "x"}]}]]
)
def test_a_message_without_text_is_refused(completion):
    with pytest.raises(ConfigError, match=r"completions\[0\]"):
        RewardFunction("longer")(["q"], [completion])


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(ConfigError, match="2 prompts for 1 completions"):
        RewardFunction("longer")(["q", "r"], ["a"])
