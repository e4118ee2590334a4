"""Hashes of a model's training prompts, stored in its folder: overlap can be detected when the file is gone.

``trained_on.hashes`` is a line of JSON with counts and languages, then 16 bytes for each first user turn (its normal
form) and 16 for each prompt id, sorted. Texts cannot be recovered from it.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.core.errors import FileError
from steelyard.core.types import Case, Record
from steelyard.curation.splits import root_text
from steelyard.io.atomic import atomic_write

TRAINED_ON_FILE = "trained_on.hashes"
_HASH_BYTES = 16


class TrainedOn(NamedTuple):
    """Training prompts: hashes of first turns and of ids, and the languages ("" for a prompt without one)."""

    texts: frozenset[bytes]
    ids: frozenset[bytes]
    languages: frozenset[str]

    def has_text(self, case: Case) -> bool:
        """Return whether a training prompt has the same first turn."""
        text = root_text(case)
        return bool(text) and _hash(text) in self.texts

    def has_id(self, case: Case) -> bool:
        """Return whether a training prompt has the same id."""
        return _hash(case.prompt.id) in self.ids

    def union(self, other: "TrainedOn") -> "TrainedOn":
        """Return the prompts of both."""
        return TrainedOn(self.texts | other.texts, self.ids | other.ids, self.languages | other.languages)


class _TrainedOnHeader(Record, frozen=True, kw_only=True, omit_defaults=False):
    format: int = 1
    num_texts: int
    num_ids: int
    languages: tuple[str, ...]


def trained_on(cases: Iterable[Case]) -> TrainedOn:
    """Hash the training cases."""
    texts: set[bytes] = set()
    ids: set[bytes] = set()
    languages: set[str] = set()
    for case in cases:
        texts.add(_hash(root_text(case)))
        ids.add(_hash(case.prompt.id))
        languages.add(case.prompt.language or "")
    return TrainedOn(frozenset(texts), frozenset(ids), frozenset(languages))


def write_trained_on(path: Path, cases: Iterable[Case], *, base: Path) -> None:
    """Write the hashes into a model folder, with those of the ``base`` model's training where it has them."""
    prompts = trained_on(cases)
    before = read_trained_on(base)
    if before is not None:
        prompts = prompts.union(before)
    header = _TrainedOnHeader(
        num_texts=len(prompts.texts), num_ids=len(prompts.ids), languages=tuple(sorted(prompts.languages))
    )
    with atomic_write(path) as file:
        file.write(msgspec.json.encode(header) + b"\n")
        file.write(b"".join((*sorted(prompts.texts), *sorted(prompts.ids))))


def read_trained_on(folder: Path) -> TrainedOn | None:
    """Return the hashes in a model folder, or null without any. Raises FileError if the file is broken or cut off."""
    path = folder / TRAINED_ON_FILE
    if not path.is_file():
        return None
    first, _, hashes = path.read_bytes().partition(b"\n")
    try:
        header = msgspec.json.decode(first, type=_TrainedOnHeader)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FileError(f"not hashes of training prompts ({error})", where=str(path)) from error
    each = [hashes[at : at + _HASH_BYTES] for at in range(0, len(hashes), _HASH_BYTES)]
    if len(hashes) != _HASH_BYTES * (header.num_texts + header.num_ids):
        raise FileError("the hashes of training prompts are cut off", where=str(path), do="copy the model again")
    texts, ids = frozenset(each[: header.num_texts]), frozenset(each[header.num_texts :])
    return TrainedOn(texts, ids, frozenset(header.languages))


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).digest()
