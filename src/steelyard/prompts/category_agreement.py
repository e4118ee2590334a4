"""Agreement of the categories that a language model gave with those of people: accuracy, Cohen's kappa, confusion.

Labels are compared on the first tier, and paths where people gave more than one tier. Prompts are the units of all
intervals: those of one id (parallel items) or of one text are drawn together.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Floats
from steelyard.core.types import Record
from steelyard.prompts.taxonomy import Tiers
from steelyard.statistics.agreement import kappa
from steelyard.statistics.groups import units_of
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.unit_bootstrap import (
    MOST_UNITS,
    Entries,
    Tally,
    UnitSums,
    agreement_beyond_chance,
    estimate_shares,
    number_units,
)

NONE_FITS = "none"
"""The name, in tables, of the answer that no category fits."""


class LabelledPrompt(NamedTuple):
    """A prompt with people's category and the model's: no tiers where none fits, null for an unparsed reply.

    ``names`` are those of `statistics.groups.prompt_names`.
    """

    names: tuple[str, ...]
    people: Tiers
    model: Tiers | None


class CategoryCounts(Record, frozen=True, kw_only=True):
    """A first-tier category: how often people and the model gave it.

    ``recall`` is the share of people's prompts of this category that the model gave it too, ``precision`` the share of
    the model's that people gave it too.
    """

    category: str
    num_people: int
    num_model: int
    recall: Estimate
    precision: Estimate


class Confusion(Record, frozen=True, kw_only=True):
    """Number of prompts that people put into one first-tier category and the model into another."""

    people: str
    model: str
    number: int


class CategoryAgreement(Record, frozen=True, kw_only=True):
    """The model's categories next to people's, over the prompts with a readable reply.

    ``accuracy`` is the share with people's first tier, ``kappa`` is Cohen's, of first tiers. ``whole_path`` is the
    share with all tiers of people's, of the prompts to which people gave several. ``num_unlabelled`` prompts of the
    sample have no category by people. ``confusions`` are the differences, the most frequent first.
    """

    num_prompts: int
    num_unparsed: int
    num_unlabelled: int
    accuracy: Estimate
    whole_path: Estimate
    kappa: Estimate
    categories: tuple[CategoryCounts, ...]
    confusions: tuple[Confusion, ...]


def category_agreement(
    labelled: Sequence[LabelledPrompt], *, num_unlabelled: int = 0, seed: int = 0
) -> CategoryAgreement:
    """Compare the model's categories with people's."""
    read = [prompt for prompt in labelled if prompt.model is not None]
    names = sorted({_first(tiers) for prompt in read for tiers in (prompt.people, prompt.model or ())})
    totals = _totals(read, names, seed=seed)
    size = max(len(names), 1)
    cells = totals.point[: size**2]

    def shares(sums: Floats) -> tuple[Floats, Floats]:
        matrix = sums[..., : size**2].reshape(*sums.shape[:-1], size, size)
        same = np.diagonal(matrix, axis1=-2, axis2=-1)
        above = (same.sum(axis=-1, keepdims=True), sums[..., -2:-1], same, same)
        below = (matrix.sum(axis=(-2, -1))[..., None], sums[..., -1:], matrix.sum(axis=-1), matrix.sum(axis=-2))
        return np.concatenate(above, axis=-1), np.concatenate(below, axis=-1)

    accuracy, whole_path, *each = estimate_shares(totals, shares)
    matrix = cells.reshape(size, size)
    return CategoryAgreement(
        num_prompts=len(read),
        num_unparsed=len(labelled) - len(read),
        num_unlabelled=num_unlabelled,
        accuracy=accuracy,
        whole_path=whole_path,
        kappa=agreement_beyond_chance(UnitSums(*(sums[..., : size**2] for sums in totals)), kappa),
        categories=tuple(
            CategoryCounts(
                category=name,
                num_people=int(matrix[place].sum()),
                num_model=int(matrix[:, place].sum()),
                recall=each[place],
                precision=each[size + place],
            )
            for place, name in enumerate(names)
        ),
        confusions=_confusions(read),
    )


def _totals(read: Sequence[LabelledPrompt], names: Sequence[str], *, seed: int) -> UnitSums:
    """Return the sums by unit: the confusion of first tiers, people's by row, then equal paths and compared paths."""
    place = {name: number for number, name in enumerate(names)}
    size = max(len(names), 1)
    unit = number_units(units_of([prompt.names for prompt in read])) % MOST_UNITS
    cell = np.array([place[_first(each.people)] * size + place[_first(each.model or ())] for each in read], np.int64)
    is_path = np.array([len(prompt.people) > 1 for prompt in read], bool)
    is_equal = np.array([prompt.people == prompt.model for prompt in read], bool)
    tally = Tally(size**2 + 2)
    group = (("all",),)
    for units, column in (
        (unit, cell),
        (unit[is_path & is_equal], np.full((is_path & is_equal).sum(), size**2)),
        (unit[is_path], np.full(is_path.sum(), size**2 + 1)),
    ):
        tally.add(Entries(group, units, column))
    if not read:
        nothing = np.zeros(size**2 + 2)
        return UnitSums(nothing, np.zeros((1, len(nothing))), np.zeros((0, len(nothing))))
    return tally.draw(seed=seed).totals(group)


def _confusions(read: Sequence[LabelledPrompt]) -> tuple[Confusion, ...]:
    pairs = Counter((_first(prompt.people), _first(prompt.model or ())) for prompt in read)
    differing = sorted((-number, pair) for pair, number in pairs.items() if pair[0] != pair[1])
    return tuple(Confusion(people=pair[0], model=pair[1], number=-number) for number, pair in differing)


def _first(tiers: Tiers) -> str:
    return tiers[0] if tiers else NONE_FITS
