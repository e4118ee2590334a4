"""Lengths of the translations of a bench, by pair of languages, and which texts are too short, too long or cut off.

The logarithm of the ratio of lengths, in Latin letters, has a median and a spread for each pair of languages. The
spread shrinks with the length: its square is ``spread ** 2 + short_spread ** 2 / length``. Both come from the median
absolute deviation, so that damaged items change them little.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import exp, log, sqrt

import numpy as np
from msgspec.structs import replace

from steelyard.core.types import Case, Record
from steelyard.responses.unfinished import open_blocks
from steelyard.translation.damage_kinds import DamageFinding, finding
from steelyard.translation.passages import Passage, PassagePair, passages, source_passages

_FEWEST, _FEWEST_IN_BIN, _MOST_BINS = 20, 30, 6
_FALLBACK_SPREAD, _FALLBACK_SHORT = 0.2, 2.2
_LEAST_SPREAD = 0.05
_MAD = 1.4826
_FEWEST_LETTERS = 4.0
_FEWEST_SENTENCES = 50
_MOST_OFF, _LEAST_RATIO = 4.0, log(1.6)
_ENDS_ALWAYS = 0.97
"""Share of texts with a final mark from which a missing one is a finding."""
_ENDS_USUALLY, _LEAST_SHORT = 0.99, 0.8
"""Share below which the text has to be shorter than usual, too, and by how many spreads."""
_FINAL = ".!?。！？…؟۔।॥։።፧။;；\u037e"
"""With semicolons, the marks of questions in Greek."""
_ABBREVIATED = re.compile(r"\b(?:[^\W\d_]\.\s?[^\W\d_]|etc|Inc|Ltd|Jr|cm|km)\.$")
"""An end whose full stop belongs to an abbreviation that other languages write without one."""
_AFTER_FINAL = "\"'”’“‘」』）)】]》»«›‹*_~` \n\t"


class TranslationLengths(Record, frozen=True, kw_only=True):
    """The usual lengths of translations from one language into another.

    ``log_ratio`` is the median of log(target / source); ``ends`` the share of texts with a final mark among those whose
    source has one, null if unknown. ``joined`` is the rate, per sentence of the source, at which translators
    join sentences; null if unknown.
    """

    num_texts: int = 0
    log_ratio: float = 0.0
    spread: float = _FALLBACK_SPREAD
    short_spread: float = _FALLBACK_SHORT
    ends: float | None = None
    joined: float | None = None

    def deviation(self, source_size: float, target_size: float) -> float:
        """Return how many spreads a translation is longer than usual; negative where it is shorter."""
        return (log(target_size / source_size) - self.log_ratio) / self.spread_at(source_size)

    def spread_at(self, size: float) -> float:
        """Return the spread of the log ratio of texts of this length."""
        return sqrt(self.spread**2 + self.short_spread**2 / max(size, 1.0))


class LengthLimits(Record, frozen=True, kw_only=True):
    """The usual lengths of a bench by pair of languages: ``en>de``. Pairs that are absent have those of no bench."""

    pairs: dict[str, TranslationLengths]

    def between(self, pair: PassagePair) -> TranslationLengths:
        """Return the usual lengths of translations between the languages of two texts."""
        return self.pairs.get(_name(pair.source, pair.target), _UNKNOWN)


_UNKNOWN = TranslationLengths()


def length_limits(pairs: Iterable[tuple[Case, Case]]) -> LengthLimits:
    """Return the usual lengths of a bench's translations, from all its items (source, target)."""
    sizes = defaultdict[str, list[tuple[float, float]]](list)
    ends = defaultdict[str, list[bool]](list)
    sentences = defaultdict[str, list[tuple[int, int]]](list)
    for cases in pairs:
        for source, target in zip(source_passages(cases[0]), passages(cases[1]), strict=False):
            name = _name(source, target)
            # A text that is the same in both languages, such as a program, says nothing of translations.
            if min(source.size, target.size) >= _FEWEST_LETTERS and source.prose != target.prose:
                sizes[name].append((source.size, target.size))
                is_segmented = source.is_segmented and target.is_segmented
                sentences[name].append((len(source.sentences), len(target.sentences)) if is_segmented else (0, 0))
                if ends_with_mark(source.text):
                    ends[name].append(ends_with_mark(target.text))
    return LengthLimits(
        pairs={
            name: _with_joined(
                _fit(np.array(rows), float(np.mean(ends[name])) if len(ends[name]) >= _FEWEST else None),
                np.array(rows),
                np.array(sentences[name]),
            )
            for name, rows in sorted(sizes.items())
            if len(rows) >= _FEWEST
        }
    )


def _name(source: Passage, target: Passage) -> str:
    return f"{source.language}>{target.language}"


