"""Batch files in OpenAI's form: requests as JSON Lines, split by number and size, and their results, read strictly.

A file of requests is written under a hidden name. Its requests are marked in the ledger, and only then it gets its
name: a file that a user can send has marks. Written from OpenAI's guide to its Batch API and vLLM's
``entrypoints/openai/run_batch.py``, whose results lack a body where a request failed.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from steelyard.core.checks import content_id
from steelyard.core.errors import ConfigError, FileError, OutputError, Place, RecordError
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import JsonObject, Record
from steelyard.io.atomic import move_into_place, only_writer
from steelyard.io.batch_marks import BatchMarks
from steelyard.io.hashing import file_hash
from steelyard.io.json_text import decode_json
from steelyard.io.lines import read_lines
from steelyard.io.progress import log

RESULT_SUFFIX = ".jsonl"
_PACKED = (".gz", ".zip", ".zst", ".bz2", ".xz")
_SLUG = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_SLUG = 40
_RESULT = '{"custom_id": "…", "response": {"status_code": 200, "body": {…}}, "error": null}'


class BatchLimits(NamedTuple):
    """The most requests and bytes of one file. Defaults: OpenAI's."""

    num_requests: int = 50_000
    num_bytes: int = 200_000_000


class BatchFile(NamedTuple):
    """A file of requests that has no name yet: its name to be, the hash of its bytes, and the ids of its requests."""

    name: str
    digest: str
    requests: Sequence[str]


class RequestResult(Record, frozen=True, kw_only=True):
    """One line of a result file. ``status`` is null where no response came; ``error`` says why then.

    ``body`` is the decoded response: a completion, or the server's words on an error.
    """

    file: str
    line: int | None
    request: str
    digest: str
    status: int | None = None
    body: Any = None
    error: str = ""

    @property
    def place(self) -> Place:
        """The line of the file."""
        return Place(self.file, self.line)


class _BatchResponse(msgspec.Struct):
    status_code: int
    body: Any = None


class _Line(msgspec.Struct):
    custom_id: str
    response: _BatchResponse | None = None
    error: Any = None


class BatchWriter:
    """Writes the requests to one model, to as many files as their number and size take. ``first`` numbers the files."""

    def __init__(self, folder: Path, model: str, *, first: int, limits: BatchLimits) -> None:
        self.folder, self.limits = folder, limits
        self.files: list[BatchFile] = []
        self._slug = _SLUG.sub("-", model).strip("-.")[:_LONGEST_SLUG] or "model"
        self._next = first
        self._stream: IO[bytes] | None = None
        self._ids: list[str] = []
        self._hash = sha256()
        self._num_bytes = 0

    def add(self, request: str, url: str, body: JsonObject) -> None:
        """Write a request. Raises ConfigError for one that is larger than a file may be."""
        line = _encoded({"custom_id": request, "method": "POST", "url": url, "body": body})
        if len(line) > self.limits.num_bytes:
            problem = f"one request has {len(line):,} bytes; a batch file has at most {self.limits.num_bytes:,}"
            do = Advice("leave out the longest responses, or ask without ", Remedy("batch"))
            raise ConfigError(problem, where=self._slug, do=do)
        is_full = len(self._ids) >= self.limits.num_requests or self._num_bytes + len(line) > self.limits.num_bytes
        if self._stream is not None and is_full:
            self.close()
        if self._stream is None:
            self._stream = _part(self.folder, self._name()).open("wb")
        self._stream.write(line)
        self._hash.update(line)
        self._ids.append(request)
        self._num_bytes += len(line)

    def close(self) -> None:
        """End the current file, whose bytes are on the disk when this returns."""
        if self._stream is None:
            return
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        self.files.append(BatchFile(self._name(), self._hash.hexdigest(), self._ids))
        self._next += 1
        self._stream, self._ids, self._hash, self._num_bytes = None, [], sha256(), 0

    def abandon(self) -> None:
        """Close the stream of an unfinished file, which `tidy_batches` removes."""
        if self._stream is not None:
            self._stream.close()

    def _name(self) -> str:
        return f"batch-{self._next:04}-{self._slug}{RESULT_SUFFIX}"


