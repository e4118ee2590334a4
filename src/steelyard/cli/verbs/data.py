"""Data: convert, merge, split and inspect case files, and simulate some to try things on."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.options import (
    CASES,
    ONLY,
    AsJson,
    SettingOption,
    StageArgument,
    StageOption,
    Values,
    complete_format,
    in_panel,
)
from steelyard.cli.output import report_step
from steelyard.cli.verb import FunctionVerb, StageVerb
from steelyard.cli.wording import command_line
from steelyard.core.text import number_of, verb_for

if TYPE_CHECKING:
    from steelyard.stages.convert import Conversion


_COLUMNS = (
    "prompt_column", "system_column", "chosen_column", "rejected_column", "first_column", "second_column",
    "label_column", "judge_column", "response_column", "rating_column", "author_column", "id_column", "language_column",
    "category_column", "reference_column",
)  # fmt: skip


def _move_format_settings(inputs: Values, settings: Values) -> None:
    """Move settings that are not those of `convert` to the settings of the format.

    Columns imply the format `columns`. Raises ConfigError where another one is named.
    """
    from steelyard.core.errors import ConfigError
    from steelyard.stages.convert import OWN_KIND, Config

    moved = {key: settings.pop(key) for key in list(settings) if key not in Config.__struct_fields__}
    table = settings.setdefault("settings", {})
    if not isinstance(table, dict):
        return  # The Config refuses it.
    settings["settings"] = table | moved
    columns = [f"--{name.replace('_', '-')}" for name in _COLUMNS if name in settings["settings"]]
    from_kind, to_kind = settings.get("from_kind"), settings.get("to_kind")
    if columns and "columns" not in (from_kind, to_kind):
        kind = from_kind or (to_kind if to_kind != OWN_KIND else None)
        if kind is not None:
            problem = f"{columns[0]} names a column of your own table, and the format {kind} has its own"
            raise ConfigError(problem, do=f"leave {columns[0]} or the format away")
        settings["from_kind"] = "columns"


def _convert_lines(conversion: "Conversion", out: Path) -> Iterator[str]:
    num_cases, num_rows, num_written = conversion.num_cases, conversion.num_rows, conversion.num_written
    written = (
        number_of(num_written, "case")
        if conversion.to_kind == "cases"
        else f"{number_of(num_written, 'row')} of {number_of(num_cases, 'case')}"
    )
    yield f"{out} has {written} ({conversion.from_kind} to {conversion.to_kind})."
    if conversion.columns:
        parts = [
            f"{key.removesuffix('_column').replace('_', ' ')}: {value if isinstance(value, str) else ' + '.join(value)}"
            for key, value in conversion.columns.items()
            if key.endswith("_column") and value
        ]
        yield f"  columns taken by their names: {'; '.join(parts)}"
    if num_rows > num_cases:
        yield (
            f"  {number_of(num_rows, 'row')} {verb_for(num_rows, 'is', 'are')} {number_of(num_cases, 'prompt')}; "
            "--rows apart keeps each row a case"
        )
    for title, counts in (("noted", conversion.noted), ("lost", conversion.lost)):
        for name, number in sorted(counts.items()):
            yield f"  {title}: {name} {number:,}"


CONVERT = StageVerb(
    "convert",
    """Convert preference data into a case file, or a case file into another format.

    Rows of pairs that share a prompt become one case, and rows again on the way back. Fields that a format cannot
    represent are counted and printed. `steelyard list formats` lists the formats; `--to` writes some of them.

    Example: `steelyard convert oasst.json cases.jsonl --language zh`

    Example: `steelyard convert pandalm.json people.jsonl --evidence human`

    Example: `steelyard convert cases.jsonl pairs.jsonl --to trl`

    Example: `steelyard convert rated.jsonl judged.jsonl --ratings-to-judgments`

    Name the columns of a table of your own: of pairs, labelled pairs, ratings, or prompts alone. A text file has a
    prompt in each line.

    Example: `steelyard convert own.csv cases.jsonl --prompt-column question --chosen-column good --rejected-column bad`

    Example: `steelyard convert scores.csv cases.jsonl --response-column text --rating-column score`

    Example: `steelyard convert questions.txt prompts.jsonl --language zh`

    Example: `steelyard convert questions.csv prompts.jsonl --prompt-column question`
    """,
    (
        StageArgument("source", "A file, a folder, a quoted pattern, or a dataset.", metavar="IN"),
        StageArgument("out", "The file: .jsonl, .parquet; .json for other formats."),
        SettingOption("from_kind", "--from", complete=complete_format),
        SettingOption("to_kind", "--to", complete=complete_format),
        SettingOption("language"),
        SettingOption("subset"),
        SettingOption("source"),
        SettingOption("dataset_name"),
        SettingOption("evidence"),
        SettingOption("ratings_to_judgments"),
        SettingOption("rows"),
        *in_panel(
            "Columns of your own table",
            *(
                SettingOption(f"settings.{name}", config=("steelyard.plugins.formats.columns", "Config"))
                for name in _COLUMNS
            ),
        ),
    ),
    _convert_lines,
    prepare=_move_format_settings,
)


MERGE = StageVerb(
    "merge",
    """Join case files about the same prompts: the responses, judgments and ratings of all.

    Cases are matched by prompt id and language, their contents by id. Where rankings differ, none is written and the
    cases are counted: run `steelyard resolve` on the merged file. Published sets number their prompts from 1: with
    `--ids by_source` those of different sources stay apart.

    Example: `steelyard merge human.jsonl llm.jsonl --out merged`
    """,
    (
        StageArgument("files", "Two case files or more, folders or quoted patterns."),
        StageOption("out", "The folder for cases.jsonl."),
        SettingOption("ids"),
    ),
)


SPLIT = StageVerb(
    "split",
    """Split a case file by prompt: what belongs together stays in one part.

    Branches of one conversation, one item in several languages and near-duplicate prompts are never divided; every part
    gets its share of each category, source and language.

    Near-duplicates are prompts that share at least 0.8 of their short runs of characters, in any language.
    `--near-duplicates off` joins equal prompts only.

    Example: `steelyard split cases.jsonl --out parts --part train=0.7 --part held_out=0.1 --part test=0.2`

    Example: `steelyard split cases.jsonl --out parts --near-duplicates 0.6 --stratify language --stratify source`
    """,
    (
        CASES,
        StageOption("out", "The folder for the parts."),
        SettingOption("parts", "--part", note="As NAME=SHARE; repeat."),
        SettingOption("near_duplicates"),
        SettingOption("strata", "--stratify", note="Repeat."),
        SettingOption("seed"),
    ),
)


AUDIT = StageVerb(
    "audit",
    """Find data to check: labels that a model disputes, conflicts, duplicates, and odd lengths.

    Nothing is changed or dropped. The labels are the pairs of the rankings, or those that a case lists. Character
    n-grams in folds judge them: each prompt is scored by a fit without it. `--scores` takes the scores of a better
    model instead, which must not have been trained on these prompts. The report of the run shows the findings.

    Example: `steelyard audit resolved/cases.jsonl --out audited`

    Example: `steelyard audit resolved/cases.jsonl --scores scored/scores.jsonl --out audited --confidence 0.9`
    """,
    (
        CASES,
        StageOption("out", "The folder for disputed.jsonl and run.json."),
        StageOption("scores", "Scores of a model that was not trained on these prompts."),
        SettingOption("confidence"),
        SettingOption("near_duplicates"),
        ONLY,
    ),
    next_step=report_step("shows them"),
)


def _inspect(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="CASES|RUN", help="A case file, or the --out folder of a stage.")],
    *,
    id_: Annotated[str | None, typer.Option("--id", help="Open this item. Without it the items are listed.")] = None,
    language: Annotated[str | None, typer.Option(help="Which language, where translations share an id.")] = None,
    scores: Annotated[list[Path] | None, typer.Option(help="Scores to show beside the answers; repeat.")] = None,
    model: Annotated[str | None, typer.Option(help="A trained model's folder: show what it reads, by tokens.")] = None,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Show tokens with their ids; of a run: of its own model.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="What counts: kind=, judge=, batch=NAME, evidence=aligned.")
    ] = None,
    aggregate: Annotated[str | None, typer.Option(help="majority: verdicts on one pair vote, as in resolve.")] = None,
    search: Annotated[str | None, typer.Option(help="List only items that hold this text anywhere.")] = None,
    limit: Annotated[int, typer.Option(help="How many items are listed at a time.")] = 20,
    page: Annotated[int, typer.Option(help="Which page of the list.")] = 1,
    worst: Annotated[int | None, typer.Option(help="Of an evaluation: its N most confident errors.")] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="model.KEY=VALUE: model.chat_template=plain; repeat.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look at one item: texts, who beats whom, cycles, tiers, scores, and the exact tokens that a model reads.

    Without `--id` it lists the items. Of a run it looks in the case files that the run wrote, then in those that it
    read, and it says where it found what. Nothing is written.

    The graph has a column for each response and an arrow for each outcome of a pair; `!` marks judgments in conflict.

    Example: `steelyard inspect cases.jsonl --search idiom`

    Example: `steelyard inspect resolved --id en-language-06`

    Example: `steelyard inspect evaluated --id en-language-06 --tokens`

    Example: `steelyard inspect evaluated --worst 5`
    """
    from steelyard.cli.output import echo_lines, echo_record, page_width
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.report.case_sources import choose_rule
    from steelyard.report.item_list import ItemFilter, list_lines, list_record
    from steelyard.report.item_page import page_lines, page_record
    from steelyard.report.worst_pairs import worst_lines, worst_record
    from steelyard.stages.inspect import Config, InspectOptions, inspect_item, inspect_items, inspect_worst

    wording = command_line(context)
    rule = choose_rule(only or (), aggregate)
    if worst is not None:
        listed = {"--id": id_, "--search": search, "--language": language, "--only": only, "--aggregate": aggregate}
        _check_without(
            "--worst", {**listed, "--scores": scores, "--model": model, "--tokens": tokens, "--set": setting}
        )
        errors = inspect_worst(path, worst)
        record, lines = worst_record(errors), worst_lines(errors, page_width(), wording)
    elif id_ is None:
        _check_requires("--id ID", {"--scores": scores, "--model": model, "--tokens": tokens})
        items = inspect_items(path, ItemFilter(search=search, language=language, limit=limit, page=page), rule=rule)
        record, lines = list_record(items, wording), list_lines(items, page_width(), wording)
    else:
        if model is None:
            _check_requires("--model FOLDER", {"--set": setting})
        settings = resolve_config(Config, parse_settings(setting or ()), where="inspect")
        options = InspectOptions(tuple(scores or ()), model, settings.model, tokens, rule)
        item = inspect_item(path, id_, options, language=language)
        record, lines = page_record(item), page_lines(item, page_width(), with_ids=tokens, wording=wording)
    if as_json:
        echo_record(record)
    else:
        echo_lines(lines)


