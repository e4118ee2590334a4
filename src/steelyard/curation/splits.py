"""Splits by prompt: related cases stay in one part, and every part has its share of every stratum.

Cases are related by one first user turn, by one prompt id, or by first turns that are near-duplicates. Near-duplicates
are found in any language: a text is its set of character n-grams (shingles; Broder, 1997), of 2 characters where most
letters are Han, kana or Hangul, which carry more information each, else of 5. Only texts that share a band of their
MinHash signatures are compared (locality-sensitive hashing). A pair counts if the Jaccard similarity of the two sets
reaches the threshold. Bands are chosen so that a pair exactly at the threshold is compared with a probability of 0.999
or more.
"""

import hashlib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.numerics import derived_seed
from steelyard.core.types import Case, Record
from steelyard.ranking.judgment_table import NO_LANGUAGE
from steelyard.statistics.aggregation import UNCATEGORISED

Stratum = Literal["category", "source", "language"]
STRATA: tuple[Stratum, ...] = ("category", "source", "language")


class RelatedCases(NamedTuple):
    """Groups of cases, by position, that stay in one part.

    ``num_near_duplicates``: the number of groups that near-duplicates joined to others.
    """

    groups: tuple[tuple[int, ...], ...]
    num_near_duplicates: int


def split_cases(
    cases: Sequence[Case],
    parts: Mapping[str, float],
    *,
    seed: int,
    related: RelatedCases | None = None,
    strata: Sequence[Stratum] = STRATA,
) -> tuple[str, ...]:
    """Return the part of each case; ``parts`` maps names to shares that sum to 1.

    Related cases (see `group_related`) stay in one part; ``related`` passes their groups if they are computed already.
    Shares hold within every stratum of first-tier category, source and language, or of those in ``strata``, as nearly
    as whole groups allow. The result depends on the seed and on the set of cases, not on their order.
    """
    by_stratum: dict[tuple[str, ...], list[Sequence[int]]] = defaultdict(list)
    for members in (related or group_related(cases)).groups:
        # A group across strata counts in the first of them by name, whatever the order of the cases.
        by_stratum[min(_stratum(cases[index], strata) for index in members)].append(members)
    overall: Counter[str] = Counter()
    chosen = [""] * len(cases)
    for stratum in sorted(by_stratum):
        here: Counter[str] = Counter()
        for members in sorted(by_stratum[stratum], key=lambda group: _shuffled_order(cases, group, seed)):
            part = _furthest_behind(parts, here, overall, len(members))
            here[part] += len(members)
            overall[part] += len(members)
            for index in members:
                chosen[index] = part
    return tuple(chosen)


def group_related(cases: Sequence[Case], near: float | None = None) -> RelatedCases:
    """Group cases with one first user turn (branches of a conversation) or one prompt id (several languages).

    ``near``, above 0 and at most 1, adds first turns that are near-duplicates: the Jaccard similarity of their
    character shingles is at least ``near``. The relation is transitive.
    """
    links = Links(len(cases))
    first: dict[tuple[str, str], int] = {}
    for index, case in enumerate(cases):
        for key in (("root", root_text(case)), ("id", case.prompt.id)):
            links.join(index, first.setdefault(key, index))
    num_before = len(links.groups())
    if near is not None:
        roots = [(text, index) for (kind, text), index in first.items() if kind == "root"]
        for pair in near_duplicates([text for text, _ in roots], near):
            links.join(roots[pair.first][1], roots[pair.second][1])
    groups = links.groups()
    return RelatedCases(tuple(map(tuple, groups)), num_before - len(groups))


def root_text(case: Case) -> str:
    """Return the conversation's first user turn, without differences of case, width and white space."""
    return plain_form(next((turn.content for turn in case.prompt.messages if turn.role == "user"), ""))


def _stratum(case: Case, strata: Sequence[Stratum]) -> tuple[str, ...]:
    prompt = case.prompt
    values = {
        "category": prompt.category[0] if prompt.category else "",
        "source": prompt.source or "",
        "language": prompt.language or "",
    }
    return tuple(values[name] for name in STRATA if name in strata)


