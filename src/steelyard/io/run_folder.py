"""Result folders: one run each, ``run.json`` written last; an equal run is not repeated, another not overwritten."""

import hashlib
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar, overload

import msgspec

from steelyard.core.errors import FileError, OutputError, UserError
from steelyard.core.types import Counts, Input, Meta, Record, Run
from steelyard.io.atomic import atomic_write, remove
from steelyard.io.lines import check_regular
from steelyard.io.locks import LOCK_FILE, only_writer

RUN_FILE = "run.json"
STARTED_FILE = "started.json"
_UNFINISHED = ("scores.*.part.jsonl", "checkpoint.pt")
"""What stages keep to go on after a kill; another run must not take it up."""
_PACKAGES = ("steelyard", "numpy", "torch", "transformers", "scikit-learn")


def file_hash(path: Path) -> str:
    """The SHA-256 of a file's bytes; of a folder, of its files' names and hashes.

    Raises FileError if it is absent, a pipe or device, or may not be read.
    """
    digest = hashlib.sha256()
    if path.is_dir():
        for inner in sorted(item for item in path.rglob("*") if item.exists() and not item.is_dir()):
            digest.update(f"{inner.relative_to(path)}\x1f{file_hash(inner)}\n".encode())
        return digest.hexdigest()
    if not path.exists():
        raise FileError("there is no such file", where=str(path), do="check the path")
    try:
        check_regular(path)
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    except PermissionError as error:
        raise FileError("this file may not be read", where=str(path), do="ask for the right to read it") from error
    return digest.hexdigest()


RunT = TypeVar("RunT", bound=Run[Any])


