"""Reading the per-item results of an evaluation: a line a prompt, with what became of its pairs."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from steelyard.core.errors import Place, RecordError
from steelyard.io.lines import read_batches
from steelyard.statistics.groups import Cell


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """What `evaluate` says of one prompt, as far as other stages need it. ``exact_match`` is null where not counted.

    ``kendall_tau``, ``top_1`` and ``regret`` (in tiers) are null where they are not defined; ``num_matched`` counts
    pairs of like length. ``unit``: what the prompt is drawn with, null for its id. ``own``: the bench's own columns.
    ``unscored``: the pairs without a score or verdict; ``exact_if_right`` and ``own_if_right`` are as they would be if
    all of these were right.
    """

    prompt: str
    category: str
    num_pairs: int
    num_correct: int
    num_tied: int
    exact_match: bool | None
    language: str | None = None
    subset: str | None = None
    kendall_tau: float | None = None
    top_1: float | None = None
    regret: float | None = None
    num_matched: int = 0
    num_matched_correct: int = 0
    unit: str | None = None
    own: tuple[int, ...] = ()
    unscored: tuple[tuple[str, str], ...] = ()
    exact_if_right: bool = False
    own_if_right: tuple[int, ...] = ()

    @property
    def cell(self) -> Cell:
        """The groups that the prompt belongs to."""
        return Cell(self.category, self.subset, self.language)


def read_items(folder: Path) -> Iterator[Item]:
    """The items of an evaluation's folder, in order. Raises RecordError with file and line for what is none."""
    path = folder / "items.jsonl"
    for batch in read_batches(path):
        for number, line in zip(batch.numbers, batch.lines, strict=True):
            try:
                yield msgspec.json.decode(line, type=Item)
            except msgspec.DecodeError as error:
                raise RecordError(f"not an item of an evaluation ({error})", where=Place(str(path), number)) from error
