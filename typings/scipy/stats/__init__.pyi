"""Ranks and the binomial distribution."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

class _Binomial:
    def cdf(self, k: int, n: int, p: float) -> float: ...

binom: _Binomial

def rankdata(a: ArrayLike) -> NDArray[np.float64]: ...
