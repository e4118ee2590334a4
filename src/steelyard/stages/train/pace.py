"""How fast a training goes: pairs and tokens a second, the share of the device's arithmetic, and the time left."""

import time
from collections.abc import Sequence

from torch import nn

from steelyard.methods.training.batching import Step
from steelyard.methods.training.flops import Shape, training_flops
from steelyard.plugins.models._reward_network import RewardNetwork
from steelyard.stages.train.examples import Example
from steelyard.stages.train.peak import Peak


class Pace:
    """Adds up steps by the time that training them took; what stands between them (evaluations, saving) is left out."""

    def __init__(self, examples: Sequence[Example], shape: Shape, peak: Peak, *, num_steps: int) -> None:
        self._examples = examples
        self._shape = shape
        self._peak = peak
        self._num_left = num_steps
        self._num_done = 0
        self._num_pairs = self._num_tokens = 0
        self._seconds = self._flops = 0.0
        self._started = time.monotonic()

    def skip(self, num_steps: int) -> None:
        """These steps were done by a run before."""
        self._num_left -= num_steps

    def add(self, slots: Step, *, num_pairs: int, num_tokens: int) -> None:
        """A step has just been done."""
        self._seconds += time.monotonic() - self._started
        self._num_left -= 1
        self._num_done += 1
        self._num_pairs += num_pairs
        self._num_tokens += num_tokens
        by_prompt: dict[int, list[tuple[int, ...]]] = {}
        for slot in slots:
            by_prompt.setdefault(slot.prompt, []).append(self._examples[slot.prompt].rows[slot.response])
        self._flops += sum(training_flops(rows, self._shape) for rows in by_prompt.values())

    def start(self) -> None:
        """The next step begins now."""
        self._started = time.monotonic()

    def figures(self) -> dict[str, float]:
        """Everything a second, MFU as a share, and the seconds that the steps left will take."""
        seconds = max(self._seconds, 1e-9)
        return {
            "pairs_per_second": self._num_pairs / seconds,
            "tokens_per_second": self._num_tokens / seconds,
            "mfu": self._flops / seconds / self._peak.flops,
            "seconds_left": self._num_left * seconds / max(self._num_done, 1),
        }

    def note(self) -> str:
        """The speed in one line; MFU says when it is a share of what was measured here."""
        told = self.figures()
        of = " of the measured peak" if self._peak.is_measured else ""
        return (
            f"{told['pairs_per_second']:,.0f} pairs/s, {told['tokens_per_second']:,.0f} tokens/s, "
            f"MFU {told['mfu']:.0%}{of}"
        )


def decoder_shape(network: RewardNetwork) -> Shape:
    """What of the network decides the arithmetic of a step.

    The gradient passes through the first part with anything to train and through all that come after it. Mixtures of
    experts count with all of their experts, of which a token meets few: their MFU is overstated.
    """
    settings = network.classifier.config.get_text_config()
    size = settings.to_dict().get("head_dim") or settings.hidden_size // settings.num_attention_heads
    attention = settings.num_hidden_layers * settings.num_attention_heads * size
    counts = [(_num(part, is_trained=False), _num(part, is_trained=True)) for part in _in_order(network)]
    reached = next((place for place, (_, trained) in enumerate(counts) if trained), len(counts))
    words = network.classifier.get_input_embeddings()
    is_all = any(weight.requires_grad for weight in words.parameters())
    return Shape(
        num_weights=sum(number for number, _ in counts),
        num_reached=sum(number for number, _ in counts[0 if is_all else reached :]),
        num_trained=sum(trained for _, trained in counts),
        attention=attention,
    )


def _in_order(network: RewardNetwork) -> list[nn.Module]:
    """The parts of the decoder in the order in which a token passes them: its layers one by one."""
    parts: list[nn.Module] = []
    for child in network.backbone.children():
        parts += list(child) if isinstance(child, nn.ModuleList) else [child]
    return [part for part in parts if not isinstance(part, nn.Embedding)]


def _num(part: nn.Module, *, is_trained: bool) -> int:
    return sum(weight.numel() for weight in part.parameters() if weight.requires_grad or not is_trained)
