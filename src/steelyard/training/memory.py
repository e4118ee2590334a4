"""Whether a training fits in its device's memory, before it begins, and how little must be recomputed.

The estimate counts the weights as they are stored, the gradients and moments of what is trained, what one forward pass
keeps, and what exists for a moment only. The runtime itself is not counted.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from torch import nn

from steelyard.core.errors import ModelError
from steelyard.io.progress import log
from steelyard.networks.devices import best_device, device_memory, fits, map_large_tensors
from steelyard.networks.packing import num_packed_tokens, num_shared_tokens
from steelyard.networks.reward_network import RewardNetwork
from steelyard.networks.scorer import Scorer
from steelyard.training.batching import PlannedStep
from steelyard.training.config import Config
from steelyard.training.examples import Example
from steelyard.training.memory_modes import compile_layers, set_recompute

Recompute = Literal["none", "mlp", "layers"]
GIBIBYTE = 2**30
_FLOAT, _HALF = 4, 2
_MOST_WRONG = 1.25
"""How far the estimate may be over what is used: beyond it a run is refused, below it warned of."""
_LOOSE = 1.4
"""What a heap that keeps its holes takes of what lies in it, as measured (`speed/memory.py`): 1.2 to 1.6."""


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


class PassPlan(NamedTuple):
    """What a run asks for: the ``tokens`` of its largest forward pass, and how it is worked out."""

    tokens: int
    recompute: Recompute
    is_half: bool = False
    is_eight_bit: bool = False
    is_packed: bool = True
    num_copied_keys: int = 0
    has_many_passes: bool = True


class MemoryEstimate(NamedTuple):
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


def estimate(decoder: Decoder, passes: PassPlan) -> MemoryEstimate:
    """The peak of a step: either at the end of a forward pass, or in the optimiser's step, whichever is larger.

    Where a step has one pass alone, its gradients grow as what was kept is let go, so that the larger counts.
    """
    gradients = _FLOAT * decoder.num_trained
    moments = 2 * (1 if passes.is_eight_bit else _FLOAT) * decoder.num_trained
    rounded = _HALF * decoder.num_linear_trained if passes.is_half else 0
    kept = passes.tokens * kept_a_token(decoder, passes) + rounded + passes.num_copied_keys * _copied(decoder, passes)
    passing = passes.tokens * _passing_a_token(decoder, passes)
    stepping = 2 * _FLOAT * decoder.largest_trained
    if not passes.has_many_passes:
        kept = max(kept - gradients, 0)
    if kept + passing < stepping:
        kept, passing = 0, stepping
    return MemoryEstimate(decoder.weight_bytes, gradients, moments, kept, passing)


def kept_a_token(decoder: Decoder, passes: PassPlan) -> int:
    """Bytes that a forward pass keeps of each token.

    The last layer of a pack keeps its keys and values alone; with whole layers worked out again, each of the others
    keeps its input, and one of them at a time everything.
    """
    layers = decoder.num_kept_layers
    if not layers:
        return 0
    whole, last = _layer(decoder, passes, passes.recompute), _last_layer(decoder, passes)
    if passes.recompute == "layers":
        return (layers + 1) * _FLOAT * decoder.hidden + _layer(decoder, passes, "none")
    return (layers - 1) * whole + last


def _number(passes: PassPlan) -> int:
    return _HALF if passes.is_half else _FLOAT


def _layer(decoder: Decoder, passes: PassPlan, recompute: Recompute) -> int:
    number = _number(passes)
    is_adapted = decoder.num_adapted > 0
    # A norm keeps its input, its input normed (for its weight's gradient), and what the next linear layers read.
    norms = 2 * _FLOAT * decoder.hidden
    if recompute == "none" and not is_adapted:
        norms += 2 * _FLOAT * decoder.hidden
    # Rounding to half the bits is done anew for each of the linear layers that read the same.
    read = (5 * _HALF if passes.is_half else 2 * _FLOAT) * decoder.hidden
    attention = number * (3 * decoder.queries + 2 * decoder.keys)
    feed_forward = 0 if recompute != "none" else 4 * number * decoder.intermediate
    adapters = number * decoder.rank * decoder.num_adapted // max(1, decoder.num_layers)
    if decoder.is_dora and recompute == "none":
        adapters += 2 * number * (2 * decoder.queries + 2 * decoder.keys + 2 * decoder.intermediate + decoder.hidden)
    return norms + read + attention + feed_forward + adapters


def _last_layer(decoder: Decoder, passes: PassPlan) -> int:
    if not passes.is_packed:
        return _layer(decoder, passes, passes.recompute)
    return 3 * _FLOAT * decoder.hidden + 2 * _number(passes) * decoder.keys


def _copied(decoder: Decoder, passes: PassPlan) -> int:
    """Bytes of a prompt's token for each further answer that attends to a copy of its keys and values."""
    layers = 1 if passes.recompute == "layers" else max(0, decoder.num_kept_layers - 1)
    return layers * 2 * _number(passes) * decoder.keys


