import msgspec
import pytest

from steelyard.annotation.corruptions import CorpusEntry, check_entry
from steelyard.core.errors import RecordError
from steelyard.core.types import Message

GOOD = CorpusEntry(
    id="x",
    language="zh",
    category=("knowledge",),
    messages=(Message(role="user", content="水在几度沸腾？"),),
    answer="标准大气压下，水在 100 度沸腾，在 0 度结冰。",
    facts=(("100 度", "80 度"), ("0 度结冰", "9 度结冰")),
)


def test_an_entry_from_which_everything_can_be_made_is_given_back():
    assert check_entry(GOOD) is GOOD


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"category": ()}, "no category"),
        ({"messages": ()}, "turn of the user"),
        ({"messages": (Message(role="assistant", content="?"),)}, "turn of the user"),
        ({"facts": ()}, "no facts"),
        ({"facts": (("度", "米"),)}, "exactly once"),
        ({"facts": (("七度", "八度"),)}, "exactly once"),
        ({"facts": (("100 度", "100 度"),)}, "exactly once"),
        ({"facts": (("100 度", ""),)}, "exactly once"),
        ({"facts": (("在 100 度", "在 80 度"), ("100 度沸腾", "80 度沸腾"))}, "overlap"),
    ],
)
def test_what_stands_in_the_way_is_said(change, found):
    with pytest.raises(RecordError, match=f"'x'.*{found}"):
        check_entry(msgspec.structs.replace(GOOD, **change))
