"""Memory modes of a training: whether it fits, how little must be recomputed, and which parts are compiled.

The estimate counts the weights as they are stored, the gradients and moments of the trained weights, the activations
that one forward pass keeps, and transient buffers. The runtime itself is not counted.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from steelyard.core.errors import ModelError
from steelyard.core.remedies import Advice, Remedy
from steelyard.io.progress import log, log_detail
from steelyard.networks.devices import (
    FEWEST_TOKENS,
    best_device,
    default_tokens,
    device_memory,
    fits,
    map_large_tensors,
)
from steelyard.networks.packed_forward import wanted_tokens
from steelyard.networks.packing import num_packed_tokens, num_shared_tokens
from steelyard.networks.reward_network import RewardNetwork
from steelyard.networks.scorer import Scorer
from steelyard.training.batching import PlannedStep
from steelyard.training.config import Config
from steelyard.training.examples import Example
from steelyard.training.throughput import decoder_shape, peak_of, training_flops

Recompute = Literal["none", "mlp", "layers"]
MODES: tuple[Recompute, ...] = ("none", "mlp", "layers")
"""All modes, from the one that recomputes least."""
GIBIBYTE = 2**30
_FLOAT, _HALF = 4, 2
_TOLERANCE = 1.25
"""The error of the estimate: a run beyond this multiple of the memory is refused, one below it is warned of."""
_FRAGMENTATION = 1.4
"""The size of a fragmented heap in units of its content, as measured (`speed/memory.py`): 1.2 to 1.6."""

_PEAK_SECONDS = 20.0
"""The least training that is compiled where the settings leave it open, in seconds at the peak of the device.

Trainings reach a sixth to a third of the peak, so that it takes one to two minutes. On an H200 compiled parts saved a
sixth of a step; compiling is assumed to take ten to fifteen seconds.
"""


class Decoder(NamedTuple):
    """The sizes of a decoder. ``queries`` and ``keys`` are the number of heads times the size of a head.

    ``weight_bytes`` are those of all weights in their stored types; ``largest_trained`` is the number of elements of
    the largest trained tensor. The gradient passes through ``num_reached_layers``. ``num_adapted`` linear layers have
    an adapter of ``rank``.
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
    num_reached_layers: int
    num_adapted: int = 0
    rank: int = 0
    is_dora: bool = False


class PassPlan(NamedTuple):
    """The largest forward pass of a run, in ``tokens``, its limit, and the settings that decide what it keeps."""

    tokens: int
    gradient_checkpointing: Recompute
    limit: int = 0
    is_half: bool = False
    is_eight_bit: bool = False
    is_packed: bool = True
    num_copied_keys: int = 0
    has_many_passes: bool = True

    @property
    def number_bytes(self) -> int:
        """The bytes of a number of the computation."""
        return _HALF if self.is_half else _FLOAT


class MemoryEstimate(NamedTuple):
    """Bytes at the peak, by purpose."""

    weights: int
    gradients: int
    moments: int
    activations: int
    transient: int

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return sum(self)


def estimate(decoder: Decoder, passes: PassPlan) -> MemoryEstimate:
    """Return the peak of a step: the end of a forward pass or the optimiser's step, whichever is larger.

    Where a step has one pass alone, its gradients grow while activations are released, so that the larger counts.
    """
    gradients = _FLOAT * decoder.num_trained
    moments = 2 * (1 if passes.is_eight_bit else _FLOAT) * decoder.num_trained
    rounded = _HALF * decoder.num_linear_trained if passes.is_half else 0
    activations = passes.tokens * activation_bytes(decoder, passes) + rounded
    # Each answer attends to a copy of the keys and values of its prompt.
    num_copying = 1 if passes.gradient_checkpointing == "layers" else max(0, decoder.num_reached_layers - 1)
    activations += passes.num_copied_keys * num_copying * 2 * passes.number_bytes * decoder.keys
    # Each token has the gradients of one feed-forward part, and its recomputed activations.
    num_kept = 6 if passes.gradient_checkpointing == "mlp" else 3
    transient = passes.tokens * (passes.number_bytes * num_kept * decoder.intermediate + 2 * _FLOAT * decoder.hidden)
    optimiser = 2 * _FLOAT * decoder.largest_trained
    if not passes.has_many_passes:
        activations = max(activations - gradients, 0)
    if activations + transient < optimiser:
        activations, transient = 0, optimiser
    return MemoryEstimate(decoder.weight_bytes, gradients, moments, activations, transient)


