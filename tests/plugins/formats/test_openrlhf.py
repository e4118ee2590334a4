from collections import Counter

import pytest

from format_rows import read, write
from steelyard.core.errors import ConfigError, Place, RecordError
from steelyard.core.plugins import build
from steelyard.core.protocols import Row
from steelyard.core.types import Pair
from strategies import case

NAMED = {"prompt_key": "question", "chosen_key": "good", "rejected_key": "bad"}


def turns(*pairs):
    return [{"role": role, "content": content} for role, content in pairs]


def read_named(row):
    return next(iter(build("formats", "openrlhf", NAMED).read([Row(Place("f.jsonl", 1), row)], Counter())))


def write_named(one):
    return list(build("formats", "openrlhf", NAMED).write([one], Counter()))


def test_without_a_prompt_key_the_answers_are_whole_conversations():
    row = {
        "chosen": turns(("user", "问"), ("assistant", "好")),
        "rejected": turns(("user", "问"), ("assistant", "坏")),
        "margin": 0.5,
    }
    (one,), _ = read("openrlhf", row)
    assert [turn.content for turn in one.prompt.messages] == ["问"]
    assert [response.text for response in one.responses] == ["好", "坏"]
    assert one.pairs == (Pair(better=one.responses[0].id, worse=one.responses[1].id, margin=0.5),)
    assert write("openrlhf", one)[0] == [row]


@pytest.mark.parametrize(
    "row",
    [
        {"question": turns(("user", "问")), "good": turns(("assistant", "好")), "bad": turns(("assistant", "坏"))},
        {"question": "User: q\nAssistant: ", "good": "yes", "bad": "no", "chosen": "a key of the row's own"},
    ],
)
def test_keys_are_those_of_the_settings(row):
    one = read_named(row)
    assert len(one.prompt.messages) == 1
    assert [len(tier) for tier in one.ranking] == [1, 1]
    assert write_named(one) == [row]


def test_what_comes_from_elsewhere_is_written_as_turns():
    one = case(text="q", responses="ab", ranking=(("a",), ("b",)))
    assert write_named(one) == [
        {
            "question": turns(("user", "q")),
            "good": turns(("assistant", "answer a")),
            "bad": turns(("assistant", "answer b")),
        }
    ]
    assert write("openrlhf", one)[0] == [
        {
            "chosen": turns(("user", "q"), ("assistant", "answer a")),
            "rejected": turns(("user", "q"), ("assistant", "answer b")),
        }
    ]


def test_texts_and_turns_are_not_mixed():
    with pytest.raises(RecordError, match=r"^f\.jsonl:1: question, good, bad are neither all texts nor all lists"):
        read_named({"question": "q", "good": turns(("assistant", "a")), "bad": turns(("assistant", "b"))})


def test_answers_that_share_nothing_send_to_the_setting():
    with pytest.raises(RecordError, match=r"(?s)^f\.jsonl:1: chosen and rejected share no prompt.*prompt_key"):
        read("openrlhf", {"chosen": "yes", "rejected": "yet"})
    with pytest.raises(RecordError, match=r"^f\.jsonl:1 at margin: a score that is no number"):
        read("openrlhf", {"chosen": "q\na", "rejected": "q\nb", "margin": "1"})


def test_two_keys_cannot_have_one_name():
    with pytest.raises(ConfigError, match="one name for several keys"):
        build("formats", "openrlhf", {"chosen_key": "x", "rejected_key": "x"})


def test_no_row_is_claimed():
    assert not build("formats", "openrlhf").recognises({"chosen": "q\na", "rejected": "q\nb"})
