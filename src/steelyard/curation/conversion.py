"""Cases while they are converted: their columns and contents counted for the summary, defaults and evidence chosen."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Literal, NamedTuple

import msgspec

from steelyard.annotation.derived_judgments import with_derived
from steelyard.core.errors import EvidenceError, RecordError, listed
from steelyard.core.protocols import Row
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import is_blank, is_same_text, number_of, prompt_text, response_text
from steelyard.core.types import Case, JsonObject, Kind, Record
from steelyard.curation.column_names import ANNOTATORS
from steelyard.curation.format_support import AS_READ, PARTS
from steelyard.curation.merge import ROWS, only_kind
from steelyard.ranking.pairs import pairs_of
from steelyard.translation.grading import GradedPairs

OTHERS = "(others)"
"""The group of the values beyond the first thousand of a counter: memory is bounded."""
_MOST_GROUPS = 1000
_UNRANKED = "judged cases without a ranking"
_LICENCE_KEYS = ("license", "licence")


_PICTURE_KEYS = ("images", "image", "videos", "video", "audios", "audio", "image_url", "image_path", "image_paths")
_PICTURE_MARKS = ("<image>", "<video>", "<audio>")
_PICTURE_BLOCKS = ("image", "image_url", "input_image", "video", "video_url", "audio", "input_audio", "audio_url")


def count_pictures(rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Row]:
    """Yield the rows; those with images, films or sound are counted, as text alone cannot judge their answers."""
    for row in rows:
        warnings["rows with images, read as text alone"] += has_picture(row.value)
        yield row


def count_annotators(rows: Iterable[Row], keys: Collection[str], warnings: Counter[str]) -> Iterator[Row]:
    """Yield the rows of pairs; those that name who judged, under another key than the format's, are counted."""
    for row in rows:
        warnings["annotators of pairs, not read (judge_column names them)"] += any(
            key not in keys and key.casefold() in ANNOTATORS and isinstance(value, str | int) and value != ""
            for key, value in row.value.items()
        )
        yield row


def has_picture(values: Mapping[str, object]) -> bool:
    """Return whether values come with images, films or sound: by their keys, marks in texts, or content blocks."""
    return any(values.get(key) for key in _PICTURE_KEYS) or any(map(_shows_picture, values.values()))


def count_blanks(cases: Iterable[Case], warnings: Counter[str]) -> Iterator[Case]:
    """Yield the cases; texts without a visible character are counted, and responses that readers take for one."""
    for case in cases:
        texts = [response_text(response) for response in case.responses]
        warnings["empty or blank responses"] += sum(map(is_blank, texts))
        warnings["empty or blank prompts"] += is_blank(prompt_text(case))
        warnings["responses that differ from another in form alone"] += sum(
            first != second and is_same_text(first, second) for first, second in combinations(texts, 2)
        )
        yield case


def count_equal_texts(cases: Iterable[Case], warnings: Counter[str]) -> Iterator[Case]:
    """Yield the cases; pairs that no model can win are counted, since trainers read them without a word."""
    for case in cases:
        texts = [response_text(response) for response in case.responses]
        warnings["pairs of equal texts"] += sum(
            is_same_text(texts[pair.better], texts[pair.worse]) for pair in pairs_of(case)
        )
        yield case


def _shows_picture(value: object) -> bool:
    if isinstance(value, str):
        return any(mark in value for mark in _PICTURE_MARKS)
    if isinstance(value, list):
        return any(map(_shows_picture, value))
    if isinstance(value, dict):
        return value.get("type") in _PICTURE_BLOCKS or any(map(_shows_picture, value.values()))
    return False


