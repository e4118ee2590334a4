"""The verb `convert`: any known format into a case file and back; parts that a format loses are counted."""

import filecmp
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from steelyard.annotation.derived_judgments import with_derived
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError, KindError, OutputError, RecordError, listed
from steelyard.core.plugins import build, kinds
from steelyard.core.protocols import Format
from steelyard.core.types import Case, JsonObject
from steelyard.curation.format_support import AS_READ, has_pair_rows
from steelyard.curation.joining import MOST_ROWS, ROWS, join_rows, only_kind, prompt_key, split_rows
from steelyard.io.atomic import part_folder, sweep_parts
from steelyard.io.cases import CASE_SUFFIXES, encode_case, read_case_files, write_cases
from steelyard.io.data_files import expand_inputs
from steelyard.io.progress import log, track
from steelyard.io.rows import ROW_SUFFIXES, is_array, read_rows, write_rows
from steelyard.io.tempfiles import LineStore, open_line_store

OWN_KIND = "cases"
_ROWS_LOOKED_AT = 20
_NAME_COLUMNS = (
    "say --from KIND, or name the columns of your own table: --prompt-column NAME with --chosen-column NAME"
    " --rejected-column NAME, or --first-column NAME --second-column NAME --label-column NAME, or --response-column"
    " NAME --rating-column NAME"
)
_decoder = msgspec.json.Decoder(Case)


class Config(BaseConfig, frozen=True):
    """Settings of a conversion. `only_kind` documents the rule of ``evidence`` for rankings.

    Null ``rows`` joins those of formats that have one better and one worse answer a row, and leaves case files alone.
    """

    from_kind: str | None = None
    """The format of the input. Default: recognised by its content."""
    to_kind: str | None = None
    """The format of the output. Default: a case file, or from a case file the format it came from."""
    language: str | None = None
    """The language of prompts without one, such as zh."""
    subset: str | None = None
    """The subset of prompts without one."""
    source: str | None = None
    """The source of prompts without one."""
    evidence: Literal["human", "llm", "model"] | None = None
    """Keep only the judgments and ratings by people, by LLMs or by reward models."""
    ratings_to_judgments: bool = False
    """Derive judgments from ratings; equal ratings give no judgment."""
    rows: Literal["joined", "apart"] | None = None
    """Whether rows of one prompt become one case, or a case each. Default: rows of pairs are joined."""
    settings: JsonObject = {}  # noqa: RUF012  msgspec copies the default
    """Settings of the format that is written, or read where a case file is written: docs/settings.md, under formats."""


class Conversion(NamedTuple):
    """The counts of one conversion. ``num_rows`` is the number of rows before those of one prompt were joined."""

    from_kind: str
    to_kind: str
    num_rows: int
    num_cases: int
    num_written: int
    noted: dict[str, int]
    lost: dict[str, int]


_DEFAULT = Config()


