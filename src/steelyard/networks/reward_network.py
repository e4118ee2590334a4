"""Networks that give rows of tokens a reward: a decoder with a scalar head, and a policy with the reward of DPO.

A row is the token ids of a prompt with one answer. Both networks score rows as a padded rectangle (`forward`), and
prompts as a pack in which the shared tokens of a prompt occur once (`packed_rewards`).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from steelyard.core.errors import ModelError
from steelyard.networks.devices import to_device
from steelyard.networks.invariance import FAST, Arithmetic
from steelyard.networks.pack_layout import layout_of
from steelyard.networks.packed_forward import packed_rewards, packed_states, packing_obstacle
from steelyard.networks.packing import pack

Row = tuple[int, ...]
Side = Literal["left", "right"]
_TOKENS_AT_A_TIME = 1024
"""Rows of vocabulary size at once; they are recomputed in the backward pass instead of kept."""


class RewardHead(nn.Linear):
    """A linear map to one reward, added up row by row.

    A product with a single column is computed by another kernel for every number of rows, in another order.
    """

    def forward(self, input: Float[Tensor, "row size"]) -> Float[Tensor, "row 1"]:  # noqa: A002 - of nn.Linear
        """Return the reward of each row."""
        rewards = (input * self.weight[0]).sum(-1, keepdim=True)
        return rewards if self.bias is None else rewards + self.bias


class RewardNetwork(nn.Module):
    """A Hugging Face sequence classifier with one label: the same reward in every batch, with any padding.

    ``tie`` is the learned parameter of a loss, such as that of ties; no reward depends on it. ``is_packable``: rows may
    share a pass with others where rewards must keep their bits. ``unread_weights``: names of weights in the folder that
    do not belong to the network, such as those of a head of another design.
    """

    is_packable = True

    def __init__(self, classifier: Any, head: nn.Linear | None = None) -> None:
        super().__init__()
        self.classifier = classifier
        self.head: nn.Linear = classifier.score if head is None else head
        if type(self.head) is nn.Linear and self.head.out_features == 1:
            self.head.__class__ = RewardHead  # the weights, names and hooks of the layer stay as they are
        self.tie: nn.Parameter | None = None
        self.unread_weights: tuple[str, ...] = ()

    @property
    def backbone(self) -> nn.Module:
        """The decoder without its head."""
        return getattr(self.classifier, self.classifier.base_model_prefix)

    @property
    def layers(self) -> list[nn.Module]:
        """The decoder layers, from first to last. Raises ModelError where they cannot be identified."""
        for module in self.backbone.modules():
            if isinstance(module, nn.ModuleList):
                return list(module)
        raise ModelError(
            "cannot identify the decoder's layers",
            do="leave gradient_checkpointing and compile out, and train in one process",
        )

    @property
    def packing_obstacle(self) -> str | None:
        """Why packing is not exact for this network, or null where it is."""
        return packing_obstacle(self.classifier.config.get_text_config())

    def forward(self, ids: Int[Tensor, "row token"], attended: Bool[Tensor, "row token"]) -> Float[Tensor, " row"]:
        """Return one reward per row, in the head's number type: the raw logit at the row's last attended token.

        Positions count attended tokens only, so that the side of the padding changes nothing.
        """
        hidden = attended_states(self.backbone, ids, attended)
        # argmax returns the first of equal values: in the flipped row, the last attended token.
        last = attended.shape[1] - 1 - attended.flip(1).int().argmax(1)
        pooled = hidden[torch.arange(len(ids), device=ids.device), last]
        # In bfloat16 unequal rewards tie: the head computes in its own type, float32, inside any network.
        with torch.autocast(ids.device.type, enabled=False):
            return self.head(pooled.to(self.head.weight.dtype))[:, 0]

    def packed_rewards(
        self, prompts: Sequence[Sequence[Row]], *, is_pruned: bool = True, arithmetic: Arithmetic = FAST
    ) -> Float[Tensor, " answer"]:
        """Return one reward per answer, prompt by prompt, with the shared tokens of each prompt computed once."""
        return packed_rewards(self.backbone, self.head, pack(prompts), is_pruned=is_pruned, arithmetic=arithmetic)


class AnswerReference(NamedTuple):
    """Where the answer of a row starts, and its log-probability under the reference policy.

    The log-probability is summed over the answer's tokens, or averaged where the policy's is; 0 without a reference.
    """

    start: int
    log_probability: float


class PolicyNetwork(RewardNetwork):
    """A causal language model whose reward is the one that DPO implies.

    r(x, y) = beta (log p(y | x) - log p_reference(y | x)) (Rafailov et al., 2023, section 4). The pair loss of these
    rewards is the loss of DPO, and over several answers its multi-response form. ``references`` says where the answers
    of rows start; a row without an entry is scored from its second token.
    """

    is_packable = False

    def __init__(self, policy: Any, *, beta: float, is_mean: bool) -> None:
        super().__init__(policy, head=policy.get_output_embeddings())
        self.beta = beta
        self.is_mean = is_mean
        self.references: dict[Row, AnswerReference] = {}

    def forward(self, ids: Int[Tensor, "row token"], attended: Bool[Tensor, "row token"]) -> Float[Tensor, " row"]:
        """Return one implied reward per row of a padded batch; positions count attended tokens only."""
        hidden = attended_states(self.backbone, ids, attended)
        places = [np.flatnonzero(there.cpu().numpy()) + index * ids.shape[1] for index, there in enumerate(attended)]
        return self._rewards(hidden.flatten(0, 1), attended_rows(ids, attended), places)

    def packed_rewards(
        self, prompts: Sequence[Sequence[Row]], *, is_pruned: bool = False, arithmetic: Arithmetic = FAST
    ) -> Float[Tensor, " answer"]:
        """Return one implied reward per answer, prompt by prompt. Every token is scored, so that nothing is pruned."""
        packed = pack(prompts)
        layout = layout_of(packed, self.head.weight.device, arithmetic)
        hidden = packed_states(self.backbone, packed, layout, is_pruned=False)
        places = [branch.places(answer) for branch in packed.branches for answer in range(len(branch.tails))]
        return self._rewards(hidden, [row for rows in prompts for row in rows], places)

    def _rewards(
        self, hidden: Float[Tensor, "token size"], rows: Sequence[Row], places: Sequence[np.ndarray]
    ) -> Float[Tensor, " row"]:
        answers = [self.references.get(row, AnswerReference(1, 0.0)) for row in rows]
        # The token before an answer's first one predicts it.
        before = np.concatenate([place[answer.start - 1 : -1] for place, answer in zip(places, answers, strict=True)])
        targets = [token for row, answer in zip(rows, answers, strict=True) for token in row[answer.start :]]
        counts = [len(row) - answer.start for row, answer in zip(rows, answers, strict=True)]
        on_device = partial(to_device, device=hidden.device)
        lengths = on_device(torch.tensor(counts))
        logs = self._logs(hidden[on_device(torch.from_numpy(before))], on_device(torch.tensor(targets)))
        # Not by adding at an index, whose order on a GPU differs from run to run. A check of the lengths would wait.
        sums = torch.segment_reduce(logs, "sum", lengths=lengths, unsafe=True)
        policy = sums / lengths.to(sums.dtype) if self.is_mean else sums
        reference = torch.tensor([answer.log_probability for answer in answers], dtype=policy.dtype)
        return self.beta * (policy - on_device(reference))

    def _logs(self, hidden: Float[Tensor, "token size"], targets: Int[Tensor, " token"]) -> Float[Tensor, " token"]:
        """Return the log-probability of each target, at least in float32."""
        cap = self.classifier.config.get_text_config().to_dict().get("final_logit_softcapping")
        parts = zip(hidden.split(_TOKENS_AT_A_TIME), targets.split(_TOKENS_AT_A_TIME), strict=True)
        return torch.cat([_recomputed(_target_logs, self.head, states, tokens, cap) for states, tokens in parts])


def attended_states(
    backbone: Any, ids: Int[Tensor, "row token"], attended: Bool[Tensor, "row token"]
) -> Float[Tensor, "row token size"]:
    """Return the last hidden states of a padded batch; positions count attended tokens only."""
    # Padding on the left would otherwise have position -1.
    positions = (attended.cumsum(1) - 1).clamp(min=0)
    return backbone(
        input_ids=ids, attention_mask=attended.long(), position_ids=positions, use_cache=False
    ).last_hidden_state


def attended_rows(ids: Int[Tensor, "row token"], attended: Bool[Tensor, "row token"]) -> list[Row]:
    """Return the rows of a padded batch without their padding."""
    return [tuple(row[there].tolist()) for row, there in zip(ids, attended, strict=True)]


def padded(
    rows: Sequence[Sequence[int]], *, filler: int, side: Side = "right"
) -> tuple[Int[Tensor, "row token"], Bool[Tensor, "row token"]]:
    """Return rows of token ids as one rectangle, and which of its places are attended."""
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), filler)
    attended = torch.zeros((len(rows), width), dtype=torch.bool)
    for index, row in enumerate(rows):
        place = slice(0, len(row)) if side == "right" else slice(width - len(row), width)
        ids[index, place] = torch.tensor(row)
        attended[index, place] = True
    return ids, attended


def _recomputed(function: Any, *arguments: Any) -> Tensor:
    output: Any = checkpoint(function, *arguments, use_reentrant=False)
    return output


def _target_logs(head: nn.Module, hidden: Tensor, targets: Tensor, cap: float | None) -> Tensor:
    logits = head(hidden)
    # In bfloat16 the log-probabilities of likely tokens would round to 0.
    logits = logits if logits.dtype == torch.float64 else logits.float()
    if cap is not None:
        logits = torch.tanh(logits / cap) * cap
    return logits.log_softmax(dim=-1).gather(1, targets[:, None])[:, 0]
