"""The verb `merge` on the command line."""

from pathlib import Path
from typing import Annotated

import typer


def command(
    cases: Annotated[list[Path], typer.Argument(help="Two case files or more.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder for cases.jsonl.")],
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record of the run as JSON.")] = False,
) -> None:
    """Join case files about the same prompts: the responses, judgments and ratings of all.

    Cases are matched by prompt id and language, what is in them by its own id. Where rankings differ, none is kept and
    the cases are counted: run `steelyard resolve` on the merged file.

    Example: `steelyard merge human.jsonl llm.jsonl --out merged`
    """
    from steelyard.cli.shown import show
    from steelyard.stages.merge import merge

    run = merge(cases, out, force=force)
    show(run, [f"{run.summary.num_cases:,} cases in {out / 'cases.jsonl'}"], as_json=as_json)