@contextmanager
def batch_folder(folder: Path) -> Iterator[None]:
    """Lock a folder of batch files. Raises OutputError where it cannot be written, or another run writes there."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(
            Advice(Remedy("batch"), " names a file"), where=str(folder), allowed="a folder for batch files"
        )
    try:
        lock = only_writer(folder)
        lock.__enter__()
    except OSError as error:
        problem = f"this folder cannot be written ({error.strerror})"
        raise OutputError(
            problem, where=str(folder), do=Advice("change its permissions, or name another ", Remedy("batch"))
        ) from error
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


def tidy_batches(folder: Path, marks: BatchMarks) -> None:
    """Name the files whose requests are marked, and remove those of a run that ended before it marked them."""
    names, waiting = marks.names(), {batch.name for batch in marks.waiting()}
    for part in sorted(folder.glob(".batch-*.part")):
        name = part.name.removeprefix(".").removesuffix(".part")
        is_marked = name in waiting and not (folder / name).exists() and file_hash(part) == names[name]
        if is_marked:
            move_into_place(part, folder / name)
        else:
            part.unlink()
    _flush_names(folder)


def check_unchanged(folder: Path, marks: BatchMarks) -> None:
    """Raise FileError for a file that waits and was changed since it was written; one that was sent may be gone."""
    names = marks.names()
    for name in (batch.name for batch in marks.waiting()):
        if (folder / name).is_file() and file_hash(folder / name) != names[name]:
            released = Remedy("release_batch", "all")
            do = Advice("put the file back as it was written, or say ", released, " to ask its requests again")
            raise FileError("the batch file was changed since it was written", where=str(folder / name), do=do)


def name_batch(folder: Path, name: str) -> None:
    """Give a file of requests its name; its requests are marked before."""
    move_into_place(_part(folder, name), folder / name)
    _flush_names(folder)


def result_files(folder: Path, marks: BatchMarks) -> Iterator[tuple[Path, str]]:
    """Yield the files of results that were not read before, with the hashes of their bytes.

    Every file that ends in ``.jsonl`` and that this run did not write has results. Raises FileError for a packed one.
    """
    written = marks.names().keys()
    unread: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in written:
            continue
        if path.suffix in _PACKED:
            raise FileError("results are read from text, not from a packed file", where=str(path), do="unpack it")
        if path.suffix != RESULT_SUFFIX or path.is_dir():
            unread.append(path.name)
            continue
        digest = file_hash(path)
        if not marks.knows_file(digest):
            yield path, digest
    if unread:
        log(f"{folder}: not read, since results end in {RESULT_SUFFIX}: {', '.join(unread)}")


def read_results(path: Path) -> Iterator[RequestResult]:
    """Yield the results of a file. Raises FileError or RecordError with the line that is none."""
    for place, line in read_lines(path):
        try:
            row = decode_json(line, place, JsonObject)
            read = msgspec.convert(row, _Line)
        except msgspec.ValidationError as error:
            do = "download the whole file again"
            raise RecordError(f"not a result of a batch ({error})", where=place, allowed=_RESULT, do=do) from error
        if "method" in row and "response" not in row:
            problem = "this is a file of requests that this run did not write"
            raise RecordError(
                problem,
                where=place,
                do=Advice("name another ", Remedy("batch"), ", or move the file out of the folder"),
            )
        yield _result(read, row, place)


def _result(read: _Line, row: JsonObject, place: Place) -> RequestResult:
    """Return the result of a line. Raises RecordError where it has neither a response nor an error, or both."""
    error = _error_text(read.error)
    result = RequestResult(
        file=place.file, line=place.line, request=read.custom_id, digest=content_id(row), error=error
    )
    if read.response is None:
        if not error:
            raise RecordError("a result with neither a response nor an error", where=place, allowed=_RESULT)
        return result
    status, body = read.response.status_code, read.response.body
    is_answer = 200 <= status < 300
    if is_answer and error:
        raise RecordError("a result with both an answer and an error", where=place, allowed=_RESULT)
    if is_answer and not isinstance(body, dict):
        raise RecordError(f"a response of status {status} without a body", where=place, allowed=_RESULT)
    # vLLM's failures have a status, and their words under `error`.
    return msgspec.structs.replace(result, status=status, body=read.error if body is None else body)


def _error_text(error: Any) -> str:
    """Return ``code: message`` of an error, any other one as JSON; empty for none."""
    if not error or (isinstance(error, dict) and all(value is None for value in error.values())):
        return ""
    if isinstance(error, dict) and error.get("code") and error.get("message"):
        return f"{error['code']}: {error['message']}"
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)


def _encoded(row: JsonObject) -> bytes:
    try:
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can write
        return json.dumps(row).encode() + b"\n"


def _part(folder: Path, name: str) -> Path:
    return folder / f".{name}.part"


def _flush_names(folder: Path) -> None:
    """Write the names of a folder to the disk, where its file system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
