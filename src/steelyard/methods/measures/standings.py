"""Many models on the same prompts: how often each would stand at each rank, and which cannot be told apart."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from steelyard.core.seeds import derived_seed
from steelyard.methods.measures.accuracy import CORRECT, PAIRS, Booleans, Floats, Integers
from steelyard.methods.measures.aggregation import Share, by_category, macro
from steelyard.methods.measures.comparison import bootstrap_p, holm, ranks_beyond_doubt
from steelyard.methods.measures.resampling import Items, resample
from steelyard.methods.measures.strata import Layout

_LEVEL = 0.05
_NUMBERS_AT_A_TIME = 20_000_000


class Standings(NamedTuple):
    """Of models in the order given. All arrays are of floats between 0 and 1.

    ``accuracy``: shape (model,). ``rank_shares``: the share of resamples in which a model stands at a rank, shape
    (model, rank); tied models share their ranks evenly. ``ranks``: the best and worst rank beyond doubt. ``groups``:
    models with a letter in common cannot be told apart. ``p_corrected``: by pair of positions, Holm over all pairs.
    """

    accuracy: Floats
    rank_shares: Floats
    ranks: tuple[tuple[int, int], ...]
    groups: tuple[str, ...]
    p_corrected: dict[tuple[int, int], float]


def standings(layout: Layout, tables: Sequence[Integers], *, num_resamples: int, seed: int) -> Standings:
    """Rank models by their mean accuracy over first-tier categories; ``tables`` are statistics, shape (prompt, 4).

    Each resample of the prompts serves all models. Asserts that all count the same pairs.
    """
    assert all((own[:, PAIRS] == tables[0][:, PAIRS]).all() for own in tables), "the same pairs of the same prompts"
    statistics = np.stack([tables[0][:, PAIRS], *(own[:, CORRECT] for own in tables)], axis=1)
    parts = list(_drawn(layout, statistics, num_resamples=num_resamples, seed=seed))
    drawn = np.concatenate([own for _, own in parts])
    point = parts[0][0]
    pairs = list(combinations(range(len(tables)), 2))
    corrected = holm([bootstrap_p(drawn[:, one] - drawn[:, other]) for one, other in pairs])
    differs = np.zeros((len(tables),) * 2, dtype=bool)
    for (one, other), p_value in zip(pairs, corrected, strict=True):
        if p_value < _LEVEL and point[one] != point[other]:
            differs[(one, other) if point[one] > point[other] else (other, one)] = True
    return Standings(
        point,
        rank_shares(drawn),
        tuple(ranks_beyond_doubt(differs)),
        groups_of(point, differs),
        dict(zip(pairs, corrected, strict=True)),
    )


def _drawn(layout: Layout, statistics: Integers, *, num_resamples: int, seed: int) -> Iterator[tuple[Floats, Floats]]:
    """Accuracy of each model, shape (model,), and of a part of the resamples, (resample, model)."""
    num_models = statistics.shape[1] - 1
    step = max(1, _NUMBERS_AT_A_TIME // (len(layout.cells) * statistics.shape[1]))
    for number, start in enumerate(range(0, num_resamples, step)):
        items = Items(layout, statistics, min(step, num_resamples - start))
        totals = resample(items, seed=derived_seed(seed, "standings", str(number)))
        categories = by_category(totals.cells)
        shares = [Share(1 + one, 0) for one in range(num_models)]
        point = np.array([float(macro(totals.point, categories, own)) for own in shares])
        yield point, np.stack([macro(totals.resampled, categories, own) for own in shares], axis=1)


def rank_shares(drawn: Floats) -> Floats:
    """The share of rows in which each column stands at each rank, the greatest first; ties share their ranks."""
    num_models = drawn.shape[1]
    found = np.zeros((num_models, num_models))
    for one in range(num_models):
        above = (drawn > drawn[:, one : one + 1]).sum(axis=1)
        equal = (drawn == drawn[:, one : one + 1]).sum(axis=1)
        for rank in range(num_models):
            found[one, rank] = (((above <= rank) & (rank < above + equal)) / equal).mean()
    return found


def groups_of(accuracy: Floats, differs: Booleans) -> tuple[str, ...]:
    """Letters such that neighbours in rank share one exactly where no two between them differ beyond doubt.

    ``differs``: shape (model, model), true where the row is better beyond doubt.
    """
    order = np.argsort(-accuracy, kind="stable")
    apart = differs | differs.T
    runs: list[tuple[int, int]] = []
    for start in range(len(order)):
        end = start
        while end + 1 < len(order) and not apart[np.ix_(order[start : end + 2], order[start : end + 2])].any():
            end += 1
        if not runs or end > runs[-1][1]:
            runs.append((start, end))
    letters = [""] * len(order)
    for number, (start, end) in enumerate(runs):
        for place in range(start, end + 1):
            letters[order[place]] += _letter(number)
    return tuple(letters)


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"({number + 1})"
