import pytest

from steelyard.core.errors import ConfigError
from steelyard.core.plugins import build
from strategies import case


def test_cases_are_taken_as_they_are():
    bench = build("benches", "cases")
    given = case(subset="anything")
    assert bench.prepared(given, "open.jsonl") is given
    assert bench.subset_of("open.jsonl") is None
    assert bench.summarise(None, seed=0) == {}


def test_it_has_no_settings():
    with pytest.raises(ConfigError):
        build("benches", "cases", {"weights": "rewardbench"})
