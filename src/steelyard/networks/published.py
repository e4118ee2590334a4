"""Networks that only score: a decoder with the head of a published family, and a policy with its reference."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from steelyard.core.checks import TOO_LONG
from steelyard.core.protocols import SelfTest
from steelyard.core.types import Case, JsonObject, OverLength, Scores
from steelyard.networks.conversation import Encoded, EncodedAnswer, Rendering, check_length, encode
from steelyard.networks.devices import best_device
from steelyard.networks.loading import check_token_ids
from steelyard.networks.reward_network import Row, attended_rows, attended_states
from steelyard.networks.scorer import Limits, Scorer
from steelyard.networks.self_tests import (
    ReadRow,
    beginning_mark,
    last_token,
    padding_test,
    template_end,
    trained_head,
)
from steelyard.networks.settings import DecoderConfig, protocol_of

ReadPlaces = Callable[[Sequence[int]], tuple[int, ...] | None]


def read_last(ids: Sequence[int]) -> tuple[int, ...]:
    """Return the position of the last token."""
    return (len(ids) - 1,)


class Family(NamedTuple):
    """A family of models: its head, the positions that it reads, and the tokens before and after the conversation.

    ``head`` takes the hidden states at the positions of ``read``, (row, position, width) in float32, and returns one
    reward a row. ``read`` returns null where a row lacks the position. ``protocol`` has all else that affects a score.
    """

    name: str
    head: nn.Module
    read: ReadPlaces = read_last
    before: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()
    protocol: Mapping[str, Any] = MappingProxyType({})


class HeadedNetwork(nn.Module):
    """A decoder and the head of a family, in evaluation mode."""

    def __init__(self, backbone: nn.Module, head: nn.Module, read: ReadPlaces) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.read = read
        self.eval()

    def forward(self, ids: Int[Tensor, "row token"], attended: Bool[Tensor, "row token"]) -> Float[Tensor, " row"]:
        """Return one reward per row of a padded batch; the head computes in float32."""
        hidden = attended_states(self.backbone, ids, attended)
        starts = attended.int().argmax(1).tolist()
        rows = attended_rows(ids, attended)
        places = [[start + place for place in self.read(row) or ()] for row, start in zip(rows, starts, strict=True)]
        numbers = torch.arange(len(rows))[:, None].to(ids.device)
        return self.head(hidden[numbers, torch.tensor(places, device=ids.device)].float())


class PolicyPair(nn.Module):
    """A policy and its reference as two whole language models; their difference is the reward, in float32.

    Without a reference the policy's log-probabilities are the reward. ``reduction`` makes one number of those of an
    answer: their sum, their mean (``avg``), or minus their Euclidean norm (``norm``). ``starts`` must hold the start of
    the answer for every row that is scored. Rows are padded on the left, so that answers are aligned at their ends.
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
        """Return one implied reward per row."""
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
    # A token is predicted at the place before it: one more logit than answer tokens is kept, and the last is dropped.
    logits = model(
        input_ids=ids, attention_mask=attended.long(), position_ids=positions, use_cache=False,
        logits_to_keep=longest + 1,
    ).logits[:, -longest - 1 : -1]  # fmt: skip
    logs = logits.float().log_softmax(dim=-1).gather(2, ids[:, -longest:, None])[..., 0]
    lengths = torch.tensor(counts, device=logs.device)
    is_answer = torch.arange(longest, device=logs.device) >= longest - lengths[:, None]
    # Selected and not multiplied: 0 times minus infinity is NaN.
    return torch.where(is_answer, logs, 0.0)


class HeadedModel:
    """A RewardModel. Unscored: `TOO_LONG` (over the limit), ``unread`` (the row lacks what the head reads).

    Raises ModelError for a token id that the decoder has no embedding for.
    """

    def __init__(
        self, config: DecoderConfig, family: Family, backbone: nn.Module, *, tokenizer: Any, rendering: Rendering
    ) -> None:
        self.config = config
        self.family = family
        self.tokenizer = tokenizer
        self.rendering = rendering
        self.network = HeadedNetwork(backbone, family.head, family.read).to(best_device())
        limits = Limits(config.tokens_per_forward, config.batch_size, config.padding)
        self.scorer = Scorer(self.network, encoder=self, limits=limits, kernel="padded", invariant=config.invariant)

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """Return one Scores per case, in order."""
        yield from self.scorer.score(cases)

    def protocol(self) -> JsonObject:
        """Return the family with its settings, template, special tokens, strip, length and number type."""
        rendering = protocol_of(self.rendering, dtype=self.config.dtype, model=Path(self.config.path).name)
        return rendering | {"family": self.family.name} | dict(self.family.protocol)

    def self_tests(self, cases: Sequence[Case]) -> Iterator[SelfTest]:
        """Test the BOS token, the last token, the head, and both sides of padding."""
        encoded = [encode(self.tokenizer, self.rendering, case, answer) for case in cases for answer in case.responses]
        answers = [self._answer(answer) for answer in encoded]
        rows = tuple(answer.row for answer in answers if answer.unscored is None and not answer.is_over_length)
        self.check(rows)
        read = [ReadRow(row, max(self.family.read(row) or (0,))) for row in rows]
        yield beginning_mark(self.tokenizer, read)
        yield last_token(
            self.tokenizer, read, self.family.behind or template_end(self.tokenizer, self.rendering, cases[0])
        )
        yield trained_head(
            [weight for weight in self.family.head.parameters() if weight.ndim > 1], fresh_deviation=None
        )
        yield padding_test(self.scorer, [rows], dtype=self.config.dtype)

    def lengths(self, case: Case) -> list[int]:
        """Return the number of tokens of each answer with its prompt."""
        return [encode(self.tokenizer, self.rendering, case, response).length for response in case.responses]

    @property
    def max_length(self) -> int:
        """The length limit in tokens."""
        return self.rendering.max_length

    @property
    def over_length(self) -> OverLength:
        """Treatment of longer answers."""
        return self.rendering.over_length

    def encode(self, case: Case) -> list[EncodedAnswer]:
        """Return one entry per response. Raises EvidenceError for an answer over the limit where that is refused."""
        encoded = [encode(self.tokenizer, self.rendering, case, response) for response in case.responses]
        check_length(encoded, self.rendering, case)
        return [self._answer(answer) for answer in encoded]

    def check(self, rows: Sequence[tuple[int, ...]]) -> None:
        """Raise ModelError for a token id that the decoder has no embedding for."""
        check_token_ids(rows, self.network.backbone, where=self.config.path)

    def _answer(self, encoded: Encoded) -> EncodedAnswer:
        """Return the ids of a row with the family's tokens, or why it is not scored."""
        ids = (*self.family.before, *encoded.ids, *self.family.behind)
        reason = "unread" if self.family.read(ids) is None else None
        if encoded.is_over_length and not self.rendering.cuts:
            reason = TOO_LONG
        return EncodedAnswer(ids, reason, encoded.is_over_length)