@overload
def read_run(folder: Path) -> Run[Meta]: ...
@overload
def read_run(folder: Path, kind: type[RunT]) -> RunT: ...
def read_run(folder: Path, kind: Any = Run[Meta]) -> Any:
    """Read the record of a finished run; ``kind`` (``Run[ResolveSummary]``) gives the type of its summary.

    Raises FileError if the folder has none: then the stage did not finish.
    """
    path = folder / RUN_FILE
    if not path.is_file():
        found = "this is a file" if folder.is_file() else "this folder holds no finished run"
        raise FileError(found, where=str(folder), do="name the --out folder of a stage")
    try:
        run = msgspec.json.decode(path.read_bytes(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FileError(f"not the record of a run ({error})", where=str(path)) from error
    for name in run.outputs:
        try:
            path_inside(folder, name)
        except FileError as error:
            raise FileError(
                error.problem, where=str(path), do="do not use a record that names foreign files"
            ) from error
    return run


def path_inside(folder: Path, name: str) -> Path:
    """Return ``folder / name``. Raises FileError for a name that, links resolved, is not below the folder."""
    path = folder / name
    root = folder.resolve()
    # No resolved path may be asked of a name with a NUL.
    if "\0" in name or root not in path.resolve().parents:
        raise FileError(f"the name {name!r} lies outside its folder", where=str(folder), allowed="names of files in it")
    return path


class Asked(Record, frozen=True, kw_only=True):
    """What a run was asked to do: two runs that were asked the same give the same."""

    stage: str
    config: dict[str, Any]
    seed: int | None
    inputs: dict[str, Input]

    def equals(self, other: "Asked") -> bool:
        """Whether both were asked the same of the same content; where the inputs lie does not count."""
        mine, theirs = ([(role, given.sha256) for role, given in asked.inputs.items()] for asked in (self, other))
        return (self.stage, self.config, self.seed, mine) == (other.stage, other.config, other.seed, theirs)


def asked_digest(asked: Asked) -> str:
    """What tells two runs' unfinished work apart: 12 hexadecimal digits of what they were asked, of which content."""
    inputs = [(role, given.sha256) for role, given in asked.inputs.items()]
    told = msgspec.json.encode([asked.stage, asked.config, asked.seed, inputs], order="sorted")
    return hashlib.sha256(told).hexdigest()[:12]


class Result:
    """A stage's result folder while the stage runs: what it is given, and what it will say of itself at the end."""

    def __init__(self, folder: Path, asked: Asked) -> None:
        self.folder = folder
        self.asked = asked
        self.counts = Counts()
        self.summary: Any = {}
        self.outputs: list[str] = []
        self.is_finished = False
        self.started = time.monotonic()

    def path(self, name: str) -> Path:
        """Where an output file or folder goes; it is hashed into ``run.json`` at the end."""
        if name not in self.outputs:
            self.outputs.append(name)
        return path_inside(self.folder, name)


@contextmanager
def result_folder(
    folder: Path, stage: str, *, config: Any, inputs: Mapping[str, Path], seed: int | None = None, force: bool = False
) -> Iterator[Result]:
    """The result folder of one run of a stage; ``run.json`` is written when the block ends well.

    ``inputs`` go by role (``{"cases": path}``). ``is_finished`` is true when the folder holds a run with equal inputs
    and config: nothing is to be done then. Raises OutputError when it holds another run or anything else; ``force``
    first removes what a run left there, and nothing else. After a kill the same call goes on in the same folder. While
    another process writes there, the call is refused.
    """
    if folder.exists() and not folder.is_dir():
        raise OutputError("--out names a file", where=str(folder), allowed="a folder that is new or empty")
    # Where a run is finished nothing is written; where another is under way, it is told before anything is hashed.
    is_to_write = force or not (folder / RUN_FILE).is_file()
    with only_writer(folder) if is_to_write else nullcontext():
        _check_apart(folder, inputs)
        hashed = {role: Input(path=str(path), sha256=file_hash(path)) for role, path in inputs.items()}
        asked = Asked(stage=stage, config=_as_read(config), seed=seed, inputs=hashed)
        result = Result(folder, asked)
        result.is_finished = not force and _is_finished(folder, asked)
        if result.is_finished:
            yield result
            return
        _claim(folder, asked, force=force)
        try:
            yield result
            _write_run(result)
        except BaseException as error:
            if isinstance(error, UserError):
                _give_back(folder)
            _renew_claim(folder, asked)
            raise


def _check_apart(folder: Path, inputs: Mapping[str, Path]) -> None:
    """With ``--force`` a run that reads from its own folder would remove what it is about to read."""
    for role, path in inputs.items():
        if folder.is_dir() and folder.resolve() in (path.resolve(), *path.resolve().parents):
            raise OutputError(f"--out holds the {role} that the run reads", where=str(folder), do="name another --out")


def _as_read(config: Any) -> dict[str, Any]:
    """The config as ``run.json`` gives it back: tuples as lists, so that equal configs compare equal."""
    return msgspec.json.decode(msgspec.json.encode(config))


def _is_finished(folder: Path, asked: Asked) -> bool:
    if not (folder / RUN_FILE).is_file():
        return False
    before = read_run(folder)
    if not asked.equals(_asked_of(before)):
        raise _other_run("another run", asked, _asked_of(before), folder)
    return True


def _asked_of(run: Run) -> Asked:
    return Asked(stage=run.stage, config=run.config, seed=run.seed, inputs=run.inputs)


def _other_run(what: str, asked: Asked, before: Asked, folder: Path) -> OutputError:
    told = _difference(asked, before)
    return OutputError(
        f"holds {what} ({before.stage}) with other inputs or settings{f': {told}' if told else ''}",
        where=str(folder),
        do="name another --out, or say --force to replace it",
    )


def _difference(asked: Asked, before: Asked) -> str:
    """What tells the two apart, where they are runs of one stage: settings with both values, inputs by role."""
    if asked.stage != before.stage:
        return ""
    keys = [key for key in {**asked.config, **before.config} if asked.config.get(key) != before.config.get(key)]
    told = [f"{key} {_told(before.config.get(key))} there, {_told(asked.config.get(key))} here" for key in keys]
    roles = {**asked.inputs, **before.inputs}
    told += [f"another {role}" for role in roles if _sha256(asked, role) != _sha256(before, role)]
    return "; ".join(told)


def _told(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _sha256(asked: Asked, role: str) -> str | None:
    given = asked.inputs.get(role)
    return None if given is None else given.sha256


def _claim(folder: Path, asked: Asked, *, force: bool) -> None:
    started = folder / STARTED_FILE
    if force:
        _remove_run(folder)
    elif started.is_file():
        before = _read_started(started)
        if not asked.equals(before):
            raise _other_run("an unfinished run", asked, before, folder)
    elif any(item.name != LOCK_FILE for item in folder.iterdir()):
        raise OutputError("the folder holds files of something else", where=str(folder), do="name a new --out folder")
    _sweep(folder)
    _write_started(folder, asked)


def _write_started(folder: Path, asked: Asked) -> None:
    with atomic_write(folder / STARTED_FILE) as file:
        file.write(msgspec.json.encode(asked))


def _renew_claim(folder: Path, asked: Asked) -> None:
    """Claim a folder again that was removed while the run wrote there, so that the same call finds its own files."""
    names = {item.name for item in folder.iterdir()} if folder.is_dir() else set[str]()
    if STARTED_FILE not in names and names - {LOCK_FILE}:
        _write_started(folder, asked)


def _read_started(path: Path) -> Asked:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Asked)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        do = "say --force to begin anew, or name another --out"
        raise FileError(f"not the record of an unfinished run ({error})", where=str(path), do=do) from error


def _give_back(folder: Path) -> None:
    """Leave no trace of a call that was refused before it wrote anything: the corrected call finds its place free."""
    if folder.is_dir() and {item.name for item in folder.iterdir()} <= {STARTED_FILE, LOCK_FILE}:
        (folder / STARTED_FILE).unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Remove what a killed run of the same call was writing when it was killed."""
    for pattern in (".*.part", ".saving-*"):
        for path in folder.glob(pattern):
            remove(path)


def _remove_run(folder: Path) -> None:
    outputs = list(read_run(folder).outputs) if (folder / RUN_FILE).is_file() else []
    unfinished = [path.name for pattern in _UNFINISHED for path in folder.glob(pattern)]
    for name in (RUN_FILE, STARTED_FILE, *outputs, *unfinished):
        remove(folder / name)


def _write_run(result: Result) -> None:
    asked = result.asked
    _check_outputs(result)
    run = Run(
        stage=asked.stage,
        config=asked.config,
        seed=asked.seed,
        inputs=asked.inputs,
        outputs={name: file_hash(result.folder / name) for name in sorted(result.outputs)},
        versions=installed_versions(),
        counts=result.counts,
        summary=result.summary,
        seconds=round(time.monotonic() - result.started, 3),
    )
    with atomic_write(result.folder / RUN_FILE) as file:
        file.write(msgspec.json.format(msgspec.json.encode(run), indent=2) + b"\n")
    (result.folder / STARTED_FILE).unlink(missing_ok=True)


def _check_outputs(result: Result) -> None:
    """Raises OutputError for an output that somebody else removed: outputs made after that alone are no result."""
    for name in sorted(result.outputs):
        if not (result.folder / name).exists():
            raise OutputError(
                f"{name} was removed while the run was writing here",
                where=str(result.folder),
                do="run the same command again, and leave the folder alone until it has ended",
            )


def installed_versions() -> dict[str, str]:
    """The versions of Python and of the packages that numbers depend on, as far as they are installed."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
