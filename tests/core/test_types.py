import msgspec
import pytest

from steelyard.core.types import Case, Counts, Judgment, Message, Prompt, Response, Scores


def test_a_case_is_known_by_prompt_and_language():
    prompt = Prompt(id="p", messages=(Message(role="user", content="q"),), language="zh")
    assert Case(prompt=prompt, responses=()).key == ("p", "zh")


def test_values_are_frozen_and_strict():
    response = Response(id="a", text="t")
    with pytest.raises(AttributeError, match="immutable"):
        response.text = "u"
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"id": "a", "txt": "t"}, Response)
    with pytest.raises(msgspec.ValidationError, match="Invalid enum value 'A'"):
        msgspec.convert({"left": "a", "right": "b", "verdict": "A", "judge": "j", "kind": "human"}, Judgment)


def test_absent_optional_keys_are_not_written():
    assert msgspec.json.encode(Response(id="a", text="")) == b'{"id":"a","text":""}'
    scores = Scores(prompt="p", scores={"a": None})
    empty = b'"unscored":{},"cut":[],"hashes":{}'
    assert msgspec.json.encode(scores) == b'{"prompt":"p","language":null,"scores":{"a":null},' + empty + b"}"


def test_counts_must_sum():
    assert Counts(num_in=3, num_used=1, dropped={"rule": 2}).num_used == 1
    with pytest.raises(AssertionError, match="3 in, but 1 used"):
        Counts(num_in=3, num_used=1, dropped={"rule": 1})
