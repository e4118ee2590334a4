"""The verb `split` on the command line."""

from pathlib import Path
from typing import Annotated

import typer


def command(
    cases: Annotated[Path, typer.Argument(help="The case file.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder for the parts.")],
    part: Annotated[list[str] | None, typer.Option(help="NAME=SHARE; repeat. Default: train=0.8, test=0.2.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed is another split.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace another run in OUT.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the run as JSON.")] = False,
) -> None:
    """Split a case file by prompt: what belongs together stays on one side.

    Branches of one conversation and one item in several languages are never divided; every part gets its share of
    each category, source and language.

    Example: `steelyard split cases.jsonl --out parts --part train=0.7 --part held_out=0.1 --part test=0.2`
    """
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.doors.shown import show
    from steelyard.stages.split import Config, split

    settings = {"seed": seed, **({"parts": parse_settings(part)} if part else {})}
    run = split(cases, out, resolve_config(Config, settings, where="split"), force=force)
    show(
        run,
        [f"{name}: {size} cases in {out / name}.jsonl" for name, size in run.summary["parts"].items()],
        as_json=as_json,
    )
