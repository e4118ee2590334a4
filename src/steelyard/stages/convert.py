"""The verb `convert`: any known format into a case file and back; parts that a format loses are counted.

``OUT`` is a file of its own. The record of the conversion is ``OUT.run/run.json``, beside it. As a stage of a recipe it
has a folder, as every other stage.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from steelyard.annotation.derived_judgments import with_derived
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import (
    ConfigError,
    FileError,
    KindError,
    OutputError,
    RecordError,
    UserError,
)
from steelyard.core.plugins import build
from steelyard.core.protocols import Format, WrittenFormat
from steelyard.core.remedies import KIND, Advice, Remedy
from steelyard.core.types import Case, Counts, Input, JsonObject, Run
from steelyard.curation.conversion import (
    Conversion,
    ConversionSummary,
    ConversionTally,
    count_blanks,
    count_pictures,
    refuse_empty,
)
from steelyard.curation.evidence_rows import evidence_key, join_evidence, with_unique_ids
from steelyard.curation.format_support import AS_READ, has_pair_rows
from steelyard.curation.merge import MOST_ROWS, ROWS, join_rows, only_kind, prompt_key, split_rows
from steelyard.curation.uniform_columns import UniformColumns, with_uniform_columns
from steelyard.evaluation.recognition import TABLE_KIND, recognise, table_columns
from steelyard.io.atomic import part_folder, write_once
from steelyard.io.cases import CASE_SUFFIXES, encode_case, read_case_files, write_cases
from steelyard.io.compression import data_suffix
from steelyard.io.data_files import case_roles, expand_inputs
from steelyard.io.encodings import EncodingError, check_encoding
from steelyard.io.hashing import file_hash
from steelyard.io.lineage import check_dataset_name, record_folder, source_datasets
from steelyard.io.progress import log, track
from steelyard.io.rows import ROW_SUFFIXES, Quotes, TextForm, is_array, read_rows, write_rows
from steelyard.io.run_folder import Result, installed_versions, read_run, run_stage, write_file_record
from steelyard.io.tables import is_parquet
from steelyard.io.tempfiles import LineStore, open_line_store
from steelyard.io.verbs import Argument, SettingOption, Verb, settings
from steelyard.translation.grading import GradingConfig, graded_pairs

OWN_KIND = "cases"
# Those that `Format.is_written`, without loading all others.
_WRITTEN = (
    "argilla, cases, cheems, columns, label_studio, llamafactory_alpaca, llamafactory_alpaca_kto,"
    " llamafactory_alpaca_sft, llamafactory_sharegpt, llamafactory_sharegpt_kto, llamafactory_sharegpt_sft, ms_swift,"
    " nemo_rl, openrlhf, potato, rewardbench, trl, trl_sft, trl_unpaired"
)
_decoder = msgspec.json.Decoder(Case)


class Config(BaseConfig, frozen=True):
    """Settings of a conversion. `only_kind` documents the rule of ``evidence`` for rankings.

    Null ``rows`` joins those of formats that have a pair, a judgment or an answer a row, and leaves case files alone.
    """

    from_kind: Annotated[str, msgspec.Meta(extra={"kinds_of": "formats"})] | None = None
    """The format of IN. Default: by its content."""
    to_kind: Annotated[str, msgspec.Meta(extra={"values": _WRITTEN})] | None = None
    """The format to write. Default: a case file."""
    language: str | None = None
    """The language of prompts without one, such as zh."""
    subset: str | None = None
    """The subset of prompts without one."""
    source: str | None = None
    """The source of prompts without one."""
    dataset_name: str | None = None
    """The data set's name on the Hub, for model cards. An example is allenai/reward-bench."""
    evidence: Literal["human", "llm", "model"] | None = None
    """Keep one kind of evidence: human, llm or model. Judgments and ratings of the others are left out."""
    ratings_to_judgments: bool = False
    """Derive judgments from ratings. Equal ratings give no judgment."""
    translation_pairs: str | None = None
    """Pair rated translations, EASY and HARD: zh-en. The value is the direction. Of each source EASY is the best and
    the worst translation, HARD two of the others, as answers to a request to translate (M-RewardBench's task)."""
    grading: GradingConfig = GradingConfig()
    """The number and the gaps of these pairs."""
    quotes: Quotes | None = None
    """Quotation marks of a TSV file: around cells (cells), or text (literal). Default: by its header and its cells."""
    encoding: str | None = None
    """The encoding of text files, such as gb18030, big5 or cp1252. Default: UTF-8, or by a byte order mark."""
    rows: Literal["joined", "apart"] | None = None
    """Rows of one prompt: a case (joined), or a case each (apart). Default: joined, for pairs and votes."""
    settings: JsonObject = {}  # noqa: RUF012  msgspec copies the default
    """Settings of the format that is written, or read where a case file is written: docs/settings.md, under formats."""


