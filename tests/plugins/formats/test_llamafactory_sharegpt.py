import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError

ROW = {
    "conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "q"}],
    "chosen": {"from": "gpt", "value": "a"},
    "rejected": {"from": "gpt", "value": "b"},
}


def test_roles_are_translated_both_ways_and_a_system_text_keeps_its_place():
    inside, apart = ROW, {**ROW, "conversations": ROW["conversations"][1:], "system": "s"}
    cases, _ = read("llamafactory_sharegpt", inside, apart)
    assert cases[0].prompt.messages == cases[1].prompt.messages
    assert [turn.role for turn in cases[0].prompt.messages] == ["system", "user"]
    assert write("llamafactory_sharegpt", *cases)[0] == [inside, apart]


def test_a_turn_without_value_is_refused():
    with pytest.raises(RecordError, match=r"f\.jsonl:1 at chosen: a turn of 'chosen' without"):
        read("llamafactory_sharegpt", {**ROW, "chosen": {"from": "gpt"}})


@pytest.mark.parametrize("system", [None, "", "s"])
def test_a_system_text_comes_back_even_where_it_says_nothing(system):
    row = {
        "conversations": [{"from": "human", "value": "q"}],
        "chosen": {"from": "gpt", "value": "a"},
        "rejected": {"from": "gpt", "value": "b"},
        "system": system,
    }
    (one,), noted = read("llamafactory_sharegpt", row)
    assert (len(one.prompt.messages), noted) == (2 if system else 1, {})
    assert write("llamafactory_sharegpt", one)[0] == [row]


def test_what_a_turn_says_beyond_its_text_is_counted():
    weighed = {"from": "human", "value": "q", "weight": 3}
    row = {"conversations": [weighed], "chosen": {"from": "gpt", "value": "a"}, "rejected": weighed}
    assert read("llamafactory_sharegpt", row)[1] == {"other keys of turns, left out": 2}
