import itertools

import numpy as np
import pytest

from steelyard.ranking import tiers_numba as compiled
from steelyard.ranking.judgment_table import Edges
from steelyard.ranking.tiers import tiers_of
from steelyard.ranking.tiers_numba import compiled_tiers, is_worth_compiling

pytest.importorskip("numba", reason="numba is of the group compiled")


def both(edges, num_graphs, width):
    """The tiers by the compiled loops and by the plain arrays, which are held against networkx elsewhere."""
    assert not is_worth_compiling(num_graphs, width), "the plain path is the reference here"
    return compiled_tiers(edges, num_graphs, width, tiers_of), tiers_of(edges, np.full(num_graphs, width))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_all_graphs_of_up_to_four_responses(size):
    pairs = [(better, worse) for better, worse in itertools.permutations(range(size), 2)]
    graph, edge = np.nonzero(np.arange(1 << len(pairs))[:, None] >> np.arange(len(pairs)) & 1)
    better, worse = np.array(pairs)[edge].T
    found, wanted = both(Edges(graph, better, worse), 1 << len(pairs), size)
    assert (found == wanted).all()
    assert len(found) == {2: 4, 3: 64, 4: 4096}[size]


@pytest.mark.parametrize(("width", "number"), [(5, 200_000), (6, 20_000), (17, 5_000), (31, 1_000), (32, 1_000)])
@pytest.mark.parametrize("density", [0.3, 3.0])
def test_random_graphs_sparse_and_dense(width, number, density):
    draws = np.random.default_rng(width)
    num_edges = int(number * width * density)
    graph, better = draws.integers(0, number, num_edges), draws.integers(0, width, num_edges)
    worse = (better + draws.integers(1, width, num_edges)) % width
    found, wanted = both(Edges(graph, better, worse), number, width)
    assert (found == wanted).all()
    assert set(np.unique(found)) > {-1, 0, 1}


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_columns_of_any_width_are_taken(kind):
    edges = Edges(np.zeros(3, np.int32), np.array([0, 1, 2], kind), np.array([1, 2, 1], kind))
    assert compiled_tiers(edges, 1, 6, tiers_of).tolist() == [[0, 1, 1, -1, -1, -1]]


def test_nothing_at_all():
    empty = np.zeros(0, np.int64)
    assert compiled_tiers(Edges(empty, empty, empty), 2, 3, tiers_of).tolist() == [[-1] * 3] * 2


def test_only_much_work_is_worth_loading_the_loops(monkeypatch):
    assert is_worth_compiling(4_000_000, 5)
    assert is_worth_compiling(100_000, 32)
    assert not is_worth_compiling(1_000_000, 5)
    assert not is_worth_compiling(10_000_000, 33)
    monkeypatch.setattr(compiled, "_has_numba", lambda: False)
    assert not is_worth_compiling(4_000_000, 5)
