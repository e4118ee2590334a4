"""How much memory a training step needs at its peak, by a decoder's sizes and what is kept for the backward pass.

Counted are the weights as they lie, the gradients and moments of what is trained, what one forward pass keeps, and
what is there for a moment only. The runtime itself is not.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

Recompute = Literal["none", "mlp", "layers"]

GIBIBYTE = 2**30
SHARE_USED = 0.9
"""Of a device's memory; the rest is left to the runtime and to what its allocator cannot fill."""
_FLOAT, _HALF = 4, 2


class Decoder(NamedTuple):
    """The sizes of a decoder. ``queries`` and ``keys`` are heads times the size of a head.

    ``weight_bytes`` are those of all weights as they lie; ``largest_trained`` is the largest trained tensor, in
    numbers. ``num_adapted`` linear layers have an adapter of ``rank``.
    """

    num_layers: int
    hidden: int
    intermediate: int
    queries: int
    keys: int
    weight_bytes: int
    num_trained: int
    num_linear_trained: int
    largest_trained: int
    num_adapted: int = 0
    rank: int = 0
    is_dora: bool = False
    num_reached_layers: int | None = None

    @property
    def num_kept_layers(self) -> int:
        """The layers through which the gradient passes: all, where not told otherwise."""
        return self.num_layers if self.num_reached_layers is None else self.num_reached_layers


class Asked(NamedTuple):
    """What a run asks for: the ``tokens`` of its largest forward pass, and how it is worked out."""

    tokens: int
    recompute: Recompute
    is_half: bool = False
    is_eight_bit: bool = False
    is_packed: bool = True
    num_copied_keys: int = 0
    has_many_passes: bool = True


class Estimate(NamedTuple):
    """Bytes at the peak, by what they are for."""

    weights: int
    gradients: int
    moments: int
    kept: int
    passing: int

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self)


def estimate(decoder: Decoder, asked: Asked) -> Estimate:
    """The peak of a step: either at the end of a forward pass, or in the optimiser's step, whichever is larger.

    Where a step has one pass alone, its gradients grow as what was kept is let go, so that the larger counts.
    """
    gradients = _FLOAT * decoder.num_trained
    moments = 2 * (1 if asked.is_eight_bit else _FLOAT) * decoder.num_trained
    rounded = _HALF * decoder.num_linear_trained if asked.is_half else 0
    kept = asked.tokens * kept_a_token(decoder, asked) + rounded + asked.num_copied_keys * _copied(decoder, asked)
    passing = asked.tokens * _passing_a_token(decoder, asked)
    stepping = 2 * _FLOAT * decoder.largest_trained
    if not asked.has_many_passes:
        kept = max(kept - gradients, 0)
    if kept + passing < stepping:
        kept, passing = 0, stepping
    return Estimate(decoder.weight_bytes, gradients, moments, kept, passing)


def kept_a_token(decoder: Decoder, asked: Asked) -> int:
    """Bytes that a forward pass keeps of each token.

    The last layer of a pack keeps its keys and values alone; with whole layers worked out again, each of the others
    keeps its input, and one of them at a time everything.
    """
    layers = decoder.num_kept_layers
    if not layers:
        return 0
    whole, last = _layer(decoder, asked, asked.recompute), _last_layer(decoder, asked)
    if asked.recompute == "layers":
        return (layers + 1) * _FLOAT * decoder.hidden + _layer(decoder, asked, "none")
    return (layers - 1) * whole + last


def _number(asked: Asked) -> int:
    return _HALF if asked.is_half else _FLOAT


def _layer(decoder: Decoder, asked: Asked, recompute: Recompute) -> int:
    number = _number(asked)
    is_adapted = decoder.num_adapted > 0
    # A norm keeps its input, its input normed (for its weight's gradient), and what the next linear layers read.
    norms = 2 * _FLOAT * decoder.hidden
    if recompute == "none" and not is_adapted:
        norms += 2 * _FLOAT * decoder.hidden
    # Rounding to half the bits is done anew for each of the linear layers that read the same.
    read = (5 * _HALF if asked.is_half else 2 * _FLOAT) * decoder.hidden
    attention = number * (3 * decoder.queries + 2 * decoder.keys)
    feed_forward = 0 if recompute != "none" else 4 * number * decoder.intermediate
    adapters = number * decoder.rank * decoder.num_adapted // max(1, decoder.num_layers)
    if decoder.is_dora and recompute == "none":
        adapters += 2 * number * (2 * decoder.queries + 2 * decoder.keys + 2 * decoder.intermediate + decoder.hidden)
    return norms + read + attention + feed_forward + adapters


def _last_layer(decoder: Decoder, asked: Asked) -> int:
    if not asked.is_packed:
        return _layer(decoder, asked, asked.recompute)
    return 3 * _FLOAT * decoder.hidden + 2 * _number(asked) * decoder.keys


def _copied(decoder: Decoder, asked: Asked) -> int:
    """Bytes of a prompt's token for each further answer that attends to a copy of its keys and values."""
    layers = 1 if asked.recompute == "layers" else max(0, decoder.num_kept_layers - 1)
    return layers * 2 * _number(asked) * decoder.keys


def _passing_a_token(decoder: Decoder, asked: Asked) -> int:
    """Bytes a token that one layer needs for a moment: gradients of its feed-forward part, and what is made again."""
    again = 3 if asked.recompute == "mlp" else 0
    return _number(asked) * (3 + again) * decoder.intermediate + 2 * _FLOAT * decoder.hidden


def least_recompute(decoder: Decoder, asked: Asked, memory: int) -> Recompute:
    """The mode that works out least again and fits; whole layers where none fits."""
    for mode in ("none", "mlp"):
        if fits(estimate(decoder, asked._replace(recompute=mode)).total, memory):
            return mode
    return "layers"


def fits(needed: int, memory: int) -> bool:
    """Whether so many bytes leave the device the share it needs for itself."""
    return needed <= SHARE_USED * memory


class Choice(NamedTuple):
    """A setting that might make a run fit, and what the run would then be."""

    setting: str
    decoder: Decoder
    asked: Asked


def first_that_fits(choices: Iterable[Choice], memory: int) -> str | None:
    """The first of some settings with which the run would fit, or null."""
    for choice in choices:
        if fits(estimate(choice.decoder, choice.asked).total, memory):
            return choice.setting
    return None


def in_words(needed: int, memory: int) -> str:
    """``fits: 61 of 139 GiB``; small ones with a digit more."""
    word = "fits" if fits(needed, memory) else "does not fit"
    shown = [f"{one / GIBIBYTE:.0f}" if one >= 10 * GIBIBYTE else f"{one / GIBIBYTE:.1f}" for one in (needed, memory)]
    return f"{word}: {shown[0]} of {shown[1]} GiB"
