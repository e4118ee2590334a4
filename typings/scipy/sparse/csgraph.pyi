"""Components and flows of graphs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

class MaximumFlowResult(NamedTuple):
    flow_value: int
    flow: csr_array

def connected_components(
    csgraph: coo_array | csr_array, directed: bool = True, connection: str = "weak"
) -> tuple[int, NDArray[np.int32]]: ...
def maximum_flow(csgraph: csr_array, source: int, sink: int) -> MaximumFlowResult: ...
