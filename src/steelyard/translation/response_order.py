"""Check of the order of responses by the bench's own words: which translation belongs to which response.

Four tables tell how well each translation of an item fits each source: what the other texts of the bench predict for it
from the source, and from the translations into other languages; letters that both share (names, figures, loan words);
and its length. Two responses have changed places where they fit better crossed.

Predictions are a ridge regression from the letters of the texts to those of the translations (kernel form). What it
learnt from the responses of an item is taken away exactly before they are judged, by the identity for leaving out rows
of a linear smoother (Cook, 1977), so that no order is favoured. Prompts have no order, and stay.

Most responses of a bench are in order, so that it teaches the weights of the four tables, too, and the odds from which
responses are accused: see `_odds_limit`. Time is linear in the number of texts, which are judged in parts, items with
all their languages.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import reduce
from math import ceil, isqrt, log

import numpy as np
from threadpoolctl import threadpool_limits

from steelyard.core.numerics import Floats, sigmoid
from steelyard.core.types import Case
from steelyard.translation.damage_kinds import DamageFinding
from steelyard.translation.order_evidence import (
    LetterGroups,
    ReadItem,
    ReadText,
    ReadTranslation,
    ResponsePair,
    TranslatedTexts,
    inner_products,
    letter_rows,
    smoother_of,
)
from steelyard.translation.passages import Passage, passages, source_passages

_FEWEST_TEXTS, _MOST_TEXTS, _MOST_HELD = 200, 1500, 100_000
"""Texts of a language from which its words tell anything, that are learnt together, and of all that are held."""
_MOST_VALUES = 25_000_000
"""Values of the kernels of all languages that are held at a time."""
_FEWEST_LANGUAGES = 3
"""Languages from which translations are compared with each other: of two, neither is known to be right."""
_MOST_RESPONSES = 12
_ROUNDS, _STEPS, _SMALL = 3, 200, 0.003
_USUAL_WEIGHTS = np.array([6.0, 6.0, 1.0, 1.0])
"""Weights of the four tables where a bench teaches no others, from XCOPA. Evidence has a spread of 1."""
_SHARE_OF_SWAPPED, _FEWEST_ALARMS, _MOST_ALARMS = 0.125, 0.005, 0.0125
"""Right pairs that may be accused: as a share of those that are swapped, at least and at most."""


class ResponseOrder:
    """The items of a bench, and which of their responses have changed places."""

    def __init__(self) -> None:
        self._items: dict[str, dict[str, ReadItem]] = {}
        self._groups = LetterGroups()
        self._num_pairs = self._num_held = 0
        self._swapped: dict[int, list[tuple[int, int]]] = {}

    def add(self, source: Case, target: Case) -> None:
        """Add the next item. Translations of the same prompt are compared; items with one response count alone."""
        number = self._num_pairs
        self._num_pairs += 1
        if min(len(source.responses), len(target.responses)) < 2:
            return
        sources, targets = (each[: _MOST_RESPONSES + 1] for each in (source_passages(source), passages(target)))
        if sources[0].code == targets[0].code:
            return
        items = self._items.setdefault(sources[0].code, {})
        if (item := items.get(source.prompt.id)) is None:
            item = items[source.prompt.id] = ReadItem([self._read(each) for each in sources], {})
            self._num_held += len(sources)
        pairs = zip(sources, targets, strict=False)
        texts = [None if left.text == right.text else self._read(right) for left, right in pairs]
        item.translations[target.prompt.language] = ReadTranslation(number, texts)
        self._num_held += len(texts)
        if self._num_held >= _MOST_HELD:
            self._judge()

    def _read(self, passage: Passage) -> ReadText:
        return ReadText(self._groups.of(passage), float(np.log1p(passage.size)))

    def findings(self, number: int, source: Case, target: Case) -> Iterator[DamageFinding]:
        """Yield the responses that have changed places in the item that was added as this one, from 0."""
        self._judge()
        for places in self._swapped.get(number, ()):
            names = ", ".join(f"response {target.responses[place - 1].id}" for place in places)
            yield DamageFinding(kind="swapped_responses", place="responses", before=names, after=names)

    def _judge(self) -> None:
        """Judge the items that are held, in parts of about the same size, and remove them."""
        for items in map(list, map(dict.values, self._items.values())):
            num_languages = len({language for item in items for language in item.translations})
            most = min(_MOST_TEXTS, isqrt(_MOST_VALUES // num_languages))
            num_parts = ceil(sum(len(item.source) for item in items) / most)
            size = ceil(len(items) / num_parts)
            # Threads that wait for each other on busy cores make it many times slower.
            with threadpool_limits(1):
                for start in range(0, len(items), size):
                    for pair in _swapped(items[start : start + size]):
                        self._swapped.setdefault(pair.number, []).append(pair.places)
        self._items, self._num_held = {}, 0


def _swapped(items: Sequence[ReadItem]) -> Iterator[ResponsePair]:
    """Yield the pairs of responses that have changed places in items that are learnt together."""
    sources = [text for item in items for text in item.source]
    known = [(language, text) for item in items for language, each in item.translations.items() for text in each.texts]
    counts = Counter(language for language, text in known if text is not None)
    letters = [text.letters for text in (*sources, *(text for _, text in known)) if text is not None]
    width = 1 + max((int(each[-1]) for each in letters if len(each)), default=0)
    left = letter_rows([text.letters for text in sources], width)
    views = [
        TranslatedTexts(items, sources, left, language)
        for language, number in counts.items()
        if number >= _FEWEST_TEXTS
    ]
    views = [view for view in views if view.pairs]
    if not views:
        return
    of_sources = smoother_of(inner_products(left))
    is_compared = len(views) >= _FEWEST_LANGUAGES
    for turn in range(_ROUNDS):
        # The inner products of all other translations of a text, put in a row, are the sum of those of each.
        restored = (view.restored / (len(views) - 1) for view in views)
        total = reduce(np.add, restored) if turn and is_compared else None
        tables = [view.evidence(of_sources, total, len(views) - 1) for view in views]
        weights, _ = _fitted(np.concatenate(tables), _USUAL_WEIGHTS, penalty=0.2)
        # The next round learns from the pairs that fit better crossed as such.
        before = [view.order for view in views]
        for view, each in zip(views, tables, strict=True):
            _judge(view, each @ weights)
        if is_compared and not turn:
            _cross_in_all(views)
        elif all(map(np.array_equal, before, (view.order for view in views))):
            break
    for view in views:
        limit = _odds_limit(view.odds, view.share_swapped)
        yield from (pair for pair, value in zip(view.pairs, view.odds, strict=True) if value < -limit)


def _cross_in_all(views: list["TranslatedTexts"]) -> None:
    """Cross the responses in every language where the odds of most languages are for it.

    Translations that changed places in all languages confirm each other: the source alone tells. Of the odds of all
    languages the median counts, so that a few with strong odds decide nothing for the others.
    """
    by_pair: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    for view in views:
        for pair, odds in zip(view.pairs, view.odds, strict=True):
            by_pair[pair.rows].append(float(odds))
    odds, share_swapped = _strengthened(np.array([np.median(each) for each in by_pair.values()]))
    crossed = {rows for rows, value in zip(by_pair, odds, strict=True) if value < -log(1 / share_swapped - 1)}
    for view in views:
        for pair in view.pairs:
            if pair.rows in crossed:
                view.order[list(pair.rows)] = pair.rows[::-1]


def _judge(view: TranslatedTexts, odds: Floats) -> None:
    """Take odds by the weights of all languages at the strength of this one, and learn what fits better crossed so."""
    view.odds, view.share_swapped = _strengthened(odds)
    view.learn_crossed(view.odds < -log(1 / view.share_swapped - 1))


def _strengthened(odds: Floats) -> tuple[Floats, float]:
    """Return log odds at the strength that pairs teach, and the share of pairs that is swapped.

    The odds of a strong bench are larger than the usual weights let them be.
    """
    strength, share_swapped = _fitted(odds[:, None], odds.std(keepdims=True), penalty=0.02)
    return strength * odds, share_swapped


def _fitted(evidence: Floats, usual: Floats, *, penalty: float) -> tuple[Floats, float]:
    """Return weights whose sum of evidence is the log odds that a pair is in order, and the share that is swapped.

    The odds are those before it is known that most pairs are in order. Logistic regression without a constant: crossed,
    a pair has the same evidence with the other sign. Each step takes the chance that a pair is in order from the
    weights so far, and is one of Newton's method. ``penalty`` times half the squared distance from the ``usual``
    weights, for evidence of spread 1, is added to the loss of all pairs.
    """
    spread = evidence.std(axis=0) + 1e-9
    scaled = evidence / spread
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
    return weights / spread, share_swapped


def _odds_limit(odds: Floats, share_swapped: float) -> float:
    """Return the log odds against the order of two responses from which they have changed places.

    A pair with odds of ``x`` either way points the wrong way with the chance ``sigmoid(-abs(x))``. The mean of these
    chances, over all pairs beyond a limit, is therefore the share of right pairs that it accuses, however many are
    swapped. The limit is the lowest at which that is at most an eighth of the swapped pairs, and 0.5% to 1.25% of all.
    """
    sizes = np.sort(np.abs(odds))[::-1]
    accused = sigmoid(-sizes).cumsum() / len(sizes)
    allowed = np.clip(_SHARE_OF_SWAPPED * share_swapped, _FEWEST_ALARMS, _MOST_ALARMS)
    beyond = int(np.searchsorted(accused, allowed, side="right"))
    return float(sizes[beyond]) if beyond < len(sizes) else 0.0
