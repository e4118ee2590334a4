from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from steelyard.statistics.agreement import (
    FIRST,
    SECOND,
    TIED,
    UNLABELLED,
    alpha,
    coincidences,
    kappa,
    num_same,
    num_same_strict,
    num_strict,
    orient_labels,
    pair_raters,
    unique_labels,
    vote,
)
from steelyard.statistics.distinct import distinct_codes


def columns(votes):
    return (np.array(column, np.int64) for column in zip(*votes, strict=True))


votes_of_raters = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60)


def alpha_of(votes, num_groups=1):
    labels = unique_labels(*columns(votes))
    return alpha(coincidences(labels, np.zeros(len(labels.item), np.int64), num_groups).sum(axis=0))


def plain_alpha(votes):
    """1 - (mean disagreement within items) / (mean disagreement of any two labels), by loops over the definition."""
    said = {}
    for item, rater, label in votes:
        said.setdefault((item, rater), []).append(label)
    items = {}
    for (item, _), given_labels in said.items():
        labels = [label for label in given_labels if label != UNLABELLED]
        if labels:
            most = [option for option in (0, 1, 2) if all(
                labels.count(option) > labels.count(other) for other in (0, 1, 2) if other != option
            )]  # fmt: skip
            items.setdefault(item, []).append(most[0] if most else TIED)
    several = [labels for labels in items.values() if len(labels) > 1]
    everything = [label for labels in several for label in labels]
    within = sum(
        2 * sum(one != other for one, other in combinations(labels, 2)) / (len(labels) - 1) for labels in several
    )
    total = len(everything)
    between = 2 * sum(one != other for one, other in combinations(everything, 2))
    return None if not between else 1 - (within / total) / (between / (total * (total - 1)))


def test_kappa_by_hand():
    # Two readers of 50 applications: both yes 20, only the first 5, only the second 10, both no 15; by chance one half.
    cells = np.array([20.0, 5, 10, 15])
    assert num_same(cells) / cells.sum() == 0.7
    assert kappa(cells) == pytest.approx((0.7 - 0.5) / (1 - 0.5))


def test_alpha_of_published_examples():
    # Krippendorff, "Computing Krippendorff's Alpha-Reliability", example A: two observers, ten units, 0.095.
    first, second = (0, 1, 0, 0, 0, 0, 0, 0, 1, 0), (1, 1, 1, 0, 0, 1, 0, 0, 0, 0)
    votes = [(unit, rater, label) for rater, own in enumerate((first, second)) for unit, label in enumerate(own)]
    assert alpha_of(votes) == pytest.approx(0.095, abs=5e-4)
    # The example with three coders, gaps and four values that encyclopaedias give: 0.691.
    cells = np.array([[6, 0, 1, 0], [0, 4, 0, 0], [1, 0, 7, 2], [0, 0, 2, 3]], np.float64)
    assert alpha(cells.ravel()) == pytest.approx(0.691, abs=5e-4)


def test_a_pair_shown_the_other_way_round_is_the_same_pair():
    left, right = np.array([0, 2, 2, 2, 2]), np.array([2, 0, 0, 0, 0])
    label = np.array([FIRST, FIRST, SECOND, TIED, UNLABELLED])
    assert orient_labels(left, right, label).tolist() == [FIRST, SECOND, FIRST, TIED, UNLABELLED]


def test_what_one_rater_says_repeatedly_is_put_to_the_vote():
    votes = [(0, 1, FIRST), (0, 1, FIRST), (0, 1, SECOND), (0, 0, FIRST), (0, 0, SECOND), (1, 0, TIED), (1, 1, 3)]
    labels = unique_labels(*columns(votes))
    assert list(zip(*(column.tolist() for column in labels), strict=True)) == [
        (0, 0, TIED),
        (0, 1, FIRST),
        (1, 0, TIED),
    ]


def test_votes_are_of_strictly_most():
    counts = np.array([[2, 1, 1], [1, 2, 1], [1, 1, 2], [2, 2, 0], [2, 0, 2], [0, 0, 0]])
    assert vote(counts).tolist() == [FIRST, SECOND, TIED, TIED, TIED, TIED]


@given(votes_of_raters)
def test_comparisons_are_all_pairs_of_raters_on_an_item(votes):
    labels = unique_labels(*columns(votes))
    found = {tuple(map(int, row)) for row in zip(*pair_raters(labels), strict=True)}
    said = {(int(item), int(rater)): int(label) for item, rater, label in zip(*labels, strict=True)}
    expected = {
        (item, one, other, said[item, one] * 3 + said[item, other])
        for (item, one), (again, other) in combinations(sorted(said), 2)
        if item == again
    }
    assert found == expected
    assert len(found) == len(pair_raters(labels).item)


@given(votes_of_raters)
def test_alpha_is_its_definition(votes):
    expected = plain_alpha(votes)
    found = alpha_of(votes)
    assert np.isnan(found) if expected is None else found == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40))
def test_kappa_is_that_of_scikit_learn(pairs):
    cells = np.bincount([3 * one + other for one, other in pairs], minlength=9).astype(np.float64)
    first, second = zip(*pairs, strict=True)
    if len(set(first) | set(second)) == 1:
        assert np.isnan(kappa(cells))
    else:
        assert kappa(cells) == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)
    assert num_same(cells) / cells.sum() == pytest.approx(np.mean([one == other for one, other in pairs]))
    strict = [one == other for one, other in pairs if TIED not in (one, other)]
    assert num_strict(cells) == len(strict)
    assert num_same_strict(cells) / num_strict(cells) == pytest.approx(np.mean(strict)) if strict else True


def test_coincidences_are_kept_apart_by_group():
    # Item 0: two labels that differ, in group 1. Item 1: three alike, in group 0. Item 2: one label says nothing.
    votes = [(0, 0, FIRST), (0, 1, TIED), (1, 0, SECOND), (1, 1, SECOND), (1, 2, SECOND), (2, 0, FIRST)]
    labels = unique_labels(*columns(votes))
    cells = coincidences(labels, np.array([1, 0, 0])[labels.item], 2)
    assert cells[1].reshape(3, 3).tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert cells[0].reshape(3, 3).tolist() == [[0, 0, 0], [0, 3, 0], [0, 0, 0]]


@given(st.lists(st.integers(0, 50), max_size=30), st.sampled_from([51, 10**9]))
def test_distinct_codes_however_many_are_possible(codes, bound):
    code = np.array(codes, np.int64)
    found, place = distinct_codes(code, bound)
    assert found.tolist() == sorted(set(codes))
    assert found[place].tolist() == codes
