import importlib.util
import io
import os
import shutil
import subprocess
import sys
from collections import namedtuple

import pytest
import torch

from steelyard.stages import doctor as module
from steelyard.stages.doctor import doctor

GIB_IN_KIB = 2**20


def by_name(folder):
    return {check.name: check for check in doctor(folder)}


def test_every_lack_says_what_to_do(tmp_path):
    checks = by_name(tmp_path / "not" / "yet")
    assert list(checks) == [
        "python",
        "steelyard",
        "group train",
        "group report",
        "group multilingual",
        "accelerator",
        "threads",
        "bfloat16",
        "memory",
        "terminal",
        "fonts",
        "databases",
        "disk",
    ]
    assert checks["python"].is_fine
    assert checks["group train"].is_fine
    assert all(check.do for check in checks.values() if check.is_fine is False)


def test_a_missing_package_a_full_disk_and_missing_fonts_are_named(tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else found(name))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: namedtuple("usage", "free")(2**30))
    monkeypatch.setattr(shutil, "which", lambda _: "fc-list")
    empty = namedtuple("done", "stdout")(b"")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: empty)
    checks = by_name(tmp_path)
    assert "missing: torch" in checks["group train"].result
    assert checks["group train"].do == "pip install 'steelyard[train]'"
    assert checks["accelerator"].is_fine is None
    assert checks["fonts"].result == "none for Chinese, Japanese, Arabic, Hebrew, Hindi"
    assert (checks["disk"].is_fine, checks["disk"].result) == (False, "1 GiB free")


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Files of a system as Linux writes them: 16 GiB in all, 6 of them to be had."""
    (tmp_path / "meminfo").write_text(
        f"MemTotal: {16 * GIB_IN_KIB} kB\nMemFree: 1 kB\nMemAvailable: {6 * GIB_IN_KIB} kB\n", encoding="ascii"
    )
    monkeypatch.setattr(module, "_MEMORY_FILES", (tmp_path / "meminfo", tmp_path))
    monkeypatch.setattr(module, "_PROCESSOR_FILE", tmp_path / "cpuinfo")
    return tmp_path


def test_memory_is_the_machine_s_or_the_container_s(system):
    assert by_name(system)["memory"][1:3] == (True, "6.0 of 16.0 GiB available")
    (system / "memory.max").write_text("max\n", encoding="ascii")
    (system / "memory.current").write_text(f"{2**30}\n", encoding="ascii")
    assert by_name(system)["memory"].result == "6.0 of 16.0 GiB available"
    (system / "memory.max").write_text(f"{4 * 2**30}\n", encoding="ascii")
    assert by_name(system)["memory"] == ("memory", False, "3.0 of 4.0 GiB available", "free 4 GiB for the demo")
    (system / "meminfo").unlink()
    assert by_name(system)["memory"].is_fine is None


def test_bfloat16_is_read_from_the_processor(system):
    assert by_name(system)["bfloat16"].result == "unknown on this processor"
    (system / "cpuinfo").write_text("flags\t\t: sse avx512_bf16 avx\n", encoding="ascii")
    assert by_name(system)["bfloat16"].result == "on the CPU"
    (system / "cpuinfo").write_text("flags\t\t: sse avx512_bf16_not avx\n", encoding="ascii")
    assert by_name(system)["bfloat16"].result == "not by this CPU: keep dtype=float32"


def test_more_threads_than_cores_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    assert by_name(tmp_path)["threads"] == ("threads", False, "8 for torch, on 2 cores", "set OMP_NUM_THREADS=2")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert by_name(tmp_path)["threads"].is_fine is True


def test_a_gpu_is_named_with_its_memory_and_whether_it_has_bfloat16(tmp_path, monkeypatch):
    card = namedtuple("card", "name total_memory")("Card A", 80 * 2**30)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: card)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *, including_emulation: including_emulation)
    checks = by_name(tmp_path)
    assert checks["accelerator"].result == "Card A (80 GiB), Card A (80 GiB)"
    assert checks["bfloat16"].result == "not by this GPU: keep dtype=float32"


@pytest.mark.parametrize(
    ("encoding", "is_fine"), [("utf-8", True), ("gb18030", True), ("ascii", False), ("latin-1", False)]
)
def test_a_terminal_without_chinese_is_named(tmp_path, monkeypatch, encoding, is_fine):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    check = by_name(tmp_path)["terminal"]
    assert check.is_fine is is_fine
    assert check.result.startswith(encoding)