class ColumnUse(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A column of the input: the number of rows that have it, and what became of it.

    ``read``: the format knows it. ``kept``: it is in the ``meta`` of the prompt, and written back.
    """

    num_rows: int
    use: Literal["read", "kept"]


class Conversion(NamedTuple):
    """The counts of one conversion. ``num_rows`` is the number of rows before those of one prompt were joined.

    ``columns`` are the columns of a table that were guessed, by their settings. ``translations`` has the counts where
    pairs of rated translations were made: ``num_cases`` are then their sources.
    """

    from_kind: str
    to_kind: str
    num_rows: int
    num_cases: int
    num_written: int
    noted: dict[str, int]
    lost: dict[str, int]
    columns: JsonObject
    translations: GradedPairs | None = None


class ConversionSummary(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The summary of a conversion. Empty names of languages and sources stand for unknown ones.

    ``columns`` is empty where a case file was read. ``licences`` counts rows, or the cases of a case file. ``lost``
    counts what the format that was written cannot hold. ``guessed`` are the columns of a table that no setting
    named. ``translations`` counts the pairs of rated translations, null where none were made; ``num_cases`` are then
    their sources.
    """

    from_kind: str
    to_kind: str
    num_files: int
    num_bytes: int
    num_rows: int
    num_cases: int
    num_written: int
    columns: dict[str, ColumnUse] = msgspec.field(default_factory=dict)
    num_responses: int = 0
    num_rankings: int = 0
    num_pairs: int = 0
    judgments: dict[str, int] = msgspec.field(default_factory=dict)
    ratings: dict[str, int] = msgspec.field(default_factory=dict)
    languages: dict[str, int] = msgspec.field(default_factory=dict)
    sources: dict[str, int] = msgspec.field(default_factory=dict)
    licences: dict[str, int] = msgspec.field(default_factory=dict)
    lost: dict[str, int] = msgspec.field(default_factory=dict)
    guessed: JsonObject = msgspec.field(default_factory=dict)
    translations: GradedPairs | None = None


class ConversionTally:
    """Counts rows and cases while they are converted."""

    def __init__(self) -> None:
        self._has_rows = False
        self._keys: Collection[str] = ()
        self._shapes: Counter[tuple[str, ...]] = Counter()
        self._columns: Counter[str] = Counter()
        self._numbers: Counter[str] = Counter()
        self._groups: dict[str, Counter[str]] = {
            name: Counter() for name in ("judgments", "ratings", "languages", "sources", "licences")
        }

    def rows(self, rows: Iterable[Row], keys: Collection[str]) -> Iterator[Row]:
        """Yield the rows, and count their columns; those in ``keys`` are the format's."""
        self._has_rows, self._keys = True, keys
        for row in rows:
            self._shapes[tuple(row.value)] += 1  # one count a row: most rows have the same columns
            if len(self._shapes) > _MOST_GROUPS:
                self._count_shapes()
            self._count_licence(row.value)
            yield row

    def cases(self, cases: Iterable[Case]) -> Iterator[Case]:
        """Yield the cases, and count their contents."""
        for case in cases:
            self._numbers.update(
                num_responses=len(case.responses),
                num_rankings=int(bool(case.ranking)),
                num_pairs=len(case.pairs or ()),
            )
            for name, items in (("judgments", case.judgments), ("ratings", case.ratings)):
                self._groups[name].update(item.kind for item in items)
            _add(self._groups["languages"], case.prompt.language or "")
            _add(self._groups["sources"], case.prompt.source or "")
            if not self._has_rows:
                self._count_licence({**case.meta, **(case.prompt.meta or {})})
            yield case

    def complete(self, summary: ConversionSummary) -> ConversionSummary:
        """Return the summary with the columns and contents."""
        self._count_shapes()
        columns = {
            name: ColumnUse(num_rows=number, use="read" if name in self._keys else "kept")
            for name, number in self._columns.items()
        }
        groups = {name: dict(counter.most_common()) for name, counter in self._groups.items()}
        return msgspec.structs.replace(summary, columns=columns, **self._numbers, **groups)

    def _count_licence(self, fields: Mapping[str, object]) -> None:
        """Count the licence that the data name for a row, or for a case of a case file."""
        for key in _LICENCE_KEYS:
            value = fields.get(key)
            if isinstance(value, str) and value.strip():
                _add(self._groups["licences"], value.strip())
                return

    def _count_shapes(self) -> None:
        for names, number in self._shapes.items():
            for name in names:
                _add(self._columns, name, number)
        self._shapes.clear()


def _add(counter: Counter[str], name: str, number: int = 1) -> None:
    counter[name if name in counter or len(counter) < _MOST_GROUPS else OTHERS] += number


def count_unranked(cases: Iterable[Case], taken: Counter[str]) -> Iterator[Case]:
    """Yield the cases; those with judgments that neither a ranking nor listed pairs were made from are counted."""
    for case in cases:
        taken[_UNRANKED] += bool(case.judgments) and not case.ranking and not case.pairs
        yield case


def refuse_empty(
    rows: Iterable[JsonObject], kind: str, dropped: Counter[str], taken: Counter[str], *, ranked_by: Advice
) -> Iterator[JsonObject]:
    """Yield the rows. Raises EvidenceError where cases leave none, before the file is renamed.

    ``ranked_by`` tells how to rank cases that have judgments.
    """
    is_empty = True
    for row in rows:
        is_empty = False
        yield row
    if is_empty and taken["cases"]:
        # Lost parts, such as ids, are no reason.
        counted = [f"{name}: {number:,}" for name, number in (+dropped).items() if name not in PARTS]
        reasons = f" ({listed(counted)})" if counted else ""
        problem = f"none of {number_of(taken['cases'], 'case')} can be written as {kind}{reasons}"
        do = ranked_by if taken[_UNRANKED] else "rank the responses, or list pairs"
        raise EvidenceError(problem, do=do)


def with_evidence(
    cases: Iterable[Case], warnings: Counter[str], *, kind: Kind | None, derives_judgments: bool
) -> Iterator[Case]:
    """Yield the cases with the evidence of one kind alone, and with the judgments derived from its ratings."""
    for case in cases:
        selected = case if kind is None else only_kind(case, kind, warnings)
        if selected != case:
            # The recorded form of a row may repeat evidence that was left out.
            meta = {key: value for key, value in selected.meta.items() if key not in (AS_READ, ROWS)}
            selected = msgspec.structs.replace(selected, meta=meta)
        judged = with_derived(selected) if derives_judgments else selected
        warnings["judgments derived from ratings"] += len(judged.judgments) - len(selected.judgments)
        yield judged


def with_defaults(cases: Iterable[Case], wanted: Mapping[str, str | None]) -> Iterator[Case]:
    """Yield the cases with the wanted language, subset and source where a prompt has none.

    Raises RecordError where a language makes two prompts one.
    """
    language = wanted["language"]
    seen: set[tuple[str, str | None]] = set()
    for case in cases:
        missing = {name: value for name, value in wanted.items() if value and getattr(case.prompt, name) is None}
        filled = msgspec.structs.replace(case, prompt=msgspec.structs.replace(case.prompt, **missing))
        # Formats and case files have unique keys; a language set from outside can make two of them one.
        if filled.key in seen:
            problem = f"prompt id {filled.prompt.id!r} would stand twice in language {language!r}"
            raise RecordError(problem, do=Advice("leave ", Remedy("language"), " away, or give each case its own id"))
        if language:
            seen.add(filled.key)
        yield filled
