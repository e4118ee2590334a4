"""Whether a training fits in its device's memory, said before it begins, and how little is worked out again."""

import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from steelyard.core.errors import ModelError
from steelyard.files.talk import say
from steelyard.methods.training.memory import (
    Asked,
    Choice,
    Decoder,
    Recompute,
    estimate,
    first_that_fits,
    fits,
    in_words,
    least_recompute,
)
from steelyard.methods.training.sharing import num_packed_tokens, num_shared_tokens
from steelyard.plugins.models._network import best_device
from steelyard.plugins.models._reward_network import RewardNetwork
from steelyard.stages.train.examples import Example
from steelyard.stages.train.loop import Planned, is_packed
from steelyard.stages.train.modes import compile_layers, decoder_layers, set_recompute
from steelyard.stages.train.processes import current
from steelyard.stages.train.scoring import num_tokens, num_wanted
from steelyard.stages.train.settings import Config

_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_MOST_WRONG = 1.25
"""How far the estimate may be over what is used: beyond it a run is refused, below it warned of."""
_LOOSE = 1.4
"""What a heap that keeps its holes takes of what lies in it, as measured (`speed/memory.py`): 1.2 to 1.6."""
_MMAP_THRESHOLD, _LARGE = -3, 2**20
"""M_MMAP_THRESHOLD of mallopt(3), and from how many bytes on a tensor gets pages of its own."""


def choose_modes(
    network: RewardNetwork, examples: Sequence[Example], steps: Sequence[Planned], config: Config
) -> Recompute:
    """Say whether the run fits, and set what it works out again and whether it is compiled; gives the former.

    Raises ModelError for a run that cannot fit, with the first setting that would make it fit.
    """
    decoder, asked = decoder_of(network, config), asked_of(network, examples, steps, config)
    memory = device_memory()
    mode = least_recompute(decoder, asked, memory) if config.recompute == "auto" else config.recompute
    if not decoder.num_kept_layers:
        mode = "none"
    asked = asked._replace(recompute=mode)
    needed = in_heap(estimate(decoder, asked).total, memory)
    again = {"none": "nothing", "mlp": "norms and feed-forward parts", "layers": "whole layers"}[mode]
    say(f"memory {in_words(needed, memory)} ({asked.tokens:,} tokens a pass, {again} worked out again)")
    if not fits(needed, memory):
        setting = first_that_fits(_choices(decoder, asked, config), memory)
        advice = f"--set {setting}" if setting else "train a smaller model, or on more devices"
        if needed > _MOST_WRONG * memory:
            raise ModelError(f"the training {in_words(needed, memory)}", where="memory", do=advice)
        say(f"it may run out of memory: {advice} would fit" if setting else f"it may run out of memory: {advice}")
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
    return needed if not fits(loose, memory) and close_holes() else loose


def close_holes() -> bool:
    """Let the C library's allocator keep no holes of large tensors; false where it knows no such setting."""
    try:
        return bool(ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE))
    except AttributeError:
        return False


def decoder_of(network: RewardNetwork, config: Config) -> Decoder:
    """The sizes that the estimate reads, as the network stands: frozen, adapted, rounded; a process's share of it."""
    settings = network.classifier.config.get_text_config()
    told = settings.to_dict()
    head = told.get("head_dim") or settings.hidden_size // settings.num_attention_heads
    weights = list(network.parameters())
    trained = [weight for weight in weights if weight.requires_grad]
    words = network.classifier.get_input_embeddings().weight
    matrices = [one for one in trained if one.ndim > 1 and one is not words]
    number = current().number
    names = [name for name, _ in network.backbone.named_parameters() if "lora_A" in name]
    return Decoder(
        num_layers=settings.num_hidden_layers,
        hidden=settings.hidden_size,
        intermediate=told.get("intermediate_size") or told.get("n_inner") or 4 * settings.hidden_size,
        queries=settings.num_attention_heads * head,
        keys=(told.get("num_key_value_heads") or settings.num_attention_heads) * head,
        weight_bytes=sum(one.numel() * one.element_size() for one in weights) // number,
        num_trained=sum(one.numel() for one in trained) // number,
        num_linear_trained=sum(one.numel() for one in matrices) // number,
        largest_trained=max(one.numel() for one in trained) // number,
        num_adapted=len(names),
        rank=config.adapter_rank,
        is_dora=config.adapter == "dora",
        num_reached_layers=_num_reached(network, words),
    )


def _num_reached(network: RewardNetwork, words: nn.Parameter) -> int:
    layers = decoder_layers(network)
    if words.requires_grad:
        return len(layers)
    is_trained = [any(weight.requires_grad for weight in layer.parameters()) for layer in layers]
    return len(layers) - is_trained.index(True) if any(is_trained) else 0


def asked_of(network: RewardNetwork, examples: Sequence[Example], steps: Sequence[Planned], config: Config) -> Asked:
    """The largest forward pass that a step has, and the settings that say what it keeps."""
    packed = is_packed(network, config)
    sizes = [num_tokens(example.rows, is_packed=packed) for example in examples]
    wanted = num_wanted(network, config, is_packed=packed)
    bound = max(wanted, min(max(sizes), config.tokens_per_forward))
    totals = [sum(sizes[prompt] for prompt in {slot.prompt for slot in step.slots}) for step in steps]
    copied = sum(num_shared_tokens(one.rows) * (len(one.rows) - 1) for one in examples) if packed else 0
    tokens = min(bound, max(totals))
    return Asked(
        tokens=tokens,
        recompute="none",
        is_half=config.dtype == "bfloat16",
        is_eight_bit=config.optimiser == "adamw-8bit",
        is_packed=packed,
        num_copied_keys=copied * tokens // max(1, sum(num_packed_tokens(one.rows) for one in examples)),
        has_many_passes=max(totals) > bound,
    )


def _choices(decoder: Decoder, asked: Asked, config: Config) -> Iterator[Choice]:
    """Settings that save memory, those that change no result first."""
    yield Choice("recompute=layers", decoder, asked._replace(recompute="layers"))
    tokens = asked.tokens // 2
    while tokens >= config.max_length:
        yield Choice(f"tokens_per_forward={tokens}", decoder, asked._replace(recompute="layers", tokens=tokens))
        tokens //= 2
    if config.optimiser == "adamw":
        yield Choice("optimiser=adamw-8bit", decoder, asked._replace(is_eight_bit=True))
    least: dict[str, Any] = {"num_trained": 0, "num_linear_trained": 0, "largest_trained": 0}
    if config.adapter is None:
        yield Choice("adapter=lora", decoder._replace(**least), asked._replace(recompute="layers"))
    half = decoder._replace(**least, weight_bytes=decoder.weight_bytes // 2)
    yield Choice("adapter=lora --set dtype=bfloat16", half, asked._replace(recompute="layers", is_half=True))


def device_memory() -> int:
    """Bytes of the first accelerator, or else the main memory."""
    device = best_device()
    return torch.cuda.mem_get_info(device)[1] if device.type == "cuda" else main_memory()


def main_memory() -> int:
    """Bytes of this machine, or what the machine grants this process's group."""
    limits = [path.read_text().strip() for path in _LIMITS if path.is_file()]
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([physical, *(int(text) for text in limits if text.isdigit())])