_DEFAULT = Config()


COLUMNS = (
    "prompt_column",
    "system_column",
    "chosen_column",
    "rejected_column",
    "first_column",
    "second_column",
    "label_column",
    "judge_column",
    "response_column",
    "rating_column",
    "author_column",
    "id_column",
    "language_column",
    "category_column",
    "reference_column",
)
"""Settings of the format ``columns`` that are settings of a conversion, too."""
VERB = Verb(
    "Data",
    20,
    (
        Argument("source", "A file, a folder, a quoted pattern, or a dataset.", metavar="IN"),
        Argument("out", "The file: .jsonl, .parquet; .json for other formats."),
        SettingOption("from_kind", "from", complete="formats"),
        SettingOption("to_kind", "to", complete="formats"),
        *settings("language", "subset", "source", "dataset_name", "evidence", "ratings_to_judgments"),
        *settings("translation_pairs", "rows"),
        *settings(
            *COLUMNS,
            table="settings.",
            config=("steelyard.plugins.formats.columns", "Config"),
            panel="Columns of your own table",
        ),
    ),
    prepare="move_format_settings",
)


def move_format_settings(inputs: JsonObject, settings: JsonObject) -> None:
    """Move settings that are not those of `convert` to the settings of the format.

    Columns imply the format `columns`. Raises ConfigError where another one is named.
    """
    moved = {key: settings.pop(key) for key in list(settings) if key not in Config.__struct_fields__}
    table = settings.setdefault("settings", {})
    if not isinstance(table, dict):
        return  # The Config refuses it.
    settings["settings"] = table | moved
    columns = [name for name in COLUMNS if name in settings["settings"]]
    from_kind, to_kind = settings.get("from_kind"), settings.get("to_kind")
    if columns and "columns" not in (from_kind, to_kind):
        kind = from_kind or (to_kind if to_kind != OWN_KIND else None)
        if kind is not None:
            column = Remedy(columns[0])
            problem = Advice(column, f" names a column of your own table, and the format {kind} has its own")
            raise ConfigError(problem, do=Advice("leave ", column, " or the format away"))
        settings["from_kind"] = "columns"


