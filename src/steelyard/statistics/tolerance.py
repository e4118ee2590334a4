"""Whether two ways of computing the same scores gave the same, as far as the number type lets them be."""

from collections.abc import Sequence
from typing import NamedTuple

_SHARES = {"float32": (1e-3, 1e-5), "float64": (1e-6, 1e-9)}
_COARSE = (5e-2, 1e-2)
"""Of the spread of the scores, and of the largest: what rounding may move. bfloat16 and unknown types are coarse."""
_COARSE_ROOM = 4.0
"""How often that a coarse type may exceed: short answers of one sample lie close, and their spread says too little."""


class Sameness(NamedTuple):
    """The largest difference, where it stands, and what rounding explains; no ``place``: nothing was compared.

    Between ``tolerance`` and ``bound`` a difference is worth a word, and beyond the bound no rounding.
    """

    largest: float
    tolerance: float
    bound: float
    place: int | None

    @property
    def is_same(self) -> bool:
        """Whether no score moved by more than rounding can move it."""
        return self.largest <= self.bound

    @property
    def remark(self) -> str | None:
        """What a person should know of scores that are the same but for much rounding; null where there is little."""
        if self.largest <= self.tolerance or not self.is_same:
            return None
        return (
            f"rounding moves scores by {self.largest:.3g}, over the {self.tolerance:.3g} expected of their spread: "
            "model.dtype=float32 tells closer ones apart"
        )


def tolerance(scores: Sequence[float], dtype: str | None) -> float:
    """How far a score may move by rounding: a share of the scores' spread and a share of the largest.

    A score is a difference of large numbers, so that its own size says little of its rounding; what matters is whether
    scores could change places, which their spread tells. Unknown number types count as bfloat16.
    """
    of_spread, of_largest = _SHARES.get(dtype or "", _COARSE)
    spread = max(scores, default=0.0) - min(scores, default=0.0)
    return of_spread * spread + of_largest * max(map(abs, scores), default=0.0)


def sameness(one: Sequence[float | None], other: Sequence[float | None], *, dtype: str | None) -> Sameness:
    """Compare two runs over the same answers; a score that only one of them has is an infinite difference.

    Asserts that both are of one length.
    """
    assert len(one) == len(other), "the same answers"
    known = [score for score in one if score is not None]
    largest, place = 0.0, None
    for index, (left, right) in enumerate(zip(one, other, strict=True)):
        if left is None and right is None:
            continue
        moved = float("inf") if left is None or right is None else abs(left - right)
        if place is None or moved > largest:
            largest, place = moved, index
    expected = tolerance(known, dtype)
    return Sameness(largest, expected, expected * (1.0 if dtype in _SHARES else _COARSE_ROOM), place)
