"""A policy with its reference, scored as two whole language models: log-probabilities of answers, in float32."""

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from steelyard.networks.loading import best_device, load_causal
from steelyard.networks.pretrained import Precision
from steelyard.networks.reward_network import Row, attended_rows


class PolicyPair(nn.Module):
    """Two language models whose difference is the reward; without a reference the policy's own log-probabilities.

    ``reduction`` makes one number of an answer's log-probabilities: their sum, their mean (``avg``), or minus their
    Euclidean norm (``norm``). ``starts`` says of rows where their answers begin, and must hold every row that is
    scored. Rows are padded on the left, so that answers are aligned at their ends.
    """

    def __init__(self, policy: Any, reference: Any | None, *, reduction: str, beta: float) -> None:
        super().__init__()
        self.policy = policy
        self.reference = reference
        self.reduction = reduction
        self.beta = beta
        self.starts: dict[Row, int] = {}
        self.eval()

    def forward(self, ids: Int[Tensor, "row token"], attended: Bool[Tensor, "row token"]) -> Float[Tensor, " row"]:
        """Return one implied reward a row."""
        counts = [len(row) - self.starts[row] for row in attended_rows(ids, attended)]
        rewards = self._reduced(self.policy, ids, attended, counts)
        if self.reference is not None:
            rewards = rewards - self._reduced(self.reference, ids, attended, counts)
        return self.beta * rewards

    def _reduced(self, model: Any, ids: Tensor, attended: Tensor, counts: list[int]) -> Float[Tensor, " row"]:
        logs = answer_logs(model, ids, attended, counts)
        if self.reduction == "sum":
            return logs.sum(dim=1)
        if self.reduction == "norm":
            return -logs.norm(dim=1)
        return logs.sum(dim=1) / torch.tensor(counts, device=logs.device)


def answer_logs(
    model: Any, ids: Int[Tensor, "row token"], attended: Bool[Tensor, "row token"], counts: list[int]
) -> Float[Tensor, "row answer_token"]:
    """Return the log-probability of each answer token in float32, aligned at the ends; 0 where a row has no token.

    ``counts`` are the numbers of answer tokens; the rows are padded on the left.
    """
    positions = (attended.cumsum(1) - 1).clamp(min=0)
    longest = max(counts)
    logits = model(
        input_ids=ids, attention_mask=attended.long(), position_ids=positions, use_cache=False,
        logits_to_keep=longest + 1,
    ).logits[:, -longest - 1 : -1]  # fmt: skip
    logs = logits.float().log_softmax(dim=-1).gather(2, ids[:, -longest:, None])[..., 0]
    lengths = torch.tensor(counts, device=logs.device)
    is_answer = torch.arange(longest, device=logs.device) >= longest - lengths[:, None]
    return torch.where(is_answer, logs, 0.0)


def load_policy(folder: Path, dtype: Precision) -> Any:
    """Return a causal language model in evaluation mode. Raises ModelError for anything else."""
    return load_causal(str(folder), dtype=dtype).to(best_device()).eval()
