"""The verb `convert` on the command line."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from steelyard.cli.completion import complete_format


def command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A file, or a dataset saved to disk.")],
    out: Annotated[Path, typer.Argument(help="The file to write: .jsonl, .parquet, or .json for others than cases.")],
    *,
    from_kind: Annotated[
        str | None,
        typer.Option(
            "--from", autocompletion=complete_format, help="The format of IN. Default: recognised by its content."
        ),
    ] = None,
    to_kind: Annotated[
        str | None,
        typer.Option("--to", autocompletion=complete_format, help="The format of OUT. Default: cases, a case file."),
    ] = None,
    language: Annotated[str | None, typer.Option(help="The language of prompts that name none, such as zh.")] = None,
    subset: Annotated[str | None, typer.Option(help="The subset of prompts that name none.")] = None,
    source_name: Annotated[str | None, typer.Option("--source", help="The source of prompts that name none.")] = None,
    part: Annotated[
        Literal["human", "llm", "model"] | None,
        typer.Option(help="Keep only the judgments and ratings by people, by LLMs or by reward models."),
    ] = None,
    ratings_to_judgments: Annotated[
        bool, typer.Option("--ratings-to-judgments", help="Derive judgments from ratings; equal ones give none.")
    ] = False,
    rows: Annotated[
        Literal["joined", "apart"] | None,
        typer.Option(help="Rows of one prompt: one case (default for rows of pairs), or each its own."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the format, as KEY=VALUE; repeat."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Convert preference data into a case file, or a case file into another format.

    Rows of pairs that share a prompt become one case; back in a format of pairs they are the same rows, those of one
    prompt together. What a format cannot carry is counted and printed; nothing is dropped in silence.
    `steelyard list formats` names the formats.

    Example: `steelyard convert oasst.json cases.jsonl --language zh`

    Example: `steelyard convert pandalm.json people.jsonl --part human`

    Example: `steelyard convert cases.jsonl pairs.jsonl --to trl`

    Example: `steelyard convert cases.jsonl inside.jsonl --to trl --set implicit=true`

    Example: `steelyard convert rated.jsonl judged.jsonl --ratings-to-judgments`

    Example: `steelyard convert mine.jsonl cases.jsonl --from openrlhf --set chosen_key=good --set rejected_key=bad`
    """
    from steelyard.cli.shown import echo
    from steelyard.core.config import parse_settings
    from steelyard.stages.convert import Config, convert

    config = Config(
        from_kind=from_kind,
        to_kind=to_kind,
        language=language,
        subset=subset,
        source=source_name,
        part=part,
        ratings_to_judgments=ratings_to_judgments,
        rows=rows,
        settings=parse_settings(set_ or ()),
    )
    done = convert(source, out, config, force=force)
    if as_json:
        typer.echo(json.dumps(done._asdict(), indent=2, ensure_ascii=False))
        return
    echo(f"{done.from_kind} to {done.to_kind}: {done.num_cases:,} cases, {done.num_written:,} rows in {out}")
    if done.num_rows > done.num_cases:
        echo(f"  {done.num_rows:,} rows are {done.num_cases:,} prompts; --rows apart keeps each row a case")
    for title, counts in (("noted", done.noted), ("lost", done.lost)):
        for name, number in sorted(counts.items()):
            echo(f"  {title}: {name} {number:,}")
