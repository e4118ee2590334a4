"""The verb `score` on the command line."""

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.completion import complete_model
from steelyard.cli.model_options import (
    ChatTemplateOption,
    MaxLengthOption,
    OverLengthOption,
    with_model_options,
)


def command(
    cases: Annotated[Path, typer.Argument(help="The case file.")],
    *,
    model: Annotated[
        str,
        typer.Option(autocompletion=complete_model, help="A trained model's folder, or a kind: steelyard list models."),
    ],
    out: Annotated[Path, typer.Option(help="The folder for scores.jsonl and run.json.")],
    over_length: OverLengthOption = None,
    max_length: MaxLengthOption = None,
    chat_template: ChatTemplateOption = None,
    no_self_test: Annotated[
        bool, typer.Option("--no-self-test", help="Skip the tests of the model before it scores; the run records it.")
    ] = False,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="model.KEY=VALUE for the model's own settings; repeat.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record of the run as JSON.")] = False,
) -> None:
    """Score every response of a case file with a reward model.

    OUT/scores.jsonl has one line for each case: the score of each response id, or null and the reason. Before it
    scores, a model is tested on a few of the cases: batches, packing, beginning mark, last token, head, length.

    Example: `steelyard score cases.jsonl --model my-model --out scored`
    """
    from steelyard.cli.shown import show
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.evaluation.coverage import coverage_lines
    from steelyard.stages.score import Config, score

    read = {"over_length": over_length, "max_length": max_length, "chat_template": chat_template}
    settings = with_model_options(parse_settings(setting or ()), **read)
    if no_self_test:
        settings["self_test"] = False
    config = resolve_config(Config, settings, where="score")
    run = score(cases, out, config, model=model, force=force)
    summary = run.summary
    num_scored = summary.num_responses - summary.unscored.num_responses
    count = f"{num_scored:,} of {summary.num_responses:,} responses have a score"
    lines = [f"{count}: {out / 'scores.jsonl'}", *coverage_lines(summary.coverage)]
    show(run, lines, as_json=as_json)
