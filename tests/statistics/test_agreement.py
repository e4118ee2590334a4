from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student_t
from sklearn.metrics import cohen_kappa_score

from steelyard.statistics.agreement import (
    FIRST,
    SECOND,
    TIED,
    UNLABELLED,
    alpha,
    beyond_chance,
    coincidences,
    kappa,
    linear_effect,
    num_same,
    num_same_strict,
    num_strict,
    orient_labels,
    pair_raters,
    unique_labels,
    vote,
)
from steelyard.statistics.intervals import needs_prompts, one_sample
from steelyard.statistics.unique_rows import unique_codes


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
    found, place = unique_codes(code, bound)
    assert found.tolist() == sorted(set(codes))
    assert found[place].tolist() == codes


def table(right, wrong, one_way, other_way):
    """Two raters' labels without ties, flattened: both the first, both the second, and the two ways to differ."""
    return np.array([[right, one_way, 0, other_way, wrong, 0, 0, 0, 0]], float)


def test_an_interval_of_kappa_ends_where_the_distance_is_t_standard_errors():
    cells, number = table(60, 20, 10, 10), 100
    value = float(kappa(cells[0]))
    found = beyond_chance(value, cells, number, one_sample(number), 1.0)
    t, second = student_t.ppf(0.975, number - 1), 0.3
    for end in (found.low, found.high):
        # Bloch and Kraemer (1989): the variance for two labels of equal frequencies from both raters.
        rare = end * (2 - end) / (2 * second * (1 - second))
        variance = (1 - end) * ((1 - end) * (1 - 2 * end) + rare) / number
        assert abs(value - end) == pytest.approx(t * np.sqrt(variance), rel=1e-3)
    assert found.low < value < found.high


def test_kappa_of_one_has_a_width_and_an_effect_widens_an_interval():
    whole = beyond_chance(1.0, table(50, 50, 0, 0), 100, one_sample(100), 1.0)
    assert (whole.value, whole.high) == (1.0, 1.0)
    assert 0.85 < whole.low < 0.99
    cells = table(60, 20, 10, 10)
    free, alike = (beyond_chance(float(kappa(cells[0])), cells, 100, one_sample(100), effect) for effect in (1, 4))
    assert alike.low < free.low < free.high < alike.high


# In the second table the rarer label has shares of 7% and 8%: of 2 / (0.07 x 0.08) prompts two have it from both.
@pytest.mark.parametrize(("cells", "fewest"), [((16, 9, 2, 2), 30), ((90, 5, 3, 2), 358)])
def test_few_prompts_or_a_frequent_label_have_no_interval_and_the_number_that_it_needs(cells, fewest):
    number = sum(cells)
    found = beyond_chance(float(kappa(table(*cells)[0])), table(*cells), number, one_sample(number), 1.0)
    assert (found.low, found.high, found.why) == (None, None, needs_prompts(fewest))
    assert found.value == pytest.approx(float(kappa(table(*cells)[0])))


def test_equal_tables_that_vary_together_have_the_effect_of_one():
    rng = np.random.default_rng(3)
    cells = table(60, 20, 10, 10)
    drawn = rng.multinomial(100, cells[0] / 100, size=4000).astype(float)
    value = float(kappa(cells[0]))
    one, three = (
        linear_effect(value, np.repeat(cells, times, axis=0), np.repeat(drawn[:, None], times, axis=1), one_sample(100))
        for times in (1, 3)
    )
    assert three == pytest.approx(one)
    assert one == pytest.approx(1.0, abs=0.08)
    # Three tables of different prompts vary a third as much.
    apart = rng.multinomial(100, cells[0] / 100, size=(4000, 3)).astype(float)
    assert linear_effect(value, np.repeat(cells, 3, axis=0), apart, one_sample(100)) == pytest.approx(1 / 3, abs=0.04)
