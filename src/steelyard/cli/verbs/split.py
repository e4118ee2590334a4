"""The verb `split` on the command line."""

from pathlib import Path
from typing import Annotated

import typer


def command(
    cases: Annotated[Path, typer.Argument(help="The case file.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder for the parts.")],
    part: Annotated[list[str] | None, typer.Option(help="NAME=SHARE; repeat. Default: train=0.8 and test=0.2.")] = None,
    near_duplicates: Annotated[
        str | None, typer.Option(help="From which similarity on prompts stay together, or off. Default: 0.8.")
    ] = None,
    stratify: Annotated[
        list[str] | None,
        typer.Option(help="Keep shares equal by category, source or language; repeat. Default: all three."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed is another split.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record of the run as JSON.")] = False,
) -> None:
    """Split a case file by prompt: what belongs together stays on one side.

    Branches of one conversation, one item in several languages and near-duplicate prompts are never divided; every
    part gets its share of each category, source and language.

    Near-duplicates are prompts that share at least 0.8 of their short runs of characters, in any language.
    `--near-duplicates off` joins equal prompts only.

    Example: `steelyard split cases.jsonl --out parts --part train=0.7 --part held_out=0.1 --part test=0.2`

    Example: `steelyard split cases.jsonl --out parts --near-duplicates 0.6 --stratify language --stratify source`
    """
    from steelyard.cli.shown import show
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.core.errors import ConfigError
    from steelyard.stages.split import Config, split

    names = [one.partition("=")[0] for one in part or ()]
    if len(set(names)) < len(names):
        raise ConfigError(f"a part is named twice: {', '.join(names)}", where="--part", do="name each part once")
    near = [f"near_duplicates={near_duplicates}"] if near_duplicates is not None else []
    settings = {
        "seed": seed,
        **({"parts": parse_settings(part, option="--part")} if part else {}),
        **parse_settings(near),
        **({"strata": stratify} if stratify else {}),
    }
    run = split(cases, out, resolve_config(Config, settings, where="split"), force=force)
    lines = [f"{name}: {size} cases in {out / name}.jsonl" for name, size in run.summary.parts.items()]
    if joined := run.summary.num_joined_as_near_duplicates:
        lines.append(f"near-duplicates: {joined} prompts go with another; largest group {run.summary.largest_group}")
    show(run, lines, as_json=as_json)
