"""A GPU without a GPU: tensors that have a CUDA device, shapes and types, and no numbers.

Every operation that mixes devices raises, and so does every one that needs a number on the host (`.item()`). Forward
passes alone: a PyTorch without CUDA ends the process when it records a gradient of such a tensor.
"""

from contextlib import contextmanager

import torch
from torch._subclasses import FakeTensorMode
from torch.overrides import TorchFunctionMode

GPU = torch.device("cuda:0")  # with an index: a PyTorch without CUDA looks for the current one otherwise


class _IndexByOperations(TorchFunctionMode):
    """Index and copy tensors by operations: brackets and `contiguous` take a guard of the device, which a PyTorch
    without CUDA lacks."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.__getitem__ and isinstance(args[0], torch.Tensor) and args[0].is_cuda:
            return _indexed(*args)
        if func is torch.Tensor.contiguous and args[0].is_cuda:
            return args[0].clone(memory_format=torch.contiguous_format)
        return func(*args, **(kwargs or {}))


def _indexed(tensor, places):
    places = places if isinstance(places, tuple) else (places,)
    if Ellipsis in [one for one in places if not isinstance(one, torch.Tensor)]:
        at = places.index(Ellipsis)
        rest = tensor.ndim - sum(one is not None for one in places) + 1
        places = (*places[:at], *[slice(None)] * rest, *places[at + 1 :])
    dimension, tensors = 0, []
    for place in places:
        if place is None:
            tensor = tensor.unsqueeze(dimension)
        elif isinstance(place, int):
            tensor = tensor.select(dimension, place)
            continue
        elif isinstance(place, slice):
            tensor = torch.ops.aten.slice(tensor, dimension, place.start, place.stop, place.step or 1)
        else:
            tensors += [None] * (dimension - len(tensors)) + [place]
        dimension += 1
    return torch.ops.aten.index(tensor, tensors) if tensors else tensor


@contextmanager
def fake_gpu():
    """Within it tensors can be made on ``GPU``."""
    with FakeTensorMode(allow_non_fake_inputs=True), _IndexByOperations():
        yield GPU


def on_fake_gpu(network, dtype):
    """The network with weights of this type and buffers on ``GPU``, in place; the head keeps its type."""
    for module in network.modules():
        for name, weight in module._parameters.items():
            if weight is not None:
                kept = weight.dtype if module is network.head else dtype
                made = torch.empty(weight.shape, dtype=kept, device=GPU)
                module._parameters[name] = torch.nn.Parameter(made, requires_grad=False)
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = torch.empty(buffer.shape, dtype=buffer.dtype, device=GPU)
    return network
