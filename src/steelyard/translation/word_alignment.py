"""Check of the order of responses by the bench's own words: which translation belongs to which response.

Words that occur together in the short texts of a bench and in their translations are translations of each other (IBM
model 1; Brown and others, 1993). An item says nothing of its own words: what it added to the counts is taken away
before it is judged. Differs from: words are their first four letters, and the signs and pairs of signs of languages
without spaces; the counts that are taken away are those of the last iteration. Time is linear in the number of texts.

Long texts are left to `check_swapped`, whose numbers, names and lengths tell them apart.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.types import Case
from steelyard.translation.damage_kinds import DamageFinding
from steelyard.translation.passages import Passage, PassagePair, passages, source_passages

Floats = NDArray[np.float64]
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = {"zh", "yue", "ja", "th", "lo", "km", "my", "bo"}
_LETTERS = 4
"""Letters of a word that count: what follows is often an ending."""
_LONGEST, _MOST_WORDS = 300, 50
"""Characters and words of a text up to which it is short."""
_FEWEST_TEXTS, _MOST_CELLS = 200, 2_000_000
"""Texts of a bench from which its words tell anything, and pairs of words up to which texts are learnt together."""
_MOST_RESPONSES = 12
_ITERATIONS = 5
_UNSEEN = 0.1
"""The share of a word's frequency that it has beside words with which it never occurred."""
_PRIOR = 0.5
_DECISIVE = 3.5
"""Natural logarithm of the odds from which responses have changed places."""
_NO_WORD = 0
"""The word of every source that stands for what has no translation."""


class _Text(NamedTuple):
    """The words of a text and of its translation, by their numbers; ``place`` is 0 for the prompt."""

    item: int
    place: int
    source: NDArray[np.int64]
    target: NDArray[np.int64]


class _WordCounts(NamedTuple):
    """Counts of words of the source that became words of the translation: by pair of words, with the sum for each word.

    ``keys`` are the pairs in order, each as a number: the word of the source times ``base``, and that of the target.
    """

    base: int
    keys: NDArray[np.int64]
    counts: Floats
    totals: Floats

    def of(self, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> Floats:
        """Return the count of each word of a source with each one of a target, shape (source, target)."""
        wanted = sources[:, None] * self.base + targets
        places = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[places] == wanted, self.counts[places], 0.0)


class ResponseOrder:
    """The items of a bench, and which of their responses have changed places."""

    def __init__(self) -> None:
        self._benches: dict[tuple[str, str], _Bench] = {}
        self._num_items = 0
        self._swapped: dict[int, list[tuple[int, int]]] = defaultdict(list)

    def add(self, source: Case, target: Case) -> None:
        """Add the next item. Items with fewer than two short responses are counted alone."""
        item = self._num_items
        self._num_items += 1
        few = source.responses[:_MOST_RESPONSES], target.responses[:_MOST_RESPONSES]
        if min(sum(len(each.text or "") <= _LONGEST for each in side) for side in few) < 2:
            return
        pairs = [PassagePair(*each) for each in zip(source_passages(source), passages(target), strict=False)]
        languages = pairs[0].source.code, pairs[0].target.code
        if languages[0] == languages[1]:
            return
        bench = self._benches.setdefault(languages, _Bench())
        for place, pair in enumerate(pairs[: _MOST_RESPONSES + 1]):
            if pair.source.text != pair.target.text and max(len(each.text) for each in pair) <= _LONGEST:
                bench.add(item, place, pair)
        if bench.num_cells > _MOST_CELLS:
            self._judge(self._benches.pop(languages))

    def findings(self, number: int, source: Case, target: Case) -> Iterator[DamageFinding]:
        """Yield the responses that have changed places in the item that was added as this one, from 0."""
        while self._benches:
            self._judge(self._benches.popitem()[1])
        for places in self._swapped.get(number, ()):
            names = ", ".join(f"response {target.responses[place - 1].id}" for place in places)
            yield DamageFinding(kind="swapped_responses", place="responses", before=names, after=names)

    def _judge(self, bench: "_Bench") -> None:
        for item, places in bench.swapped():
            self._swapped[item].append(places)