def _passing_a_token(decoder: Decoder, passes: PassPlan) -> int:
    """Bytes a token that one layer needs for a moment: gradients of its feed-forward part, and what is made again."""
    again = 3 if passes.recompute == "mlp" else 0
    return _number(passes) * (3 + again) * decoder.intermediate + 2 * _FLOAT * decoder.hidden


def least_recompute(decoder: Decoder, passes: PassPlan, memory: int) -> Recompute:
    """The mode that works out least again and fits; whole layers where none fits."""
    for mode in ("none", "mlp"):
        if fits(estimate(decoder, passes._replace(recompute=mode)).total, memory):
            return mode
    return "layers"


class MemorySetting(NamedTuple):
    """A setting that might make a run fit, and what the run would then be."""

    setting: str
    decoder: Decoder
    passes: PassPlan


def first_that_fits(choices: Iterable[MemorySetting], memory: int) -> str | None:
    """The first of some settings with which the run would fit, or null."""
    for choice in choices:
        if fits(estimate(choice.decoder, choice.passes).total, memory):
            return choice.setting
    return None


def in_words(needed: int, memory: int) -> str:
    """``fits: 61 of 139 GiB``; small ones with a digit more."""
    word = "fits" if fits(needed, memory) else "does not fit"
    shown = [
        f"{size / GIBIBYTE:.0f}" if size >= 10 * GIBIBYTE else f"{size / GIBIBYTE:.1f}" for size in (needed, memory)
    ]
    return f"{word}: {shown[0]} of {shown[1]} GiB"


def choose_modes(
    scorer: Scorer, examples: Sequence[Example], steps: Sequence[PlannedStep], config: Config
) -> Recompute:
    """Log whether the run fits, set what it recomputes and whether it is compiled, and return the former.

    Raises ModelError for a run that cannot fit, with the first setting that would make it fit.
    """
    network: RewardNetwork = scorer.network
    decoder, passes = (
        decoder_of(network, config, num_processes=scorer.world.size),
        pass_plan(scorer, examples, steps, config),
    )
    memory = device_memory()
    mode = least_recompute(decoder, passes, memory) if config.recompute == "auto" else config.recompute
    if not decoder.num_kept_layers:
        mode = "none"
    passes = passes._replace(recompute=mode)
    needed = in_heap(estimate(decoder, passes).total, memory)
    again = {"none": "nothing", "mlp": "norms and feed-forward parts", "layers": "whole layers"}[mode]
    log(f"memory {in_words(needed, memory)} ({passes.tokens:,} tokens a pass, {again} worked out again)")
    if not fits(needed, memory):
        setting = first_that_fits(_settings(decoder, passes, config), memory)
        advice = f"--set {setting}" if setting else "train a smaller model, or on more devices"
        if needed > _MOST_WRONG * memory:
            raise ModelError(f"the training {in_words(needed, memory)}", where="memory", do=advice)
        log(f"it may run out of memory: {advice} would fit" if setting else f"it may run out of memory: {advice}")
    if config.compile:
        compile_layers(network)
    set_recompute(network, mode)
    return mode


def in_heap(needed: int, memory: int) -> int:
    """What tensors of so many bytes take at the device's peak: on a CPU more, where its holes do not matter.

    Where they would not fit, each large tensor is from now on given pages of its own, and gives them back: it takes a
    sixth more processor time on small models, for system calls alone.
    """
    loose = int(_LOOSE * needed)
    if best_device().type != "cpu" or not sys.platform.startswith("linux"):
        return needed
    return needed if not fits(loose, memory) and map_large_tensors() else loose


