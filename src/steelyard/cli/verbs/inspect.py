"""The verb `inspect` on the command line."""

from pathlib import Path
from typing import Annotated, Any

import typer


def command(
    path: Annotated[Path, typer.Argument(metavar="CASES|RUN", help="A case file, or the --out folder of a stage.")],
    *,
    id_: Annotated[str | None, typer.Option("--id", help="Open this item. Without it the items are listed.")] = None,
    language: Annotated[str | None, typer.Option(help="Which language, where translations share an id.")] = None,
    scores: Annotated[list[Path] | None, typer.Option(help="Scores to show beside the answers; repeat.")] = None,
    model: Annotated[str | None, typer.Option(help="A trained model's folder: show what it reads, by tokens.")] = None,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Show tokens with their ids; of a run: of its own model.")
    ] = False,
    only: Annotated[list[str] | None, typer.Option(help="Judgments that count: kind=, judge= or batch=NAME.")] = None,
    aggregate: Annotated[str | None, typer.Option(help="majority: verdicts on one pair vote, as in resolve.")] = None,
    search: Annotated[str | None, typer.Option(help="List only items that hold this text anywhere.")] = None,
    limit: Annotated[int, typer.Option(help="How many items are listed at a time.")] = 20,
    page: Annotated[int, typer.Option(help="Which page of the list.")] = 1,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="model.KEY=VALUE: model.chat_template=plain; repeat.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False,
) -> None:
    """Look at one item: texts, who beats whom, cycles, tiers, scores, and the exact tokens that a model reads.

    Without `--id` it lists the items. Of a run it looks in the case files that the run wrote, then in those that it
    read, and it says where it found what. Nothing is written.

    The graph has a column for each response and an arrow for each outcome of a pair; `!` marks judgments in conflict.

    Example: `steelyard inspect cases.jsonl --search idiom`

    Example: `steelyard inspect resolved --id en-language-06`

    Example: `steelyard inspect evaluated --id en-language-06 --tokens`
    """
    from steelyard.cli.output import echo_lines, echo_record, page_width
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.report.case_sources import choose_rule
    from steelyard.report.item_list import ItemFilter, list_lines, list_record
    from steelyard.report.item_page import page_lines, page_record
    from steelyard.stages.inspect import Config, InspectOptions, inspect_item, inspect_items

    rule = choose_rule(only or (), aggregate)
    if id_ is None:
        _need("--id ID", {"--scores": scores, "--model": model, "--tokens": tokens})
        item_filter = ItemFilter(search=search, language=language, limit=limit, page=page)
        items = inspect_items(path, item_filter, rule=rule)
        if as_json:
            echo_record(list_record(items))
        else:
            echo_lines(list_lines(items, page_width()))
        return
    if model is None:
        _need("--model FOLDER", {"--set": setting})
    settings = resolve_config(Config, parse_settings(setting or ()), where="inspect")
    options = InspectOptions(tuple(scores or ()), model, settings.model, tokens, rule)
    item = inspect_item(path, id_, options, language=language)
    if as_json:
        echo_record(page_record(item))
    else:
        echo_lines(page_lines(item, page_width(), with_ids=tokens))


def _need(needed: str, options: dict[str, Any]) -> None:
    """Raise ConfigError for the first option that is used without the one that it needs."""
    from steelyard.core.errors import ConfigError

    for name, value in options.items():
        if value:
            raise ConfigError(f"{name} needs {needed}", do=f"say {needed} too")
