"""Near-duplicates of texts in any language, and the groups that they join.

A text is its set of character n-grams (shingles; Broder, 1997), of 2 characters where most letters are Han, kana or
Hangul, which carry more information each, else of 5. Only texts that share a band of their MinHash signatures are
compared (locality-sensitive hashing). A pair counts if the Jaccard similarity of the two sets reaches the threshold.
Bands are chosen so that a pair exactly at the threshold is compared with a probability of 0.999 or more.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.languages import language_key
from steelyard.core.numerics import derived_seed
from steelyard.core.text import normal_form
from steelyard.core.types import Prompt

Hashes = NDArray[np.uint64]

_NUM_HASHES = 128
_LONGEST_BAND = 8
_MISSED_AT_THRESHOLD = 0.001
"""The largest probability that a pair exactly at the threshold shares no band."""
_CHARACTERS, _DENSE_CHARACTERS = 5, 2
_HASHES_AT_A_TIME = 2**20
"""The hash values in memory at once: 8 MiB."""
_DENSE_SCRIPTS = ((0x3040, 0x31FF), (0x3400, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))


class NearDuplicate(NamedTuple):
    """Two texts by their positions, ``first`` below ``second``, and the Jaccard similarity of their shingles."""

    first: int
    second: int
    similarity: float


class Fingerprint(NamedTuple):
    """Compared parts of a text: its shingles and their MinHash signature, which is null for a text without any."""

    shingles: Hashes
    signature: Hashes | None


def conversation_text(prompt: Prompt) -> str:
    """Return the text by which prompts are near-duplicates: all turns but system prompts, which a file may share."""
    turns = [turn for turn in prompt.messages if turn.role != "system"] or prompt.messages
    return "\n".join(turn.content for turn in turns)


def comparable_prompts(prompt: Prompt) -> tuple[str, str]:
    """Return a key of prompts that can be near-duplicates: of one language, under one system prompt."""
    system = "\n".join(turn.content for turn in prompt.messages if turn.role == "system")
    return language_key(prompt.language or ""), normal_form(system)


def near_duplicates(texts: Sequence[str], threshold: float) -> tuple[NearDuplicate, ...]:
    """Return pairs of texts with a similarity of at least ``threshold``, enough to connect all linked texts.

    A pair is left out only where other pairs link its texts, so the groups of linked texts do not depend on the order.
    Texts without a shingle (empty ones) have no near-duplicates. The threshold is above 0 and at most 1.
    """
    return near_duplicate_fingerprints([fingerprint(text) for text in texts], threshold)


def fingerprint(text: str) -> Fingerprint:
    """Return what is compared of a text: most of the work, which processes can share."""
    hashes = shingles(text)
    return Fingerprint(hashes, _signature(hashes) if len(hashes) else None)


def near_duplicate_fingerprints(fingerprints: Sequence[Fingerprint], threshold: float) -> tuple[NearDuplicate, ...]:
    """Return pairs as `near_duplicates` does, of texts whose fingerprints are known."""
    sets = [known.shingles for known in fingerprints]
    links = Links(len(sets))
    duplicates: list[NearDuplicate] = []
    for bucket in _buckets(fingerprints, rows_a_band(threshold)):
        groups: list[list[int]] = []
        # The members of a group are linked already, so that one similar member stands for all of them.
        for index in bucket:
            linked, others = [index], []
            for group in groups:
                duplicate = _first_link(index, group, sets, links, threshold)
                duplicates += [duplicate] if duplicate else []
                if links.root(index) == links.root(group[0]):
                    linked += group
                else:
                    others.append(group)
            groups = [*others, linked]
    return tuple(sorted(duplicates))


class ReferenceTexts:
    """Texts with which others are compared: for each the most similar of them (`nearest`)."""

    def __init__(self, texts: Iterable[str], threshold: float) -> None:
        self._threshold, self._rows = threshold, rows_a_band(threshold)
        self._sets: list[Hashes] = []
        self._members: dict[tuple[int, bytes], list[int]] = defaultdict(list)
        for text in texts:
            self.add(fingerprint(text))

    def add(self, known: Fingerprint) -> None:
        """Add a text by its fingerprint; its place is the next one."""
        for band in self._bands(known):
            self._members[band].append(len(self._sets))
        self._sets.append(known.shingles)

    def __len__(self) -> int:
        return len(self._sets)

    def nearest(self, compared: Fingerprint) -> tuple[int, float] | None:
        """Return the place and the similarity of the most similar text; null if none reaches the threshold."""
        places = sorted({place for band in self._bands(compared) for place in self._members.get(band, ())})
        similarities = [(jaccard(self._sets[place], compared.shingles), place) for place in places]
        similarity, place = max(similarities, key=lambda pair: (pair[0], -pair[1]), default=(0.0, 0))
        return (place, similarity) if similarity >= self._threshold else None

    def _bands(self, compared: Fingerprint) -> Iterator[tuple[int, bytes]]:
        if compared.signature is not None:
            for band in range(_NUM_HASHES // self._rows):
                yield band, compared.signature[band * self._rows : (band + 1) * self._rows].tobytes()


def shingles(text: str) -> Hashes:
    """Return the distinct character n-grams of a text as sorted 64-bit hashes; a shorter text is one n-gram.

    Differences that `normal_form` leaves out do not count, nor do case and, where most letters are dense, white space.
    """
    line = " ".join(normal_form(text).casefold().split())
    points = np.frombuffer(line.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    if not len(points):
        return points
    is_dense = _is_dense(points)
    points = points[points != ord(" ")] if is_dense else points
    size = min(_DENSE_CHARACTERS if is_dense else _CHARACTERS, len(points))
    windows = np.lib.stride_tricks.sliding_window_view(points, size)
    hashes = np.zeros(len(windows), np.uint64)
    # Mixing after each character makes the hash depend on their order.
    for column in windows.T:
        hashes = _mixed(hashes ^ column)
    return np.unique(hashes)


def jaccard(first: Hashes, second: Hashes) -> float:
    """Return the share of the shingles of either set that both have; 0 for two empty sets."""
    shared = len(np.intersect1d(first, second, assume_unique=True))
    united = len(first) + len(second) - shared
    return shared / united if united else 0.0


def rows_a_band(threshold: float) -> int:
    """Return the number of hashes in a band: the largest that misses at most 0.1 % of the pairs at the threshold."""
    for rows in range(_LONGEST_BAND, 1, -1):
        # A pair of similarity s shares a given band with probability s^rows, and no band with (1 - s^rows)^bands.
        if (1 - threshold**rows) ** (_NUM_HASHES // rows) <= _MISSED_AT_THRESHOLD:
            return rows
    return 1


class Links:
    """Groups of ``number`` items that are linked directly or through others (union-find)."""

    def __init__(self, number: int) -> None:
        self._parent = list(range(number))

    def root(self, index: int) -> int:
        """Return the representative of all items that are linked to this one."""
        parent = self._parent
        while parent[index] != index:
            # Path halving keeps the trees flat without a second pass.
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    def join(self, first: int, second: int) -> None:
        """Link two items, and so everything linked to either."""
        self._parent[self.root(first)] = self.root(second)

    def groups(self) -> list[list[int]]:
        """Return the members of each group, in order of their first members."""
        members: dict[int, list[int]] = defaultdict(list)
        for index in range(len(self._parent)):
            members[self.root(index)].append(index)
        return list(members.values())


def _buckets(fingerprints: Sequence[Fingerprint], rows: int) -> Iterator[list[int]]:
    """Yield lists of texts that share a band, in a fixed order; texts alone in their band are left out."""
    signatures = {place: known.signature for place, known in enumerate(fingerprints) if known.signature is not None}
    for band in range(_NUM_HASHES // rows):
        members: dict[bytes, list[int]] = defaultdict(list)
        for place, signature in signatures.items():
            members[signature[band * rows : (band + 1) * rows].tobytes()].append(place)
        yield from (bucket for bucket in members.values() if len(bucket) > 1)


def _first_link(
    index: int, group: Sequence[int], sets: Sequence[Hashes], links: Links, threshold: float
) -> NearDuplicate | None:
    """Link the text to the first similar member of a linked group; return the pair.

    None without a similar member, or if the text is linked to the group already.
    """
    if links.root(index) == links.root(group[0]):
        return None
    for other in group:
        similarity = jaccard(sets[other], sets[index])
        if similarity >= threshold:
            links.join(other, index)
            return NearDuplicate(min(other, index), max(other, index), similarity)
    return None


def _signature(hashes: Hashes) -> Hashes:
    """Return the smallest value of the set under each of the hash functions, shape (hash function,)."""
    smallest = np.full(_NUM_HASHES, np.iinfo(np.uint64).max, np.uint64)
    step = _HASHES_AT_A_TIME // _NUM_HASHES
    for start in range(0, len(hashes), step):
        hashed = _mixed(hashes[None, start : start + step] ^ _KEYS[:, None])
        smallest = np.minimum(smallest, hashed.min(1))
    return smallest


def _mixed(values: Hashes) -> Hashes:
    """Mix 64 bits by a bijection in which every bit depends on every other (the finaliser of SplitMix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _is_dense(points: Hashes) -> bool:
    """Return whether at least half of the letters are Han, kana or Hangul.

    Letters are all characters but ASCII spaces, digits and signs.
    """
    is_dense = np.zeros(len(points), bool)
    for low, high in _DENSE_SCRIPTS:
        is_dense |= (points >= low) & (points <= high)
    is_letter = is_dense | (points >= 128) | ((points >= ord("a")) & (points <= ord("z")))
    return bool(2 * is_dense.sum() >= is_letter.sum() > 0)


# SplitMix64 of the hash and a key is one hash function: 128 keys take the place of 128 permutations.
_KEYS = np.array([derived_seed(0, "minhash", number) for number in range(_NUM_HASHES)], np.uint64)
