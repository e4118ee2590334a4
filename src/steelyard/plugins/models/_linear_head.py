"""The plainest head: one weight for each feature of the place that is read, no bias."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class LinearHead(nn.Module):
    """reward = w·h, with h the hidden state at the first place that is read."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, width))

    def forward(self, read: Float[Tensor, "row place width"]) -> Float[Tensor, " row"]:
        """One reward a row."""
        return nn.functional.linear(read[:, 0], self.weight)[:, 0]
