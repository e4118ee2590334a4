"""A causal language model whose reward is the one that DPO implies; trained, it is scored by the kind ``implicit``.

r(x, y) = beta (log p(y | x) - log p_reference(y | x)) (Rafailov et al., 2023, section 4). The pair loss of these
rewards is the loss of DPO, and of several answers its multi-response form: the same pairs, packs and passes as any
other reward model's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from steelyard.methods.training.sharing import Pack, pack
from steelyard.plugins.models._pack_attention import layout_of
from steelyard.plugins.models._packed import packed_states
from steelyard.plugins.models._reward_network import RewardNetwork

Row = tuple[int, ...]
_TOKENS_AT_A_TIME = 1024
"""Rows of vocabulary size at once; they are worked out again in the backward pass instead of kept."""


class Known(NamedTuple):
    """What is known of a row before training: where its answer starts, and its log-probability under the reference.

    The latter is summed over the answer's tokens, or their mean where the policy's is; 0 without a reference.
    """

    start: int
    reference: float


class PolicyNetwork(RewardNetwork):
    """Rewards of rows that are ``known`` (`know`); a row that is not is scored from its second token."""

    def __init__(self, policy: Any, *, beta: float, is_mean: bool) -> None:
        super().__init__(policy, head=policy.get_output_embeddings())
        self.beta = beta
        self.is_mean = is_mean
        self.known: dict[Row, Known] = {}

    def know(self, rows: Mapping[Row, Known]) -> None:
        """Tell where answers start and how likely the reference finds them."""
        self.known.update(rows)

    def forward(self, ids: Int[Tensor, "row token"], attended: Bool[Tensor, "row token"]) -> Float[Tensor, " row"]:
        """One implied reward a row of a padded batch; positions count attended tokens only."""
        positions = (attended.cumsum(1) - 1).clamp(min=0)
        hidden = self.backbone(
            input_ids=ids, attention_mask=attended.long(), position_ids=positions, use_cache=False
        ).last_hidden_state
        rows = [tuple(own[there].tolist()) for own, there in zip(ids, attended, strict=True)]
        places = [np.flatnonzero(there.cpu().numpy()) + index * ids.shape[1] for index, there in enumerate(attended)]
        return self._rewards(hidden.flatten(0, 1), rows, places)

    def packed_rewards(self, prompts: Sequence[Sequence[Row]]) -> Float[Tensor, " answer"]:
        """One implied reward an answer, prompt by prompt, each prompt worked out once."""
        packed = pack(prompts)
        layout = layout_of(packed, self.head.weight.device)
        hidden = packed_states(self.backbone, packed, layout, is_pruned=False)
        return self._rewards(hidden, [row for rows in prompts for row in rows], _places(packed))

    def _rewards(
        self, hidden: Float[Tensor, "token size"], rows: Sequence[Row], places: Sequence[np.ndarray]
    ) -> Float[Tensor, " row"]:
        known = [self.known.get(row, Known(1, 0.0)) for row in rows]
        before = np.concatenate([own[one.start - 1 : -1] for own, one in zip(places, known, strict=True)])
        targets = [token for row, one in zip(rows, known, strict=True) for token in row[one.start :]]
        counts = torch.tensor([len(row) - one.start for row, one in zip(rows, known, strict=True)])
        logs = self._logs(hidden[torch.from_numpy(before).to(hidden.device)], torch.tensor(targets).to(hidden.device))
        numbers = torch.arange(len(rows)).repeat_interleave(counts).to(logs.device)
        sums = logs.new_zeros(len(rows)).index_add(0, numbers, logs)
        own = sums / counts.to(sums) if self.is_mean else sums
        return self.beta * (own - own.new_tensor([one.reference for one in known]))

    def _logs(self, hidden: Float[Tensor, "token size"], targets: Int[Tensor, " token"]) -> Float[Tensor, " token"]:
        """The log-probability of each target, at least in float32."""
        cap = self.classifier.config.get_text_config().to_dict().get("final_logit_softcapping")
        parts = zip(hidden.split(_TOKENS_AT_A_TIME), targets.split(_TOKENS_AT_A_TIME), strict=True)
        return torch.cat([_worked_out_again(_target_logs, self.head, own, wanted, cap) for own, wanted in parts])


def _worked_out_again(function: Any, *given: Any) -> Tensor:
    found: Any = checkpoint(function, *given, use_reentrant=False)
    return found


def _target_logs(head: nn.Module, hidden: Tensor, targets: Tensor, cap: float | None) -> Tensor:
    logits = head(hidden)
    logits = logits if logits.dtype == torch.float64 else logits.float()
    if cap is not None:
        logits = torch.tanh(logits / cap) * cap
    return logits.log_softmax(dim=-1).gather(1, targets[:, None])[:, 0]


def _places(packed: Pack) -> list[np.ndarray]:
    """Where the tokens of each row stand in the pack, prompt by prompt."""
    return [branch.places(answer) for branch in packed.branches for answer in range(len(branch.tails))]
