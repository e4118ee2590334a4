"""The mean of raters' numbers: as a rater model, and as a key that other models of the same raters are held against."""

from typing import NamedTuple

import numpy as np

from steelyard.methods.measures.accuracy import Booleans, Floats
from steelyard.methods.measures.agreement import FIRST, SECOND, TIED
from steelyard.methods.ranking.graph import Integers
from steelyard.methods.ranking.raters import Pairs, Votes

_DIGITS = 9


class Ratings(NamedTuple):
    """One entry a number that a rater gave: to which prompt's response (by positions), and how much; more is better."""

    prompt: Integers
    response: Integers
    rater: Integers
    value: Floats

    def where(self, chosen: Integers | Booleans) -> "Ratings":
        """The chosen entries, by position or by truth."""
        return Ratings(self.prompt[chosen], self.response[chosen], self.rater[chosen], self.value[chosen])


class Key(NamedTuple):
    """Pairs with what is held to be true of them: the first is better (0), or the second (1)."""

    pairs: Pairs
    label: Integers


def by_mean_rating(ratings: Ratings, votes: Votes, asked: Pairs) -> Floats:
    """The response with the higher mean rating, surer the larger the difference; NaN where one of the two has none.

    Only ratings by raters who have votes count, so that a rater whose votes are held out is held out here too. The
    probability is the logistic function of the difference in the ratings' own unit: its order means something, its
    size does not.
    """
    difference = _differences(ratings.where(np.isin(ratings.rater, votes.rater)), asked)
    first = 0.5 * (1.0 + np.tanh(difference / 2))
    return (
        np.stack([first, 1 - first, np.zeros(len(first))], axis=1) * np.where(np.isnan(difference), np.nan, 1)[:, None]
    )


def votes_of_ratings(ratings: Ratings) -> Votes:
    """What each rater's numbers say of every two responses of a prompt that the rater gave one each; equal is a tie."""
    own = ratings.where(np.lexsort((ratings.response, ratings.rater, ratings.prompt)))
    prompt, response, rater, value = own.prompt, own.response, own.rater, own.value
    found: list[tuple[Integers, ...]] = []
    for shift in range(1, len(prompt)):
        same = (prompt[shift:] == prompt[:-shift]) & (rater[shift:] == rater[:-shift])
        if not same.any():
            break
        at = np.flatnonzero(same)
        gain = np.round(value[at] - value[at + shift], _DIGITS)
        label = np.select([gain > 0, gain < 0], [FIRST, SECOND], TIED)
        found.append((prompt[at], response[at], response[at + shift], rater[at], label))
    columns = [np.concatenate(column) for column in zip(*found, strict=True)] if found else [np.zeros(0, np.int64)] * 5
    return Votes(Pairs(*columns[:3]), columns[3], columns[4])


def key_of_means(ratings: Ratings, pairs: Pairs) -> Key:
    """The distinct pairs whose mean ratings over all raters differ, and which of the two is higher."""
    distinct = Pairs(*np.unique(np.stack(pairs), axis=1))
    difference = _differences(ratings, distinct)
    differs = np.abs(np.nan_to_num(difference)) > 0
    return Key(Pairs(*(column[differs] for column in distinct)), np.where(difference[differs] > 0, FIRST, SECOND))


def _differences(ratings: Ratings, pairs: Pairs) -> Floats:
    """The mean rating of the first minus that of the second; NaN where one has none."""
    width = int(max(ratings.response.max(initial=0), pairs.second.max(initial=0))) + 1
    size = (int(max(ratings.prompt.max(initial=-1), pairs.prompt.max(initial=-1))) + 1) * width
    place = ratings.prompt * width + ratings.response
    number = np.bincount(place, minlength=size)
    mean = np.bincount(place, ratings.value, size) / np.where(number > 0, number, np.nan)
    one, other = (pairs.prompt * width + side for side in (pairs.first, pairs.second))
    return np.round(mean[one] - mean[other], _DIGITS)
