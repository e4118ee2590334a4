"""Check of sentences: which sentences of a text have no translation, by the best alignment of both texts.

Sentences are aligned as Gale and Church (1993) do it. Differs from: the spread of lengths and the rate of joined
sentences are those of the bench, and what both texts share beside their lengths counts, too: numbers, names and other
words that are the same in both (Simard, Foster and Isabelle, 1992), and marks of questions.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from math import exp, inf, log
from typing import NamedTuple

from steelyard.translation.bench_lengths import TranslationLengths
from steelyard.translation.damage_kinds import DamageFinding, finding
from steelyard.translation.numbers import plain_digits
from steelyard.translation.passages import Passage, PassagePair, letter_size

_MISSING, _ADDED = 3.0, 4.0
"""Cost of a sentence without a translation and of an added one, in half squared spreads."""
_JOINED, _RAREST = 1.0, 8.0
"""Least and greatest cost of two sentences that are one in the translation; between them by the rate in the bench."""
_UNSHARED, _MOST_UNSHARED = 1.0, 2
"""Cost of a number or name that only one side of a bead has, and how many of them count."""
_ANCHOR = re.compile(r"\d+|[A-Za-z_]\w{3,}")
_MARKS = {"?": "?", "？": "?", "؟": "?", "፧": "?", "\u037e": "?", ":": ":", "：": ":"}
_GREEK_MARKS = {**_MARKS, ";": "?"}
"""Final marks that translators keep: a text that ends as a question has not lost its last sentence, if that was one."""
_CLOSING = " \"'”’»)]*_`"
_MOST_ANCHORS = 16
"""Numbers and names of a sentence that are compared: longer sentences have enough of them."""
_BAND, _LONGEST_SPAN = 6, 3
_MOST_SENTENCES = 300
_LEAST_ROOM, _ROUNDING = 4, 1e-9
"""Cost above the least possible one within which alignments are looked for first, in texts of few sentences."""
_SHORTEST_SENTENCE, _LABEL = 8.0, 24.0
"""Letters of a sentence that is missing, and the most letters of a label, which is missing however short it is."""
_LEAST_DEVIATION, _RARE = 0.3, 2.0
"""Spreads by which a text with fewer sentences is shorter than usual, unless the bench rarely joins any."""


class Bead(NamedTuple):
    """Sentences that are translations of each other: ranges of places in both texts, one of them empty if alone."""

    source: range
    target: range


class _Span(NamedTuple):
    """Sentences that follow each other: their length together, and their numbers and names."""

    size: float
    anchors: frozenset[str]


def check_sentences(pair: PassagePair, usual: TranslationLengths) -> Iterator[DamageFinding]:
    """Find sentences of the source without a translation, and added ones, by the best alignment."""
    source, target = pair
    if not (source.is_segmented and target.is_segmented):
        return
    if len(source.sentences) == len(target.sentences) or not source.sentences or not target.sentences:
        return
    is_missing = len(target.sentences) < len(source.sentences)
    if is_missing and (label := _lost_label(pair)):
        yield finding("sentences", pair, label, "")
        return
    deviation = usual.deviation(max(source.size, 1.0), max(target.size, 1.0))
    # Sentences are joined and divided at equal length; missing ones make the whole shorter.
    if not (is_missing and _join_cost(usual) > _RARE) and (-deviation if is_missing else deviation) < _LEAST_DEVIATION:
        return
    for bead in align_sentences(pair, usual):
        before, after = (
            " ".join(each.sentences[place] for place in places) for each, places in zip(pair, bead, strict=True)
        )
        alone, other = (before, target) if is_missing and not after else (after, source)
        if (before and after) or is_missing != (not after):
            continue
        figures = set(re.findall(r"\d+", plain_digits(alone)))
        if letter_size(alone) >= _SHORTEST_SENTENCE or (
            figures and figures.isdisjoint(re.findall(r"\d+", plain_digits(other.prose)))
        ):
            yield finding("sentences", pair, before, after)
            return


def _lost_label(pair: PassagePair) -> str:
    """Return the last line such as "Example:" where the translation has fewer colons than the source has such lines."""
    labels = [each for each in pair.source.sentences if each.endswith((":", "：")) and letter_size(each) <= _LABEL]
    colons = pair.target.prose.count(":") + pair.target.prose.count("：")
    return labels[-1] if len(labels) > colons else ""


def _join_cost(usual: TranslationLengths) -> float:
    """Return the cost of two sentences that are one in the translation, by their rate in the bench."""
    # The rate of a large bench is rounded to 0.
    return _JOINED if usual.joined is None else max(-log(max(usual.joined, exp(-_RAREST))), _JOINED)


@lru_cache(1)
def align_sentences(pair: PassagePair, usual: TranslationLengths) -> list[Bead]:
    """Return the alignment of sentences of least cost, of the first 300 of each text.

    It is kept for the next call: the checks of sentences and of negations align the same texts one after the other.
    """
    grid = _Grid(pair, usual)
    room = float(max(grid.rows, grid.columns, _LEAST_ROOM))
    while (ways := grid.ways_within(grid.least(grid.rows - grid.columns) + room)) is None:
        room *= 2
    beads: list[Bead] = []
    row, column = grid.rows, grid.columns
    while row or column:
        down, right, _ = grid.beads[ways[row][column]]
        beads.append(Bead(range(row - down, row), range(column - right, column)))
        row, column = row - down, column - right
    return beads[::-1]


class _Grid:
    """The sentences of two texts, and what it costs to align the first ones of both."""

    def __init__(self, pair: PassagePair, usual: TranslationLengths) -> None:
        self._joined = joined = _join_cost(usual)
        self.beads = (
            (1, 1, 0.0),
            (1, 2, _JOINED),
            (2, 1, joined),
            (1, 3, 1 + 2 * _JOINED),
            (3, 1, 1 + 2 * joined),
            (2, 2, joined + _JOINED),
            (1, 0, _MISSING),
            (0, 1, _ADDED),
        )
        before = [size + 1 for size in pair.source.sentence_sizes[:_MOST_SENTENCES]]
        after = [(size + 1) / exp(usual.log_ratio) for size in pair.target.sentence_sizes[:_MOST_SENTENCES]]
        left, right, self._known = _anchors(pair)
        self.rows, self.columns = len(before), len(after)
        # Spans of one to three sentences are parts of many beads: their lengths and anchors are computed once.
        self._ours, self._theirs = _spans(before, left), _spans(after, right)
        self._spreads = [[usual.spread_at(span.size) for span in spans] for spans in self._ours]

    def least(self, more: int) -> float:
        """Return the least cost of more sentences in the source (joined or missing), or of fewer where negative."""
        return more * min(self._joined, _MISSING) if more > 0 else -more * _JOINED

    def ways_within(self, limit: float) -> list[list[int]] | None:
        """Return the last bead of the best way to align the first sentences of both texts, as its place in ``beads``.

        Null where all costs more than ``limit``: what cannot be a part of an alignment within it is left out. Of equal
        costs the first bead's counts.
        """
        rows, columns = self.rows, self.columns
        width = _BAND + abs(rows - columns)
        costs = [[inf] * (columns + 1) for _ in range(rows + 1)]
        ways = [[len(self.beads)] * (columns + 1) for _ in range(rows + 1)]
        # By the number of sentences of the source less that of the translation, which is negative for some places.
        shifts = [*range(rows + 1), *range(-columns, 0)]
        most = [limit + _ROUNDING - self.least(rows - columns - shift) for shift in shifts]
        costs[0][0] = 0.0
        for row in range(rows + 1):
            center = row * columns // max(rows, 1)
            for column in range(max(0, center - width), min(columns, center + width) + 1):
                if (before := costs[row][column]) == inf:
                    continue
                for way, (down, over, extra) in enumerate(self.beads):
                    end, other = row + down, column + over
                    # No part of a cost is negative.
                    cost = before + extra
                    if end > rows or other > columns or cost > most[end - other] or cost > costs[end][other]:
                        continue
                    cost = self._add(cost, end, other, down, over)
                    if cost <= most[end - other] and (cost, way) < (costs[end][other], ways[end][other]):
                        costs[end][other], ways[end][other] = cost, way
        return None if costs[rows][columns] == inf else ways

    def _add(self, cost: float, end: int, other: int, down: int, over: int) -> float:
        """Return a cost with that of a bead, by its ends and its numbers of sentences."""
        source, target = self._ours[end][down], self._theirs[other][over]
        if down and over:
            # Half the squared deviation of the length of some sentences from that of others.
            cost += (log(target.size / source.size) / self._spreads[end][down]) ** 2 / 2
        if source.anchors or target.anchors:
            # What the other text has nowhere makes its own sentence no less likely to be missing.
            unshared = source.anchors ^ target.anchors
            cost += _UNSHARED * min(len(unshared if down and over else unshared & self._known), _MOST_UNSHARED)
        return cost


def _spans(sizes: list[float], anchors: list[frozenset[str]]) -> list[list[_Span]]:
    """Return the spans of up to three sentences, by the place behind the last one and their number."""
    spans = [[_Span(0.0, frozenset())]]
    for size, each in zip(sizes, anchors, strict=True):
        longer = [_Span(span.size + size, span.anchors | each) for span in spans[-1][:_LONGEST_SPAN]]
        spans.append([spans[0][0], *longer])
    return spans


def _anchors(pair: PassagePair) -> tuple[list[frozenset[str]], list[frozenset[str]], frozenset[str]]:
    """Return the numbers of each sentence with the words that are in both texts, and all that both texts have."""
    tokens = [each.once(_tokens) for each in pair]
    ours, theirs = (frozenset().union(*each) for each in tokens)
    known = ours & theirs
    left, right = (
        [
            frozenset(
                islice((token for token in tokens if token in known or not token[0].isidentifier()), _MOST_ANCHORS)
            )
            for tokens in each
        ]
        for each in tokens
    )
    return left, right, known


def _tokens(passage: Passage) -> list[tuple[str, ...]]:
    """Return the final mark of each sentence, its numbers, and its words in Latin letters."""
    few = passage.sentences[:_MOST_SENTENCES]
    known = _GREEK_MARKS if passage.code == "el" else _MARKS
    marks = [known.get(each.rstrip(_CLOSING)[-1:]) for each in few]
    return [
        (*([mark] if mark else []), *dict.fromkeys(_ANCHOR.findall(plain_digits(each))))
        for mark, each in zip(marks, few, strict=True)
    ]
