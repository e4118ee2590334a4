"""Where a model fails: its wrong pairs with their confidence, and the groups of pairs in which errors concentrate.

A pair is wrong as in accuracy: the better response has no higher score. Pairs without a score are counted apart. The
confidence of an error is the margin by which the worse response is ahead, divided by the root mean square of the
margins of all pairs of the model, so that models with different scales of scores can be compared.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Booleans, Floats, Integers
from steelyard.evaluation.items import ScoredItem
from steelyard.evaluation.measure import MATCHED_RATIO
from steelyard.ranking.judgment_table import NO_LANGUAGE
from steelyard.statistics.groups import Cell, Label, layout_of
from steelyard.statistics.intervals import Estimate, exact_interval, score_interval
from steelyard.statistics.linearised import GroupRatio, Strata, group_ratios, units_and_strata

LENGTHS = ("shorter", "equal", "longer")
"""The better response compared with the worse one; ``equal``: the longer has at most 1.1 times the shorter's length."""
FEWEST_PROMPTS = 10
"""Prompts below which a group is not tested: one prompt could not stand out."""
_NO_LENGTH = -1
_MARGINS = {"win": 1.0, "tie": 0.0, "loss": -1.0}


class ItemPair(NamedTuple):
    """One pair of an item: the ids of both responses, and the better one's score minus the worse one's.

    The margin is null without a score; verdicts of a judge count 1 and 0. ``length`` is a position in `LENGTHS`, or -1
    if lengths are unknown.
    """

    better: str
    worse: str
    margin: float | None
    length: int = _NO_LENGTH


class MarginColumns(NamedTuple):
    """The pairs of an evaluation as columns; ``prompt`` is a position in the other three, which have one per prompt.

    ``number`` is the position of the pair in `item_pairs`, and ``identity`` equal only for one pair of one prompt; a
    pair that is listed twice counts twice.
    """

    prompt: Integers
    number: Integers
    margin: Floats
    length: Integers
    identity: Integers
    positions: Integers
    """The position of each prompt among all of the report; shape (prompt,)."""
    cells: tuple[Cell, ...]
    units: tuple[str, ...]

    @property
    def is_wrong(self) -> Booleans:
        """True for each pair that is wrong: tied or reversed."""
        return self.margin <= 0

    @property
    def scale(self) -> float:
        """The root mean square of the margins: their standard deviation if each pair counts in both orders."""
        known = self.margin[~np.isnan(self.margin)]
        return float(np.sqrt(np.mean(known**2))) if len(known) else 0.0

    @property
    def confidence(self) -> Floats:
        """The confidence of each error: 0 for a tie, negative for a right pair, NaN without a score."""
        return (0.0 - self.margin) / (self.scale or 1.0)


def item_pairs(item: ScoredItem) -> tuple[ItemPair, ...]:
    """Return the pairs of an item, in a fixed order; none if the item does not state which of its pairs counted."""
    lengths = dict(zip(item.scores, item.lengths, strict=False))
    pairs = tuple(_margins(item))
    if len(pairs) != item.num_pairs:
        return ()
    return tuple(
        ItemPair(better, worse, margin, compared_lengths(lengths.get(better), lengths.get(worse)))
        for better, worse, margin in pairs
    )


def compared_lengths(better: int | None, worse: int | None) -> int:
    """Return the position in `LENGTHS` of two lengths, -1 if one is unknown."""
    if better is None or worse is None:
        return _NO_LENGTH
    if max(better, worse) <= MATCHED_RATIO * min(better, worse):
        return LENGTHS.index("equal")
    return LENGTHS.index("shorter" if better < worse else "longer")


def _margins(item: ScoredItem) -> Iterator[tuple[str, str, float | None]]:
    if item.outcomes:
        yield from ((pair.better, pair.worse, _MARGINS.get(pair.outcome)) for pair in item.outcomes)
        return
    pairs = item.pairs
    if pairs is None:
        tiers = combinations(item.ranking or (), 2)
        pairs = tuple((better, worse) for upper, lower in tiers for better in upper for worse in lower)
    for better, worse in pairs:
        higher, lower = item.scores.get(better), item.scores.get(worse)
        yield better, worse, None if higher is None or lower is None else higher - lower