def convert(source: Path, out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Conversion:
    """Write ``out`` from ``source``; its suffix selects JSON lines, a JSON array or Parquet.

    ``source`` may be a folder or a pattern, which stands for its data files (`expand_inputs`), all of one format.

    An ``out`` with equal content stays unchanged. Raises KindError when the format is not recognised,
    OutputError when ``out`` holds anything else, RecordError for a broken row.
    """
    if out.is_dir():
        raise OutputError("there is a folder of this name", where=str(out), do="name a file")
    files = expand_inputs((source,), ROW_SUFFIXES, what="data file", do="check the path and the names")
    if out.exists() and any(file.exists() and out.samefile(file) for file in files):
        raise OutputError("a file cannot be converted into itself", where=str(out), do="name another")
    sweep_parts(out)
    if force or not out.exists():
        return _convert(files, source.name, out, config)
    if not out.is_file():
        raise OutputError("not a file, so it cannot be replaced", where=str(out), do="name another")
    with part_folder(out) as folder:
        again = folder / out.name
        done = _convert(files, source.name, again, config)
        if not filecmp.cmp(again, out, shallow=False):
            problem = "there is a file already, and it holds something else"
            raise OutputError(problem, where=str(out), do="name another, or say --force to replace it")
    log(f"{out} is written already: equal input and settings")
    return done


def _convert(files: Sequence[Path], name: str, out: Path, config: Config) -> Conversion:
    from_kind = config.from_kind or recognise(*files)
    to_kind = _target(from_kind, files, out, config)
    if to_kind == OWN_KIND and out.suffix not in CASE_SUFFIXES:
        raise OutputError("a case file cannot have this name", where=str(out), allowed="a name in .jsonl or .parquet")
    warnings: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    is_read_in = to_kind == OWN_KIND
    reader: Format = build("formats", from_kind, config.settings if is_read_in else {})
    writer: Format = build("formats", to_kind, {} if is_read_in else config.settings)
    with _line_store(out, config, reader, from_kind, is_read_in=is_read_in) as store:
        read = _counted(_read(files, from_kind, reader, warnings), taken, "rows")
        joined = read if store is None else _joined(track(read, f"reading {name}"), store, warnings)
        cases = _counted(_with_defaults(_with_evidence(joined, config, warnings), config), taken, "cases")
        shown = track(cases, f"converting {name}")
        if is_read_in:
            num_written = write_cases(out, shown)
        else:
            rows = chain.from_iterable(map(split_rows, shown)) if has_pair_rows(writer.supports) else shown
            num_written = _write_foreign(out, writer.write(rows, dropped))
    return Conversion(from_kind, to_kind, taken["rows"], taken["cases"], num_written, dict(+warnings), dict(+dropped))


@contextmanager
def _line_store(
    out: Path, config: Config, reader: Format, from_kind: str, *, is_read_in: bool
) -> Iterator[LineStore | None]:
    """Open a line store where rows will be joined; yield null otherwise."""
    default = "joined" if from_kind != OWN_KIND and has_pair_rows(reader.supports) else "apart"
    if not is_read_in or (config.rows or default) == "apart":
        yield None
        return
    with part_folder(out) as folder, open_line_store(folder) as store:
        yield store


def _joined(cases: Iterable[Case], store: LineStore, warnings: Counter[str]) -> Iterator[Case]:
    """Yield every prompt once, in order of first appearance. Memory holds one prompt; the rows wait on disk."""
    for place, case in enumerate(cases):
        store.add(prompt_key(case) or f"row {place}".encode(), place, encode_case(case))
    store.index()
    for group in store.groups():
        for start in range(0, len(group), MOST_ROWS):
            rows = [_decoder.decode(stored.line) for stored in group[start : start + MOST_ROWS]]
            yield join_rows(rows, warnings) if len(rows) > 1 else rows[0]


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
    raise KindError(f"{problem} ({names})", where=str(files[0]), allowed=", ".join(readers), do=_NAME_COLUMNS)


def _write_foreign(out: Path, rows: Iterable[JsonObject]) -> int:
    if out.suffix != ".parquet":
        return write_rows(out, rows)
    import pyarrow

    try:
        return write_rows(out, rows)
    except pyarrow.ArrowException as error:
        problem = f"these rows do not fit into columns of one type each ({error})"
        raise OutputError(problem, where=str(out), do="name a .jsonl file") from error


def _read(files: Sequence[Path], kind: str, reader: Format, warnings: Counter[str]) -> Iterator[Case]:
    if kind == OWN_KIND and all(file.suffix in CASE_SUFFIXES and not _is_array(file) for file in files):
        return read_case_files(files)
    return reader.read(chain.from_iterable(map(read_rows, files)), warnings)


def _is_array(file: Path) -> bool:
    """Return whether the input is one JSON array; a dataset saved to disk is none."""
    return file.is_file() and is_array(file)


def _target(from_kind: str, files: Sequence[Path], out: Path, config: Config) -> str:
    if config.to_kind is not None:
        return config.to_kind
    is_other = len(files) > 1 or files[0].suffix != out.suffix or _is_array(files[0])
    changes_file = is_other and out.suffix in CASE_SUFFIXES
    changes_evidence = config.ratings_to_judgments or config.evidence is not None or config.rows == "joined"
    if from_kind == OWN_KIND and not changes_file and not changes_evidence:
        raise KindError(
            "no format to write is named for a case file",
            where=str(out),
            allowed=", ".join(kinds("formats")),
            do="say --to KIND",
        )
    return OWN_KIND


def _with_evidence(cases: Iterable[Case], config: Config, warnings: Counter[str]) -> Iterator[Case]:
    """Yield the cases with the evidence of the part alone, and with the judgments derived from its ratings."""
    for case in cases:
        selected = case if config.evidence is None else only_kind(case, config.evidence, warnings)
        if selected != case:
            # The recorded form of a row may repeat evidence that was left out.
            meta = {key: value for key, value in selected.meta.items() if key not in (AS_READ, ROWS)}
            selected = msgspec.structs.replace(selected, meta=meta)
        judged = with_derived(selected) if config.ratings_to_judgments else selected
        warnings["judgments derived from ratings"] += len(judged.judgments) - len(selected.judgments)
        yield judged


def _with_defaults(cases: Iterable[Case], config: Config) -> Iterator[Case]:
    wanted = {name: getattr(config, name) for name in ("language", "subset", "source")}
    seen: set[tuple[str, str | None]] = set()
    for case in cases:
        missing = {name: value for name, value in wanted.items() if value and getattr(case.prompt, name) is None}
        filled = msgspec.structs.replace(case, prompt=msgspec.structs.replace(case.prompt, **missing))
        # Formats and case files have unique keys; a language set from outside can make two of them one.
        if filled.key in seen:
            problem = f"prompt id {filled.prompt.id!r} would stand twice in language {config.language!r}"
            raise RecordError(problem, do="leave --language away, or give each case its own id")
        if config.language:
            seen.add(filled.key)
        yield filled


def _counted(cases: Iterator[Case], taken: Counter[str], name: str) -> Iterator[Case]:
    for case in cases:
        taken[name] += 1
        yield case
