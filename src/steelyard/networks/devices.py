"""Where networks run: the device, the processes that share one network, memory, and arithmetic in bfloat16.

A `World` is passed to all that need it. `LOCAL` is the world of one process, in which every exchange returns the value
of this process. `steelyard.training.distributed.process_group` makes larger ones.
"""

import ctypes
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import MethodType
from typing import Any, Literal, NamedTuple, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

Value = TypeVar("Value")
SHARE_USED = 0.9
"""The share of a device's memory that a run may use; the rest is for the runtime and for fragmentation."""
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_KERNELS_KEPT = "128"
FEWEST_TOKENS, _MOST_TOKENS = 8192, 32_768
_BYTES_A_TOKEN = 2_400_000
"""The memory of a GPU for each token of a pass: 80 GB give the most."""
_SECONDS_APART = 1.0
_MMAP_THRESHOLD, _LARGE = -3, 2**20
"""M_MMAP_THRESHOLD of mallopt(3), and the size in bytes from which a tensor gets pages to itself."""


class World(NamedTuple):
    """The rank of this process, counted from 0, and the number of processes.

    All processes must call each exchanging method at the same place.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """True for the process that writes files and messages."""
        return self.rank == 0

    @property
    def is_alone(self) -> bool:
        """True for the only process."""
        return self.size == 1

    def all_sum(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each value over all processes, in float64."""
        return self._all_reduce(values, torch.float64, dist.ReduceOp.SUM)

    def all_max(self, values: Sequence[int]) -> list[int]:
        """Return the largest of each value over all processes."""
        return [int(value) for value in self._all_reduce(values, torch.int64, dist.ReduceOp.MAX)]

    def broadcast(self, value: Value) -> Value:
        """Return the first process's value on every process."""
        if self.is_alone:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0)
        return values[0]

    def all_gather(self, value: Value) -> list[Value]:
        """Return the value of each process, in the order of their ranks."""
        if self.is_alone:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def _all_reduce(self, values: Sequence[float], dtype: torch.dtype, operation: Any) -> list[Any]:
        if self.is_alone:
            return list(values)
        # On the CPU, hence through gloo: float64 sums for any device of the network.
        tensor = torch.tensor(values, dtype=dtype)
        dist.all_reduce(tensor, operation)
        return tensor.tolist()


LOCAL = World()


def best_device() -> torch.device:
    """Return the first accelerator, or the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def start_device(world: World) -> None:
    """Start a GPU and its products, which takes seconds in a new process; do nothing on a CPU.

    Of many processes each has its own device, which a thread beside the main one does not know: nothing is started.
    """
    if best_device().type == "cuda" and world.is_alone:
        ones = torch.ones(64, 64, device=best_device())
        (ones @ ones).sum().item()


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor on a device. A GPU goes on with its work meanwhile: other copies wait until it is done."""
    if tensor.device.type == "cpu" and device.type == "cuda" and torch.cuda.is_available():
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def device_memory() -> int:
    """Return the bytes of the first accelerator, or else of main memory."""
    device = best_device()
    return torch.cuda.mem_get_info(device)[1] if device.type == "cuda" else main_memory()


def default_tokens(device: torch.device) -> int:
    """Return the limit of a pass in tokens where none is set: 8,192, and on a GPU up to 32,768 by its memory.

    Measured on an H200 in training (0.5 B weights): 32,768 tokens take half the time of four times 8,192.
    """
    if device.type != "cuda":
        return FEWEST_TOKENS
    tokens = torch.cuda.get_device_properties(device).total_memory // _BYTES_A_TOKEN
    return max(FEWEST_TOKENS, min(_MOST_TOKENS, 1 << (tokens.bit_length() - 1)))


def default_number_type(device: torch.device) -> Literal["float32", "bfloat16"]:
    """Return bfloat16 for a GPU that computes it, where float32 takes many times as long, and float32 otherwise."""
    is_fast = device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)
    return "bfloat16" if is_fast else "float32"


def main_memory() -> int:
    """Return the bytes of this machine's memory, or the limit of this process's control group."""
    limits = [path.read_text().strip() for path in _LIMITS if path.is_file()]
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([physical, *(int(text) for text in limits if text.isdigit())])


def fits(num_bytes: int, memory: int) -> bool:
    """Return whether a run of ``num_bytes`` leaves the device the share that it needs for itself."""
    return num_bytes <= SHARE_USED * memory


def keep_few_kernels() -> None:
    """Let oneDNN cache 128 compiled kernels, one for each shape and up to 4 MB each: its 1,024 take gigabytes.

    Call it before the first matrix product. A value that the user has set stays.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", _KERNELS_KEPT)


class Heap:
    """The C library's heap, which fragments and keeps freed memory when tensors vary in size."""

    def __init__(self) -> None:
        self._last = float("-inf")
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None

    def trim(self) -> None:
        """Return free pages to the system, at most once a second; do nothing where the C library cannot."""
        now = time.monotonic()
        if self._trim is not None and now - self._last >= _SECONDS_APART:
            self._trim(0)
            self._last = now


def map_large_tensors() -> bool:
    """Let the C library map large tensors to separate pages, against fragmentation; false where it cannot."""
    try:
        # Neither macOS nor musl has mallopt.
        return bool(ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE))
    except AttributeError:
        return False


def has_slow_bfloat16(device: torch.device) -> bool:
    """Return whether PyTorch computes bfloat16 products in plain loops: on a CPU for which oneDNN has no kernels.

    Measured on a CPU with AVX2 alone: these loops take 8 times as long as products in float32.
    """
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    # A private operation: PyTorch has no public one that answers this. A version without it computes as it is asked to.
    is_supported: Any = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return is_supported is not None and not is_supported()


def widen_products(network: nn.Module) -> None:
    """Let linear layers compute bfloat16 products on a CPU in float32 and round the result, from now on.

    That is what a bfloat16 product is, but for the order of its sum. Other number types and devices are unaffected.
    """
    for module in network.modules():
        # A method of the instance: the layer stays a plain `nn.Linear` for adapters, and recomputed layers keep it.
        if isinstance(module, nn.Linear) and "forward" not in vars(module):
            module.forward = MethodType(_widened_linear, module)


def _widened_linear(layer: nn.Linear, inputs: Tensor) -> Tensor:
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else inputs.dtype
    if inputs.device.type != "cpu" or dtype != torch.bfloat16:
        return nn.functional.linear(inputs, layer.weight, layer.bias)
    with torch.autocast("cpu", enabled=False):
        # Operands are rounded to bfloat16 first, as autocast does: only the order of the sum may differ.
        bias = None if layer.bias is None else layer.bias.to(dtype)
        return _WideProduct.apply(inputs.to(dtype), layer.weight.to(dtype), bias)


class _WideProduct(torch.autograd.Function):
    """A bfloat16 linear map and its gradients by float32 products; it saves its inputs in bfloat16, not the copies."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        wide_bias = None if bias is None else bias.float()
        return nn.functional.linear(inputs.float(), weight.float(), wide_bias).bfloat16()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        (inputs, weight), wide = ctx.saved_tensors, gradients[0].float()
        rows = wide.flatten(0, -2)
        needs_input, needs_weight, needs_bias = ctx.needs_input_grad
        return (
            (wide @ weight.float()).bfloat16() if needs_input else None,
            (rows.T @ inputs.flatten(0, -2).float()).bfloat16() if needs_weight else None,
            rows.sum(0).bfloat16() if needs_bias else None,
        )
