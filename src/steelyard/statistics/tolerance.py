"""Equality of scores that were computed in two ways, up to the rounding of their number type."""

from collections.abc import Sequence
from typing import NamedTuple

_RELATIVE_ERRORS = {"float32": (1e-3, 1e-5), "float64": (1e-6, 1e-9)}
_COARSE_ERRORS = (5e-2, 1e-2)
"""The rounding error relative to the spread of the scores and to the largest; for bfloat16 and unknown types."""
_COARSE_FACTOR = 4.0
"""The factor by which coarse types may exceed it: the spread of short answers' scores underestimates the error."""


class ScoreDifference(NamedTuple):
    """The largest difference of two runs' scores, its ``position`` (None: no scores), and the expected rounding.

    A difference between ``tolerance`` and ``bound`` gets a remark; one beyond ``bound`` is more than rounding.
    """

    largest: float
    tolerance: float
    bound: float
    position: int | None

    @property
    def is_rounding(self) -> bool:
        """Return whether rounding explains all differences."""
        return self.largest <= self.bound

    @property
    def remark(self) -> str | None:
        """Return a remark on scores that are equal up to large rounding errors; None if these are small."""
        if self.largest <= self.tolerance or not self.is_rounding:
            return None
        return (
            f"rounding moves scores by {self.largest:.3g}, over the {self.tolerance:.3g} expected of their spread: "
            "model.dtype=float32 tells closer ones apart"
        )


def rounding_error(scores: Sequence[float], dtype: str | None) -> float:
    """Return the expected rounding error of a score: a share of the scores' spread plus a share of the largest.

    A score is a difference of large numbers, so that its size does not determine its rounding error. What matters is
    whether scores could change their order, which depends on their spread. Unknown number types count as bfloat16.
    """
    of_spread, of_largest = _RELATIVE_ERRORS.get(dtype or "", _COARSE_ERRORS)
    spread = max(scores, default=0.0) - min(scores, default=0.0)
    return of_spread * spread + of_largest * max(map(abs, scores), default=0.0)


def compare_scores(
    first: Sequence[float | None], second: Sequence[float | None], *, dtype: str | None
) -> ScoreDifference:
    """Compare the scores of two runs over the same answers. Asserts equal lengths.

    A score that only one of the runs has is an infinite difference.
    """
    assert len(first) == len(second), "the same answers"
    known = [score for score in first if score is not None]
    largest, position = 0.0, None
    for index, (left, right) in enumerate(zip(first, second, strict=True)):
        if left is None and right is None:
            continue
        difference = float("inf") if left is None or right is None else abs(left - right)
        if position is None or difference > largest:
            largest, position = difference, index
    expected = rounding_error(known, dtype)
    factor = 1.0 if dtype in _RELATIVE_ERRORS else _COARSE_FACTOR
    return ScoreDifference(largest, expected, expected * factor, position)