def activation_bytes(decoder: Decoder, passes: PassPlan) -> int:
    """Return the bytes that a forward pass keeps of each token.

    The last layer of a pack keeps its keys and values alone. Where whole layers are recomputed, each of the others
    keeps its input, and one of them at a time everything.
    """
    layers = decoder.num_reached_layers
    if not layers:
        return 0
    if passes.gradient_checkpointing == "layers":
        return (layers + 1) * _FLOAT * decoder.hidden + _layer_bytes(decoder, passes, "none")
    layer = _layer_bytes(decoder, passes, passes.gradient_checkpointing)
    last = 3 * _FLOAT * decoder.hidden + 2 * passes.number_bytes * decoder.keys if passes.is_packed else layer
    return (layers - 1) * layer + last


def _layer_bytes(decoder: Decoder, passes: PassPlan, recompute: Recompute) -> int:
    """Return the bytes that one layer keeps of each token."""
    number = passes.number_bytes
    # A norm keeps its input, the normed input (for its weight's gradient), and the input of the next linear layers.
    norms = 2 * _FLOAT * decoder.hidden
    if recompute == "none" and not decoder.num_adapted:
        norms += 2 * _FLOAT * decoder.hidden
    # Each of the linear layers with a common input rounds it to half precision separately.
    inputs = (5 * _HALF if passes.is_half else 2 * _FLOAT) * decoder.hidden
    attention = number * (3 * decoder.queries + 2 * decoder.keys)
    feed_forward = 0 if recompute != "none" else 4 * number * decoder.intermediate
    adapters = number * decoder.rank * decoder.num_adapted // max(1, decoder.num_layers)
    if decoder.is_dora and recompute == "none":
        adapters += 2 * number * (2 * decoder.queries + 2 * decoder.keys + 2 * decoder.intermediate + decoder.hidden)
    return norms + inputs + attention + feed_forward + adapters


def best_plan(decoder: Decoder, plans: Sequence[PassPlan], memory: int) -> PassPlan:
    """Return the first plan that fits, or the last one. Plans come in the order in which they are wanted."""
    return next((plan for plan in plans if fits(estimate(decoder, plan).total, memory)), plans[-1])


def format_fit(num_bytes: int, memory: int) -> str:
    """Return a line such as ``fits: 61 of 139 GiB``; small sizes have a decimal."""
    word = "fits" if fits(num_bytes, memory) else "does not fit"
    sizes = [
        f"{size / GIBIBYTE:.0f}" if size >= 10 * GIBIBYTE else f"{size / GIBIBYTE:.1f}" for size in (num_bytes, memory)
    ]
    return f"{word}: {sizes[0]} of {sizes[1]} GiB"


def choose_modes(
    scorer: Scorer, examples: Sequence[Example], steps: Sequence[PlannedStep], config: Config
) -> Recompute:
    """Log whether the run fits; set the tokens of a pass, what it recomputes and whether it is compiled.

    Returns what it recomputes.

    Raises ModelError for a run that cannot fit, with the first setting that would make it fit.
    """
    network: RewardNetwork = scorer.network
    decoder, memory = decoder_of(network, config, num_processes=scorer.world.size), device_memory()
    modes = MODES if config.gradient_checkpointing == "auto" else (config.gradient_checkpointing,)
    if not decoder.num_reached_layers:
        modes = ("none",)
    sizes = [pass_plan(scorer, examples, steps, config, limit=limit) for limit in _limits(scorer)]
    # Recomputing costs more than passes of half the size.
    plans = [plan._replace(gradient_checkpointing=mode) for mode in modes for plan in sizes]
    passes = best_plan(decoder, plans, memory)
    scorer.limits = scorer.limits._replace(tokens_per_pass=passes.limit)
    mode = passes.gradient_checkpointing
    needed = heap_size(estimate(decoder, passes).total, memory)
    parts = {"none": "nothing", "mlp": "norms and feed-forward parts", "layers": "whole layers"}[mode]
    log_fit = log_detail if fits(needed, memory) else log
    log_fit(f"memory {format_fit(needed, memory)} ({passes.tokens:,} tokens in a pass, {parts} recomputed)")
    if not fits(needed, memory):
        settings = _settings(decoder, passes, config)
        setting = next((name for name, run, plan in settings if fits(estimate(run, plan).total, memory)), None)
        advice = Advice(setting) if setting else Advice("train a smaller model, or on more devices")
        if needed > _TOLERANCE * memory:
            raise ModelError(f"the training {format_fit(needed, memory)}", where="memory", do=advice)
        log(Advice("it may run out of memory: ", advice, " would fit" if setting else ""))
    compile_where_it_pays(network, examples, config)
    set_recompute(network, mode)
    return mode