class _Bench:
    """The short texts of one pair of languages that are learnt together."""

    def __init__(self) -> None:
        self.num_cells = 0
        self._texts: list[_Text] = []
        self._numbers: tuple[dict[str, int], dict[str, int]] = ({"": _NO_WORD}, {})
        self._weight = 1.0

    def add(self, item: int, place: int, pair: PassagePair) -> None:
        """Add the words of a text, each once, unless it has too many or none."""
        words = [_words(each) for each in pair]
        if min(map(len, words)) == 0 or max(map(len, words)) > _MOST_WORDS:
            return
        # Each sign of languages without spaces is in three words.
        self._weight = 0.5 if pair.target.code in _UNSPACED else 1.0
        source, target = (
            np.array([numbers.setdefault(word, len(numbers)) for word in each])
            for numbers, each in zip(self._numbers, words, strict=True)
        )
        self._texts.append(_Text(item, place, np.append(_NO_WORD, source), target))
        self.num_cells += len(self._texts[-1].source) * len(target)

    def swapped(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """Yield the items with two responses that fit each other's source better, with their places."""
        if len(self._texts) < _FEWEST_TEXTS:
            return
        learnt, keys, shares = self._learn()
        frequencies = np.bincount(np.concatenate([text.target for text in self._texts]))
        rarity = frequencies.sum() / np.maximum(frequencies, 1)
        start = 0
        for item, group in groupby(self._texts, key=lambda text: text.item):
            texts = list(group)
            end = start + sum(len(text.source) * len(text.target) for text in texts)
            of_item, inverse = np.unique(keys[start:end], return_inverse=True)
            counts = _sums(inverse, shares[start:end])
            totals = _sums(of_item // learnt.base, counts, size=len(learnt.totals))
            removed = _WordCounts(learnt.base, of_item, counts, totals)
            start = end
            answers = [text for text in texts if text.place]
            fits = [[_fit(source, target, learnt, removed, rarity) for target in answers] for source in answers]
            for left, right in combinations(range(len(answers)), 2):
                odds = fits[left][left] + fits[right][right] - fits[left][right] - fits[right][left]
                if odds * self._weight < -_DECISIVE:
                    yield item, (answers[left].place, answers[right].place)

    def _learn(self) -> tuple[_WordCounts, NDArray[np.int64], Floats]:
        """Return the counts of all texts after some iterations, with the pairs of words of each and their shares."""
        base = len(self._numbers[1])
        keys = np.concatenate([(text.source[:, None] * base + text.target).ravel() for text in self._texts])
        starts = np.cumsum([0, *(len(text.target) for text in self._texts)])
        words = np.concatenate(
            [
                start + np.tile(np.arange(len(text.target)), len(text.source))
                for start, text in zip(starts, self._texts, strict=False)
            ]
        )
        pairs, inverse = np.unique(keys, return_inverse=True)
        chances = np.ones(len(pairs))
        counts = totals = shares = chances
        for _ in range(_ITERATIONS):
            weights = chances[inverse]
            shares = weights / _sums(words, weights)[words]
            counts = _sums(inverse, shares)
            totals = _sums(pairs // base, counts)
            chances = counts / (totals[pairs // base] + _PRIOR)
        return _WordCounts(base, pairs, counts, totals), keys, shares


def _sums(places: NDArray[np.int64], values: Floats, *, size: int = 0) -> Floats:
    """Return the sum of the values of each place, for at least ``size`` places."""
    return np.bincount(places, values, minlength=size).astype(np.float64, copy=False)


def _fit(source: _Text, target: _Text, learnt: _WordCounts, removed: _WordCounts, rarity: Floats) -> float:
    """Return the logarithm of how much likelier a translation is beside a source than by itself."""
    counts = np.maximum(learnt.of(source.source, target.target) - removed.of(source.source, target.target), 0.0)
    totals = np.maximum(learnt.totals[source.source] - removed.totals[source.source], 0.0)
    chances = (counts / (totals[:, None] + _PRIOR)).mean(axis=0)
    return float(np.log(chances * rarity[target.target] + _UNSEEN).sum())


def _words(passage: Passage) -> Sequence[str]:
    """Return the different words of a text by their first letters, or its signs and pairs of signs."""
    words = _WORD.findall(passage.prose.casefold())
    if passage.code not in _UNSPACED:
        return list(dict.fromkeys(word[:_LETTERS] for word in words))
    return list(
        dict.fromkeys(
            word[start : start + size] for word in words for size in (1, 2) for start in range(len(word) - size + 1)
        )
    )
