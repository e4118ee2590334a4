"""The verb `supervise` on the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.completion import complete_model
from steelyard.cli.model_options import (
    ChatTemplateOption,
    MaxLengthOption,
    OverLengthOption,
    with_model_options,
)

if TYPE_CHECKING:
    from steelyard.stages.supervise import SupervisionSummary


def command(
    cases: Annotated[Path, typer.Argument(help="The case file with the judgments to be supervised.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder for cases.jsonl, manifest.jsonl and run.json.")],
    model: Annotated[
        str | None,
        typer.Option(autocompletion=complete_model, help="The supervisor: a trained model's folder, or a kind."),
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(help="The supervisor's scores of the cases, instead of --model.")
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="What to drop: agree (default), cycles or weight; see above.")
    ] = None,
    tau: Annotated[float | None, typer.Option(help="With agree: the least margin for a verdict (default 0).")] = None,
    keep_ties: Annotated[bool, typer.Option("--keep-ties", help="With agree: keep ties too.")] = False,
    calibrate: Annotated[
        Path | None, typer.Option(help="Choose tau by these held-out cases, judged by people too.")
    ] = None,
    calibrate_scores: Annotated[
        Path | None, typer.Option(help="The supervisor's scores of those cases, where --scores is given.")
    ] = None,
    precision: Annotated[
        float | None, typer.Option(help="With --calibrate: the share of kept verdicts that must be right.")
    ] = None,
    confidence: Annotated[float | None, typer.Option(help="How sure that share must be (default 0.95).")] = None,
    train_cases: Annotated[
        Path | None, typer.Option(help="What the supervisor was trained on: it may not judge these prompts.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Filter judgments of kind=, judge= or batch=NAME; repeat. Default: kind=llm, kind=model."),
    ] = None,
    over_length: OverLengthOption = None,
    max_length: MaxLengthOption = None,
    chat_template: ChatTemplateOption = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting, as KEY=VALUE; repeat. An unknown KEY lists all.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record of the run as JSON.")] = False,
) -> None:
    """Let a reward model trained on human judgments filter those of an LLM (distant supervision).

    Policies: `agree` keeps a strict verdict if the model's margin for it is above 0 and at least tau, and drops ties;
    `cycles` drops only what closes a cycle, the pairs with the smallest margin first; `weight` drops nothing and lists
    each pair with the model's belief in it as its weight.

    OUT/cases.jsonl has what is kept, ranked again; manifest.jsonl has each dropped judgment with its rule. A supervisor
    may not judge prompts that it was trained on.

    With --calibrate, tau is the smallest at which the kept verdicts are right as often as --precision asks. That file
    needs judgments by people and by the LLM on the same pairs.

    Example: `steelyard supervise llm.jsonl --model my-rm --out supervised --tau 0.5`

    Example: `steelyard supervise llm.jsonl --model my-rm --out calibrated --calibrate held_out.jsonl --precision 0.9`

    Example: `steelyard supervise llm.jsonl --scores scored/scores.jsonl --out acyclic --policy cycles`
    """
    from steelyard.cli.shown import show
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.ranking.judgment_table import parse_only
    from steelyard.stages.supervise import Config, supervise

    flags = {"policy": policy, "tau": tau, "precision": precision, "confidence": confidence}
    given: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    given |= {"keep_ties": True} if keep_ties else {}
    given |= {"only": parse_only(only)} if only else {}
    read = {"over_length": over_length, "max_length": max_length, "chat_template": chat_template}
    config = resolve_config(
        Config, with_model_options(parse_settings(settings or ()), **read) | given, where="supervise"
    )
    run = supervise(
        cases,
        out,
        config,
        model=model,
        scores=scores,
        calibrate=calibrate,
        calibrate_scores=calibrate_scores,
        train_cases=train_cases,
        force=force,
    )
    show(run, _lines(run.summary, out), as_json=as_json)


def _lines(summary: "SupervisionSummary", out: Path) -> list[str]:
    kept = f"{summary.num_strict_kept:,} of {summary.num_strict:,} strict judgments kept"
    coverage = summary.coverage
    lines = [f"{kept} ({coverage.strict:.1%}), in {coverage.prompts:.1%} of the prompts: {out / 'cases.jsonl'}"]
    row = next((row for row in summary.by_tau if row.tau == summary.tau), None)
    if row and row.precision.n:
        share = row.precision
        interval = f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]"
        lines.append(f"precision at tau {row.tau:.6g}: {interval} of {share.n:,}, from {summary.precision_from}")
    certificate = summary.calibration
    if certificate:
        lines.append(f"certified: at least {certificate.precision} with confidence {certificate.confidence}")
    return [*lines, f"dropped judgments with their rules: {out / 'manifest.jsonl'}"]
