import numpy as np
import pytest

from steelyard.methods.measures.tallies import MOST_UNITS, Entries, Tally
from steelyard.methods.ranking.author_report import authors_report
from steelyard.methods.ranking.quality import AUTHOR_WIDTH

FIRST, SECOND, TIED = range(3)


def drawn(*verdicts):
    """Each verdict: two authors in order of name, the label, how often; every one in a prompt of its own."""
    tally, unit = Tally(AUTHOR_WIDTH), 0
    for one, other, label, times in verdicts:
        units = np.arange(unit, unit + times) % MOST_UNITS
        tally.add(Entries((("authors", one, other),), units, np.full(times, label)))
        unit += times
    return tally.drawn(seed=0)


def test_two_authors_by_hand():
    found = authors_report(drawn(("a", "b", FIRST, 30), ("a", "b", SECOND, 9), ("a", "b", TIED, 2)))
    assert [one["author"] for one in found["strengths"]] == ["a", "b"]
    first, second = found["strengths"]
    assert first["value"] == pytest.approx(np.log(31 / 10) / 2)
    assert second["value"] == pytest.approx(-first["value"])
    assert 0 < first["low"] < first["value"] < first["high"]
    assert (first["n"], found["num_verdicts"], found["num_authors_left_out"]) == (41, 41, 0)
    assert not found["is_regularised"]
    assert (found["ties"], found["tie_parameter"]) == ("half", None)


def test_davidsons_ties():
    found = authors_report(drawn(("a", "b", FIRST, 40), ("a", "b", SECOND, 10), ("a", "b", TIED, 20)), ties="davidson")
    assert found["strengths"][0]["value"] == pytest.approx(np.log(4) / 2)
    assert found["tie_parameter"] == pytest.approx(20 / np.sqrt(40 * 10))


def test_who_never_lost_is_said_to_be_regularised():
    found = authors_report(drawn(("a", "b", FIRST, 5)))
    assert found["is_regularised"]
    assert found["share_of_resamples_regularised"] == 1.0
    assert found["prior_verdicts"] > 0


def test_only_the_most_judged_are_fitted():
    verdicts = [("a", "b", FIRST, 9), ("a", "b", SECOND, 9), ("b", "c", FIRST, 1), ("d", "e", FIRST, 1)]
    found = authors_report(drawn(*verdicts), most_authors=2)
    assert {one["author"] for one in found["strengths"]} == {"a", "b"}
    assert (found["num_verdicts"], found["num_authors_left_out"]) == (18, 3)
    assert found["strengths"][0]["value"] == pytest.approx(0.0)


def test_without_known_authors_there_is_nothing():
    assert authors_report(Tally(AUTHOR_WIDTH).drawn(seed=0)) is None
