"""The verb `convert`: any known format into a case file and back; parts that a format loses are counted.

``OUT`` is a file of its own. The record of the conversion is ``OUT.run/run.json``, beside it. As a stage of a recipe it
has a folder, as every other stage.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, KindError, OutputError
from steelyard.core.remedies import KIND, Advice, Remedy
from steelyard.core.types import Case, Counts, JsonObject, Run
from steelyard.curation.conversion import (
    Conversion,
    ConversionSummary,
    ConversionTally,
    count_equal_texts,
    with_defaults,
    with_evidence,
)
from steelyard.evaluation.recognition import OWN_KIND, WRITTEN_KINDS, format_of, written_format
from steelyard.io.cases import CASE_SUFFIXES, write_cases
from steelyard.io.conversion_record import conversion_summary, convert_once, datasets_of
from steelyard.io.foreign_cases import (
    encoding_as_setting,
    is_json_array,
    ranking_advice,
    read_foreign_cases,
    source_files,
    write_foreign_cases,
)
from steelyard.io.joined_rows import joined_rows, row_store
from steelyard.io.rows import Quotes, TextForm
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import Argument, SettingOption, Verb, settings
from steelyard.translation.grading import GradingConfig, graded_pairs


class Config(BaseConfig, frozen=True):
    """Settings of a conversion. `only_kind` documents the rule of ``evidence`` for rankings.

    Null ``rows`` joins those of formats that have a pair, a judgment or an answer a row, and leaves case files alone.
    """

    from_kind: Annotated[str, msgspec.Meta(extra={"kinds_of": "formats"})] | None = None
    """The format of IN. Default: by its content."""
    to_kind: Annotated[str, msgspec.Meta(extra={"values": WRITTEN_KINDS})] | None = None
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
            "judge_kind",
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

    Raises KindError when the format is not recognised, OutputError when ``out`` holds anything but equal content,
    RecordError for a broken row.
    """
    if out.is_dir():
        raise OutputError("there is a folder of this name", where=str(out), do="name a file")
    sources = source_files([source], dataset_name=config.dataset_name, encoding=config.encoding)
    files = tuple(sources.values())
    if out.exists() and any(file.exists() and out.samefile(file) for file in files):
        raise OutputError("a file cannot be converted into itself", where=str(out), do="name another")
    return convert_once(
        sources,
        out,
        config,
        lambda place, tally: _convert(files, source.name, place, config, tally),
        dataset_name=config.dataset_name,
        force=force,
    )


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
    sources = source_files(files, dataset_name=config.dataset_name, encoding=config.encoding)
    data_files = tuple(sources.values())

    def write(result: Result) -> None:
        tally = ConversionTally()
        written = msgspec.structs.replace(config, to_kind=OWN_KIND)
        done = _convert(data_files, data_files[0].name, result.path("cases.jsonl"), written, tally)
        result.counts = Counts(num_in=done.num_rows, num_used=done.num_rows, noted=done.noted)
        result.summary = conversion_summary(sources, done, tally)
        result.datasets = datasets_of(sources, config.dataset_name)

    return run_stage(out, "convert", Run[ConversionSummary], write, config=config, inputs=sources, force=force)


@encoding_as_setting()
def _convert(files: Sequence[Path], name: str, out: Path, config: Config, tally: ConversionTally) -> Conversion:
    read_settings = config.settings if config.to_kind in (None, OWN_KIND) else {}
    form = TextForm(config.quotes, config.encoding)
    from_kind, columns, reader = format_of(files, config.from_kind, read_settings, form)
    to_kind = _target(from_kind, files, out, config, form)
    is_read_in = to_kind == OWN_KIND
    writer = written_format(to_kind, {} if is_read_in else config.settings)
    if is_read_in and out.suffix.lower() not in CASE_SUFFIXES:
        raise OutputError("a case file cannot have this name", where=str(out), allowed="a name in .jsonl or .parquet")
    warnings, dropped, taken = Counter[str](), Counter[str](), Counter[str]()
    is_own = from_kind == OWN_KIND
    with row_store(out, reader, config.rows if is_read_in else "apart", is_own=is_own) as store:
        read = read_foreign_cases(files, form, reader=reader, is_own=is_own, warnings=warnings, tally=tally)
        read = joined_rows(_counted(read, taken, "rows"), store, reader, warnings, name=name)
        read = with_evidence(read, warnings, kind=config.evidence, derives_judgments=config.ratings_to_judgments)
        read = with_defaults(read, {name: getattr(config, name) for name in ("language", "subset", "source")})
        read, translations = _counted(read, taken, "cases"), None
        if config.translation_pairs is not None:
            read, translations = graded_pairs(read, config.translation_pairs, config.grading)
        read = tally.cases(read)
        if is_read_in:
            num_written = write_cases(out, read)
        else:
            read = count_equal_texts(read, warnings)
            advice = ranking_advice(files, is_own=is_own)
            num_written = write_foreign_cases(
                out, read, writer, to_kind, dropped=dropped, taken=taken, ranked_by=advice
            )
    counts = (taken["rows"], taken["cases"], num_written)
    return Conversion(from_kind, to_kind, *counts, dict(+warnings), dict(+dropped), columns, translations)


def _target(from_kind: str, files: Sequence[Path], out: Path, config: Config, form: TextForm) -> str:
    if config.to_kind is not None:
        return config.to_kind
    is_other = len(files) > 1 or files[0].suffix != out.suffix or is_json_array(files[0], form)
    changes_file = is_other and out.suffix.lower() in CASE_SUFFIXES
    changes_evidence = config.ratings_to_judgments or config.evidence is not None or config.rows == "joined"
    changes_evidence |= config.translation_pairs is not None
    if from_kind == OWN_KIND and not changes_file and not changes_evidence and config.encoding is None:
        problem, do = "no format to write is named for a case file", Advice("say ", Remedy("to_kind", KIND))
        raise KindError(problem, where=str(out), allowed=WRITTEN_KINDS, do=do)
    return OWN_KIND


def _counted(cases: Iterator[Case], taken: Counter[str], name: str) -> Iterator[Case]:
    for case in cases:
        taken[name] += 1
        yield case
