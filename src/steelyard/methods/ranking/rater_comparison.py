"""Rater models compared on held-out raters: who foretells best what a person says whose verdicts were not used?"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from steelyard.methods.measures.accuracy import Floats
from steelyard.methods.measures.aggregation import Estimate
from steelyard.methods.measures.agreement import FIRST, SECOND, TIED
from steelyard.methods.measures.resampling import Totals
from steelyard.methods.measures.tallies import MOST_UNITS, Entries, Tally, estimates, ratio
from steelyard.methods.ranking.raters import Pairs, Votes, by_accuracy, by_dawid_skene, by_majority, by_tiers

Model = Callable[[Votes, Pairs], Floats]

ALGORITHM_1 = "algorithm_1"
MODELS: Mapping[str, Model] = MappingProxyType(
    {
        ALGORITHM_1: by_tiers,
        "algorithm_1_of_majority": lambda votes, asked: by_tiers(votes, asked, "majority"),
        "majority": by_majority,
        "dawid_skene": lambda votes, asked: by_dawid_skene(votes, asked).answers,
        "bradley_terry_with_accuracy": lambda votes, asked: by_accuracy(votes, asked).answers,
    }
)
"""The models by name, each from votes and pairs to answers."""
EVERYONE = "all"


class Compared(NamedTuple):
    """How one model foretells the strict verdicts of one held-out rater (or of all, each held out in turn).

    ``coverage`` is the share of them on which the model takes a side at all; ``accuracy`` is taken on the model's
    surest verdicts up to the coverage that every model reaches (``equal_coverage``); ``gain`` is accuracy minus that
    of algorithm 1 there, drawn together. ``n`` of an estimate counts the strict verdicts of the rater.
    """

    rater: str
    model: str
    accuracy: Estimate
    gain: Estimate
    coverage: float
    equal_coverage: float


class _Foretold(NamedTuple):
    """Of one rater: the prompt of each strict verdict; of each model the share taken and the share of it right."""

    prompt: np.ndarray
    taken: dict[str, Floats]
    right: dict[str, Floats]
    coverage: dict[str, float]


def compare_on_held_out(
    votes: Votes, names: Sequence[str], *, seed: int, models: Mapping[str, Model] = MODELS
) -> tuple[Compared, ...]:
    """Each rater held out in turn: the models see the others' votes and foretell the rater's strict verdicts.

    ``names[rater]`` are the names. A rater without a strict verdict is passed over. Where a model is equally sure of
    more verdicts than are wanted, each of them counts in part, which is the expectation over a random choice.
    """
    assert ALGORITHM_1 in models, "algorithm 1 is what the others are compared with"
    tally = Tally(2)
    told: dict[str, _Foretold] = {}
    for rater, name in enumerate(names):
        one = _foretold(votes, rater, models)
        if len(one.prompt):
            told[name] = one
            for model in models:
                tally.add(_entries(one, model, name))
    draws = tally.drawn(seed=seed)
    found = []
    for rater in (*told, EVERYONE):
        own = list(told) if rater == EVERYONE else [rater]
        base = draws.totals([(name, ALGORITHM_1) for name in own])
        for model in models:
            totals = draws.totals([(name, model) for name in own])
            found.append(_compared(rater, model, totals, base, told=[told[name] for name in own]))
    return tuple(found)


def _foretold(votes: Votes, rater: int, models: Mapping[str, Model]) -> _Foretold:
    is_own = votes.rater == rater
    strict = is_own & (votes.label != TIED)
    asked = Pairs(*(column[strict] for column in votes.pairs))
    others = Votes(Pairs(*(column[~is_own] for column in votes.pairs)), votes.rater[~is_own], votes.label[~is_own])
    label = votes.label[strict]
    surest, sides = {}, {}
    for name, model in models.items():
        answers = np.nan_to_num(model(others, asked))
        sides[name] = np.round(answers[:, FIRST] - answers[:, SECOND], 12)
        surest[name] = np.abs(sides[name])
    coverage = {name: float((sure > 0).mean()) if len(label) else 0.0 for name, sure in surest.items()}
    wanted = min(coverage.values()) * len(label)
    taken = {name: _surest(sure, wanted) for name, sure in surest.items()}
    right = {name: taken[name] * ((side > 0) == (label == FIRST)) for name, side in sides.items()}
    return _Foretold(asked.prompt, taken, right, coverage)


def _surest(sure: Floats, wanted: float) -> Floats:
    """How much of each verdict is taken so that ``wanted`` are in all: the surest whole, those on the brink in part."""
    levels, level, sizes = np.unique(-sure, return_inverse=True, return_counts=True)
    before = np.cumsum(sizes) - sizes
    return np.clip((wanted - before) / sizes, 0.0, 1.0)[level] if len(levels) else np.zeros(0)


def _entries(one: _Foretold, model: str, rater: str) -> Entries:
    unit = np.tile(one.prompt % MOST_UNITS, 2)
    column = np.repeat([0, 1], len(one.prompt))
    return Entries(((rater, model),), unit, column, np.concatenate([one.right[model], one.taken[model]]))


def _compared(rater: str, model: str, totals: Totals, base: Totals, *, told: Sequence[_Foretold]) -> Compared:
    both = Totals(
        (), np.concatenate([totals.point, base.point]), np.concatenate([totals.resampled, base.resampled], axis=1)
    )

    def formula(sums: Floats) -> Floats:
        accuracy = ratio(sums[..., [0, 2]], sums[..., [1, 3]])
        return np.stack([accuracy[..., 0], accuracy[..., 0] - accuracy[..., 1]], axis=-1)

    sizes = np.array([len(one.prompt) for one in told])
    number = np.full(2, sizes.sum())
    accuracy, gain = estimates(both, formula, number)
    coverage = float(np.average([one.coverage[model] for one in told], weights=sizes))
    return Compared(rater, model, accuracy, gain, coverage, float(totals.point[1] / sizes.sum()))
