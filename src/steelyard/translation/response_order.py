"""Check of the order of responses by the bench's own words: which translation belongs to which response.

Three tables tell how well each translation of an item fits each source: what the other texts of the bench predict for
it, letters that both share (names, figures, loan words), and its length. Two responses have changed places where they
fit better crossed.

Predictions are a ridge regression from the letters of the sources to those of the translations (kernel form). What it
learnt from the responses of an item is taken away exactly before they are judged, by the identity for leaving out rows
of a linear smoother (Cook, 1977), so that no order is favoured. Prompts have no order, and stay.

Most responses of a bench are in order, so that it teaches the weights of the three tables, too: a logistic regression
whose labels are wrong at a rate that is estimated with it. The odds from which responses are accused follow from the
same bench: see `_odds_limit`. Time is linear in the number of texts, which are judged in parts.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from math import log
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from steelyard.core.numerics import Booleans, Floats, Integers, sigmoid
from steelyard.core.types import Case
from steelyard.translation.damage_kinds import DamageFinding
from steelyard.translation.passages import Passage, PassagePair, passages, source_passages

_WORD = re.compile(r"[^\W_]+")
_UNSPACED_WORD = re.compile(r"[a-z\d]+|[^\W_a-z\d]+")
_UNSPACED = {"zh", "yue", "ja", "th", "lo", "km", "my", "bo"}
_LONGEST = 1000
"""Characters of a text that are read."""
_FEWEST_TEXTS, _MOST_TEXTS = 200, 1500
"""Texts of a bench from which its words tell anything, and texts that are learnt together."""
_MOST_RESPONSES = 12
_RIDGE = 1.0
"""The penalty of the regression. Texts have length 1."""
_ROUNDS, _STEPS, _SMALL = 3, 200, 0.003
_USUAL_WEIGHTS = np.array([6.0, 1.0, 1.0])
"""Weights of the three tables where a bench teaches no others, from XCOPA. Evidence has a spread of 1."""
_SHARE_OF_SWAPPED, _FEWEST_ALARMS, _MOST_ALARMS = 0.1, 0.003, 0.01
"""Right pairs that may be accused: as a share of those that are swapped, at least and at most."""


class _Text(NamedTuple):
    """The groups of letters of a text and its translation, by number, and the logarithms of their lengths."""

    item: int
    place: int
    letters: tuple[Integers, Integers]
    lengths: tuple[float, float]


class _ResponsePair(NamedTuple):
    """Two responses of an item, by their places from 1 and by their rows among the texts that are learnt together."""

    item: int
    places: tuple[int, int]
    rows: tuple[int, int]


class ResponseOrder:
    """The items of a bench, and which of their responses have changed places."""

    def __init__(self) -> None:
        self._benches: dict[tuple[str, str], list[_Text]] = defaultdict(list)
        self._groups = _LetterGroups()
        self._num_items = 0
        self._swapped: dict[int, list[tuple[int, int]]] = defaultdict(list)

    def add(self, source: Case, target: Case) -> None:
        """Add the next item. Items with fewer than two responses are counted alone."""
        item = self._num_items
        self._num_items += 1
        if min(len(source.responses), len(target.responses)) < 2:
            return
        pairs = [PassagePair(*each) for each in zip(source_passages(source), passages(target), strict=False)]
        languages = pairs[0].source.code, pairs[0].target.code
        if languages[0] == languages[1]:
            return
        texts = self._benches[languages]
        for place, pair in enumerate(pairs[: _MOST_RESPONSES + 1]):
            if pair.source.text == pair.target.text:
                continue
            letters = self._groups.of_source(pair.source), self._groups.of(pair.target)
            if len(letters[0]) and len(letters[1]):
                lengths = (float(np.log1p(pair.source.size)), float(np.log1p(pair.target.size)))
                texts.append(_Text(item, place, letters, lengths))
        if len(texts) >= 2 * _MOST_TEXTS:
            self._judge(texts, _MOST_TEXTS)

    def findings(self, number: int, source: Case, target: Case) -> Iterator[DamageFinding]:
        """Yield the responses that have changed places in the item that was added as this one, from 0."""
        while self._benches:
            texts = self._benches.popitem()[1]
            if len(texts) > _MOST_TEXTS:
                self._judge(texts, len(texts) // 2)
            self._judge(texts, len(texts))
        for places in self._swapped.get(number, ()):
            names = ", ".join(f"response {target.responses[place - 1].id}" for place in places)
            yield DamageFinding(kind="swapped_responses", place="responses", before=names, after=names)

    def _judge(self, texts: list[_Text], num_texts: int) -> None:
        """Judge about this many of the texts together, whole items, and remove them."""
        end = num_texts
        while 0 < end < len(texts) and texts[end].item == texts[end - 1].item:
            end += 1
        # Threads that wait for each other on busy cores make it many times slower.
        with threadpool_limits(1):
            for pair in _swapped(texts[:end]):
                self._swapped[pair.item].append(pair.places)
        del texts[:end]


class _LetterGroups:
    """The groups of letters of texts, by numbers that all languages share: a source is read once for all of them."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._words: dict[tuple[bool, str], list[int]] = {}
        self._sources: dict[tuple[str, str], Integers] = {}

    def of_source(self, passage: Passage) -> Integers:
        """Return the groups of a text that has several translations."""
        key = passage.code, passage.text
        if key not in self._sources:
            self._sources[key] = self.of(passage)
        return self._sources[key]

    def of(self, passage: Passage) -> Integers:
        """Return the different groups of letters of the words of a text, by number."""
        is_unspaced = passage.code in _UNSPACED
        numbers: set[int] = set()
        for word in (_UNSPACED_WORD if is_unspaced else _WORD).findall(passage.prose[:_LONGEST].casefold()):
            key = is_unspaced, word
            if key not in self._words:
                groups = _groups(word, is_unspaced=is_unspaced and not word.isascii())
                self._words[key] = [self._numbers.setdefault(group, len(self._numbers)) for group in groups]
            numbers.update(self._words[key])
        return np.sort(np.fromiter(numbers, np.int32, len(numbers)))


