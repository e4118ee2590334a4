"""Equality of scores that were computed in two ways, up to the rounding of their number type."""

from collections.abc import Sequence
from typing import NamedTuple

_SHARES = {"float32": (1e-3, 1e-5), "float64": (1e-6, 1e-9)}
_COARSE = (5e-2, 1e-2)
"""The rounding error relative to the spread of the scores and to the largest; for bfloat16 and unknown types."""
_COARSE_ROOM = 4.0
"""The factor that coarse types may exceed it by: scores of short answers lie close, and their spread is too small."""


class Sameness(NamedTuple):
    """The largest difference, its position ``place`` (None: nothing to compare), and the size that rounding explains.

    A difference between ``tolerance`` and ``bound`` gets a remark; one beyond the bound is more than rounding.
    """

    largest: float
    tolerance: float
    bound: float
    place: int | None

    @property
    def is_same(self) -> bool:
        """Return whether rounding explains all differences."""
        return self.largest <= self.bound

    @property
    def remark(self) -> str | None:
        """Return a remark on scores that are equal up to large rounding errors; None if these are small."""
        if self.largest <= self.tolerance or not self.is_same:
            return None
        return (
            f"rounding moves scores by {self.largest:.3g}, over the {self.tolerance:.3g} expected of their spread: "
            "model.dtype=float32 tells closer ones apart"
        )


def tolerance(scores: Sequence[float], dtype: str | None) -> float:
    """Return the rounding error of a score: a share of the scores' spread plus a share of the largest.

    A score is a difference of large numbers, so that its size does not determine its rounding error. What matters is
    whether scores could change their order, which depends on their spread. Unknown number types count as bfloat16.
    """
    of_spread, of_largest = _SHARES.get(dtype or "", _COARSE)
    spread = max(scores, default=0.0) - min(scores, default=0.0)
    return of_spread * spread + of_largest * max(map(abs, scores), default=0.0)


def sameness(first: Sequence[float | None], second: Sequence[float | None], *, dtype: str | None) -> Sameness:
    """Compare two runs over the same answers; a score that only one of them has is an infinite difference.

    Asserts equal lengths.
    """
    assert len(first) == len(second), "the same answers"
    known = [score for score in first if score is not None]
    largest, place = 0.0, None
    for index, (left, right) in enumerate(zip(first, second, strict=True)):
        if left is None and right is None:
            continue
        moved = float("inf") if left is None or right is None else abs(left - right)
        if place is None or moved > largest:
            largest, place = moved, index
    expected = tolerance(known, dtype)
    return Sameness(largest, expected, expected * (1.0 if dtype in _SHARES else _COARSE_ROOM), place)
