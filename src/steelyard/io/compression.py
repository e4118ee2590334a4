"""Open files unpacked: gzip, bzip2, xz and zstd are known by their first bytes, under any file name."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.core.errors import FileError

_READ_AHEAD_BYTES = 2**18
_MAX_RATIO = 500
"""Texts shrink to a tenth, repeated ones to a hundredth; an archive beyond this is made to fill a machine."""
_FREE_BYTES = 2**28
_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")


def _open_zstd(path: Path) -> Any:
    import pyarrow

    return pyarrow.CompressedInputStream(pyarrow.OSFile(str(path)), "zstd")


class Compression(NamedTuple):
    """A kind of compressed file: its first bytes, the command that prints its content, and its reader."""

    name: str
    magic: bytes
    command: str
    open: Callable[[Path], Any]


_KINDS = (
    Compression("gzip", b"\x1f\x8b", "gzip -dc", gzip.open),
    Compression("bzip2", b"BZh", "bzip2 -dc", bz2.open),
    Compression("xz", b"\xfd7zXZ", "xz -dc", lzma.open),
    Compression("zstd", b"\x28\xb5\x2f\xfd", "zstd -dc", _open_zstd),
)


def data_suffix(path: Path) -> str:
    """Return the ending that names the kind of data: ``.csv`` for ``table.csv``, ``table.csv.gz`` and ``TABLE.CSV``."""
    name = Path(path.name.lower())
    return Path(name.stem).suffix if name.suffix in _SUFFIXES else name.suffix


def compression_of(path: Path) -> Compression | None:
    """Return the compression of a file; null for a plain one."""
    with path.open("rb") as file:
        start = file.read(max(len(kind.magic) for kind in _KINDS))
    return next((kind for kind in _KINDS if start.startswith(kind.magic)), None)


def open_unpacked(path: Path) -> io.BufferedReader:
    """Open a file for reading its bytes, unpacked as they are read.

    Reading raises FileError where an archive is broken, cut off, or unpacks to over 500 times its size.
    """
    kind = compression_of(path)
    if kind is None:
        return io.BufferedReader(io.FileIO(path), _READ_AHEAD_BYTES)
    return io.BufferedReader(_Unpacked(path, kind), _READ_AHEAD_BYTES)


class _Unpacked(io.RawIOBase):
    """The content of a compressed file. The errors of the libraries become FileError."""

    def __init__(self, path: Path, kind: Compression) -> None:
        self._path, self._kind = path, kind
        self._source = kind.open(path)
        self._most_bytes = max(_FREE_BYTES, _MAX_RATIO * path.stat().st_size)
        self._num_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        place, do = str(self._path), "copy or download the file again"
        try:
            content = self._source.read(len(buffer))
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            # Of pyarrow's errors only the text tells a file that ends early from a broken one.
            is_cut = isinstance(error, EOFError) or "truncated" in str(error).lower()
            problem = "is cut off" if is_cut else f"is broken ({error})"
            raise FileError(f"the {self._kind.name} file {problem}", where=place, do=do) from error
        self._num_bytes += len(content)
        if self._num_bytes > self._most_bytes:
            problem = f"the {self._kind.name} file unpacks to over {_MAX_RATIO} times its size"
            raise FileError(
                problem, where=place, do="check where it comes from; unpack it yourself, and name the result"
            )
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._source.close()
        super().close()
