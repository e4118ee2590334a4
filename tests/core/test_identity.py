import hashlib

from steelyard.core.identity import UniqueIds, content_id


def test_an_id_is_the_hash_of_the_content():
    assert content_id("杆秤") == hashlib.sha256("杆秤".encode()).hexdigest()[:16]
    assert content_id({"b": 1, "a": "é"}) == hashlib.sha256('{"a":"é","b":1}'.encode()).hexdigest()[:16]
    assert content_id({"a": 1, "b": 2}) == content_id({"b": 2, "a": 1})


def test_repeats_are_numbered_and_counted():
    ids = UniqueIds()
    assert ids.take_all(["x", "y", "x", "x"]) == ("x", "y", "x~2", "x~3")
    assert ids.num_repeated == 2