def heap_size(num_bytes: int, memory: int) -> int:
    """Return the memory that tensors of ``num_bytes`` take: more on a CPU, whose heap fragments.

    Where a fragmented heap would not fit, each large tensor gets separate pages from now on. On small models this takes
    a sixth more processor time, for system calls alone.
    """
    fragmented = int(_FRAGMENTATION * num_bytes)
    if best_device().type != "cpu" or not sys.platform.startswith("linux"):
        return num_bytes
    return num_bytes if not fits(fragmented, memory) and map_large_tensors() else fragmented


def decoder_of(network: RewardNetwork, config: Config, *, num_processes: int = 1) -> Decoder:
    """Return the sizes of the network as it is: frozen, adapted, rounded; of many processes, the share of each."""
    settings = network.classifier.config.get_text_config()
    values = settings.to_dict()
    head = values.get("head_dim") or settings.hidden_size // settings.num_attention_heads
    weights = list(network.parameters())
    trained = [weight for weight in weights if weight.requires_grad]
    embeddings = network.classifier.get_input_embeddings().weight
    matrices = [weight for weight in trained if weight.ndim > 1 and weight is not embeddings]
    names = [name for name, _ in network.backbone.named_parameters() if "lora_A" in name]
    layers = network.layers
    if embeddings.requires_grad:
        num_reached = len(layers)
    else:
        is_trained = [any(weight.requires_grad for weight in layer.parameters()) for layer in layers]
        num_reached = len(layers) - is_trained.index(True) if any(is_trained) else 0
    return Decoder(
        num_layers=settings.num_hidden_layers,
        hidden=settings.hidden_size,
        intermediate=values.get("intermediate_size") or values.get("n_inner") or 4 * settings.hidden_size,
        queries=settings.num_attention_heads * head,
        keys=(values.get("num_key_value_heads") or settings.num_attention_heads) * head,
        weight_bytes=sum(weight.numel() * weight.element_size() for weight in weights) // num_processes,
        num_trained=sum(weight.numel() for weight in trained) // num_processes,
        num_linear_trained=sum(weight.numel() for weight in matrices) // num_processes,
        largest_trained=max(weight.numel() for weight in trained) // num_processes,
        num_reached_layers=num_reached,
        num_adapted=len(names),
        rank=config.adapter_rank,
        is_dora=config.adapter == "dora",
    )


