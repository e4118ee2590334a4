"""Examples, collator and loss for a training loop that is not ours: plain PyTorch or ``transformers.Trainer``.

A batch has one row for each response of its prompts, and the pairs as labels: a prompt with many responses is computed
once for each of them rather than once for each pair.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from steelyard.core.errors import ConfigError, EvidenceError, ModelError
from steelyard.core.types import Case, OverLength
from steelyard.io.progress import log
from steelyard.io.terminal_text import rule_counts
from steelyard.networks.conversation import choose_rendering
from steelyard.networks.reward_network import padded
from steelyard.ranking.pairs import PairChoice
from steelyard.training.batching import all_slots, loss_inputs
from steelyard.training.examples import EvidenceChoice, Example, make_examples
from steelyard.training.losses import (
    LOSSES,
    LossInputs,
    Objective,
    PairBatch,
    StepWeights,
    step_loss,
    sums_of,
    weights_of,
)

_COLUMNS = len(PairBatch._fields)
_IGNORED = -100
"""``transformers.Trainer`` does not count labels of this value."""


def preference_examples(
    cases: Iterable[Case],
    tokenizer: Any,
    *,
    chat_template: str | None = None,
    max_length: int = 2048,
    over_length: OverLength = "unscored",
    pairs: PairChoice | None = None,
) -> tuple[Example, ...]:
    """Return one example for each case with a comparable pair: token ids of each response, and the pairs.

    The settings are those of `steelyard train`. What was left out is logged with its rule. Raises ModelError for a
    tokenizer without a chat template when none is named, EvidenceError where no pair is left.
    """
    name = getattr(tokenizer, "name_or_path", "") or "the tokenizer"
    rendering = choose_rendering(
        tokenizer, chat_template, model=name, max_length=max_length, over_length=over_length, strip=True
    )
    examples = make_examples(cases, tokenizer, rendering, EvidenceChoice(pairs), where="cases")
    for title, counts in (("dropped", examples.dropped), ("noted", examples.noted)):
        if counts:
            log(f"{title}: {rule_counts(counts)}")
    return examples.examples


class PreferenceCollator:
    """Collate examples into a batch: ``input_ids`` and ``attention_mask`` of shape (response, token), ``labels``.

    ``labels`` has a row for each pair, (better, worse, weight, margin, prompt), where better and worse are rows of the
    batch. Rows are filled on the right with ``pad_token_id``. Raises ModelError where a text ends with that token:
    heads of transformers read the last token that is not it, and would read another one than the last.
    """

    def __init__(self, pad_token_id: int | None) -> None:
        if pad_token_id is None:
            raise ModelError("the tokenizer has no padding token", do="set tokenizer.pad_token, and the model's config")
        self.pad_token_id = pad_token_id

    def __call__(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        """Return the batch."""
        rows = [row for example in examples for row in example.rows]
        if any(row[-1] == self.pad_token_id for row in rows):
            raise ModelError(
                f"texts end with token {self.pad_token_id}, which is the padding token too",
                do="set tokenizer.pad_token and model.config.pad_token_id to another token",
            )
        ids, attended = padded(rows, filler=self.pad_token_id, side="right")
        slots = all_slots(range(len(examples)), [len(example.rows) for example in examples])
        labels = torch.stack([column.float() for column in loss_inputs(slots, examples).pairs], dim=1)
        if bool((labels == _IGNORED).any()):
            raise EvidenceError(f"a margin of {_IGNORED}, which transformers reads as no label")
        return {"input_ids": ids, "attention_mask": attended.long(), "labels": labels}


class PreferenceLoss:
    """The loss of a batch, in nats: ``compute_loss_func`` of ``transformers.Trainer``, or called in a loop of PyTorch.

    The settings are those of `steelyard train`; losses of ties learn a parameter and are left to it.
    """

    def __init__(
        self,
        loss: Literal["bradley-terry", "plackett-luce"] = "bradley-terry",
        *,
        reduction: Literal["pair", "prompt"] = "pair",
        smoothing: float = 0.0,
        centring: float = 0.0,
        regulariser: float = 0.0,
    ) -> None:
        without_parameter = [name for name, entry in LOSSES.items() if entry.parameter is None]
        if loss not in without_parameter:
            raise ConfigError(f"loss={loss!r}", where="PreferenceLoss", allowed=", ".join(without_parameter))
        self.objective = Objective(loss, reduction, smoothing, centring, regulariser)

    def __call__(
        self, outputs: Any, labels: Float[Tensor, "pair 5"], num_items_in_batch: Tensor | int | None = None
    ) -> Float[Tensor, ""]:
        """Return the loss of the batch, or this batch's part of it where gradients of several are added up.

        ``outputs`` are the rewards, of shape (response,) or (response, 1), or an output with ``logits``.
        ``num_items_in_batch`` is what ``transformers.Trainer`` counts: the elements of all labels of a step. Where it
        is more than those of this batch, the loss must be a mean over unweighted pairs, or ConfigError is raised:
        another divisor of the whole step cannot be known here.
        """
        rewards = getattr(outputs, "logits", outputs)
        rewards = rewards.reshape(-1).float()
        better, worse, weight, margin, prompt = labels.unbind(dim=1)
        pairs = PairBatch(better.long(), worse.long(), weight, margin, prompt.long())
        inputs = LossInputs(pairs, torch.zeros_like(better, dtype=torch.bool), len(rewards))
        return step_loss(
            sums_of(rewards, inputs, self.objective), self._weights(inputs, num_items_in_batch), self.objective
        )

    def _weights(self, inputs: LossInputs, num_items: Tensor | int | None) -> StepWeights:
        num_pairs = len(inputs.pairs.weight)
        if num_items is None or int(num_items) == _COLUMNS * num_pairs:
            return weights_of(inputs, self.objective)
        is_plain = self.objective._replace(smoothing=0.0, centring=0.0) == Objective()
        if not is_plain or bool((inputs.pairs.weight != 1).any()):
            raise ConfigError(
                "gradients of several batches are added up, and the loss is not a mean over unweighted pairs",
                where="gradient_accumulation_steps",
                allowed="1 (and one device)",
                do="enlarge per_device_train_batch_size, or train with `sy.train`, which is exact",
            )
        total = int(num_items) / _COLUMNS
        return StepWeights(total, total, float(inputs.num_responses))
