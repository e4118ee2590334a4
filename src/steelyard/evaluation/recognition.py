"""Recognition of a file's format by its first rows, and the cases of a file of any known format."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from steelyard.core.errors import EvidenceError, KindError, Place, RecordError, listed
from steelyard.core.plugins import build, kinds
from steelyard.core.protocols import Format, Row, WrittenFormat
from steelyard.core.remedies import KIND, NAME, Advice, Command, Remedy, joined
from steelyard.core.types import Case, JsonObject
from steelyard.curation.column_names import ColumnGuess, may_hold_prompt
from steelyard.io.cases import command_for_case_file
from steelyard.io.rows import UTF8, TextForm, read_rows
from steelyard.prompts.taxonomy import read_data

TABLE_KIND = "columns"
OWN_KIND = "cases"
"""The format of case files."""
WRITTEN_KINDS = (
    "argilla, cases, cheems, columns, label_studio, llamafactory_alpaca, llamafactory_alpaca_kto,"
    " llamafactory_alpaca_sft, llamafactory_sharegpt, llamafactory_sharegpt_kto, llamafactory_sharegpt_sft, ms_swift,"
    " nemo_rl, openrlhf, potato, rewardbench, trl, trl_sft, trl_unpaired"
)
"""The formats that `Format.is_written`, known without loading all others."""
_ROWS_LOOKED_AT = 20
_MOST_MISSING = 3
_PROMPT, _CHOSEN, _REJECTED, _FIRST, _SECOND, _LABEL, _RESPONSE, _RATING = (
    Remedy(f"{part}_column", NAME)
    for part in ("prompt", "chosen", "rejected", "first", "second", "label", "response", "rating")
)
_NAME_COLUMNS = Advice(
    *("say ", Remedy("from_kind", KIND), ", or name the columns of your own table: ", _PROMPT, " with "),
    *(_CHOSEN._replace(others=(_REJECTED,)), ", or ", _FIRST._replace(others=(_SECOND, _LABEL)), ", or "),
    *(_RESPONSE._replace(others=(_RATING,)), "; prompts without answers need ", _PROMPT, " alone"),
)


def recognise(*files: Path, settings: JsonObject | None = None, form: TextForm = UTF8) -> str:
    """Return the one format that recognises the files' first rows, or that of tables where names tell the columns.

    ``settings`` are those of the format, ``form`` that of `read_rows`. Raises KindError where no format does, or
    several do.
    """
    first = _first_rows(files, form)
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
    if not matches and ColumnGuess(first, settings or {}).complete():
        return TABLE_KIND
    where = str(files[0])
    if matches:
        problem = f"several formats could be this: {', '.join(matches)} (fields {listed(sorted(fields))})"
        raise KindError(problem, where=where, allowed=", ".join(matches), do=Advice("say ", _any_of(matches)))
    problem = f"no known format has these fields (fields {listed(sorted(fields))})"
    # The two formats that share most fields with the table, as a share of their fields.
    near = {
        kind: len(shared) / len(reader.keys)
        for kind, reader in readers.items()
        if kind != TABLE_KIND and len(shared := set(reader.keys).intersection(fields)) > 0
    }
    nearest = [_missing(kind, readers[kind], fields) for kind in sorted(near, key=lambda kind: -near[kind])[:2]]
    command = _command(files[0], first, settings or {}, form)
    has_answers = command is not _NAME_COLUMNS and "prompt_column" in command and command.count("_column") > 1
    prompts = _prompt_kinds(first, readers, has_answers=has_answers)
    # Names of models and scores alone, as leaderboards and files of votes have them.
    is_bare = command is _NAME_COLUMNS and not any(may_hold_prompt(row, ()) for row in first)
    texts = "join results without texts with the prompts and answers that were judged" if is_bare else None
    do = joined("; or ", [text for text in (prompts, texts, command) if text is not None])
    raise KindError(problem, where=where, allowed="; ".join(nearest) or "steelyard list formats", do=do)


def table_columns(files: Sequence[Path], settings: JsonObject, form: TextForm = UTF8) -> JsonObject:
    """Return the columns of a table that the settings do not name, as its names and first rows tell them."""
    # Settings that contradict each other are refused before the files are read.
    build("formats", TABLE_KIND, settings)
    guess = ColumnGuess(_first_rows(files, form), settings)
    guess.complete()
    return {key: value for key, value in guess.settings.items() if settings.get(key) != value}


def _first_rows(files: Sequence[Path], form: TextForm) -> list[JsonObject]:
    rows = chain.from_iterable(read_rows(file, form) for file in files)
    return [row.value for row in islice(rows, _ROWS_LOOKED_AT)]


def _missing(kind: str, reader: Format, fields: Collection[str]) -> str:
    missing = [key for key in reader.keys if key not in fields]
    return f"{kind} (here without {listed(missing[:_MOST_MISSING])})" if missing else kind


def _command(file: Path, rows: Sequence[JsonObject], settings: JsonObject, form: TextForm) -> str:
    """Return the command that reads the table under the columns that its names and cells make likely."""
    guess = ColumnGuess(rows, settings)
    guess.suggest()
    changes = [
        Remedy(key, value if isinstance(value, str) else tuple(value))
        for key, value in guess.settings.items()
        if key.endswith("_column")
    ]
    labels = guess.settings.get("labels") if "labels" not in settings else None
    changes += [Remedy("lower_is_better", value=True)] * (guess.settings.get("lower_is_better") is True)
    changes += [Remedy(f"labels.{label}", side) for label, side in (labels or {}).items()]
    if not changes:
        return _NAME_COLUMNS
    # Without them, the file would not be read so far.
    changes += [Remedy(key, value) for key, value in form._asdict().items() if value is not None]
    return Advice("name the columns, perhaps so: ", Command("convert", (str(file), "cases.jsonl"), tuple(changes)))


def _any_of(kinds: Iterable[str]) -> Advice:
    return Advice(*[part for kind in kinds for part in (" or ", Remedy("from_kind", kind))][1:])


def _prompt_kinds(rows: Sequence[JsonObject], readers: Mapping[str, Format], *, has_answers: bool) -> str | None:
    """Return the remedy for rows of prompts beside further texts, which could be answers; null for other rows."""
    prompt_readers = {kind: reader for kind, reader in readers.items() if "responses" not in reader.supports}
    fields = {key for row in rows for key in row}
    num_known = {kind: len(fields & {*item.keys}) for kind, item in prompt_readers.items() if _reads(item, rows)}
    if not num_known:
        return None
    kinds_read = [kind for kind, number in num_known.items() if number == max(num_known.values())]
    # The format of a published set names its source and its language: it is not for any table of questions.
    is_published = {*kinds_read} <= read_data("prompt_sources.toml").keys()
    if is_published and has_answers and all(len(fields - {*readers[kind].keys}) > 1 for kind in kinds_read):
        return None
    what = "the prompts of that published set" if is_published else "prompts without answers to compare"
    return Advice("say ", _any_of(kinds_read), f" if these are {what}")


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
        do = Advice("make a case file of it, and name that: ", command_for_case_file(path))
        raise KindError(error.problem, where=error.where, allowed=error.allowed, do=do) from error
    reader: Format = build("formats", kind, table_columns([path], {}) if kind == TABLE_KIND else {})
    return reader.read(read_rows(path), Counter())


class RecognisedFormat(NamedTuple):
    """The format of files: its kind, the columns that were guessed, and its reader."""

    kind: str
    columns: JsonObject
    reader: Format


def format_of(files: Sequence[Path], kind: str | None, settings: JsonObject, form: TextForm) -> RecognisedFormat:
    """Return the format of files, recognised where no ``kind`` is named. Raises KindError as `recognise` does."""
    kind = kind or recognise(*files, settings=settings, form=form)
    columns = table_columns(files, settings, form) if kind == TABLE_KIND else {}
    return RecognisedFormat(kind, columns, build("formats", kind, settings | columns))


def written_format(kind: str, settings: JsonObject) -> WrittenFormat:
    """Return the writer of a format. Raises KindError for a format that is only read."""
    writer: WrittenFormat = build("formats", kind, settings)
    if not writer.is_written:
        what = "a table of labels or ratings" if kind == TABLE_KIND else f"the format {kind!r}"
        do = Advice("name one of these: ", Remedy("to_kind", "trl"))
        raise KindError(f"{what} is only read", where="to_kind", allowed=WRITTEN_KINDS, do=do)
    return writer
