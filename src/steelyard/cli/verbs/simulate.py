"""The verb `simulate` on the command line."""

from pathlib import Path
from typing import Annotated

import typer


def command(
    *,
    out: Annotated[Path, typer.Option(help="The folder for the case files.")],
    seed: Annotated[int, typer.Option(help="Another seed is another simulation.")] = 0,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE: num_prompts=40, held_out_kind=garbled …; repeat.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record of the run as JSON.")] = False,
) -> None:
    """Make cases to try things on: hand-written good answers, worse ones by code, and simulated verdicts.

    No person judged anything here. `cases.jsonl` has the verdicts of simulated people, `llm.jsonl` those of a simulated
    LLM on the same responses, `gold.jsonl` their true ranking. `test.jsonl` has other prompts with their true ranking,
    and `kinds.jsonl` sets their good answers against one worse answer of each kind.

    Example: `steelyard simulate --out simulated --seed 1`
    """
    from steelyard.cli.shown import show
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.stages.simulate import Config, simulate

    config = resolve_config(Config, {"seed": seed, **parse_settings(setting or ())}, where="simulate")
    run = simulate(out, config, force=force)
    lines = ["simulated: worse answers by code, verdicts by a noise model"]
    lines += [f"{part}: {number} prompts" for part, number in run.summary.num_prompts.items()]
    lines += [f"{number:,} judgments of kind {kind}" for kind, number in run.summary.num_judgments.items()]
    show(run, lines, as_json=as_json)
