import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from strategies import case


def test_the_place_in_the_output_is_the_tier_and_repeats_are_counted():
    (one,), noted = read(
        "llamafactory_ranked", {"instruction": "i", "input": "x", "output": ["a", "b", "a"], "history": []}
    )
    assert [len(tier) for tier in one.ranking] == [1, 1, 1]
    assert one.responses[2].id == f"{one.responses[0].id}~2"
    assert noted == {"repeated responses": 1}
    assert one.prompt.messages[-1].content == "i\nx"


def test_ties_and_unranked_responses_are_counted():
    rows, lost = write("llamafactory_ranked", case(ranking=(("b", "c"), ("a",))))
    assert rows[0]["output"] == ["answer b", "answer c", "answer a"]
    assert (lost["ties"], lost["unranked responses"]) == (1, 2)


@pytest.mark.parametrize("output", ["text", None, [1]])
def test_an_output_that_is_no_list_of_texts_is_refused(output):
    with pytest.raises(RecordError, match=r"^f\.jsonl:1"):
        read("llamafactory_ranked", {"instruction": "i", "output": output})