def _groups(word: str, *, is_unspaced: bool) -> set[str]:
    """Return a word and its parts of three letters, ends included; signs and pairs of signs where no space divides."""
    if is_unspaced:
        return {word[start : start + size] for size in (1, 2) for start in range(len(word) - size + 1)}
    return {f" {word} ", *(f" {word} "[start : start + 3] for start in range(len(word)))}


def _swapped(texts: list[_Text]) -> list[_ResponsePair]:
    """Return the pairs of responses that have changed places."""
    pairs = _pairs(texts)
    if len(texts) < _FEWEST_TEXTS or not pairs:
        return []
    rows = np.array([pair.rows for pair in pairs])
    tables = _Tables(texts)
    order, odds, share_swapped = np.arange(len(texts)), np.zeros(len(pairs)), 0.0
    for _ in range(_ROUNDS):
        mixed, _ = _order_odds(tables.evidence(rows, order), _USUAL_WEIGHTS, penalty=0.2)
        # The odds of a strong bench are larger than the usual weights let them be.
        odds, share_swapped = _order_odds(mixed[:, None], mixed.std(keepdims=True), penalty=0.02)
        # The next round learns from these pairs crossed.
        before, order = order, np.arange(len(texts))
        for row in rows[odds < -log(1 / share_swapped - 1)]:
            order[row] = order[row[::-1]]
        if (order == before).all():
            break
    limit = _odds_limit(odds, share_swapped)
    return [pair for pair, value in zip(pairs, odds, strict=True) if value < -limit]


def _pairs(texts: list[_Text]) -> list[_ResponsePair]:
    """Return all pairs of responses of the same item that differ on both sides."""
    rows: dict[int, list[int]] = defaultdict(list)
    for row, text in enumerate(texts):
        if text.place:
            rows[text.item].append(row)
    return [
        _ResponsePair(item, (texts[first].place, texts[second].place), (first, second))
        for item, each in rows.items()
        for first, second in combinations(each, 2)
        if not any(map(np.array_equal, texts[first].letters, texts[second].letters))
    ]


