"""Shell completion of kinds: the plug-ins of a package, and files.

Each function takes the word as far as it is typed and returns whole words. Only the names of files are read.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from steelyard.core.plugins import kinds, packages

BASELINES = ("longer", "shorter", "random", "first", "ngram")


def complete_package(incomplete: str) -> list[str]:
    """Complete a plug-in package."""
    return _beginning(incomplete, packages())


def complete_format(incomplete: str) -> list[str]:
    """Complete a data format."""
    return _beginning(incomplete, kinds("formats"))


def complete_model(incomplete: str) -> list[str]:
    """Complete a kind of reward model, or a folder."""
    return [*_beginning(incomplete, kinds("models")), *(path for path in _paths(incomplete) if path.endswith("/"))]


def complete_bench(incomplete: str) -> list[str]:
    """Complete ``KIND=``, a file, or ``KIND=FILE``."""
    kind, equals, file = incomplete.partition("=")
    if equals:
        return [f"{kind}={path}" for path in _paths(file)]
    return [*_beginning(incomplete, (f"{kind}=" for kind in kinds("benches"))), *_paths(incomplete)]


def complete_baselines(incomplete: str) -> list[str]:
    """Complete the last of the names between commas, each at most once; or ``none``."""
    *before, last = incomplete.split(",")
    left = [name for name in (*BASELINES, *(() if before else ("none",))) if name not in before]
    return [",".join([*before, name]) for name in _beginning(last, left)]


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _paths(incomplete: str) -> Iterator[str]:
    """Yield the paths that begin so; folders end with ``/``, hidden files need the dot."""
    folder, slash, start = incomplete.rpartition("/")
    room = Path(f"{folder}/") if slash else Path()
    if not room.is_dir():
        return
    for path in sorted(room.iterdir()):
        if path.name.startswith(start) and (start or not path.name.startswith(".")):
            yield f"{folder}{slash}{path.name}{'/' if path.is_dir() else ''}"
