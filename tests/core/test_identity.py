import hashlib

from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.checks import UniqueIds, content_id


def test_an_id_is_the_hash_of_the_content():
    assert content_id("杆秤") == hashlib.sha256("杆秤".encode()).hexdigest()[:16]
    assert content_id({"b": 1, "a": "é"}) == hashlib.sha256('{"a":"é","b":1}'.encode()).hexdigest()[:16]
    assert content_id({"a": 1, "b": 2}) == content_id({"b": 2, "a": 1})


def test_repeats_are_numbered_and_counted():
    ids = UniqueIds()
    assert ids.take_all(["x", "y", "x", "x"]) == ("x", "y", "x~2", "x~3")
    assert ids.num_repeated == 2


def test_given_ids_that_look_numbered_are_not_handed_out_again():
    assert UniqueIds().take_all(["x~2", "x", "x", "x"]) == ("x~2", "x", "x~3", "x~4")
    assert UniqueIds().take_all(["x", "x", "x~2"]) == ("x", "x~2", "x~2~2")


@given(st.lists(st.sampled_from(["x", "x~2", "x~3", "x~2~2", ""])))
def test_no_id_is_handed_out_twice_and_repeats_are_counted(wanted):
    ids = UniqueIds()
    taken = ids.take_all(wanted)
    assert len(set(taken)) == len(wanted)
    assert all(own == name or own.startswith(f"{name}~") for own, name in zip(taken, wanted, strict=True))
    assert ids.num_repeated == sum(own != name for own, name in zip(taken, wanted, strict=True))
