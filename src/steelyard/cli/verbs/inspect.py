"""The verb `inspect`: items of a case file or a run on the terminal."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.options import AsJson, Verbose
from steelyard.cli.verb import FunctionVerb
from steelyard.cli.wording import command_line

if TYPE_CHECKING:
    from steelyard.core.types import Run


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
    out: Annotated[Path | None, typer.Option(help="Without --id: the folder for the record of the statistics.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace another run's statistics in --out.")] = False,
    tokenizer: Annotated[str | None, typer.Option(help="Without --id: count the tokens of this model, too.")] = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Look at a data set or one of its items: texts, who beats whom, cycles, tiers, scores, and a model's tokens.

    Without `--id` it describes a case file by the numbers of Table 1 of CHEEMS (prompts, responses, comparisons
    without ties, mean lengths; `--verbose`: by category, language, source and author) and lists the items. With `--out`
    the record of the statistics is written for the report; nothing else is written. Of a run it looks in the case
    files that the run wrote, then in those that it read, and it says where it found what.

    Example: `steelyard inspect resolved/cases.jsonl --out described`

    The graph has a column for each response and an arrow for each outcome of a pair; `!` marks judgments in conflict.

    Example: `steelyard inspect cases.jsonl --search idiom`

    Example: `steelyard inspect resolved --id en-language-06`

    Example: `steelyard inspect evaluated --id en-language-06 --tokens`

    Example: `steelyard inspect evaluated --worst 5`
    """
    from steelyard.cli.output import echo_lines, echo_record, page_width
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.io.run_folder import RUN_FILE
    from steelyard.report.case_sources import choose_rule
    from steelyard.report.item_list import ItemFilter, list_lines, list_record
    from steelyard.report.item_page import page_lines, page_record
    from steelyard.report.worst_pairs import worst_lines, worst_record
    from steelyard.stages.inspect import Config, InspectOptions, inspect_item, inspect_items, inspect_worst

    wording, described = command_line(context), None
    if id_ is not None or worst is not None:
        chosen = "--id" if worst is None else "--worst"
        _check_without(chosen, {"--out": out, "--tokenizer": tokenizer, "--verbose": verbose})
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
        item_filter = ItemFilter(search=search, language=language, limit=limit, page=page)
        item_filter.check()
        if search is None and page == 1 and not (path / RUN_FILE).is_file():
            described = _describe(path, out, tokenizer, force=force, verbose=verbose, as_json=as_json)
            if not path.is_file():
                return
        else:
            _check_without("a list of items", {"--out": out, "--tokenizer": tokenizer, "--verbose": verbose})
        items = inspect_items(path, item_filter, rule=rule)
        record, lines = list_record(items, wording), list_lines(items, page_width(), wording)
        if described is not None:
            record["statistics"] = described.summary
    else:
        if model is None:
            _check_requires("--model FOLDER", {"--set": setting})
        settings = resolve_config(Config, parse_settings(setting or ()), where="inspect")
        options = InspectOptions(tuple(scores or ()), model, settings.model, tokens, rule)
        item = inspect_item(path, id_, options, language=language)
        record, lines = page_record(item), page_lines(item, page_width(), with_ids=tokens, wording=wording)
    echo_record(record) if as_json else echo_lines(lines)


def _describe(
    path: Path, out: Path | None, tokenizer: str | None, *, force: bool, verbose: bool, as_json: bool
) -> "Run[Any]":
    """Print the statistics of case files; as JSON only where no items follow."""
    from steelyard.cli.output import echo_record, print_lines, run_answer, step_line
    from steelyard.stages.describe import Config, describe
    from steelyard.views.view import report_step

    described = describe([path], out, Config(tokenizer=tokenizer), force=force)
    if not as_json:
        following = [] if out is None else [step_line(report_step("shows them")(described, out))]
        print_lines([*run_answer(described, out or Path(), is_verbose=verbose), *following, ""])
    elif not path.is_file():
        echo_record(described)
    return described


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


INSPECT = FunctionVerb("inspect", _inspect)
