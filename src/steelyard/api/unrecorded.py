"""Results of verbs that keep no record of a run: a conversion, a report's page, and the view of one item."""

import html
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from steelyard.api.calls import Call, Folder, PathText, config_of
from steelyard.api.cases import Cases, CasesLike, HoldsCases, rows_of
from steelyard.api.outcomes import Outcome
from steelyard.api.wording import python_words
from steelyard.core.errors import EvidenceError
from steelyard.core.text import number_of
from steelyard.core.types import JsonObject
from steelyard.curation.conversion import Conversion
from steelyard.evaluation.recognition import OWN_KIND
from steelyard.io.rows import read_rows, write_rows
from steelyard.io.terminal_text import plain
from steelyard.report.item_page import ItemPage, page_lines, page_record
from steelyard.stages.convert import Config, convert, move_format_settings

_WIDTH = 100


class Converted:
    """The result of a conversion: its counts, and what was written as cases or as rows."""

    __slots__ = ("_folder", "counts", "path")

    def __init__(self, counts: Conversion, path: Path, folder: Folder | None) -> None:
        self.counts, self.path, self._folder = counts, path, folder

    @property
    def cases(self) -> Cases:
        """The cases. Raises EvidenceError if another format was written."""
        if self.counts.to_kind != OWN_KIND:
            raise EvidenceError(f"the format {self.counts.to_kind} was written, not cases", do="read .rows")
        return Cases.of_file(self.path, owner=self._folder)

    def __cases__(self) -> Cases:
        return self.cases

    @property
    def rows(self) -> list[JsonObject]:
        """The rows as they were written."""
        return [row.value for row in read_rows(self.path)]

    @property
    def lost(self) -> Mapping[str, int]:
        """Parts that the format cannot represent, with their numbers."""
        return self.counts.lost

    def __repr__(self) -> str:
        counts = self.counts
        lost = "".join(f", lost {number:,} {name}" for name, number in counts.lost.items())
        kinds = f"{counts.from_kind} to {counts.to_kind}"
        pairs = "" if counts.translations is None else f", {number_of(counts.num_written, 'pair')} of translations"
        numbers = f"{number_of(counts.num_rows, 'row')}, {number_of(counts.num_cases, 'case')}"
        return f"Converted({kinds}: {numbers}{pairs}{lost})"


def convert_source(
    source: CasesLike, out: PathText | None, settings: Mapping[str, object], *, force: bool
) -> Converted:
    """Convert a file or values in memory. Settings that name columns are those of the format `columns`."""
    with Call("convert", out) as call:
        values = {name: value for name, value in settings.items() if value is not None}
        move_format_settings({}, values)
        config = config_of(Config, values, where="convert")
        if isinstance(source, str | PathLike):
            read = Path(source)
        elif isinstance(source, Cases | HoldsCases):
            read = call.file(source)
        else:
            rows = rows_of(source)
            read = call.write("rows", ".jsonl", lambda path: write_rows(path, rows))
        if out is not None:
            return Converted(convert(read, Path(out), config, force=force), Path(out), None)
        path = call.folder.path / "converted.jsonl"
        return Converted(convert(read, path, config, force=force), path, call.folder)


def target_of(target: CasesLike | Outcome[Any], call: Call) -> Path:
    """Return the file or folder in which an item is looked up."""
    return target.folder if isinstance(target, Outcome) else call.file(target)


class ItemView:
    """The view of one item, as the verb `inspect` prints it."""

    __slots__ = ("item",)

    def __init__(self, item: ItemPage) -> None:
        self.item = item

    def to_dict(self) -> JsonObject:
        """Return the view as a dictionary, as ``--json`` prints it."""
        return page_record(self.item)

    def __str__(self) -> str:
        return "\n".join(map(plain, page_lines(self.item, _WIDTH, wording=python_words({}))))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre dir="auto">{html.escape(str(self))}</pre>'
