"""What the system that wrote a response tells of the response, for `rater_replay.py --authors`.

The strength of a response begins at the mean of its author's responses in all items, in place of zero (empirical Bayes:
Efron and Morris, 1973). Few judgments of an item then go further, because those of the other items speak too.

It is for comparing systems, and for choosing whom to ask. It is not for rankings that train or test a reward model:
they would say what is usual of an author and not what people found in this item, and a model would learn authors.
"""

from collections.abc import Sequence

import numpy as np
from rater_pool import Pool

from steelyard.annotation.plackett_luce import Raters
from steelyard.core.numerics import Booleans, Floats, Integers
from steelyard.core.types import Case

_ROUNDS = 4
"""Rounds between the means of authors and the strengths of items; the means then move by less than 0.01."""


def authors_of(cases: Sequence[Case], width: int) -> Integers:
    """Return the number of the author of each response, (item, response); -1 where there is none."""
    numbers: dict[str, int] = {}
    authors = np.full((len(cases), width), -1)
    for item, case in enumerate(cases):
        for place, response in enumerate(case.responses):
            if response.author is not None:
                authors[item, place] = numbers.setdefault(response.author, len(numbers))
    return authors


def author_means(strength: Floats, authors: Integers, is_asked: Booleans) -> Floats:
    """Return for each response the mean strength of its author's responses in items that were asked about.

    ``strength``, ``authors`` and the result: (item, response); ``is_asked``: (item,). 0 without an author.
    """
    used = (authors >= 0) & is_asked[:, None]
    size = int(authors.max(initial=-1)) + 1
    number = np.bincount(authors[used], minlength=size)
    total = np.bincount(authors[used], weights=strength[used], minlength=size)
    return np.where(authors >= 0, np.append(total / np.maximum(number, 1), 0.0)[authors], 0.0)


def with_author_prior(pool: Pool, raters: Raters, is_used: Booleans, authors: Integers) -> Pool:
    """Return the pool whose strengths begin at the means of authors, by the answers used alone."""
    # Items without an answer have the strengths of the prior: as evidence they would count it twice.
    is_asked = np.bincount(pool.item[is_used], minlength=pool.num_items) > 0
    items = pool.ranked(raters, is_used)
    for _ in range(_ROUNDS):
        pool = pool._replace(prior=author_means(items.mean, authors, is_asked))
        items = pool.ranked(raters, is_used, items)
    return pool
