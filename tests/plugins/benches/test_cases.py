import numpy as np
import pytest

from steelyard.core.errors import ConfigError
from steelyard.core.plugins import build
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of, units_of
from strategies import case


def test_cases_are_taken_as_they_are():
    bench = build("benches", "cases")
    given = case(subset="anything")
    assert bench.normalize(given, "open.jsonl") is given
    assert bench.subset_of("open.jsonl") is None


def test_prompts_repeated_under_new_ids_are_one_unit():
    bench = build("benches", "cases")
    repeated = [case(name, text=text) for name, text in (("p", "什么是 RM？"), ("q", "什么是RM?\u200b"), ("r", "RM"))]
    assert units_of([bench.resample_ids(one) for one in repeated]) == ["p", "p", "r"]


def test_its_headline_is_the_mean_over_categories():
    # code: 3 of 4 right; chat: 1 of 1
    rows = np.array([[2, 2, 1, 1], [2, 1, 1, 0], [1, 1, 1, 1]])
    labels = [Label(name, Cell(category)) for name, category in (("p", "code"), ("q", "code"), ("r", "chat"))]
    totals = resample(Items(layout_of(labels), rows, 5), seed=0)
    bench = build("benches", "cases")
    assert bench.summarise(totals) == {"headline": "accuracy"}
    headline = bench.headline(totals)
    assert (headline.name, headline.n, headline.missing) == ("accuracy", 5, {})
    assert float(headline.formula(totals.point)) == pytest.approx((3 / 4 + 1) / 2)


def test_it_has_no_settings():
    with pytest.raises(ConfigError):
        build("benches", "cases", {"weights": "rewardbench"})
