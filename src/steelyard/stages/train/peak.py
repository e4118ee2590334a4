"""How much arithmetic a device can do: by its data sheet where we know it, else measured by a short matrix product."""

import time
from typing import NamedTuple

import torch

_KNOWN = {
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
"""Dense bfloat16 operations a second, by a part of the device's name; the more particular names stand first."""
_SIZE = {"cpu": 512, "cuda": 4096}
_TIMES = 5


class Peak(NamedTuple):
    """Operations a second, and whether they were measured here rather than told by a data sheet."""

    flops: float
    is_measured: bool


def peak_of(device: torch.device, dtype: str) -> Peak:
    """The peak of a device for numbers of a type."""
    if device.type == "cuda" and dtype == "bfloat16":
        name = torch.cuda.get_device_name(device)
        for part, flops in _KNOWN.items():
            if part in name:
                return Peak(flops, is_measured=False)
    return Peak(_measured(device, dtype), is_measured=True)


def _measured(device: torch.device, dtype: str) -> float:
    """The best of a few products: the others were held up by something."""
    size = _SIZE.get(device.type, 1024)
    draws = torch.Generator().manual_seed(0)  # leaves the draws of the training alone
    one = torch.randn(size, size, generator=draws).to(device, getattr(torch, dtype))
    fastest = float("inf")
    for _ in range(_TIMES):
        started = _now(device)
        torch.mm(one, one)
        fastest = min(fastest, _now(device) - started)
    return 2 * size**3 / fastest


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
