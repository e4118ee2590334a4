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
