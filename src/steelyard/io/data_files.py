"""The data files, or the runs, that a folder or a pattern such as ``rmb/**/*.json`` stands for, in sorted order.

A folder means every data file below it. In a pattern ``*``, ``?`` and ``[…]`` match within one name, and ``**`` matches
folders at any depth. Hidden files and folders are skipped, as are folders with results of a stage below a folder or
``**``: name them to read them. Such a folder means its ``cases.jsonl``, if it has one: what lies beside it are records
of the stage. A dataset saved to disk is one input.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from os.path import realpath
from pathlib import Path
from typing import NamedTuple

from steelyard.core.errors import ConfigError, FileError, listed
from steelyard.core.remedies import Advice, Command
from steelyard.io.cases import CASE_SUFFIXES
from steelyard.io.compression import data_suffix
from steelyard.io.progress import log
from steelyard.io.run_folder import RUN_FILE, STARTED_FILE, read_run
from steelyard.io.tables import is_saved_dataset

_ANY_DEPTH = "**"
_WILDCARDS = frozenset("*?[")
_RECORDS = (RUN_FILE, STARTED_FILE, "dataset_dict.json", "dataset_infos.json")
"""Names that end like data, but describe the data beside them."""
_CASES_OF_RUN = "cases.jsonl"


class _Search(NamedTuple):
    """A folder to search, and the pattern of the names below it, one part for each level."""

    folder: Path
    pattern: tuple[str, ...]

    def after(self, position: int) -> frozenset[int]:
        """Return the position with those reached without a name: ``**`` also matches no folder."""
        if position < len(self.pattern) and self.pattern[position] == _ANY_DEPTH:
            return self.after(position + 1) | {position}
        return frozenset({position})

    def step(self, positions: Collection[int], path: Path) -> frozenset[int]:
        """Return the positions in the pattern after the name of ``path``; none where it does not match."""
        reached = [frozenset[int]()]
        for position in positions:
            if position == len(self.pattern):
                continue
            part = self.pattern[position]
            if part == _ANY_DEPTH:
                is_result = any((path / name).is_file() for name in (RUN_FILE, STARTED_FILE))
                reached.append(frozenset() if path.name.startswith(".") or is_result else self.after(position))
            elif fnmatchcase(path.name, part) and (part.startswith(".") or not path.name.startswith(".")):
                reached.append(self.after(position + 1))
        return frozenset().union(*reached)


def expand_inputs(
    paths: Sequence[Path], suffixes: Sequence[str], *, what: str, do: str, settings: str | None = None
) -> tuple[Path, ...]:
    """Return the files that these files, folders and patterns stand for, in their order; a file is named by itself.

    ``what`` names the input in messages, ``do`` is the remedy where a folder or pattern has no file with one of the
    ``suffixes``: then it raises FileError. ``settings`` names a file of a folder that the caller reads besides. Raises
    ConfigError for a file that is named twice, also by a link.
    """
    files: dict[str, Path] = {}
    origins: dict[str, Path] = {}
    for path in paths:
        for file in _expanded(path, suffixes, do, settings):
            key = realpath(file)
            if key in files:
                same = "" if files[key] == file else f", the same file as {files[key]}"
                raise ConfigError(
                    f"the {what} is found twice: by {origins[key]} and by {path}{same}",
                    where=str(file),
                    do="name each file once: leave one of the two out, or use a narrower pattern",
                )
            files[key], origins[key] = file, path
    return tuple(files.values())


def find_case_files(*paths: Path) -> tuple[Path, ...]:
    """Return the case files that files, folders and patterns stand for (`expand_inputs`)."""
    do = Advice("check the path; `", Command("convert"), "` makes case files of other formats")
    return expand_inputs(paths, CASE_SUFFIXES, what="case file", do=do)


def case_roles(files: Sequence[Path], role: str = "cases") -> dict[str, Path]:
    """Return files by their roles in a run's record: ``cases``, or ``cases.1``, ``cases.2`` …"""
    return {role: files[0]} if len(files) == 1 else {f"{role}.{number}": path for number, path in enumerate(files, 1)}


def is_pattern(path: Path) -> bool:
    """Return whether the path has wildcards and does not exist itself."""
    return bool(_WILDCARDS.intersection(str(path))) and not path.exists()


def matching_files(path: Path, suffixes: Sequence[str]) -> tuple[Path, ...]:
    """Return the data files of a folder or pattern, without a message; none for anything else."""
    search = _search_of(path)
    return () if search is None else tuple(file for file in sorted(_matches(search)) if _is_data(file, suffixes))