class _Tables:
    """The three tables of texts that are learnt together. Only values within an item are computed."""

    def __init__(self, texts: list[_Text]) -> None:
        width = 1 + max(numbers[-1] for text in texts for numbers in text.letters)
        sources, targets = (_weighted([text.letters[side] for text in texts], width) for side in (0, 1))
        numbers = np.concatenate([numbers for text in texts for numbers in text.letters])
        is_common = np.bincount(numbers, minlength=width) > len(texts) / 8
        kernel, self._of_targets, self._spelling = (
            _products(*both, is_common) for both in ((sources, sources), (targets, targets), (sources, targets))
        )
        self._smoother = np.linalg.solve(kernel + _RIDGE * np.eye(len(texts), dtype=np.float32), kernel)
        self._lengths = np.array([text.lengths for text in texts])

    def evidence(self, rows: Integers, order: Integers) -> Floats:
        """Return how much better two responses fit straight than crossed, by each table, shape (pair, 3).

        ``rows`` are those of the two responses, shape (pair, 2). ``order`` has the row of the translation from which is
        learnt with each source.
        """
        source, target = rows[:, :, None], rows[:, None, :]
        # Of pairs alone: the product of both matrices takes far longer.
        values = [
            np.einsum("ij,ij->i", self._smoother[left], self._of_targets[right][:, order])
            for left in rows.T
            for right in rows.T
        ]
        predicted = np.stack(values, axis=1).reshape(-1, 2, 2)
        hat = self._smoother[source, target]
        predicted = np.linalg.solve(np.eye(2) - hat, predicted - hat @ self._of_targets[order[source], target])
        lengths = self._lengths[source, 0] * self._lengths[target, 1]
        tables = np.stack([predicted, self._spelling[source, target], lengths], axis=1)
        return tables[:, :, 0, 0] + tables[:, :, 1, 1] - tables[:, :, 0, 1] - tables[:, :, 1, 0]


def _weighted(letters: list[Integers], width: int) -> csr_array:
    """Return a row of length 1 for each text: the square root of the inverse document frequency of each group."""
    numbers = np.concatenate(letters)
    sizes = np.array([len(each) for each in letters])
    weights = np.log((len(letters) + 1) / np.bincount(numbers)[numbers])
    starts = np.concatenate(([0], sizes.cumsum()))
    norms = np.sqrt(np.add.reduceat(weights, starts[:-1]))
    values = (np.sqrt(weights) / np.repeat(norms, sizes)).astype(np.float32)
    return csr_array((values, numbers, starts), shape=(len(letters), width))


def _products(left: csr_array, right: csr_array, is_common: Booleans) -> Floats:
    """Return the product of each row of one matrix with each one of the other; columns of many texts are common."""
    # The time of a sparse product grows with the squares of the columns' numbers of texts.
    common = left[:, is_common].toarray() @ right[:, is_common].toarray().T
    return common + (left[:, ~is_common] @ right[:, ~is_common].T).toarray()


def _order_odds(evidence: Floats, usual: Floats, *, penalty: float) -> tuple[Floats, float]:
    """Return the log odds that each pair is in order, before it is known that most are, and the share that is swapped.

    Logistic regression without a constant: crossed, a pair has the same evidence with the other sign. Each step takes
    the chance that a pair is in order from the weights so far, and is one of Newton's method. ``penalty`` times half
    the squared distance from the ``usual`` weights, for evidence of spread 1, is added to the loss of all pairs.
    """
    scaled = evidence / (evidence.std(axis=0) + 1e-9)
    weights, share_swapped = usual, 0.1
    for _ in range(_STEPS):
        odds = scaled @ weights
        chances = sigmoid(odds)
        in_order = sigmoid(odds + log(1 / share_swapped - 1))
        slope = scaled.T @ (in_order - chances) - penalty * (weights - usual)
        curvature = (scaled.T * (chances * (1 - chances))) @ scaled + penalty * np.eye(len(weights))
        step = np.linalg.solve(curvature, slope)
        before, share_swapped = share_swapped, float(np.clip(1 - in_order.mean(), 0.001, 0.45))
        weights = weights + step
        if abs(step).max() < _SMALL and abs(share_swapped - before) < _SMALL * share_swapped:
            break
    return scaled @ weights, share_swapped


def _odds_limit(odds: Floats, share_swapped: float) -> float:
    """Return the log odds against the order of two responses from which they have changed places.

    A pair with odds of ``x`` either way points the wrong way with the chance ``sigmoid(-abs(x))``. The mean of these
    chances, over all pairs beyond a limit, is therefore the share of right pairs that it accuses, however many are
    swapped. The limit is the lowest at which that is at most a tenth of the swapped pairs, within 0.3% and 1% of all.
    """
    sizes = np.sort(np.abs(odds))[::-1]
    accused = sigmoid(-sizes).cumsum() / len(sizes)
    allowed = np.clip(_SHARE_OF_SWAPPED * share_swapped, _FEWEST_ALARMS, _MOST_ALARMS)
    beyond = int(np.searchsorted(accused, allowed, side="right"))
    return float(sizes[beyond]) if beyond < len(sizes) else 0.0
