"""Steelyard's case files, so that a conversion can change the file type alone: JSON lines to Parquet and back."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject
from steelyard.curation.format_support import PARTS, carrying
from steelyard.io.cases import decode_case


class Cases:
    """Case files. Nothing is lost either way."""

    keys = ("format", "prompt", "responses", "judgments", "ratings", "ranking", "pairs", "meta")
    supports = carrying(*PARTS)

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has a prompt that is an object, and a list of responses."""
        return isinstance(row.get("prompt"), dict) and isinstance(row.get("responses"), list)

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield the rows as checked cases. Raises RecordError for a repeated key."""
        places: dict[tuple[str, str | None], Place] = {}
        for row in rows:
            case = decode_case(msgspec.json.encode(row.value), row.place)
            if places.setdefault(case.key, row.place) is not row.place:
                problem = f"prompt id {case.prompt.id!r} is already used at {places[case.key]}"
                raise RecordError(problem, where=row.place, allowed="ids that are unique in a language")
            yield case

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield the cases as they are."""
        for case in cases:
            yield msgspec.to_builtins(case)


KINDS = {"cases": without_settings(Cases(), __doc__)}
