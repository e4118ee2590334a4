import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from strategies import case


def test_nothing_is_lost_either_way():
    one = case(judgments=["a>b", "b?c"], ranking=(("a",), ("b", "c")), language="he", meta={"k": [1]})
    rows, dropped = write("cases", one)
    assert (read("cases", *rows), dropped) == (([one], {}), {})


def test_a_case_that_does_not_hold_together_is_placed():
    rows, _ = write("cases", case(ranking=(("a",),)))
    rows[0]["ranking"] = [["z"]]
    with pytest.raises(RecordError, match=r"f\.jsonl:1: ranking: names response 'z'"):
        read("cases", *rows)


def test_a_key_that_stands_twice_is_refused():
    rows, _ = write("cases", case(), case(language="zh"), case())
    with pytest.raises(RecordError, match=r"f\.jsonl:3: prompt id 'p' is already used at f\.jsonl:1"):
        read("cases", *rows)
