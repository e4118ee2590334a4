"""The prompts of a bench that stay, in all languages alike: `translate` and `prompts` write, `evaluate` reads them.

Items that are damaged in one language are left out in all, so that languages are compared on the same items.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from steelyard.core.errors import FileError
from steelyard.core.types import Record
from steelyard.io.atomic import atomic_write
from steelyard.io.lines import check_text, read_whole

_ENCODER = msgspec.json.Encoder()


class KeptPrompts(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The ids of the prompts that stay, and of those left out with the reasons."""

    prompts: tuple[str, ...] = msgspec.field(name="kept")
    left_out: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - msgspec copies it


def write_kept(path: Path, ids: Sequence[str], left_out: Mapping[str, Sequence[str]]) -> None:
    """Write the ids of the prompts that stay, a line each, and those that do not."""
    prompts = KeptPrompts(prompts=tuple(ids), left_out={name: tuple(reasons) for name, reasons in left_out.items()})
    with atomic_write(path) as file:
        file.write(msgspec.json.format(_ENCODER.encode(prompts), indent=1) + b"\n")


def read_kept(path: Path) -> KeptPrompts:
    """Read the prompts that stay. Raises FileError for a file of another form."""
    check_text(path)
    try:
        return msgspec.json.decode(read_whole(path), type=KeptPrompts)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FileError(
            f"not a file of prompts that stay ({error})", where=str(path), allowed='{"kept": ["id", …]}'
        ) from error
