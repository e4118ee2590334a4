"""Rows of one prompt joined into a case on disk: memory holds one prompt, for any order of the rows."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from steelyard.core.protocols import Format
from steelyard.core.types import Case
from steelyard.curation.evidence_rows import evidence_key, join_evidence, with_unique_ids
from steelyard.curation.format_support import has_pair_rows
from steelyard.curation.merge import MOST_ROWS, join_rows, prompt_key
from steelyard.io.atomic import part_folder
from steelyard.io.cases import encode_case
from steelyard.io.progress import track
from steelyard.io.tempfiles import LineStore, open_line_store

_decoder = msgspec.json.Decoder(Case)


@contextmanager
def row_store(
    out: Path, reader: Format, rows: Literal["joined", "apart"] | None, *, is_own: bool
) -> Iterator[LineStore | None]:
    """Open a line store beside ``out`` where rows will be joined; yield null otherwise.

    Null ``rows`` joins those of formats with several rows a prompt; case files (``is_own``) have one.
    """
    has_rows = reader.has_evidence_rows or has_pair_rows(reader.supports)
    default = "joined" if has_rows and not is_own else "apart"
    if (rows or default) == "apart":
        yield None
        return
    with part_folder(out) as folder, open_line_store(folder) as store:
        yield store


def joined_rows(
    cases: Iterable[Case], store: LineStore | None, reader: Format, warnings: Counter[str], *, name: str
) -> Iterator[Case]:
    """Yield every prompt once, in order of first appearance; without a store the cases as they are.

    Memory holds one prompt; the rows wait on disk. Progress bars show ``name``, the input.
    """
    # Two rows with ids of their own are about one prompt where both the id and the text are equal.
    by_id = "prompt ids" in reader.supports
    keys = partial(evidence_key, by_id=by_id) if reader.has_evidence_rows else prompt_key
    if store is not None:
        for place, case in enumerate(track(cases, f"reading {name}")):
            store.add(keys(case) or f"row {place}".encode(), place, encode_case(case))
        store.index()
        cases = _joined_groups(store, reader, warnings)
    if reader.has_evidence_rows:
        cases = with_unique_ids(cases, warnings)
    yield from track(cases, f"converting {name}")


def _joined_groups(store: LineStore, reader: Format, warnings: Counter[str]) -> Iterator[Case]:
    for group in store.groups():
        if reader.has_evidence_rows:
            yield join_evidence([_decoder.decode(stored.line) for stored in group], warnings)
            continue
        for start in range(0, len(group), MOST_ROWS):
            rows = [_decoder.decode(stored.line) for stored in group[start : start + MOST_ROWS]]
            yield join_rows(rows, warnings) if len(rows) > 1 else rows[0]
