"""Sobol points."""

import numpy as np
from numpy.typing import NDArray

class Sobol:
    def __init__(self, d: int, *, scramble: bool, rng: int) -> None: ...
    def random(self, n: int) -> NDArray[np.float64]: ...