def _fit(sizes: np.ndarray, ends: float | None) -> TranslationLengths:
    """Fit the spreads to the median absolute deviations of texts of about one length."""
    lengths, ratios = sizes[:, 0], np.log(sizes[:, 1] / sizes[:, 0])
    middle = float(np.median(ratios))
    order = np.argsort(lengths, kind="stable")
    num_bins = int(np.clip(len(order) // _FEWEST_IN_BIN, 1, _MOST_BINS))
    bins = np.array_split(order, num_bins)
    square = np.array([(_MAD * np.median(np.abs(ratios[rows] - middle))) ** 2 for rows in bins])
    inverse = np.array([1 / np.median(lengths[rows]) for rows in bins])
    if num_bins >= 3 and inverse.max() > 2 * inverse.min():
        slope, constant = np.polyfit(inverse, square, 1)
        spread, short = sqrt(max(constant, 0.0)), sqrt(max(slope, 0.0))
    else:
        usual = _FALLBACK_SPREAD**2 + _FALLBACK_SHORT**2 * float(np.median(inverse))
        factor = sqrt(float(np.median(square)) / usual)
        spread, short = factor * _FALLBACK_SPREAD, factor * _FALLBACK_SHORT
    return TranslationLengths(
        num_texts=len(sizes),
        log_ratio=round(middle, 4),
        spread=round(max(spread, _LEAST_SPREAD), 4),
        short_spread=round(max(short, _FALLBACK_SHORT / 4), 4),
        ends=None if ends is None else round(ends, 4),
    )


def _with_joined(usual: TranslationLengths, sizes: np.ndarray, sentences: np.ndarray) -> TranslationLengths:
    """Add the rate of joined sentences.

    Joined sentences leave a text longer than usual as often as shorter, missing ones make it shorter. The texts with
    fewer sentences that are not shorter than usual, counted twice, are therefore those with joined ones.
    """
    total = int(sentences[:, 0].sum())
    if total < _FEWEST_SENTENCES:
        return usual
    fewer = np.maximum(sentences[:, 0] - sentences[:, 1], 0)
    is_long = np.log(sizes[:, 1] / sizes[:, 0]) >= usual.log_ratio
    return replace(usual, joined=round((2 * float(fewer[is_long].sum()) + 0.5) / (total + 1), 4))


def ends_with_mark(text: str) -> bool:
    """Return whether a text ends with a final mark, before closing quotation marks and brackets."""
    return text[-40:].rstrip(_AFTER_FINAL).endswith(tuple(_FINAL))


def check_length(pair: PassagePair, usual: TranslationLengths) -> Iterator[DamageFinding]:
    """Find a translation that is far shorter or longer than the bench's are."""
    source, target = pair.source.size, pair.target.size
    if min(source, target) < _FEWEST_LETTERS:
        return
    ratio = log(target / source) - usual.log_ratio
    if abs(ratio) > _LEAST_RATIO and abs(usual.deviation(source, target)) > _MOST_OFF:
        times = f"{exp(ratio):.2g}x"
        yield finding("length", pair, pair.source.prose, f"{times} {pair.target.prose}")


# --- Ends ------------------------------------------------------------------------------------------------------------

_BRACKETS = ("()", "[]", "{}", "（）", "【】", "「」", "『』", "《》")


def check_end(pair: PassagePair, usual: TranslationLengths) -> Iterator[DamageFinding]:
    """Find a translation that stops where the source goes on: no final mark, an open bracket or block of code."""
    source, target = pair
    if not target.text.strip() or not source.text.strip():
        return
    tail = target.text.rstrip()[-40:]
    counts = (lambda passage: open_blocks(passage.subject)), _open_at_end
    if any((number := count(target)) and number > count(source) for count in counts):
        yield finding("truncated", pair, source.text.rstrip()[-40:], tail)
    elif usual.ends is not None and usual.ends < _ENDS_ALWAYS:
        return
    elif (
        target.is_segmented
        and ends_with_mark(source.text)
        and not _ABBREVIATED.search(source.text.rstrip()[-10:])
        and not ends_with_mark(target.text)
        # A list may follow.
        and not tail.endswith((":", "\uff1a"))
        and (
            usual.ends is None
            or usual.ends >= _ENDS_USUALLY
            or usual.deviation(max(source.size, 1.0), max(target.size, 1.0)) < -_LEAST_SHORT
        )
    ):
        yield finding("truncated", pair, source.text.rstrip()[-40:], tail)


def _open_at_end(passage: Passage) -> int:
    """Return how many brackets the prose opens and does not close; a closing one of another width counts."""
    prose = passage.prose
    number = sum(prose.count(opening) - prose.count(closing) for opening, closing in _BRACKETS)
    return max(0, number)
