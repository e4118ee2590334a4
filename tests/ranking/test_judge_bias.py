from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from steelyard.ranking.annotation_features import (
    LENGTH_EDGES,
    NUM_LENGTH,
    NUM_POSITION,
    POSITION_PAIRS,
    count_by_place,
    count_earlier,
    count_equal_length,
    count_longer,
    length_columns,
    position_columns,
    sum_pairs,
)


def counted(column, size):
    return np.bincount(column, minlength=size).astype(np.float64)


def test_length_by_hand():
    # 100 over 95: 5 %, in the first bin. 89 over 100: 11 %, third. 0 over 10 and 10 over 0: 100 %, last. 7, 7: equal.
    better, worse = np.array([100, 89, 0, 10, 7, 0]), np.array([95, 100, 10, 0, 7, 0])
    columns = counted(length_columns(better, worse), NUM_LENGTH)
    found = count_longer(columns)
    assert found.total.tolist() == [1, 0, 1, 0, 0, 0, 2]
    assert found.preferred.tolist() == [1, 0, 0, 0, 0, 0, 1]
    assert count_equal_length(columns) == 2
    assert (sum_pairs(found).preferred[0], sum_pairs(found).total[0]) == (2, 4)
    assert sum_pairs(found).share[0] == 0.5


def test_positions_by_hand():
    # A triple: places 0 and 2, the earlier one preferred twice and the later one once; places 1 and 2: the later one.
    better, worse = np.array([0, 0, 2, 2, 1, 0]), np.array([2, 2, 0, 1, 0, 6])
    shown = np.array([3, 3, 3, 3, 2, 9])
    columns = counted(position_columns(better, worse, shown), NUM_POSITION)
    found = count_earlier(columns)
    share = {pair: (found.preferred[at], found.total[at]) for at, pair in enumerate(POSITION_PAIRS) if found.total[at]}
    assert share == {(3, 0, 2): (2, 3), (3, 1, 2): (0, 1), (2, 0, 1): (0, 1)}
    assert (found.preferred[-1], found.total[-1]) == (1, 1)  # of nine shown
    assert sum_pairs(found).share[0] == 3 / 6
    assert (found.total > 0).sum() == 4
    # Place 0 of a triple: 2 of 3; place 1: 0 of 1; place 2: 1 of 3 against place 0, and 1 of 1 against place 1.
    places = count_by_place(columns, 3)
    assert places.preferred.tolist() == [2, 0, 2]
    assert places.total.tolist() == [3, 1, 4]


lengths = st.integers(0, 300)


@given(st.lists(st.tuples(lengths, lengths), max_size=40))
def test_lengths_fall_into_their_bins(pairs):
    better, worse = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    columns = counted(length_columns(better, worse), NUM_LENGTH)
    found = count_longer(columns)
    ends = (0.0, *LENGTH_EDGES)
    for index, (above, up_to) in enumerate(pairwise(ends)):
        inside = [
            one > other for one, other in pairs if one != other and above < abs(one - other) / max(one, other) <= up_to
        ]
        assert (found.total[index], found.preferred[index]) == (len(inside), sum(inside))
    assert found.total.sum() + count_equal_length(columns) == len(pairs)


@given(st.lists(st.permutations(range(4)), max_size=30), st.integers(2, 4))
def test_what_is_shown_twice_in_both_orders_has_no_bias(orders, size):
    """Whoever wins, shown once in each order, wins once earlier and once later."""
    places = np.array([order[:2] for order in orders if max(order[:2]) < size], np.int64).reshape(-1, 2)
    better = np.concatenate([places[:, 0], size - 1 - places[:, 0]])
    worse = np.concatenate([places[:, 1], size - 1 - places[:, 1]])
    columns = counted(position_columns(better, worse, np.full(len(better), size)), NUM_POSITION)
    total = sum_pairs(count_earlier(columns))
    assert 2 * total.preferred[0] == total.total[0]
