"""Files that people send: a case file, read and checked as a whole before anything is stored.

Errors name the file as the sender knows it, with the line, and not the place where it lies for a moment here.
"""

import getpass
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from steelyard.core.errors import Place, UserError
from steelyard.core.remedies import Advice, Command
from steelyard.core.types import Case
from steelyard.io.atomic import part_folder, sweep_parts
from steelyard.io.cases import CASE_SUFFIXES, read_placed_cases
from steelyard.io.compression import compression_of
from steelyard.io.encodings import EncodingError
from steelyard.workbench.pipeline.case_import import CasePlaces
from steelyard.workbench.storage.refusals import RefusedError

_BLOCK = 2**20
_CONVERTED = "upload the case file that steelyard convert makes of it"


def sweep_uploads() -> None:
    """Remove what a server that was killed has left of uploads."""
    with suppress(OSError):
        sweep_parts(_place())


def _place() -> Path:
    return Path(tempfile.gettempdir()) / f"steelyard-upload-{getpass.getuser()}"


class UploadedCases(NamedTuple):
    """The cases of a file, and by their keys the places in it."""

    cases: list[Case]
    places: CasePlaces


def read_upload(file: BinaryIO, name: str) -> UploadedCases:
    """Return the cases of a file that was sent under a name, such as ``cases.jsonl``.

    Raises RecordError and FileError with that name and the line, and FileError for an ending that is not a case file's.
    """
    shown = name.replace("\\", "/").rpartition("/")[2][-200:] or "cases.jsonl"
    suffix = next((suffix for suffix in CASE_SUFFIXES if shown.lower().endswith(suffix)), None)
    if suffix is None:
        raise RefusedError(
            "is not a case file by its ending",
            words="file ending",
            values={"file": shown},
            where=shown,
            allowed=", ".join(CASE_SUFFIXES),
            do=_CONVERTED,
        )
    with part_folder(_place()) as folder:
        path = folder / f"cases{suffix}"
        with path.open("wb") as copy:
            while block := file.read(_BLOCK):
                copy.write(block)
        # The limit of a request says nothing of what an archive holds.
        if (kind := compression_of(path)) is not None:
            problem, do = f"is compressed ({kind.name})", "unpack it, and upload the result"
            raise RefusedError(problem, words="compressed file", values={"file": shown}, where=shown, do=do)
        try:
            placed = list(read_placed_cases(path))
        except UserError as error:
            raise _renamed(error, str(path), shown) from None
    return UploadedCases([case for _, case in placed], {case.key: place._replace(file=shown) for place, case in placed})


def _renamed(error: UserError, path: str, name: str) -> UserError:
    where = error.where
    if isinstance(where, Place):
        where = where._replace(file=where.file.replace(path, name))
    elif where is not None:
        where = where.replace(path, name)
    # A remedy may also name a file to write beside it.
    folder = f"{Path(path).parent}/"
    texts = (error.problem, error.allowed, _upload_remedy(error))
    problem, allowed, do = (text and text.replace(path, name).replace(folder, "") for text in texts)
    return type(error)(problem or "", where=where, allowed=allowed, do=do)


def _upload_remedy(error: UserError) -> str | None:
    """Return help for uploads: a page takes no commands and has no setting for an encoding."""
    if isinstance(error, EncodingError):
        likely = f", here perhaps from {error.encoding}" if error.encoding else ""
        return f"save the file as UTF-8{likely}, and upload it again"
    verbs = {part.verb for part in error.do.parts if isinstance(part, Command)} if isinstance(error.do, Advice) else ()
    if "convert" in verbs:
        return _CONVERTED
    return "give each case its own id, and upload the file again" if "merge" in verbs else error.do