def _shuffled_order(cases: Sequence[Case], group: Sequence[int], seed: int) -> str:
    """Return a sort key that shuffles groups by the seed and their smallest key, not by their place in a file."""
    name = min(f"{cases[index].prompt.id}\x1f{cases[index].prompt.language}" for index in group)
    return hashlib.sha256(f"{seed}\x1f{name}".encode()).hexdigest()


def _furthest_behind(parts: Mapping[str, float], here: Counter[str], overall: Counter[str], size: int) -> str:
    """Return the part that lags furthest behind its share of the stratum, then of the whole."""

    def lag(name: str, taken: Counter[str]) -> float:
        # Rounded, so that equal lags tie in spite of rounding errors; the first part by order then takes the group.
        return round(parts[name] * (taken.total() + size) - taken[name], 9)

    return max(parts, key=lambda name: (lag(name, here), lag(name, overall)))


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


def near_duplicates(texts: Sequence[str], threshold: float) -> tuple[NearDuplicate, ...]:
    """Return pairs of texts with a similarity of at least ``threshold``, enough to connect all linked texts.

    A pair is left out only where other pairs link its texts, so the groups of linked texts do not depend on the order.
    Texts without a shingle (empty ones) have no near-duplicates. The threshold is above 0 and at most 1.
    """
    sets = [shingles(text) for text in texts]
    links = Links(len(texts))
    duplicates: list[NearDuplicate] = []
    for bucket in _buckets(sets, rows_a_band(threshold)):
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


def plain_form(text: str) -> str:
    """Return the text without differences of case, width and white space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def shingles(text: str) -> Hashes:
    """Return the distinct character n-grams of a text as sorted 64-bit hashes; a shorter text is one n-gram.

    Differences of case, width and white space are removed first.
    """
    points = np.frombuffer(plain_form(text).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    if not len(points):
        return points
    size = min(_DENSE_CHARACTERS if _is_dense(points) else _CHARACTERS, len(points))
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


def _buckets(sets: Sequence[Hashes], rows: int) -> Iterator[list[int]]:
    """Yield lists of texts that share a band, in a fixed order; texts alone in their band are left out."""
    present = [index for index, hashes in enumerate(sets) if len(hashes)]
    if not present:
        return
    signatures = np.stack([_signature(sets[index]) for index in present])
    for band in range(_NUM_HASHES // rows):
        members: dict[bytes, list[int]] = defaultdict(list)
        columns = np.ascontiguousarray(signatures[:, band * rows : (band + 1) * rows])
        for index, band_hashes in zip(present, columns, strict=True):
            members[band_hashes.tobytes()].append(index)
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


class SplitSummary(Record, frozen=True, kw_only=True):
    """The cases of each part, in all and by first-tier category and language, and the groups that stay together.

    ``num_joined_as_near_duplicates``: groups that near-duplicates joined to others.
    """

    parts: dict[str, int]
    by_category: dict[str, dict[str, int]]
    by_language: dict[str, dict[str, int]]
    num_groups: int
    largest_group: int
    num_joined_as_near_duplicates: int


def summarize_split(
    prompts: Sequence[Case], chosen: Sequence[str], parts: Iterable[str], related: RelatedCases
) -> SplitSummary:
    """Return the sizes of the parts; ``chosen`` has the part of each case."""
    by_category: dict[str, dict[str, int]] = {}
    by_language: dict[str, dict[str, int]] = {}
    for case, part in zip(prompts, chosen, strict=True):
        category = case.prompt.category[0] if case.prompt.category else UNCATEGORISED
        for groups, name in ((by_category, category), (by_language, case.prompt.language or NO_LANGUAGE)):
            numbers = groups.setdefault(name, {})
            numbers[part] = numbers.get(part, 0) + 1
    return SplitSummary(
        parts={name: chosen.count(name) for name in parts},
        by_category=by_category,
        by_language=by_language,
        num_groups=len(related.groups),
        largest_group=max(map(len, related.groups)),
        num_joined_as_near_duplicates=related.num_near_duplicates,
    )
