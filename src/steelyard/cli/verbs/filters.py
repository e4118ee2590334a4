"""The verb `filters` on the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from steelyard.stages.filter_study import FilterStudySummary
    from steelyard.statistics.intervals import Estimate


def command(
    cases: Annotated[Path, typer.Argument(help="The case file, judged by people and by the judge.")],
    *,
    judge: Annotated[str, typer.Option(help="Whose verdicts are filtered, as named in the file.")],
    out: Annotated[Path, typer.Option(help="The folder for filters.json, filters.svg, verdicts.jsonl and run.json.")],
    model: Annotated[
        str, typer.Option(help="The supervisor, a kind that is taught by people's judgments: ngram or features.")
    ] = "ngram",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting, as KEY=VALUE; repeat. An unknown KEY lists all.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record of the run as JSON.")] = False,
) -> None:
    """Find out whether filtering a judge's verdicts pays on your data: label precision, and the model learnt from them.

    A reward model learns from people's judgments and never scores a prompt that it has learnt from. Of each filter by
    its margin the study says how many verdicts stay and how often these are what people say, beside length and chance
    at an equal coverage. Then models are trained on people's judgments of few prompts and the judge's verdicts of the
    others, filtered or not, and tested on people's judgments.

    Example: `steelyard filters judged.jsonl --judge gpt-4 --out studied`

    Example: `steelyard filters judged.jsonl --judge gpt-4 --out precise --set human_shares=[]`

    Example: `steelyard filters judged.jsonl --judge gpt-4 --out frozen --model features
    --set model.path=Qwen/Qwen2.5-0.5B --set model.cache=features --set repetitions=1 --set human_shares=[0.5]`
    """
    from steelyard.cli.shown import show
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.stages.filter_study import Config, filter_study

    config = resolve_config(Config, parse_settings(settings or ()) | {"judge": judge}, where="filters")
    run = filter_study(cases, out, config, model=model, force=force)
    show(run, [*_lines(run.summary), f"{out / 'filters.svg'}"], as_json=as_json)


def _lines(summary: "FilterStudySummary") -> Iterator[str]:
    precision = summary.precision
    if precision:
        yield f"precision of {summary.judge}'s verdicts by people's majority, supervised by {summary.model}"
        yield f"{'filter':<28}{'kept':>7}{'coverage':>10}  {'precision':<24}{'over random':<24}over length"
        for row in precision.filters:
            line = f"{row.filter:<28}{row.num_kept:>7,}{row.coverage:>10.1%}  {_interval(row.precision):<24}"
            yield f"{line}{_interval(row.over_random):<24}{_interval(row.over_length)}"
        areas = precision.area_under_curve
        yield f"area under the curve: margin {_interval(areas.margin)}, length {_interval(areas.length)}"
    for trial in summary.downstream:
        yield f"\ntrained on people's judgments of {trial.human_prompts:.0f} prompts, tested on people's pairs"
        yield f"{'learns from':<34}{'pairs':>7}  {'accuracy':<24}{'minus human only':<24}minus all verdicts"
        for arm in trial.arms:
            line = f"{arm.arm:<34}{arm.num_pairs:>7,.0f}  {_interval(arm.accuracy):<24}"
            yield f"{line}{_interval(arm.minus_human):<24}{_interval(arm.minus_all)}"
    yield "intervals are 95 %, over prompts, paired; not corrected for their number"


def _interval(share: "Estimate") -> str:
    if share.value is None:
        return "-"
    return f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]"
