import ctypes
import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from steelyard.networks.devices import Heap, has_slow_bfloat16, keep_few_kernels, widen_products

NAME = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
# Many blocks below the size that gets pages of its own, every second one let go: holes, and no end of the heap to cut.
HOLES = """
import ctypes, sys
from pathlib import Path
from steelyard.networks.devices import Heap

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
size, number = 100_000, 2_000
blocks = [libc.malloc(size) for _ in range(number)]
for block in blocks:
    ctypes.memset(block, 1, size)
for block in blocks[::2]:
    libc.free(block)
held = resident()
heap = Heap()
heap.trim()
given = held - resident()
for block in blocks[1::4]:
    libc.free(block)
before = resident()
heap.trim()  # within the same second: nothing happens
print(given / (size * number // 2), before - resident())
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the heap of the GNU C library")
def test_holes_go_back_to_the_system_at_most_once_a_second():
    done = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True, timeout=60)
    share, second = done.stdout.split()
    assert float(share) > 0.9
    assert abs(int(second)) < 10_000_000


def test_where_the_library_cannot_nothing_happens(monkeypatch):
    asked = []
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", asked.append)
    Heap().trim()
    assert not asked  # elsewhere the C library is not even opened


def test_few_kernels_are_kept_unless_a_person_says_how_many(monkeypatch):
    monkeypatch.delenv(NAME, raising=False)
    keep_few_kernels()
    assert os.environ[NAME] == "128"
    monkeypatch.setenv(NAME, "7")
    keep_few_kernels()
    assert os.environ[NAME] == "7"


def layer(dtype, *, bias=True):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Linear(96, 40, bias=bias, dtype=dtype)


def draws(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("bias", [True, False])
def test_a_widened_bfloat16_product_and_its_gradients_are_those_of_float64_rounded_once(bias):
    network = layer(torch.bfloat16, bias=bias)
    exact = layer(torch.bfloat16, bias=bias).double()
    widen_products(network)
    inputs, upstream = draws(3, 5, 96).bfloat16().requires_grad_(), draws(3, 5, 40).bfloat16()
    wide = inputs.detach().double().requires_grad_()
    output, expected = network(inputs), exact(wide)
    output.backward(upstream)
    expected.backward(upstream.double())
    pairs = [(output, expected), (inputs.grad, wide.grad)]
    pairs += [(one.grad, other.grad) for one, other in zip(network.parameters(), exact.parameters(), strict=True)]
    for got, true in pairs:
        assert got.dtype == torch.bfloat16
        # bfloat16 has 8 significant bits: rounding once moves a number by at most 2^-8 of it.
        torch.testing.assert_close(got.double(), true, rtol=2**-7.9, atol=1e-6)


def test_under_autocast_a_widened_product_rounds_weights_inputs_and_result_to_bfloat16():
    network, half = layer(torch.float32), layer(torch.float32).bfloat16()
    widen_products(network)
    inputs = draws(7, 96)
    with torch.autocast("cpu", torch.bfloat16):
        output = network(inputs)
    expected = half.double()(inputs.bfloat16().double())
    assert output.dtype == torch.bfloat16
    torch.testing.assert_close(output.double(), expected, rtol=2**-7.9, atol=1e-6)
    output.float().sum().backward()
    assert network.weight.grad.dtype == torch.float32


def test_products_in_float32_are_not_changed_by_widening():
    network, plain, inputs = layer(torch.float32), layer(torch.float32), draws(7, 96)
    widen_products(network)
    assert torch.equal(network(inputs), plain(inputs))
    assert has_slow_bfloat16(torch.device("cuda")) is False
