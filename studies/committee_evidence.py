"""What reward models and LLM judges say of pairs, as evidence beside people's answers, for `rater_replay.py`.

The committee is that of a queue by priority: scores of models and verdicts of judges become probabilities, fitted to
the people's order of the items of the calibration. The mean probability of a pair counts as one verdict of a rater of
this accuracy: members who err together do not count twice.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rater_pool import DIGITS, Pool

from steelyard.annotation.plackett_luce import RankingAnswer, Raters, choices_of
from steelyard.annotation.rater_reliability import accuracy_of
from steelyard.core.numerics import Floats, Integers
from steelyard.core.types import Case
from steelyard.workbench.pipeline.queue_sources import CommitteeMember, ComparedPair, key_of, read_committee

_DISCRIMINATIONS = np.linspace(0.0, 12.0, 600)
_NEVER_TIES = -30.0


class Committee(NamedTuple):
    """Members with the pair of responses of each case, and its places in the case, (item, 2)."""

    members: Sequence[CommitteeMember]
    pairs: Sequence[ComparedPair]
    places: Integers

    def probabilities(self, pool: Pool, raters: Raters, seed: int) -> Floats:
        """Return the mean probability that the first response is better, (item,); people order the calibration."""
        is_known = pool.calibration(seed)
        known = pool.ranked(raters, is_known).mean
        difference = np.diff(np.take_along_axis(known, self.places[:, ::-1], axis=1), axis=1)[:, 0]
        label = np.full(pool.num_items, np.nan)
        items = np.unique(pool.item[is_known])
        label[items] = np.sign(np.round(difference[items], DIGITS))
        said = np.stack([member.probabilities(self.pairs, label).probability for member in self.members])
        number = np.isfinite(said).sum(axis=0)
        return np.where(number > 0, np.nansum(said, axis=0) / np.maximum(number, 1), 0.5)

    def verdicts(self, probability: Floats) -> list[tuple[float, bool]]:
        """Return what is known of each item before anybody is asked: how sure the committee is, and of which side."""
        return [(round(max(each, 1 - each), 3), bool(each >= 0.5)) for each in probability.tolist()]


def committee_of(cases: Sequence[Case], scores: Sequence[Path], judged: Sequence[Path]) -> Committee | None:
    """Read the committee about cases of two responses; null without any file."""
    if not scores and not judged:
        return None
    assert all(len(case.responses) == 2 for case in cases), "a committee speaks of cases of two responses"
    names = [sorted(response.id for response in case.responses) for case in cases]
    places = [
        [[each.id for each in case.responses].index(name) for name in two]
        for case, two in zip(cases, names, strict=True)
    ]
    members = read_committee(scores, judged, {key_of(case): case for case in cases}, is_complete=False)
    pairs = [ComparedPair(key_of(case), *two) for case, two in zip(cases, names, strict=True)]
    return Committee(members, pairs, np.array(places))


def with_evidence(pool: Pool, raters: Raters, committee: Committee, probability: Floats) -> tuple[Pool, Raters]:
    """Return the pool with one further verdict about each item, and the raters with one further for each of these."""
    is_first = probability >= 0.5
    order = np.where(is_first[:, None], committee.places, committee.places[:, ::-1])
    answers = [
        RankingAnswer(item, pool.num_raters + item, [[better], [worse]])
        for item, (better, worse) in enumerate(order.tolist())
    ]
    accuracy = np.maximum(probability, 1 - probability)
    discrimination = np.interp(accuracy, accuracy_of(_DISCRIMINATIONS), _DISCRIMINATIONS)
    everyone = raters._replace(
        discrimination=np.append(raters.discrimination, discrimination),
        tie=np.append(raters.tie, np.full(len(answers), _NEVER_TIES)),
    )
    return pool._replace(free=choices_of(answers)), everyone
