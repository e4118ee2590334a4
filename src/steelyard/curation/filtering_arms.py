"""The design of a downstream trial: which prompts people label, which the judge, which test, and what each arm learns.

Every arm has the people's pairs of the same few prompts. What it has of the other prompts is what the arms differ in.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.arrays import Integers
from steelyard.core.seeds import generator
from steelyard.curation.filtering import AGREES, LONGER, NOT_AGAINST, Asked, Kept, filters, random_kept

HUMAN, ALL, FILTERED, RANDOM, ORACLE, SELF, CEILING = (
    "human only",
    "+ all verdicts",
    "+ agreeing",
    "+ random as many",
    "+ right only (oracle)",
    "+ own labels (self-training)",
    "+ people's labels (ceiling)",
)
BY_LENGTH, SURE = f"+ {LONGER}", f"+ {NOT_AGAINST}"
ARMS = (HUMAN, ALL, FILTERED, RANDOM, BY_LENGTH, SURE, ORACLE, SELF, CEILING)
REFERENCES = (HUMAN, ALL, RANDOM)
"""The arms that every other is held against."""


class Split(NamedTuple):
    """Numbers of prompts: labelled by people, judged, tested on."""

    repetition: int
    fold: int
    human: Integers
    judged: Integers
    test: Integers


class Columns(NamedTuple):
    """Pairs of responses: the case, and the positions of its better and its worse response."""

    case: Integers
    better: Integers
    worse: Integers

    def where(self, chosen: Kept | Integers) -> "Columns":
        """The chosen pairs."""
        return Columns(*(column[chosen] for column in self))

    def turned(self, chosen: Kept) -> "Columns":
        """All pairs, with the chosen ones the other way round."""
        better, worse = np.where(chosen, self.worse, self.better), np.where(chosen, self.better, self.worse)
        return Columns(self.case, better, worse)

    def beside(self, other: "Columns") -> "Columns":
        """These pairs and the others."""
        return Columns(*(np.concatenate(both) for both in zip(self, other, strict=True)))


def splits(num_prompts: int, num_folds: int, share: float, repetitions: int, *, seed: int) -> Iterator[Split]:
    """Every prompt is tested on once a repetition; of the others the share is labelled by people, at least two.

    Shares share their draws: a smaller one's people's prompts are among a larger one's.
    """
    for repetition in range(repetitions):
        order = generator(seed, "folds", repetition).permutation(num_prompts)
        for fold in range(num_folds):
            is_test = np.arange(num_prompts) % num_folds == fold
            rest = generator(seed, "human prompts", repetition, fold).permutation(order[~is_test])
            num_human = max(2, round(share * len(rest)))
            yield Split(repetition, fold, rest[:num_human], rest[num_human:], order[is_test])


def arm_pairs(
    human: Columns, judged: Columns, asked: Asked, known: tuple[Kept, Kept], *, names: Sequence[str | int]
) -> dict[str, Columns]:
    """What each arm learns from, but for the ceiling.

    ``known``: for each judged pair whether people say what is right of it, and whether the verdict is. Where people
    say it of none there is no oracle. ``names`` seed the random arm.
    """
    kept = filters(asked, (0.0,))
    has_key, is_right = known
    agrees = kept[AGREES]
    found = {
        HUMAN: judged.where(np.zeros(len(judged.case), bool)),
        ALL: judged,
        FILTERED: judged.where(agrees),
        RANDOM: judged.where(random_kept(int(agrees.sum()), len(agrees), *names)),
        BY_LENGTH: judged.where(kept[LONGER]),
        SURE: judged.where(kept[NOT_AGAINST]),
        SELF: judged.turned(asked.margin < 0).where(np.abs(asked.margin) > 0),
    }
    if has_key.any():
        found[ORACLE] = judged.where(has_key & is_right)
    return {name: human.beside(own) for name, own in found.items()}