def _check_requires(required: str, options: dict[str, Any]) -> None:
    """Raise ConfigError for the first option that is used without the one that it needs."""
    from steelyard.core.errors import ConfigError

    for name, value in options.items():
        if value:
            raise ConfigError(f"{name} needs {required}", do=f"give {required} too")


def _check_without(chosen: str, options: dict[str, Any]) -> None:
    """Raise ConfigError for the first option that has no meaning next to the chosen one."""
    from steelyard.core.errors import ConfigError

    for name, value in options.items():
        if value:
            raise ConfigError(f"{chosen} and {name} exclude each other", do=f"remove {name}")


SIMULATE = StageVerb(
    "simulate",
    """Make cases to try things on: hand-written good answers, generated worse ones, and simulated verdicts.

    No person judged anything here. `cases.jsonl` has the verdicts of simulated people, `llm.jsonl` those of a simulated
    LLM on other prompts, `gold.jsonl` the true ranking of both. `test.jsonl` has further prompts with their true
    ranking, and `kinds.jsonl` sets their good answers against one worse answer of each kind.

    Example: `steelyard simulate --out simulated --seed 1`
    """,
    (StageOption("out", "The folder for the case files."), SettingOption("seed")),
)


DESCRIBE = StageVerb(
    "describe",
    """Describe a data set: prompts, responses, comparisons, and mean lengths, by category, language, source and author.

    These are the numbers of Table 1 of CHEEMS. Comparisons are ordered pairs, so ties are none; the mean lengths of
    chosen and rejected responses are over comparisons. Characters are Unicode code points. With `--out` the folder has
    the table as Markdown and LaTeX, and the report of the run shows it. Nothing is changed.

    Example: `steelyard describe resolved/cases.jsonl`

    Example: `steelyard describe resolved/cases.jsonl --tokenizer model --out described`
    """,
    (
        StageArgument("cases", "Case files, folders or quoted patterns.", metavar="CASES"),
        StageOption("out", "The folder for table.md, table.tex and run.json. Default: the terminal alone."),
        SettingOption("tokenizer"),
        SettingOption("pairs"),
    ),
    next_step=report_step("shows them"),
)


VERBS = (CONVERT, MERGE, SPLIT, AUDIT, FunctionVerb("inspect", _inspect), SIMULATE, DESCRIBE)