def _limits(scorer: Scorer) -> list[int]:
    """Return the limit of a pass that is set, or else those to try, from the best one of the device down."""
    if scorer.limits.tokens_per_pass is not None:
        return [scorer.limits.tokens_per_pass]
    limits = [default_tokens(best_device())]
    while limits[-1] > FEWEST_TOKENS:
        limits.append(limits[-1] // 2)
    return limits


def pass_plan(
    scorer: Scorer, examples: Sequence[Example], steps: Sequence[PlannedStep], config: Config, *, limit: int
) -> PassPlan:
    """Return the largest forward pass of any step, on the best device and within a limit in tokens."""
    sizes = [scorer.size(example.rows) for example in examples]
    wanted = (wanted_tokens(best_device()) if scorer.is_packed else None) or limit
    bound = max(min(wanted, limit), min(max(sizes), limit))
    totals = [sum(sizes[prompt] for prompt in {slot.prompt for slot in step.slots}) for step in steps]
    repeated = (num_shared_tokens(example.rows) * len(example.rows) for example in examples)
    copied = sum(repeated) if scorer.is_packed else 0
    tokens = min(bound, max(totals))
    return PassPlan(
        tokens=tokens,
        limit=limit,
        gradient_checkpointing="none",
        is_half=config.number_type == "bfloat16",
        is_eight_bit=config.optimiser == "adamw-8bit",
        is_packed=scorer.is_packed,
        num_copied_keys=copied * tokens // max(1, sum(num_packed_tokens(example.rows) for example in examples)),
        has_many_passes=max(totals) > bound,
    )


def _settings(decoder: Decoder, passes: PassPlan, config: Config) -> Iterator[tuple[Remedy, Decoder, PassPlan]]:
    """Yield settings that save memory, with the run that they make; first those that change no result."""
    recomputed = Remedy("gradient_checkpointing", "layers")
    yield recomputed, decoder, passes._replace(gradient_checkpointing="layers")
    tokens = passes.tokens // 2
    while tokens >= config.max_length:
        fewer = passes._replace(gradient_checkpointing="layers", tokens=tokens)
        yield Remedy("tokens_per_forward", tokens), decoder, fewer
        tokens //= 2
    if config.optimiser == "adamw":
        yield Remedy("optimiser", "adamw-8bit"), decoder, passes._replace(is_eight_bit=True)
    adapted = decoder._replace(num_trained=0, num_linear_trained=0, largest_trained=0)
    if config.adapter is None:
        yield Remedy("adapter", "lora"), adapted, passes._replace(gradient_checkpointing="layers")
    half = adapted._replace(weight_bytes=adapted.weight_bytes // 2)
    adapter = Remedy("adapter", "lora", (Remedy("dtype", "bfloat16"),))
    yield adapter, half, passes._replace(gradient_checkpointing="layers", is_half=True)


def set_recompute(network: RewardNetwork, mode: Recompute) -> None:
    """Let the backward pass recompute activations, with equal gradients and equal dropout.

    ``mlp``: norms and feed-forward parts keep their inputs alone; ``layers``: whole decoder layers do.
    Raises ModelError where these parts cannot be identified.
    """
    layers = network.layers
    if mode == "layers":
        parts: list[Any] = layers
    else:
        parts = [part for layer in layers for part in _light_parts(layer)] if mode == "mlp" else []
    if mode == "mlp" and not parts:
        raise ModelError(
            "cannot identify the layers' norms and feed-forward parts",
            do=Advice("use ", Remedy("gradient_checkpointing", "layers")),
        )
    for part in parts:
        part.forward = partial(_recomputed, part.forward)


def _recomputed(forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if not torch.is_grad_enabled():
        return forward(*args, **kwargs)
    return checkpoint(forward, *args, use_reentrant=False, **kwargs)


def compile_where_it_pays(network: RewardNetwork, examples: Sequence[Example], config: Config) -> None:
    """Compile norms and feed-forward layers if the settings say so, or else on a GPU if the training is long enough."""
    is_compiled = config.compile
    if is_compiled is None and best_device().type == "cuda":
        shape = decoder_shape(network)
        flops = config.epochs * sum(training_flops(example.rows, shape) for example in examples)
        is_compiled = flops >= _PEAK_SECONDS * peak_of(best_device(), config.number_type).flops
    if is_compiled and compile_parts(network):
        log_detail("norms and feed-forward layers are compiled")


def compile_parts(network: RewardNetwork) -> bool:
    """Compile norms and feed-forward layers; return false, and log the reason, without a compiler."""
    device = best_device()
    try:
        torch.compile(lambda value: value + 1)(torch.zeros(2, device=device))
    except RuntimeError as error:
        compiler = "a C++ compiler (g++)" if device.type == "cpu" else "Triton and a C compiler"
        log(f"nothing is compiled, which needs {compiler}: {str(error).splitlines()[0]}")
        return False
    for layer in network.layers:
        for part in _light_parts(layer):
            # Experts are chosen by the tokens: each choice would be compiled by itself.
            if not hasattr(part, "experts"):
                part.forward = torch.compile(part.forward, dynamic=True)
    return True


def _light_parts(layer: nn.Module) -> Iterator[nn.Module]:
    """Yield the norms and the feed-forward part of a decoder layer."""
    for name, part in layer.named_children():
        if name == "mlp" or "Norm" in type(part).__name__:
            yield part


def undo_modes(network: RewardNetwork) -> None:
    """Undo `set_recompute` and `compile_parts`: every module runs the forward of its class."""
    for module in network.modules():
        vars(module).pop("forward", None)
