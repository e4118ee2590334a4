"""Evidence for the order of responses: how much better translations fit their sources straight than crossed.

Texts are words and their parts of three letters, as weighted rows. A kernel ridge regression predicts the rows of the
translations into a language from those of the sources, or of the translations into all other languages.
"""

import re
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from steelyard.core.numerics import Booleans, Floats, Integers
from steelyard.translation.passages import Passage

_WORD = re.compile(r"[^\W_]+")
_UNSPACED_WORD = re.compile(r"[a-z\d]+|[^\W_a-z\d]+")
_UNSPACED = {"zh", "yue", "ja", "th", "lo", "km", "my", "bo"}
_LONGEST = 1000
"""Characters of a text that are read."""
_RIDGE = 1.0
"""The penalty of the regression. Texts have length 1."""
_NO_LETTERS = np.empty(0, np.int32)


class ReadText(NamedTuple):
    """The different groups of letters of a text, by number, and the logarithm of its length."""

    letters: Integers
    length: float


class ReadTranslation(NamedTuple):
    """The number of a pair of cases, and the translations of the source's texts that can be compared."""

    number: int
    texts: list[ReadText | None]


class ReadItem(NamedTuple):
    """A source, its prompt first, and its translations by language."""

    source: list[ReadText]
    translations: dict[str | None, ReadTranslation]


class ResponsePair(NamedTuple):
    """Two responses: the number of their pair of cases, their places from 1, and their rows among the texts."""

    number: int
    places: tuple[int, int]
    rows: tuple[int, int]


class LetterGroups:
    """The groups of letters of texts, by numbers that all languages share."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._words: dict[tuple[bool, str], list[int]] = {}

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


class TranslatedTexts:
    """The translations of texts into a language, as rows; those that are lacking have no letters.

    ``order`` has the row of the translation from which is learnt with each source. ``odds`` are the log odds that each
    of the ``pairs`` is in order, before it is known that most are.
    """

    def __init__(
        self, items: Sequence[ReadItem], sources: list[ReadText], left: csr_array, language: str | None
    ) -> None:
        texts: list[ReadText | None] = []
        self.pairs: list[ResponsePair] = []
        for item in items:
            number, translated = item.translations.get(language, ReadTranslation(-1, []))
            here = [*translated, *[None] * len(item.source)][: len(item.source)]
            for places in combinations(range(1, len(here)), 2):
                if all(_differ(*(each[place] for place in places)) for each in (item.source, here)):
                    rows = len(texts) + places[0], len(texts) + places[1]
                    self.pairs.append(ResponsePair(number, places, rows))
            texts += here
        right = letter_rows([_NO_LETTERS if text is None else text.letters for text in texts], left.shape[1])
        self._rows = np.array([pair.rows for pair in self.pairs], dtype=np.int64).reshape(-1, 2)
        self._kernel = inner_products(right)
        sizes = np.array([(0.0 if text is None else text.length) for text in (*sources, *texts)]).reshape(2, -1)
        fits = np.empty((2, len(self.pairs), 2, 2))
        for first, second in np.ndindex(2, 2):
            of_source, of_target = self._rows[:, first], self._rows[:, second]
            fits[0, :, first, second] = left[of_source].multiply(right[of_target]).sum(axis=1)
            fits[1, :, first, second] = sizes[0, of_source] * sizes[1, of_target]
        self._shared = [_advantage(each) for each in fits]
        self.order, self.odds, self.share_swapped = np.arange(len(texts)), np.zeros(len(self.pairs)), 0.0

    @property
    def restored(self) -> Floats:
        """Return the inner products of the translations, in the order of their sources."""
        return self._kernel[np.ix_(self.order, self.order)]

    def evidence(self, of_sources: NDArray[np.floating], total: Floats | None, num_others: int) -> Floats:
        """Return how much better the responses of each pair fit straight than crossed, shape (pair, 4), of spread 1.

        The columns are predictions by ``of_sources``, a smoother, and from the other languages, letters and lengths.
        ``total`` has the inner products of all languages over the number of the others; without it, they say nothing.
        """
        tables = np.stack([self._predicted(of_sources), np.zeros(len(self.pairs)), *self._shared], axis=1)
        if total is not None:
            tables[:, 1] = self._predicted(smoother_of(total - self.restored / num_others))
        return tables / (tables.std(axis=0) + 1e-9)

    def _predicted(self, smoother: NDArray[np.floating]) -> Floats:
        """Return how much better a regression without the two responses fits them straight than crossed."""
        source, target = self._rows[:, :, None], self._rows[:, None, :]
        # Of pairs alone: the product of both matrices takes far longer.
        values = [
            np.einsum("ij,ij->i", smoother[left], self._kernel[right][:, self.order])
            for left in self._rows.T
            for right in self._rows.T
        ]
        hat = smoother[source, target]
        fits = np.stack(values, axis=1).reshape(-1, 2, 2) - hat @ self._kernel[self.order[source], target]
        return _advantage(np.linalg.solve(np.eye(2) - hat, fits))

    def learn_crossed(self, is_crossed: Booleans) -> None:
        """Learn from these of the pairs crossed, and from all others straight."""
        self.order = np.arange(len(self.order))
        for row in self._rows[is_crossed]:
            self.order[row] = self.order[row[::-1]]


def _differ(left: ReadText | None, right: ReadText | None) -> bool:
    """Return whether two texts can be told apart by their letters."""
    if left is None or right is None or not len(left.letters) or not len(right.letters):
        return False
    return not np.array_equal(left.letters, right.letters)


def _advantage(fits: NDArray[Any]) -> Floats:
    """Return how much better pairs fit straight than crossed, from the fits of each to each, shape (pair, 2, 2)."""
    return fits[:, 0, 0] + fits[:, 1, 1] - fits[:, 0, 1] - fits[:, 1, 0]


def smoother_of(kernel: Floats) -> NDArray[np.floating]:
    """Return the ridge regression on texts with these inner products: row i weighs all texts to predict text i."""
    return np.linalg.solve(kernel + _RIDGE * np.eye(len(kernel), dtype=np.float32), kernel)


def letter_rows(letters: Sequence[Integers], width: int) -> csr_array:
    """Return a row of length 1 for each text: the square root of the inverse document frequency of each group."""
    numbers, sizes = np.concatenate(letters), np.array([len(each) for each in letters])
    weights = np.log((len(letters) + 1) / np.bincount(numbers)[numbers])
    rows = np.repeat(np.arange(len(letters)), sizes)
    norms = np.sqrt(np.bincount(rows, weights, minlength=len(letters)))
    values = (np.sqrt(weights) / norms[rows]).astype(np.float32)
    return csr_array((values, numbers, np.concatenate(([0], sizes.cumsum()))), shape=(len(letters), width))


def inner_products(texts: csr_array) -> Floats:
    """Return the inner products of all texts, in 32 bits."""
    # The time of a sparse product grows with the squares of the columns' numbers of texts.
    is_common = np.bincount(texts.indices, minlength=texts.shape[1]) > texts.shape[0] / 8
    common, rare = texts[:, is_common].toarray(), texts[:, ~is_common]
    return common @ common.T + (rare @ rare.T).toarray()
