"""Check of the meaning by an encoder: a translation is nearer to its own source than to other texts of the bench.

The nearness of a text is compared with its nearness to a sample of other sources, in standard deviations of these: a
translation of another text has about 0. Languages that the encoder reads badly show in the standing of all their
translations. There the limit falls, down to none at all, so that false findings stay rare.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from steelyard.core.iteration import batched
from steelyard.core.numerics import Floats
from steelyard.core.types import Case
from steelyard.translation.damage_kinds import DamageFinding, finding
from steelyard.translation.passages import Passage, PassagePair, passages

Encode = Callable[[Sequence[str]], Floats]
"""Returns a vector of length 1 for each text, shape (text, coordinate)."""
_NUM_OTHERS = 128
"""Sources to which a translation is compared."""
_FEWEST_OTHERS = 12
_FEWEST_LETTERS = 8.0
_LIMIT = 2.0
"""The standing of 98% of the translations of other texts is below it."""
_REACH = 1.5
"""Tukey's rule for what lies outside: this many distances of the quartiles below the first one."""
_FEWEST_TEXTS = 20
_DECISIVE = 1.5
"""Standard deviations by which crossed responses have to be nearer than straight ones."""
_PAIRS_AT_ONCE = 64


class _Standing(NamedTuple):
    """Result of the encoder for one pair: the standing of each text, NaN for none, and responses nearer crossed."""

    texts: tuple[float, ...]
    crossed: tuple[tuple[int, int], ...]


class MeaningCheck:
    """The standings of the pairs of a bench, in the order in which they were added."""

    def __init__(self, encode: Encode, sources: Iterable[Case]) -> None:
        self._encode = encode
        self._vectors: dict[str, Floats] = {}
        self._standings: list[_Standing] = []
        self._by_languages = defaultdict[str, list[float]](list)
        others: dict[str, list[str]] = {"prompt": [], "response": []}
        for case in sources:
            for passage in passages(case):
                texts = others[_kind(passage)]
                if _is_long(passage) and passage.prose not in texts:
                    texts.append(passage.prose)
            if min(map(len, others.values())) >= _NUM_OTHERS:
                break
        self._others = {kind: (texts[:_NUM_OTHERS], self._of(texts[:_NUM_OTHERS])) for kind, texts in others.items()}

    def compared(self, pairs: Iterable[tuple[Case, Case]]) -> Iterator[tuple[Case, Case]]:
        """Yield cases with their translations after they were added, in batches for the encoder."""
        for batch in batched(pairs, _PAIRS_AT_ONCE):
            self.add(batch)
            yield from batch

    def add(self, pairs: Sequence[tuple[Case, Case]]) -> None:
        """Compare cases with their translations."""
        texts = [tuple(zip(passages(source), passages(target), strict=False)) for source, target in pairs]
        self._of([side.prose for pair in texts for both in pair for side in both if _is_long(side)])
        for pair in texts:
            self._standings.append(self._standing([PassagePair(*both) for both in pair]))
        needed = {text for sample, _ in self._others.values() for text in sample}
        needed |= {both[0].prose for pair in texts[-1:] for both in pair}
        # The source of the next pair is often that of the last one; translations do not come again.
        self._vectors = {text: vector for text, vector in self._vectors.items() if text in needed}

    def findings(self, number: int, source: Case, target: Case) -> Iterator[DamageFinding]:
        """Yield what the encoder finds in the pair that was added as this one, from 0, when all had been added."""
        standing = self._standings[number]
        pairs = [PassagePair(*both) for both in zip(passages(source), passages(target), strict=False)]
        lowest = [self._lowest(pair) for pair in pairs]
        for first, second in standing.crossed:
            if self._is_read(pairs[first]) and self._is_read(pairs[second]):
                names = f"{pairs[first].target.place}, {pairs[second].target.place}"
                yield DamageFinding(kind="swapped_responses", place="responses", before=names, after=names)
        swapped = {place for each in standing.crossed for place in each}
        for place, (pair, value) in enumerate(zip(pairs, standing.texts, strict=True)):
            if lowest[place] > 0 and value < lowest[place] and place not in swapped:
                yield finding("meaning", pair, pair.source.text, pair.target.text)

    def _lowest(self, pair: PassagePair) -> float:
        """Return the standing from which translations between two languages are taken to be right.

        It is 0, below which nothing is a finding, where the encoder cannot tell these translations from other texts.
        """
        values = self._by_languages[_languages(pair)]
        if len(values) < _FEWEST_TEXTS:
            return 0.0
        first, third = np.quantile(values, (0.25, 0.75))
        return float(np.clip(first - _REACH * (third - first), 0.0, _LIMIT))

    def _is_read(self, pair: PassagePair) -> bool:
        """Return whether most translations between two languages stand above those of other texts."""
        values = self._by_languages[_languages(pair)]
        return len(values) >= _FEWEST_TEXTS and bool(np.median(values) > _LIMIT)

    def _standing(self, pairs: Sequence[PassagePair]) -> _Standing:
        texts = tuple(map(self._text_standing, pairs))
        for pair, value in zip(pairs, texts, strict=True):
            if not np.isnan(value):
                self._by_languages[_languages(pair)].append(value)
        comparable = [place for place in range(1, len(pairs)) if not np.isnan(texts[place])]
        crossed = [
            (first, second)
            for first, second in combinations(comparable, 2)
            if self._gain(pairs[first], pairs[second]) > _DECISIVE
        ]
        return _Standing(texts, tuple(crossed))

    def _text_standing(self, pair: PassagePair) -> float:
        """Return how far above other sources the own one stands; NaN for texts that are too short or too few."""
        if not (_is_long(pair.source) and _is_long(pair.target)):
            return np.nan
        near = self._near(pair)
        if len(near) < _FEWEST_OTHERS or not near.std():
            return np.nan
        source, target = self._of([pair.source.prose, pair.target.prose])
        return float((source @ target - near.mean()) / near.std())

    def _gain(self, first: PassagePair, second: PassagePair) -> float:
        """Return by how much two responses are nearer to the source of the other one, in standard deviations."""
        left, right = self._of([first.source.prose, second.source.prose])
        left_target, right_target = self._of([first.target.prose, second.target.prose])
        spread = (self._near(first).std() + self._near(second).std()) / 2
        return float((left @ right_target + right @ left_target - left @ left_target - right @ right_target) / spread)

    def _near(self, pair: PassagePair) -> Floats:
        """Return the nearness of a translation to other sources."""
        texts, vectors = self._others[_kind(pair.source)]
        (target,) = self._of([pair.target.prose])
        return vectors[[text != pair.source.prose for text in texts]] @ target

    def _of(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of texts; each is encoded once."""
        unknown = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if unknown:
            self._vectors |= dict(zip(unknown, self._encode(unknown), strict=True))
        return np.array([self._vectors[text] for text in texts])


def _kind(passage: Passage) -> str:
    return "prompt" if passage.place == "prompt" else "response"


def _languages(pair: PassagePair) -> str:
    return f"{pair.source.language}>{pair.target.language}"


def _is_long(passage: Passage) -> bool:
    return passage.size >= _FEWEST_LETTERS
