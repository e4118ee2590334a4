import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from steelyard.ranking.author_strength import PRIOR_VERDICTS, author_strengths, is_strongly_connected, strengths
from steelyard.ranking.judge_quality import AUTHOR_WIDTH
from steelyard.statistics.unit_bootstrap import MOST_UNITS, Entries, Tally


def square(*rows):
    return np.array([rows], np.float64)


def no_ties(wins):
    return np.zeros_like(wins)


def test_two_authors_are_apart_by_the_logarithm_of_their_odds():
    found = strengths(square([0, 3], [1, 0]), no_ties(square([0, 3], [1, 0])))
    assert found.strength[0] == pytest.approx([np.log(3) / 2, -np.log(3) / 2])
    assert not found.is_regularised[0]
    assert np.isnan(found.tie[0])


def test_half_a_tie_is_half_a_verdict_each_way():
    wins, ties = square([0, 2], [1, 0]), square([0, 3], [3, 0])
    # 2 + 1.5 against 1 + 1.5
    assert np.diff(strengths(wins, ties).strength[0]) == pytest.approx(-np.log(3.5 / 2.5))


def test_davidsons_ties_by_hand():
    # Two authors: the three shares are met exactly. p1 / p2 = exp(d); p0 / sqrt(p1 p2) = nu.
    found = strengths(square([0, 4], [1, 0]), square([0, 6], [6, 0]), "davidson")
    assert np.diff(found.strength[0]) == pytest.approx(-np.log(4))
    assert found.tie[0] == pytest.approx(np.log(6 / np.sqrt(4 * 1)))


def test_who_never_lost_is_held_by_the_prior_and_it_is_said():
    found = strengths(square([0, 5], [0, 0]), no_ties(square([0, 5], [0, 0])))
    assert found.is_regularised[0]
    gap = found.strength[0, 0] - found.strength[0, 1]
    # By symmetry s and -s: 5 * sigmoid(-2 s) = prior * (2 sigmoid(s) - 1), for each of the two.
    at = gap / 2
    assert 5 / (1 + np.exp(2 * at)) == pytest.approx(PRIOR_VERDICTS * np.tanh(at / 2), rel=1e-6)


def test_only_ties_say_that_all_are_equal():
    ties = square([0, 3, 0], [3, 0, 1], [0, 1, 0])
    for rule in ("half", "davidson"):
        found = strengths(np.zeros_like(ties), ties, rule)
        assert found.strength[0] == pytest.approx([0, 0, 0])
        assert not found.is_regularised[0]


def test_authors_who_never_met_are_regularised():
    wins = square([0, 2, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0])
    found = strengths(wins, no_ties(wins))
    assert found.is_regularised[0]
    assert np.isfinite(found.strength).all()
    assert found.strength[0, 0] > found.strength[0, 2] == pytest.approx(found.strength[0, 3])


@given(st.integers(2, 6), st.floats(0, 1), st.integers(0, 10_000))
def test_strong_connection_is_that_of_networkx(size, density, seed):
    import networkx

    wins = (np.random.default_rng(seed).random((3, size, size)) < density).astype(np.float64)
    expected = [networkx.is_strongly_connected(networkx.DiGraph(one)) for one in wins]
    assert is_strongly_connected(wins).tolist() == expected


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 6), st.integers(0, 10_000), st.sampled_from(["half", "davidson"]))
def test_it_is_the_maximum_of_the_likelihood(size, seed, rule):
    random = np.random.default_rng(seed)
    off = 1 - np.eye(size)
    wins = random.integers(1, 12, (2, size, size)) * off
    ties = np.triu(random.integers(0, 6, (2, size, size)), 1).astype(np.float64)
    ties[:, 0, 1] += 1
    ties = ties + ties.transpose(0, 2, 1)
    found = strengths(wins, ties, rule)

    def loss(values, problem):
        strength, tie = values[:size], values[size]
        half = (strength[:, None] - strength[None, :]) / 2
        pin = strength.sum() ** 2
        if rule == "half":
            return ((wins[problem] + ties[problem] / 2) * np.logaddexp(0, -2 * half)).sum() + pin
        total = np.logaddexp(np.logaddexp(half, -half), tie)
        return (wins[problem] * (total - half)).sum() + (ties[problem] * (total - tie)).sum() / 2 + pin

    for problem in range(2):
        best = minimize(loss, np.zeros(size + 1), args=(problem,), tol=1e-10)
        assert found.strength[problem] == pytest.approx(best.x[:size], abs=1e-4)
        if rule == "davidson":
            assert found.tie[problem] == pytest.approx(best.x[size], abs=1e-4)


