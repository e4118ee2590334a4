"""Lineage: the record of a single file, and the data sets of the Hub that a file's rows come from.

A stage writes ``run.json`` into its folder. A verb that writes one file has no folder: its record is
``FILE.run/run.json`` beside the file, so that the file can be moved, read and replaced alone. A record counts only for
the content whose hash it has. Each run carries the names of the data sets of its cases, so that one look at the folder
of an input tells them, however long the chain is.
"""

import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import msgspec

from steelyard.core.errors import ConfigError

RECORD_SUFFIX = ".run"
_RECORD_NAME = "run.json"
_NAME = re.compile(
    r"(?:[A-Za-z0-9_](?:[\w.-]{0,94}[A-Za-z0-9_])?/)?[A-Za-z0-9_](?:[\w.-]{0,94}[A-Za-z0-9_])?", re.ASCII
)
_CACHED = "datasets--"
_SNAPSHOTS = "snapshots"


class _Lineage(msgspec.Struct, frozen=True):
    outputs: dict[str, str] = {}
    datasets: tuple[str, ...] = ()


def record_folder(file: Path) -> Path:
    """Return the folder beside a file that holds its record: ``cases.jsonl.run`` of ``cases.jsonl``."""
    return file.with_name(f"{file.name}{RECORD_SUFFIX}")


def is_dataset_name(name: str) -> bool:
    """Return whether the Hub accepts the name of a data set: OWNER/NAME, or the NAME of a canonical one."""
    return bool(_NAME.fullmatch(name)) and not any(part in name for part in ("--", "..")) and not name.endswith(".git")


def check_dataset_name(name: str | None, *, where: str) -> None:
    """Raise ConfigError for a name that the Hub would refuse; null passes."""
    if name is not None and not is_dataset_name(name):
        allowed = (
            "OWNER/NAME of the Hugging Face Hub, such as allenai/reward-bench, or the name of a canonical data set"
        )
        raise ConfigError(f"{name!r} is not the name of a data set", where=where, allowed=allowed)


def source_datasets(files: Iterable[tuple[Path, str]]) -> tuple[str, ...]:
    """Return the data sets of files with these SHA-256 hashes, sorted; none for a file of unknown origin.

    They are known from the record of the run that wrote a file, as long as the file is unchanged, and from the path of
    a file in the cache of the Hub's library.
    """
    names: set[str] = set()
    for file, sha256 in files:
        names.update(_recorded(file, sha256))
        # A path of the Hub's cache: …/datasets--OWNER--NAME/snapshots/REVISION/….
        parts = file.absolute().parts
        names.update(
            folder.removeprefix(_CACHED).replace("--", "/")
            for folder, inner in pairwise(parts)
            if folder.startswith(_CACHED) and inner == _SNAPSHOTS
        )
    return tuple(sorted(filter(is_dataset_name, names)))


def _recorded(file: Path, sha256: str) -> tuple[str, ...]:
    for folder in (record_folder(file), file.parent):
        try:
            lineage = msgspec.json.decode((folder / _RECORD_NAME).read_bytes(), type=_Lineage)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue  # no record, or one that the verbs which need it refuse
        if lineage.outputs.get(file.name) == sha256:
            return lineage.datasets
    return ()