def pair_columns(items: Iterable[tuple[int, ScoredItem]]) -> MarginColumns:
    """Return the pairs of the items of one model, each with its position in the report."""
    numbers = {name: array("q") for name in ("prompt", "number", "length", "identity")}
    margins, positions = array("d"), array("q")
    cells: list[Cell] = []
    units: list[str] = []
    known_cells: dict[Cell, Cell] = {}
    for position, item in items:
        # A prompt without a pair is in no resample of the evaluation either.
        if not item.num_pairs:
            continue
        listed: Counter[tuple[str, str]] = Counter()
        for number, pair in enumerate(item_pairs(item)):
            listed[pair.better, pair.worse] += 1
            numbers["prompt"].append(len(positions))
            numbers["number"].append(number)
            numbers["length"].append(pair.length)
            numbers["identity"].append(hash((position, *pair[:2], listed[pair[:2]])))
            margins.append(float("nan") if pair.margin is None else pair.margin)
        positions.append(position)
        cells.append(known_cells.setdefault(item.cell, item.cell))
        units.append(item.unit or item.prompt)
    prompt, number, length, identity = (np.array(numbers[name], np.int64) for name in numbers)
    return MarginColumns(
        prompt, number, np.array(margins), length, identity, np.array(positions, np.int64), tuple(cells), tuple(units)
    )


class WrongPair(NamedTuple):
    """One wrong pair: the position of its prompt in the report, its number in `item_pairs`, and its confidence."""

    position: int
    number: int
    confidence: float


def most_confident_errors(pairs: MarginColumns, most: int) -> tuple[WrongPair, ...]:
    """Return the most confident error of each prompt, the most confident prompts first; equal ones in file order."""
    wrong = np.flatnonzero(pairs.is_wrong)
    confidence = pairs.confidence
    order = wrong[np.argsort(-confidence[wrong], kind="stable")]
    _, first = np.unique(pairs.prompt[order], return_index=True)
    return tuple(
        WrongPair(int(pairs.positions[pairs.prompt[pair]]), int(pairs.number[pair]), float(confidence[pair]))
        for pair in order[np.sort(first)[:most]]
    )


class PromptErrors(NamedTuple):
    """The errors of each prompt of the report.

    ``worst`` is the confidence of the most confident one, NaN without an error; ``lengths`` has a bit for each position
    in `LENGTHS` of a wrong pair. Both have shape (prompt of the report,).
    """

    worst: Floats
    lengths: Integers


def errors_by_prompt(pairs: MarginColumns, num_prompts: int) -> PromptErrors:
    """Return the errors of every prompt of the report."""
    worst, lengths = np.full(num_prompts, np.nan), np.zeros(num_prompts, np.int64)
    wrong = pairs.is_wrong
    position = pairs.positions[pairs.prompt[wrong]]
    np.fmax.at(worst, position, pairs.confidence[wrong])
    length = pairs.length[wrong]
    np.bitwise_or.at(lengths, position, np.where(length == _NO_LENGTH, 0, 1 << np.maximum(length, 0)))
    return PromptErrors(worst, lengths)


class ErrorGroup(NamedTuple):
    """The error rate of one group of pairs; a null division is not restricted.

    ``stands_out`` is 1 if the rate is above that of all pairs, -1 if below, after correction for the number of groups;
    0 otherwise. It is null if the group is too small to be tested.
    """

    category: str | None
    length: str | None
    language: str | None
    num_wrong: int
    num_prompts: int
    rate: Estimate
    stands_out: int | None

    @property
    def key(self) -> tuple[str | None, str | None, str | None]:
        """The three divisions."""
        return (self.category, self.length, self.language)


class ErrorGroups(NamedTuple):
    """The error rate of all scored pairs and of each group, worst first; groups too small to be tested come last."""

    overall: Estimate
    groups: tuple[ErrorGroup, ...]
    num_tested: int
    num_unscored: int

    @property
    def worst(self) -> ErrorGroup | None:
        """The group with the highest rate among those that stand out above all pairs; null if none does."""
        return next((group for group in self.groups if group.stands_out == 1), None)

    @property
    def num_above(self) -> int:
        """The number of groups that stand out above all pairs."""
        return sum(group.stands_out == 1 for group in self.groups)


