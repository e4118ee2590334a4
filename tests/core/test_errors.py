import pickle

import pytest

from steelyard.core import errors
from steelyard.core.errors import ConfigError, Place, RecordError, UserError, choices


def test_an_error_says_where_what_and_what_next():
    error = RecordError("unknown verdict 'x'", where=Place("c.jsonl", 3, "judgments[0]"), allowed="left", do="fix it")
    assert str(error) == "c.jsonl:3 at judgments[0]: unknown verdict 'x'\n  allowed: left\n  do: fix it"
    assert str(UserError("plain")) == "plain"
    assert str(Place("f")) == "f"


def test_placing_an_error_keeps_its_kind_and_words():
    placed = ConfigError("wrong", allowed="right", do="so").at(Place("f", 1))
    assert isinstance(placed, ConfigError)
    assert str(placed) == "f:1: wrong\n  allowed: right\n  do: so"


def test_errors_cross_a_process_boundary_whole():
    error = RecordError("wrong", where=Place("f", 2), allowed="right", do="so")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is RecordError
    assert str(again) == str(error)


@pytest.mark.parametrize(
    ("given", "first"), [("tires", "did you mean 'tiers'? judged, tiers"), ("zzz", "judged, tiers")]
)
def test_the_nearest_choice_is_offered(given, first):
    assert choices(given, ["tiers", "judged"]) == first


def test_the_drawing_names_every_error():
    classes = [name for name, item in vars(errors).items() if isinstance(item, type) and issubclass(item, UserError)]
    for name in classes:
        assert name in errors.__doc__
