import ctypes
import os
import subprocess
import sys

import pytest

from steelyard.networks.devices import Heap, keep_few_kernels

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
