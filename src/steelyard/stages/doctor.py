"""The verb `doctor`: what this installation has and lacks, and what to do about it. Changes nothing."""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

_GROUPS = {
    "train": ("torch", "transformers", "safetensors", "jaxtyping"),
    "report": ("altair", "jinja2", "vl_convert"),
}
_DISTRIBUTIONS = {"vl_convert": "vl-convert-python"}
_FONT_LANGUAGES = {"zh-cn": "Chinese", "ja": "Japanese", "ar": "Arabic", "he": "Hebrew", "hi": "Hindi"}
_MIN_FREE_GIB = 5


class Check(NamedTuple):
    """One thing looked at. ``is_fine`` is null where there is nothing to judge, only to know."""

    name: str
    is_fine: bool | None
    found: str
    do: str | None = None


def doctor(folder: Path) -> tuple[Check, ...]:
    """Every check, in a fixed order; ``folder`` is where results would go."""
    return (
        *_interpreter(),
        *_packages(),
        _accelerator(),
        *_fonts(),
        _database_drivers(),
        _disk(folder),
    )


def _interpreter() -> Iterator[Check]:
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    yield Check("python", sys.version_info >= (3, 11), found, "install Python 3.11 or newer")
    yield Check("steelyard", None, version("steelyard"))


def _packages() -> Iterator[Check]:
    for group, modules in _GROUPS.items():
        missing = [name for name in modules if importlib.util.find_spec(name) is None]
        present = [f"{name} {_version(name)}" for name in modules if name not in missing]
        found = ", ".join(present) + (f"; missing: {', '.join(missing)}" if missing else "")
        yield Check(f"group {group}", not missing, found, f"pip install 'steelyard[{group}]'")


def _version(module: str) -> str:
    try:
        return version(_DISTRIBUTIONS.get(module, module))
    except PackageNotFoundError:
        return "(unknown version)"


def _accelerator() -> Check:
    if importlib.util.find_spec("torch") is None:
        return Check("accelerator", None, "unknown: torch is not installed")
    import torch

    if not torch.cuda.is_available():
        return Check("accelerator", None, "none: training and scoring use the CPU")
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return Check("accelerator", is_fine=True, found=", ".join(names))


def _fonts() -> Iterator[Check]:
    """Reports use the reader's fonts; these matter where pages are printed or photographed on this machine."""
    lister = shutil.which("fc-list")
    if lister is None:
        yield Check("fonts", None, "unknown: fontconfig is not installed")
        return
    without = [
        name
        for language, name in _FONT_LANGUAGES.items()
        if not subprocess.run([lister, f":lang={language}"], capture_output=True, check=False).stdout.strip()
    ]
    found = "all of " + ", ".join(_FONT_LANGUAGES.values()) if not without else f"none for {', '.join(without)}"
    yield Check("fonts", not without, found, "install fonts, for example fonts-noto-cjk and fonts-noto-core")


def _database_drivers() -> Check:
    import sqlite3

    found = f"SQLite {sqlite3.sqlite_version}"
    found += f", psycopg {_version('psycopg')}" if importlib.util.find_spec("psycopg") else "; no driver for Postgres"
    return Check("databases", is_fine=True, found=found)


def _disk(folder: Path) -> Check:
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    free = shutil.disk_usage(existing).free / 2**30
    return Check("disk", free >= _MIN_FREE_GIB, f"{free:.0f} GiB free", f"free {_MIN_FREE_GIB} GiB")