def error_groups(pairs: MarginColumns) -> ErrorGroups | None:
    """Return the error rates by category, length and language, and by every combination; null without scored pairs.

    A division with a single value is left out, and so are pairs of unknown length where lengths divide. A group stands
    out if its exact interval excludes the rate of all pairs, where the intervals of all tested groups hold together at
    95% (Bonferroni).
    """
    scored = ~np.isnan(pairs.margin)
    if not scored.any():
        return None
    prompt = pairs.prompt[scored]
    wrong = pairs.is_wrong[scored].astype(np.float64)
    unit_of_prompt, strata = prompt_units(pairs)
    unit = unit_of_prompt[prompt]
    (overall,) = group_ratios(np.zeros(len(prompt), np.int64), unit, wrong, np.ones(len(wrong)), 1, strata=strata)
    divided = list(_divided(pairs, scored))
    counted = [
        (key, ratio)
        for keys, group, row in divided
        for key, ratio in zip(
            keys, group_ratios(group, unit[row], wrong[row], np.ones(len(row)), len(keys), strata=strata), strict=True
        )
    ]
    num_tested = sum(ratio.num_units >= FEWEST_PROMPTS for _, ratio in counted)
    groups: list[ErrorGroup] = []
    for key, ratio in counted:
        stands_out: int | None = None
        if ratio.num_units >= FEWEST_PROMPTS:
            low, high = exact_interval(ratio.value, ratio.variance, ratio.evidence, num_intervals=num_tested)
            stands_out = 1 if low > overall.value else -1 if high < overall.value else 0
        groups.append(ErrorGroup(*key, int(ratio.numerator), ratio.num_units, _rate(ratio), stands_out))
    groups.sort(key=lambda group: (group.stands_out is None, -(group.rate.value or 0.0), -group.rate.n))
    return ErrorGroups(_rate(overall), tuple(groups), num_tested, int((~scored).sum()))


def prompt_units(pairs: MarginColumns) -> tuple[Integers, Strata]:
    """Return the sampling unit of each prompt, and the strata of the units: those of the evaluation's resamples."""
    return units_and_strata(layout_of([Label(*each) for each in zip(pairs.units, pairs.cells, strict=True)]))


Key = tuple[str | None, str | None, str | None]


def _divided(pairs: MarginColumns, scored: Booleans) -> Iterator[tuple[Sequence[Key], Integers, Integers]]:
    """Yield each combination of divisions: the keys of its groups, and the group and place of each scored pair."""
    prompt, length = pairs.prompt[scored], pairs.length[scored]
    categories, category = _coded([cell.category for cell in pairs.cells])
    languages, language = _coded([cell.language or NO_LANGUAGE for cell in pairs.cells])
    names = (categories, LENGTHS, languages)
    divisions = (category[prompt], length, language[prompt])
    several = [place for place, values in enumerate(divisions) if len(np.unique(values[values >= 0])) > 1]
    for size in range(1, len(several) + 1):
        for chosen in combinations(several, size):
            columns = np.stack([divisions[place] for place in chosen])
            row = np.flatnonzero((columns >= 0).all(axis=0))
            values, group = np.unique(columns[:, row], axis=1, return_inverse=True)
            keys: list[Key] = []
            for column in values.T.tolist():
                by_place = {place: names[place][value] for place, value in zip(chosen, column, strict=True)}
                keys.append((by_place.get(0), by_place.get(1), by_place.get(2)))
            yield keys, group.reshape(-1), row


def _coded(names: Sequence[str]) -> tuple[tuple[str, ...], Integers]:
    """Return the distinct names and the position of each name among them."""
    code_of: dict[str, int] = {}
    codes = [code_of.setdefault(name, len(code_of)) for name in names]
    return tuple(code_of), np.array(codes, np.int64)


def _rate(ratio: GroupRatio) -> Estimate:
    return Estimate(ratio.value, *score_interval(ratio.value, ratio.variance, ratio.evidence), int(ratio.denominator))
