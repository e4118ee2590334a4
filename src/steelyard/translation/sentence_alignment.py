"""Check of sentences: which sentences of a text have no translation, by the best alignment of both texts.

Sentences are aligned as Gale and Church (1993) do it. Differs from: the spread of lengths and the rate of joined
sentences are those of the bench, and what both texts share beside their lengths counts, too: numbers, names and other
words that are the same in both (Simard, Foster and Isabelle, 1992).
"""

import re
from collections.abc import Iterator
from itertools import islice
from math import exp, log
from typing import NamedTuple

from steelyard.translation.bench_lengths import TranslationLengths
from steelyard.translation.damage_kinds import DamageFinding, finding
from steelyard.translation.numbers import plain_digits
from steelyard.translation.passages import PassagePair, letter_size

_MISSING, _ADDED = 3.0, 4.0
"""Cost of a sentence without a translation and of an added one, in half squared spreads."""
_JOINED, _RAREST = 1.0, 8.0
"""Least and greatest cost of two sentences that are one in the translation; between them by the rate in the bench."""
_UNSHARED, _MOST_UNSHARED = 1.0, 2
"""Cost of a number or name that only one side of a bead has, and how many of them count."""
_ANCHOR = re.compile(r"\d+|[A-Za-z_]\w{3,}")
_MOST_ANCHORS = 16
"""Numbers and names of a sentence that are compared: longer sentences have enough of them."""
_BAND, _LONGEST_SPAN = 6, 3
_MOST_SENTENCES = 300
_SHORTEST_SENTENCE = 8.0
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
    deviation = usual.deviation(max(source.size, 1.0), max(target.size, 1.0))
    # Sentences are joined and divided at equal length; missing ones make the whole shorter.
    is_missing = len(target.sentences) < len(source.sentences)
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


def _join_cost(usual: TranslationLengths) -> float:
    """Return the cost of two sentences that are one in the translation, by their rate in the bench."""
    # The rate of a large bench is rounded to 0.
    return _JOINED if usual.joined is None else max(-log(max(usual.joined, exp(-_RAREST))), _JOINED)


def align_sentences(pair: PassagePair, usual: TranslationLengths) -> list[Bead]:
    """Return the alignment of sentences of least cost, of the first 300 of each text."""
    before = [letter_size(each) + 1 for each in pair.source.sentences[:_MOST_SENTENCES]]
    after = [(letter_size(each) + 1) / exp(usual.log_ratio) for each in pair.target.sentences[:_MOST_SENTENCES]]
    left, right, known = _anchors(pair)
    rows, columns = len(before), len(after)
    joined = _join_cost(usual)
    beads = (
        (1, 1, 0.0),
        (1, 2, _JOINED),
        (2, 1, joined),
        (1, 3, 1 + 2 * _JOINED),
        (3, 1, 1 + 2 * joined),
        (2, 2, joined + _JOINED),
        (1, 0, _MISSING),
        (0, 1, _ADDED),
    )
    width = _BAND + abs(rows - columns)
    # Spans of one to three sentences are parts of many beads: their lengths and anchors are computed once.
    ours, theirs = _spans(before, left), _spans(after, right)
    spreads = {key: usual.spread_at(span.size) for key, span in ours.items()}
    costs: dict[tuple[int, int], tuple[float, int, int]] = {(0, 0): (0.0, 0, 0)}
    for row in range(rows + 1):
        center = row * columns // max(rows, 1)
        for column in range(max(0, center - width), min(columns, center + width) + 1):
            best = costs.get((row, column))
            for down, over, extra in beads:
                previous = costs.get((row - down, column - over))
                # No part of a cost is negative.
                if previous is None or (best is not None and previous[0] + extra >= best[0]):
                    continue
                cost = previous[0] + extra
                source, target = ours[row, down], theirs[column, over]
                if down and over:
                    # Half the squared deviation of the length of some sentences from that of others.
                    cost += (log(target.size / source.size) / spreads[row, down]) ** 2 / 2
                if best is not None and cost >= best[0]:
                    continue
                # What the other text has nowhere makes its own sentence no less likely to be missing.
                unshared = source.anchors ^ target.anchors
                if not (down and over):
                    unshared &= known
                cost += _UNSHARED * min(len(unshared), _MOST_UNSHARED)
                if best is None or cost < best[0]:
                    best = (cost, down, over)
            if best is not None:
                costs[row, column] = best
    return _trace(costs, rows, columns)


def _spans(sizes: list[float], anchors: list[frozenset[str]]) -> dict[tuple[int, int], _Span]:
    """Return the spans of up to three sentences, by the place behind the last one and their number."""
    return {
        (end, number): _Span(sum(sizes[end - number : end]), frozenset[str]().union(*anchors[end - number : end]))
        for end in range(len(sizes) + 1)
        for number in range(min(end, _LONGEST_SPAN) + 1)
    }


def _anchors(pair: PassagePair) -> tuple[list[frozenset[str]], list[frozenset[str]], frozenset[str]]:
    """Return the numbers of each sentence with the words that are in both texts, and all that both texts have."""
    tokens = [
        [tuple(dict.fromkeys(_ANCHOR.findall(plain_digits(sentence)))) for sentence in each.sentences[:_MOST_SENTENCES]]
        for each in pair
    ]
    ours, theirs = (frozenset().union(*each) for each in tokens)
    known = ours & theirs
    left, right = (
        [
            frozenset(islice((token for token in tokens if token in known or token.isdecimal()), _MOST_ANCHORS))
            for tokens in each
        ]
        for each in tokens
    )
    return left, right, known


def _trace(costs: dict[tuple[int, int], tuple[float, int, int]], row: int, column: int) -> list[Bead]:
    """Return the beads of the cheapest path to a cell, in order."""
    beads: list[Bead] = []
    while (row or column) and (row, column) in costs:
        _, down, right = costs[row, column]
        beads.append(Bead(range(row - down, row), range(column - right, column)))
        row, column = row - down, column - right
    return beads[::-1]
