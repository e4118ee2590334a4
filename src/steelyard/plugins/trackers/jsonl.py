"""A line a step in ``progress.jsonl`` beside the model, with the clock's figures, which the curve leaves out."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.io.atomic import atomic_write
from steelyard.io.run_folder import path_inside

FILE = "progress.jsonl"


class Config(BaseConfig, frozen=True):
    """``file`` is its name within the model folder."""

    file: str = FILE
    """The name of the file within the model folder."""


class JsonlTracker:
    """Appends and flushes line by line, so that the file can be followed."""

    def __init__(self, path: Path, start: int) -> None:
        kept = _lines_until(path, start)
        with atomic_write(path) as file:
            file.writelines(kept)
        self._file = path.open("ab")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """One line, with the seconds since 1970."""
        self._file.write(msgspec.json.encode({"step": step, "time": round(time.time(), 3), **values}) + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Nothing more will come."""
        self._file.close()


def build(config: Config, *, folder: Path, name: str, told: Mapping[str, Any], start: int) -> JsonlTracker:
    """The tracker of a run; what a killed run wrote after step ``start`` is taken back."""
    return JsonlTracker(path_inside(folder, config.file), start)


def _lines_until(path: Path, start: int) -> list[bytes]:
    if start == 0 or not path.is_file():
        return []
    kept = []
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            if line.endswith(b"\n") and msgspec.json.decode(line)["step"] <= start:
                kept.append(line)
        except (msgspec.DecodeError, KeyError, TypeError):
            continue  # half a line, as a kill leaves it
    return kept
