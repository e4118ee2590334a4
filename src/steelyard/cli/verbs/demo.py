"""The verb `demo` on the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.output import echo_record, interval_text, print_lines
from steelyard.cli.pipelines import AsJson, RedoFrom, StageSettings

if TYPE_CHECKING:
    from steelyard.evaluation.summary import EvaluationSummary
    from steelyard.ranking.conflicts import Conflicts
    from steelyard.recipes.demo import Demo


def command(
    *,
    out: Annotated[Path, typer.Option(help="The folder for everything.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Another seed is another simulation and another model.")] = 0,
    settings: StageSettings = None,
    redo_from: RedoFrom = None,
    as_json: AsJson = False,
) -> None:
    """Run the whole pipeline on built-in data, on a CPU, in minutes: from verdicts to a reward model and a report.

    The good answers are written by hand; the worse ones and all verdicts are simulated. Finished stages are skipped;
    an interrupted run resumes. `steelyard run demo --dry-run` lists the stages.

    Example: `steelyard demo --out demo`
    """
    from steelyard.core.config import parse_settings
    from steelyard.recipes.demo import demo

    done = demo(out, parse_settings(settings or ()), seed=seed, redo_from=redo_from)
    if as_json:
        echo_record(_record(done))
    else:
        print_lines(_lines(done))


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
    simulated, resolved, evaluated, by_kind = (
        done.runs[name].summary for name in ("simulated", "resolved", "evaluated", "by_kind")
    )
    parts, conflicts, right = simulated.num_prompts, resolved.conflicts.overall, done.right_by_key
    yield "SIMULATED: the worse answers are made by code and all verdicts by a noise model. This shows the path; it is"
    yield "no evidence about people or models."
    yield f"prompts               {parts['train']} to learn from, {parts['test']} others to test on"
    yield f"conflict ratio        {_ratio(conflicts)} of simulated people"
    of_llm = done.runs["resolved_llm"].summary.conflicts.overall
    yield f"                      {_ratio(of_llm)} of a simulated LLM, not trained on"
    yield f"ordered by rankings   {conflicts.share_of_pairs_ordered:.1%} of the pairs: {right.total:,}, of which"
    yield f"                      {right.number / right.total:.1%} as in the answer key"
    accuracy, exact_match = interval_text(evaluated.accuracy), interval_text(evaluated.exact_match)
    yield f"accuracy              {accuracy}; exact match {exact_match}"
    for name, baseline in evaluated.baselines.items():
        difference = interval_text(baseline.difference)
        yield f"  {name:20}{interval_text(baseline.accuracy)}; model minus {name} {difference}"
    yield from _kind_lines(by_kind)
    yield f"all of it with figures: {done.page}"


def _kind_lines(summary: "EvaluationSummary") -> Iterator[str]:
    """Yield how often the good answer scored above one worse answer of each kind; chance is a half."""
    ngram = summary.baselines.get("ngram")
    yield "the good answer above a worse one that is" + (" (in brackets: by the ngram baseline)" if ngram else "")
    for kind, category in summary.by_category.items():
        baseline = f" ({ngram.by_category[kind].accuracy.value:.3f})" if ngram else ""
        yield f"  {kind:31}{interval_text(category.accuracy)}{baseline}"


def _ratio(conflicts: "Conflicts") -> str:
    return f"{conflicts.ratio:.1%} of {conflicts.num_judgments:,} verdicts"
