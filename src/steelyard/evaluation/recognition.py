"""Recognition of a file's format by its first rows, and the cases of a file of any known format."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

from steelyard.core.errors import EvidenceError, KindError, Place, RecordError, listed
from steelyard.core.plugins import build, kinds
from steelyard.core.protocols import Format, Row
from steelyard.core.types import Case, JsonObject
from steelyard.io.rows import read_rows
from steelyard.prompts.taxonomy import read_data

_ROWS_LOOKED_AT = 20
_NAME_COLUMNS = (
    "say --from KIND, or name the columns of your own table: --prompt-column NAME with --chosen-column NAME"
    " --rejected-column NAME, or --first-column NAME --second-column NAME --label-column NAME, or --response-column"
    " NAME --rating-column NAME; prompts without answers need --prompt-column NAME alone"
)


def recognise(*files: Path) -> str:
    """Return the one format that recognises the files' first rows. Raises KindError where none does, or several do."""
    first = [row.value for row in islice(chain.from_iterable(map(read_rows, files)), _ROWS_LOOKED_AT)]
    if not first:
        raise EvidenceError("the file has no rows", where=str(files[0]))
    readers: dict[str, Format] = {kind: build("formats", kind) for kind in kinds("formats")}
    fields = {key for row in first for key in row}
    known = {
        kind: len(fields.intersection(reader.keys))
        for kind, reader in readers.items()
        if all(reader.matches(row) for row in first)
    }
    matches = [kind for kind, number in known.items() if number == max(known.values())]
    if len(matches) == 1:
        return matches[0]
    problem = f"several formats could be this: {', '.join(matches)}" if matches else "no known format has these fields"
    names = f"fields {listed(sorted(fields))}"
    do = "; or ".join(filter(None, (_prompt_kinds(first, readers), _NAME_COLUMNS)))
    raise KindError(f"{problem} ({names})", where=str(files[0]), allowed=", ".join(readers), do=do)


def _prompt_kinds(rows: Sequence[JsonObject], readers: Mapping[str, Format]) -> str | None:
    """Return the remedy for rows of prompts beside further texts, which could be answers; null for other rows."""
    prompt_readers = {kind: reader for kind, reader in readers.items() if "responses" not in reader.supports}
    fields = {key for row in rows for key in row}
    num_known = {kind: len(fields & {*item.keys}) for kind, item in prompt_readers.items() if _reads(item, rows)}
    if not num_known:
        return None
    kinds_read = [kind for kind, number in num_known.items() if number == max(num_known.values())]
    # The format of a published set names its source and its language: it is not for any table of questions.
    is_published = {*kinds_read} <= read_data("prompt_sources.toml").keys()
    what = "the prompts of that published set" if is_published else "prompts without answers to compare"
    return f"say --from {' or --from '.join(kinds_read)} if these are {what}"


def _reads(reader: Format, rows: Sequence[JsonObject]) -> bool:
    try:
        return all(reader.read([Row(Place("a row", number), row) for number, row in enumerate(rows, 1)], Counter()))
    except RecordError:
        return False


def known_cases(path: Path) -> Iterator[Case]:
    """Yield the cases of a file whose format is recognised. Raises KindError for an unknown format."""
    try:
        kind = recognise(path)
    except KindError as error:
        do = "make a case file of it, and name that: steelyard convert IN OUT"
        raise KindError(error.problem, where=error.where, allowed=error.allowed, do=do) from error
    reader: Format = build("formats", kind)
    return reader.read(read_rows(path), Counter())
