"""Interpolation between points."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

class PchipInterpolator:
    def __init__(self, x: ArrayLike, y: ArrayLike) -> None: ...
    def __call__(self, x: ArrayLike) -> NDArray[np.float64]: ...
