"""Linear programmes."""

from collections.abc import Sequence
from typing import NamedTuple

from numpy.typing import ArrayLike

class OptimizeResult(NamedTuple):
    fun: float

def linprog(c: ArrayLike, *, A_eq: ArrayLike, b_eq: ArrayLike, bounds: Sequence[tuple[int, int]]) -> OptimizeResult: ...