def test_many_problems_at_once_are_each_alone():
    random = np.random.default_rng(0)
    wins = random.poisson(3, (400, 80, 80)) * (1.0 - np.eye(80))  # more than are solved at a time
    found = strengths(wins, no_ties(wins))
    for problem in (0, 311, 399):
        alone = strengths(wins[problem][None], no_ties(wins[:1]))
        assert found.strength[problem] == pytest.approx(alone.strength[0], abs=1e-8)


def test_known_strengths_are_found_again():
    random = np.random.default_rng(1)
    true = np.array([1.0, 0.4, 0.0, -0.5, -0.9])
    chance = 1 / (1 + np.exp(true[None, :] - true[:, None]))
    number = np.triu(np.full((5, 5), 20_000), 1)
    upper = random.binomial(number, chance)
    wins = (upper + (number - upper).T * np.tril(np.ones((5, 5)), -1)).astype(np.float64)
    found = strengths(wins[None], no_ties(wins[None])).strength[0]
    assert found == pytest.approx(true - true.mean(), abs=0.03)


FIRST, SECOND, TIED = range(3)


def drawn(*verdicts):
    """Each verdict: two authors in order of name, the label, how often; every one in a prompt of its own."""
    tally, unit = Tally(AUTHOR_WIDTH), 0
    for one, other, label, times in verdicts:
        units = np.arange(unit, unit + times) % MOST_UNITS
        tally.add(Entries((("authors", one, other),), units, np.full(times, label)))
        unit += times
    return tally.draw(seed=0)


def strengths_of(draws, **choices):
    return msgspec.to_builtins(author_strengths(draws, **choices))


def test_two_authors_by_hand():
    found = strengths_of(drawn(("a", "b", FIRST, 30), ("a", "b", SECOND, 9), ("a", "b", TIED, 2)))
    assert [one["author"] for one in found["strengths"]] == ["a", "b"]
    first, second = found["strengths"]
    assert first["value"] == pytest.approx(np.log(31 / 10) / 2)
    assert second["value"] == pytest.approx(-first["value"])
    assert 0 < first["low"] < first["value"] < first["high"]
    assert (first["n"], found["num_verdicts"], found["num_authors_left_out"]) == (41, 41, 0)
    assert not found["is_regularised"]
    assert (found["ties"], found["tie_parameter"]) == ("half", None)


def test_davidsons_ties():
    found = strengths_of(drawn(("a", "b", FIRST, 40), ("a", "b", SECOND, 10), ("a", "b", TIED, 20)), ties="davidson")
    assert found["strengths"][0]["value"] == pytest.approx(np.log(4) / 2)
    assert found["tie_parameter"] == pytest.approx(20 / np.sqrt(40 * 10))


def test_who_never_lost_is_said_to_be_regularised():
    found = strengths_of(drawn(("a", "b", FIRST, 5)))
    assert found["is_regularised"]
    assert found["share_of_resamples_regularised"] == 1.0
    assert found["prior_verdicts"] > 0


def test_only_the_most_judged_are_fitted():
    verdicts = [("a", "b", FIRST, 9), ("a", "b", SECOND, 9), ("b", "c", FIRST, 1), ("d", "e", FIRST, 1)]
    found = strengths_of(drawn(*verdicts), most_authors=2)
    assert {one["author"] for one in found["strengths"]} == {"a", "b"}
    assert (found["num_verdicts"], found["num_authors_left_out"]) == (18, 3)
    assert found["strengths"][0]["value"] == pytest.approx(0.0)


def test_without_known_authors_there_is_nothing():
    assert author_strengths(Tally(AUTHOR_WIDTH).draw(seed=0)) is None