def find_runs(paths: Sequence[Path], *stages: str) -> tuple[Path, ...]:
    """Return the folders of finished runs: those named, and those of ``stages`` in folders of runs and by patterns.

    Raises FileError where a folder or pattern has none.
    """
    folders: list[Path] = []
    verbs = " or ".join(f"`steelyard {stage}`" for stage in stages)
    for path in paths:
        is_folder = path.is_dir() and not any((path / name).is_file() for name in (RUN_FILE, STARTED_FILE))
        if not is_folder and not is_pattern(path):
            folders.append(path)
            continue
        runs = [folder for folder in _folders(path) if (folder / RUN_FILE).is_file()]
        chosen = [folder for folder in runs if read_run(folder).stage in stages]
        others = f"; other runs, left out: {len(runs) - len(chosen):,}" if len(chosen) < len(runs) else ""
        if not chosen:
            place = "below this folder" if is_folder else "by this pattern"
            problem = f"no finished run of {verbs} is found {place}{others}"
            raise FileError(problem, where=str(path), do=f"name folders of finished runs of {verbs}")
        log(f"{path}: runs of {' or '.join(stages)}: {len(chosen)}{others}")
        folders += chosen
    return tuple(folders)


def _folders(path: Path) -> list[Path]:
    """Return the folders below a folder, or those that a pattern matches, without hidden ones."""
    search = _search_of(path)
    assert search is not None, "a folder or a pattern"
    folders = [folder for folder in search.folder.glob("/".join(search.pattern)) if folder.is_dir()]
    parts = {folder: folder.relative_to(search.folder).parts for folder in folders}
    return sorted(folder for folder in folders if not any(part.startswith(".") for part in parts[folder]))


def _expanded(path: Path, suffixes: Sequence[str], do: str, settings: str | None) -> Sequence[Path]:
    search = _search_of(path)
    if search is None:
        return (path,)
    if (path / RUN_FILE).is_file() and (path / _CASES_OF_RUN).is_file():
        return (path / _CASES_OF_RUN,)
    try:
        matches = sorted(_matches(search))
    except PermissionError as error:
        place = str(error.filename)
        raise FileError("this folder may not be read", where=place, do="ask for the right to read it") from error
    files = [file for file in matches if _is_data(file, suffixes)]
    is_set = settings is not None and path / settings in matches
    others = [file.name for file in matches if not (_is_data(file, suffixes) or (is_set and file == path / settings))]
    if not files:
        raise FileError(_absence(path, others), where=str(path), allowed=f"names in {', '.join(suffixes)}", do=do)
    for file in files:
        if not file.exists():
            raise FileError("a link to a missing file", where=str(file), do="restore the file, or remove the link")
    left_out = f"; other files, left out: {len(others):,} ({listed(others)})" if others else ""
    with_settings = f"; settings: {settings}" if is_set else ""
    log(f"{path}: data files: {len(files):,}{with_settings}{left_out}")
    return files


def _absence(path: Path, others: Sequence[str]) -> str:
    """Describe a folder or pattern without a data file: how many other files it has, by their ending."""
    place = "below this folder" if path.is_dir() else "by this pattern"
    if not others:
        return f"no file is found {place}"
    endings = Counter(Path(name).suffix or "without ending" for name in others)
    counts = ", ".join(f"{ending} {number:,}" for ending, number in sorted(endings.items()))
    return f"no data file is found {place}; other files: {counts}"


def _search_of(path: Path) -> _Search | None:
    """Return the search that a folder or a pattern stands for; null for one input, present or not."""
    if path.is_dir():
        return None if is_saved_dataset(path) else _Search(path, (_ANY_DEPTH,))
    fixed = next((index for index, part in enumerate(path.parts) if _WILDCARDS.intersection(part)), None)
    if fixed is None or path.exists():
        return None
    return _Search(Path(*path.parts[:fixed]), path.parts[fixed:])


def _matches(search: _Search) -> Iterator[Path]:
    """Yield the files that match, each once, and datasets saved to disk."""
    files: set[str] = set()
    # A linked folder may contain itself: each is searched once for each state of the pattern.
    searched: set[tuple[str, frozenset[int]]] = set()
    waiting = deque([(search.folder, search.after(0))])
    while waiting:
        folder, positions = waiting.popleft()
        state = (realpath(folder), positions)
        if state in searched:
            continue
        searched.add(state)
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            reached = search.step(positions, path)
            if path.is_dir() and not is_saved_dataset(path):
                waiting += [(path, reached)] if reached else []
            elif len(search.pattern) in reached and (name := realpath(path)) not in files:
                files.add(name)
                yield path


def _is_data(path: Path, suffixes: Sequence[str]) -> bool:
    return path.is_dir() or (data_suffix(path) in suffixes and path.name not in _RECORDS)