def convert(source: Path, out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Conversion:
    """Convert preference data into a case file, or a case file into another format.

    Rows of pairs that share a prompt become one case, and rows again on the way back. Fields that a format cannot
    represent are counted. `steelyard list formats` lists the formats. Name the columns of a table of your own: of
    pairs, labelled pairs, ratings, or prompts alone. A text file has a prompt a line.

    Example: `steelyard convert oasst.json cases.jsonl --language zh`

    Example: `steelyard convert pandalm.json people.jsonl --evidence human`

    Example: `steelyard convert resolved/cases.jsonl pairs.jsonl --to trl`

    Example: `steelyard convert rated.jsonl judged.jsonl --ratings-to-judgments`

    Example: `steelyard convert maple.jsonl pairs.jsonl --translation-pairs de-en`

    Example: `steelyard convert own.csv cases.jsonl --prompt-column question --chosen-column good --rejected-column bad`

    Example: `steelyard convert scores.csv cases.jsonl --response-column text --rating-column score`

    Example: `steelyard convert questions.txt prompts.jsonl --language zh`

    Raises KindError when the format is not recognised, OutputError when ``out`` holds anything but equal content,
    RecordError for a broken row.
    """
    check_dataset_name(config.dataset_name, where="dataset_name")
    check_encoding(config.encoding, where="encoding")
    if out.is_dir():
        raise OutputError("there is a folder of this name", where=str(out), do="name a file")
    # A text file is read where it is named: in a folder it could be a licence or a note.
    files = expand_inputs((source,), ROW_SUFFIXES, what="data file", do="check the path and the names")
    if out.exists() and any(file.exists() and out.samefile(file) for file in files):
        raise OutputError("a file cannot be converted into itself", where=str(out), do="name another")
    if not force and (known := _recorded(files, out, config)) is not None:
        log(f"{out} is written already: equal input and settings")
        return known
    started, tally = time.monotonic(), ConversionTally()
    done, is_new = write_once(out, lambda place: _convert(files, source.name, place, config, tally), force=force)
    if not is_new:
        log(f"{out} is written already: equal input and settings")
    _write_record(files, out, config, done, tally, seconds=time.monotonic() - started)
    return done


def convert_stage(
    files: Sequence[Path], out: Path, config: Config = _DEFAULT, *, force: bool = False
) -> Run[ConversionSummary]:
    """Write ``cases.jsonl`` into the folder ``out``: the stage of a recipe. All files are of one format.

    ``files`` may be folders and patterns, as the source of `convert`, and errors are those of `convert`. Raises
    ConfigError for another format than case files, which no stage reads.
    """
    if config.to_kind not in (None, OWN_KIND):
        problem = f"a stage that writes the format {config.to_kind!r}"
        raise ConfigError(problem, where="to_kind", allowed=OWN_KIND, do="leave to_kind away")
    check_dataset_name(config.dataset_name, where="dataset_name")
    check_encoding(config.encoding, where="encoding")
    data_files = expand_inputs(files, ROW_SUFFIXES, what="data file", do="check the path and the names")

    def write(result: Result) -> None:
        tally = ConversionTally()
        written = msgspec.structs.replace(config, to_kind=OWN_KIND)
        done = _convert(data_files, data_files[0].name, result.path("cases.jsonl"), written, tally)
        result.counts = Counts(num_in=done.num_rows, num_used=done.num_rows, noted=done.noted)
        result.summary = _summary(data_files, config, done, tally)
        result.datasets = _datasets(data_files, config)

    inputs = case_roles(data_files, "source")
    return run_stage(out, "convert", Run[ConversionSummary], write, config=config, inputs=inputs, force=force)


@contextmanager
def _encoding_as_setting() -> Iterator[None]:
    """Name the setting ``encoding`` in the error for a file of another encoding: no other verb has it."""
    try:
        yield
    except EncodingError as error:
        if error.encoding is None:
            raise
        encoding = Remedy("encoding", error.encoding)
        do = Advice(f"say its encoding, here {error.encoding}, and check the texts: ", encoding)
        raise FileError(error.problem, where=error.where, do=do) from error


def _recorded(files: Sequence[Path], out: Path, config: Config) -> Conversion | None:
    """Return the recorded conversion of these files and settings that wrote ``out`` as it is; null without one."""
    try:
        run = read_run(record_folder(out), Run[ConversionSummary])
    except UserError:
        return None
    inputs = {role: Input(path=str(path), sha256=file_hash(path)) for role, path in case_roles(files, "source").items()}
    same = (msgspec.to_builtins(config), inputs, installed_versions())
    if (run.config, run.inputs, run.versions) != same or not out.is_file() or run.outputs != {out.name: file_hash(out)}:
        return None
    summary = run.summary
    return Conversion(
        from_kind=summary.from_kind,
        to_kind=summary.to_kind,
        num_rows=summary.num_rows,
        num_cases=summary.num_cases,
        num_written=summary.num_written,
        noted=dict(run.counts.noted),
        lost=summary.lost,
        columns=summary.guessed,
        translations=summary.translations,
    )


def _write_record(
    files: Sequence[Path], out: Path, config: Config, done: Conversion, tally: ConversionTally, *, seconds: float
) -> None:
    """Write the record beside the file, unless the one there is equal. The file is whole without it."""
    run = Run(
        stage="convert",
        config=msgspec.to_builtins(config),
        inputs={
            role: Input(path=str(path), sha256=file_hash(path)) for role, path in case_roles(files, "source").items()
        },
        outputs={out.name: file_hash(out)},
        versions=installed_versions(),
        counts=Counts(num_in=done.num_rows, num_used=done.num_rows, noted=done.noted),
        datasets=_datasets(files, config),
        summary=_summary(files, config, done, tally),
        seconds=round(seconds, 3),
    )
    write_file_record(out, run)


def _summary(files: Sequence[Path], config: Config, done: Conversion, tally: ConversionTally) -> ConversionSummary:
    settings = config.settings if done.to_kind == OWN_KIND else {}
    reader: Format = build("formats", done.from_kind, settings | done.columns)
    summary = ConversionSummary(
        from_kind=done.from_kind,
        to_kind=done.to_kind,
        num_files=len(files),
        num_bytes=sum(map(_size, files)),
        num_rows=done.num_rows,
        num_cases=done.num_cases,
        num_written=done.num_written,
        lost=done.lost,
        guessed=done.columns,
        translations=done.translations,
    )
    return tally.complete(summary, reader.keys)


def _datasets(files: Sequence[Path], config: Config) -> tuple[str, ...]:
    """Return the names on the Hub: the one of the settings, or those that the records of the files know."""
    if config.dataset_name:
        return (config.dataset_name,)
    return source_datasets((path, file_hash(path)) for path in files)


def _size(path: Path) -> int:
    """Return the bytes of a file, or of the files of a dataset saved to disk."""
    return sum(file.stat().st_size for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file())


@_encoding_as_setting()
def _convert(files: Sequence[Path], name: str, out: Path, config: Config, tally: ConversionTally) -> Conversion:
    is_to_cases = config.to_kind in (None, OWN_KIND)
    read_settings = config.settings if is_to_cases else {}
    form = TextForm(config.quotes, config.encoding)
    from_kind = config.from_kind or recognise(*files, settings=read_settings, form=form)
    to_kind = _target(from_kind, files, out, config, form)
    is_read_in = to_kind == OWN_KIND
    writer: WrittenFormat = build("formats", to_kind, {} if is_read_in else config.settings)
    if not writer.is_written:
        what = "a table of labels or ratings" if to_kind == TABLE_KIND else f"the format {to_kind!r}"
        do = Advice("name one of these: ", Remedy("to_kind", "trl"))
        raise KindError(f"{what} is only read", where="to_kind", allowed=_WRITTEN, do=do)
    if is_read_in and out.suffix not in CASE_SUFFIXES:
        raise OutputError("a case file cannot have this name", where=str(out), allowed="a name in .jsonl or .parquet")
    warnings, dropped, taken = Counter[str](), Counter[str](), Counter[str]()
    columns = table_columns(files, read_settings, form) if from_kind == TABLE_KIND else {}
    reader: Format = build("formats", from_kind, read_settings | columns)
    with _line_store(out, config, reader, from_kind, is_read_in=is_read_in) as store:
        is_own = from_kind == OWN_KIND
        read = _read(files, form, reader=reader, is_own=is_own, warnings=warnings, tally=tally)
        read = _counted(read, taken, "rows")
        if store is not None:
            read = _joined(track(read, f"reading {name}"), store, reader, warnings)
        elif reader.has_evidence_rows:
            read = with_unique_ids(read, warnings)
        read = _counted(_with_defaults(_with_evidence(read, config, warnings), config), taken, "cases")
        translations = None
        if config.translation_pairs is not None:
            read, translations = graded_pairs(read, config.translation_pairs, config.grading)
        shown = track(tally.cases(read), f"converting {name}")
        if is_read_in:
            num_written = write_cases(out, shown)
        else:
            rows = chain.from_iterable(map(split_rows, shown)) if has_pair_rows(writer.supports) else shown
            written = refuse_empty(writer.write(rows, dropped), to_kind, dropped, taken)
            num_written = _write_foreign(out, written)
    counts = (taken["rows"], taken["cases"], num_written)
    return Conversion(from_kind, to_kind, *counts, dict(+warnings), dict(+dropped), columns, translations)


@contextmanager
def _line_store(
    out: Path, config: Config, reader: Format, from_kind: str, *, is_read_in: bool
) -> Iterator[LineStore | None]:
    """Open a line store where rows will be joined; yield null otherwise."""
    has_rows = reader.has_evidence_rows or has_pair_rows(reader.supports)
    default = "joined" if from_kind != OWN_KIND and has_rows else "apart"
    if not is_read_in or (config.rows or default) == "apart":
        yield None
        return
    with part_folder(out) as folder, open_line_store(folder) as store:
        yield store


def _joined(cases: Iterable[Case], store: LineStore, reader: Format, warnings: Counter[str]) -> Iterator[Case]:
    """Yield every prompt once, in order of first appearance. Memory holds one prompt; the rows wait on disk."""
    # Two rows with ids of their own are about one prompt where both the id and the text are equal.
    by_id = "prompt ids" in reader.supports
    keys = partial(evidence_key, by_id=by_id) if reader.has_evidence_rows else prompt_key
    for place, case in enumerate(cases):
        store.add(keys(case) or f"row {place}".encode(), place, encode_case(case))
    store.index()
    joined = _joined_groups(store, reader, warnings)
    yield from with_unique_ids(joined, warnings) if reader.has_evidence_rows else joined


def _joined_groups(store: LineStore, reader: Format, warnings: Counter[str]) -> Iterator[Case]:
    for group in store.groups():
        if reader.has_evidence_rows:
            yield join_evidence([_decoder.decode(stored.line) for stored in group], warnings)
            continue
        for start in range(0, len(group), MOST_ROWS):
            rows = [_decoder.decode(stored.line) for stored in group[start : start + MOST_ROWS]]
            yield join_rows(rows, warnings) if len(rows) > 1 else rows[0]


def _write_foreign(out: Path, rows: Iterable[JsonObject]) -> int:
    """Write the rows with columns of one type; a file whose columns differ is written a second time."""
    if out.suffix != ".parquet":
        columns = UniformColumns()
        num_written = write_rows(out, columns.watch(rows))
        return (
            write_rows(out, (columns.uniform(row.value) for row in read_rows(out))) if columns.differ else num_written
        )
    import pyarrow

    try:
        return write_rows(out, with_uniform_columns(rows))
    except pyarrow.ArrowException as error:
        problem = f"these rows do not fit into columns of one type each ({error})"
        raise OutputError(problem, where=str(out), do="name a .jsonl file") from error


def _read(
    files: Sequence[Path],
    form: TextForm,
    *,
    reader: Format,
    is_own: bool,
    warnings: Counter[str],
    tally: ConversionTally,
) -> Iterator[Case]:
    are_lines = all(data_suffix(file) in CASE_SUFFIXES and not _is_array(file, form) for file in files)
    if is_own and form.encoding is None and are_lines:
        return read_case_files(files)
    read = chain.from_iterable(read_rows(file, form, warnings=warnings) for file in files)
    rows = count_pictures(tally.rows(read), warnings)
    return count_blanks(reader.read(rows, warnings), warnings)


def _is_array(file: Path, form: TextForm) -> bool:
    """Return whether the input is one JSON array; a dataset saved to disk is none."""
    return file.is_file() and not is_parquet(file) and is_array(file, form.encoding)


def _target(from_kind: str, files: Sequence[Path], out: Path, config: Config, form: TextForm) -> str:
    if config.to_kind is not None:
        return config.to_kind
    is_other = len(files) > 1 or files[0].suffix != out.suffix or _is_array(files[0], form)
    changes_file = is_other and out.suffix in CASE_SUFFIXES
    changes_evidence = config.ratings_to_judgments or config.evidence is not None or config.rows == "joined"
    changes_evidence |= config.translation_pairs is not None
    if from_kind == OWN_KIND and not changes_file and not changes_evidence and config.encoding is None:
        problem, do = "no format to write is named for a case file", Advice("say ", Remedy("to_kind", KIND))
        raise KindError(problem, where=str(out), allowed=_WRITTEN, do=do)
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
            raise RecordError(problem, do=Advice("leave ", Remedy("language"), " away, or give each case its own id"))
        if config.language:
            seen.add(filled.key)
        yield filled


def _counted(cases: Iterator[Case], taken: Counter[str], name: str) -> Iterator[Case]:
    for case in cases:
        taken[name] += 1
        yield case
