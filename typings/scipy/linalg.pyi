"""Matrices."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

def block_diag(*arrs: ArrayLike) -> NDArray[np.float64]: ...
