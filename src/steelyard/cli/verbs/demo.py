"""The verb `demo` on the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from steelyard.ranking.conflicts import Conflicts
    from steelyard.recipes.demo import Demo


def command(
    *,
    out: Annotated[Path, typer.Option(help="The folder for everything.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Another seed is another simulation and another model.")] = 0,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="STAGE.KEY=VALUE: model.epochs=2, simulated.test_share=0.3 …")
    ] = None,
    redo_from: Annotated[
        str | None, typer.Option("--from", help="Run this stage and all that follow from it again.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Go the whole path on built-in data, on a CPU, in minutes: from verdicts to a reward model and a page to read.

    The good answers are written by hand; the worse ones and all verdicts are simulated. Finished stages are skipped:
    run it again after a kill and it goes on. `steelyard run demo --dry-run` names the stages.

    Example: `steelyard demo --out demo`
    """
    import msgspec

    from steelyard.cli.shown import echo
    from steelyard.core.config import parse_settings
    from steelyard.recipes.demo import demo

    done = demo(out, parse_settings(setting or ()), seed=seed, redo_from=redo_from)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(_record(done)), indent=2).decode())
        return
    for line in _lines(done):
        echo(line)


def _record(done: "Demo") -> dict[str, Any]:
    return {
        "simulated": True,
        "summary": {name: run.summary for name, run in done.runs.items()},
        "seconds": {name: run.seconds for name, run in done.runs.items()},
        "right_by_key": done.right_by_key._asdict(),
        "page": str(done.page),
    }


def _lines(done: "Demo") -> Iterator[str]:
    """What a person wants to know, and first of all that nobody judged anything here."""
    names = ("simulated", "resolved", "evaluated", "by_kind")
    made, resolved, found, kinds = (done.runs[name].summary for name in names)
    parts, conflicts, right = made.num_prompts, resolved.conflicts.overall, done.right_by_key
    llm = done.runs["resolved_llm"].summary.conflicts.overall
    yield "SIMULATED: the worse answers are made by code and all verdicts by a noise model. This shows the path; it is"
    yield "no evidence about people or models."
    yield f"prompts               {parts['train']} to learn from, {parts['test']} others to test on"
    yield f"conflict ratio        {_ratio(conflicts)} of simulated people"
    yield f"                      {_ratio(llm)} of a simulated LLM, not trained on"
    yield f"ordered by rankings   {conflicts.share_of_pairs_ordered:.1%} of the pairs: {right.total:,}, of which"
    yield f"                      {right.number / right.total:.1%} as in the answer key"
    yield f"accuracy              {_interval(found['accuracy'])}; exact match {_interval(found['exact_match'])}"
    for name, own in found["baselines"].items():
        yield f"  {name:20}{_interval(own['accuracy'])}; model minus {name} {_interval(own['difference'])}"
    yield from _by_kind(kinds)
    yield f"all of it with figures: {done.page}"


def _by_kind(summary: dict[str, Any]) -> Iterator[str]:
    """How often the good answer scored above one worse answer of each kind; chance is a half."""
    learnt = summary["baselines"].get("ngram")
    yield "the good answer above a worse one that is" + (" (in brackets: by the ngram baseline)" if learnt else "")
    for kind, own in summary["by_category"].items():
        beside = f" ({learnt['by_category'][kind]['accuracy']['value']:.3f})" if learnt else ""
        yield f"  {kind:31}{_interval(own['accuracy'])}{beside}"


def _ratio(conflicts: "Conflicts") -> str:
    return f"{conflicts.ratio:.1%} of {conflicts.num_judgments:,} verdicts"


def _interval(estimate: dict[str, Any]) -> str:
    return f"{estimate['value']:.3f} [{estimate['low']:.3f}, {estimate['high']:.3f}]"
