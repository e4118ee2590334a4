"""Named seeds: a random draw depends on the run's seed and its purpose, never on the order of calls."""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np


def derived_seed(seed: int, *names: str | int) -> int:
    """Return a 63-bit seed for one purpose: equal arguments give equal seeds on every machine."""
    text = "\x1f".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def derived_seeds(seed: int, names: Sequence[str | int], lasts: Iterable[str | int]) -> list[int]:
    """Return ``derived_seed(seed, *names, last)`` for each last name; the common prefix is hashed once."""
    shared = hashlib.sha256(("\x1f".join(str(part) for part in (seed, *names)) + "\x1f").encode())
    seeds = []
    for last in lasts:
        digest = shared.copy()
        digest.update(str(last).encode())
        seeds.append(int.from_bytes(digest.digest()[:8], "big") >> 1)
    return seeds


def generator(seed: int, *names: str | int) -> np.random.Generator:
    """Return a numpy generator for one purpose."""
    return np.random.default_rng(derived_seed(seed, *names))