def decoder_of(network: RewardNetwork, config: Config, *, num_processes: int = 1) -> Decoder:
    """The sizes that the estimate reads, as the network stands: frozen, adapted, rounded; a process's share of it."""
    settings = network.classifier.config.get_text_config()
    values = settings.to_dict()
    head = values.get("head_dim") or settings.hidden_size // settings.num_attention_heads
    weights = list(network.parameters())
    trained = [weight for weight in weights if weight.requires_grad]
    words = network.classifier.get_input_embeddings().weight
    matrices = [weight for weight in trained if weight.ndim > 1 and weight is not words]
    number = num_processes
    names = [name for name, _ in network.backbone.named_parameters() if "lora_A" in name]
    return Decoder(
        num_layers=settings.num_hidden_layers,
        hidden=settings.hidden_size,
        intermediate=values.get("intermediate_size") or values.get("n_inner") or 4 * settings.hidden_size,
        queries=settings.num_attention_heads * head,
        keys=(values.get("num_key_value_heads") or settings.num_attention_heads) * head,
        weight_bytes=sum(weight.numel() * weight.element_size() for weight in weights) // number,
        num_trained=sum(weight.numel() for weight in trained) // number,
        num_linear_trained=sum(weight.numel() for weight in matrices) // number,
        largest_trained=max(weight.numel() for weight in trained) // number,
        num_adapted=len(names),
        rank=config.adapter_rank,
        is_dora=config.adapter == "dora",
        num_reached_layers=_num_reached(network, words),
    )


def _num_reached(network: RewardNetwork, words: nn.Parameter) -> int:
    layers = network.layers
    if words.requires_grad:
        return len(layers)
    is_trained = [any(weight.requires_grad for weight in layer.parameters()) for layer in layers]
    return len(layers) - is_trained.index(True) if any(is_trained) else 0


def pass_plan(scorer: Scorer, examples: Sequence[Example], steps: Sequence[PlannedStep], config: Config) -> PassPlan:
    """The largest forward pass that a step has, and the settings that say what it keeps."""
    sizes = [scorer.size(example.rows) for example in examples]
    bound = max(scorer.tokens_per_pass, min(max(sizes), scorer.limits.tokens_per_pass))
    totals = [sum(sizes[prompt] for prompt in {slot.prompt for slot in step.slots}) for step in steps]
    repeated = (num_shared_tokens(example.rows) * (len(example.rows) - 1) for example in examples)
    copied = sum(repeated) if scorer.is_packed else 0
    tokens = min(bound, max(totals))
    return PassPlan(
        tokens=tokens,
        recompute="none",
        is_half=config.dtype == "bfloat16",
        is_eight_bit=config.optimiser == "adamw-8bit",
        is_packed=scorer.is_packed,
        num_copied_keys=copied * tokens // max(1, sum(num_packed_tokens(example.rows) for example in examples)),
        has_many_passes=max(totals) > bound,
    )


def _settings(decoder: Decoder, passes: PassPlan, config: Config) -> Iterator[MemorySetting]:
    """Settings that save memory, those that change no result first."""
    yield MemorySetting("recompute=layers", decoder, passes._replace(recompute="layers"))
    tokens = passes.tokens // 2
    while tokens >= config.max_length:
        yield MemorySetting(f"tokens_per_forward={tokens}", decoder, passes._replace(recompute="layers", tokens=tokens))
        tokens //= 2
    if config.optimiser == "adamw":
        yield MemorySetting("optimiser=adamw-8bit", decoder, passes._replace(is_eight_bit=True))
    least: dict[str, Any] = {"num_trained": 0, "num_linear_trained": 0, "largest_trained": 0}
    if config.adapter is None:
        yield MemorySetting("adapter=lora", decoder._replace(**least), passes._replace(recompute="layers"))
    half = decoder._replace(**least, weight_bytes=decoder.weight_bytes // 2)
    yield MemorySetting("adapter=lora --set dtype=bfloat16", half, passes._replace(recompute="layers", is_half=True))
