"""Speed of a training: pairs and tokens per second, model FLOPs utilisation (MFU), and the time left.

MFU gives no credit for padding, repeated prompts or recomputation.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn

from steelyard.networks.devices import has_slow_bfloat16
from steelyard.networks.packing import Rows, num_packed_tokens, num_shared_tokens
from steelyard.networks.reward_network import RewardNetwork
from steelyard.training.batching import Step, rows_of, slots_by_prompt
from steelyard.training.examples import Example


class ModelShape(NamedTuple):
    """Model shape used to count FLOPs.

    ``num_weights`` counts the weights that multiply each token: all but the embeddings and the head. ``num_reached`` of
    them are in the first trained layer or after it, and ``num_trained`` are trained. ``attention`` is the number of
    layers times heads times the size of a head.
    """

    num_weights: int
    num_reached: int
    num_trained: int
    attention: int


def reached_part(shape: ModelShape) -> ModelShape:
    """Return the shape without the layers before the first trained one; a head alone counts nothing."""
    attention = shape.attention * shape.num_reached // max(1, shape.num_weights)
    return shape._replace(num_weights=shape.num_reached, attention=attention)


def num_attended(rows: Rows) -> int:
    """Return the number of (query, key) pairs of one prompt's answers, with the shared prompt computed once."""
    shared = num_shared_tokens(rows)
    tails = [len(row) - shared for row in rows]
    return shared * (shared + 1) // 2 + sum(tail * shared + tail * (tail + 1) // 2 for tail in tails)


def training_flops(rows: Rows, shape: ModelShape) -> float:
    """Return the additions and multiplications of one training step on one prompt's answers.

    For each token a weight costs 2 in the forward pass, 2 where the gradient passes through it, and 2 where it is
    trained. Attention costs 4 for each (query, key) pair and unit of ``attention`` in the forward pass, and twice that
    in the backward pass. A language-model head is not counted.
    """
    tokens = num_packed_tokens(rows)
    weights = 2 * (shape.num_weights + shape.num_reached + shape.num_trained)
    share_back = shape.num_reached / shape.num_weights if shape.num_weights else 0.0
    return float(tokens * weights) + 4 * num_attended(rows) * shape.attention * (1 + 2 * share_back)


_PEAKS = {
    "B200": 2250e12,
    "H200": 989e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "GH200": 989e12,
    "A100": 312e12,
    "A10G": 70e12,
    "L40S": 362e12,
    "L4": 121e12,
}
"""Dense bfloat16 operations per second, by a part of the device's name; more specific names come first."""
_MATRIX_SIZE = {"cpu": 512, "cuda": 4096}
_NUM_PRODUCTS = 5


class Peak(NamedTuple):
    """Operations per second, and whether they were measured here rather than taken from a data sheet."""

    flops: float
    is_measured: bool


def peak_of(device: torch.device, dtype: str) -> Peak:
    """Return the peak of a device for numbers of a type."""
    if device.type == "cuda" and dtype == "bfloat16":
        name = torch.cuda.get_device_name(device)
        for part, flops in _PEAKS.items():
            if part in name:
                return Peak(flops, is_measured=False)
    # The fastest of a few products counts: others may be slowed by other load.
    size = _MATRIX_SIZE.get(device.type, 1024)
    draws = torch.Generator().manual_seed(0)  # does not touch the draws of the training
    computed = torch.float32 if has_slow_bfloat16(device) else getattr(torch, dtype)
    matrix = torch.randn(size, size, generator=draws).to(device, computed)
    fastest = float("inf")
    for _ in range(_NUM_PRODUCTS):
        started = _now(device)
        torch.mm(matrix, matrix)
        fastest = min(fastest, _now(device) - started)
    return Peak(2 * size**3 / fastest, is_measured=True)


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        # Kernels run asynchronously: the clock would otherwise measure their launch.
        torch.cuda.synchronize(device)
    return time.perf_counter()


class Pace:
    """The speed of a training: its steps and their time, without what happens between them (evaluations, saving)."""

    def __init__(self, examples: Sequence[Example], shape: ModelShape, peak: Peak, *, num_steps: int) -> None:
        self._examples = examples
        self._shape = shape
        self._peak = peak
        self._num_left = num_steps
        self._num_done = 0
        self._num_pairs = self._num_tokens = 0
        self._seconds = self._flops = 0.0

    def skip(self, num_steps: int) -> None:
        """Leave out the steps of an interrupted run that is resumed."""
        self._num_left -= num_steps

    def add(self, slots: Step, *, num_pairs: int, num_tokens: int, seconds: float) -> None:
        """Count a step."""
        self._seconds += seconds
        self._num_left -= 1
        self._num_done += 1
        self._num_pairs += num_pairs
        self._num_tokens += num_tokens
        groups = slots_by_prompt(slots)
        self._flops += sum(training_flops(rows_of(group, self._examples), self._shape) for group in groups)

    def figures(self) -> dict[str, float]:
        """Return pairs and tokens per second, MFU as a share, and the seconds that the remaining steps will take."""
        seconds = max(self._seconds, 1e-9)
        return {
            "pairs_per_second": self._num_pairs / seconds,
            "tokens_per_second": self._num_tokens / seconds,
            "mfu": self._flops / seconds / self._peak.flops,
            "seconds_left": self._num_left * seconds / max(self._num_done, 1),
        }

    def note(self) -> str:
        """Return the speed in one line, with MFU where the peak is of a data sheet: a measured one varies with load."""
        figures = self.figures()
        mfu = "" if self._peak.is_measured else f", MFU {figures['mfu']:.0%}"
        # A loss of ratings alone has no pairs.
        pairs = f"{figures['pairs_per_second']:,.0f} pairs/s, " if self._num_pairs else ""
        return f"{pairs}{figures['tokens_per_second']:,.0f} tokens/s{mfu}"


def decoder_shape(network: RewardNetwork) -> ModelShape:
    """Return the shape of a network.

    The gradient passes through the first part with trained weights and all parts after it. Mixtures of experts count
    with all their experts, though few compute each token: their MFU is overstated.
    """
    settings = network.classifier.config.get_text_config()
    size = settings.to_dict().get("head_dim") or settings.hidden_size // settings.num_attention_heads
    attention = settings.num_hidden_layers * settings.num_attention_heads * size
    # In the order of computation, the layers one by one.
    parts: list[nn.Module] = []
    for child in network.backbone.children():
        parts += list(child) if isinstance(child, nn.ModuleList) else [child]
    counts = [
        (_num_weights(part, is_trained=False), _num_weights(part, is_trained=True))
        for part in parts
        if not isinstance(part, nn.Embedding)
    ]
    first = next((place for place, (_, trained) in enumerate(counts) if trained), len(counts))
    if any(weight.requires_grad for weight in network.classifier.get_input_embeddings().parameters()):
        first = 0
    return ModelShape(
        num_weights=sum(number for number, _ in counts),
        num_reached=sum(number for number, _ in counts[first:]),
        num_trained=sum(trained for _, trained in counts),
        attention=attention,
    )


def _num_weights(part: nn.Module, *, is_trained: bool) -> int:
    return sum(weight.numel() for weight in part.parameters() if weight.requires_grad or not is_trained)
