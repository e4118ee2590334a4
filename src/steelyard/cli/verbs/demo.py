"""The verb `demo`: the whole pipeline on built-in data, and what to open and to try next."""

import shlex
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import AsJson, RedoFrom, StageSettings, Verbose
from steelyard.cli.output import TerminalTable, echo_record, print_lines, run_answer
from steelyard.cli.verb import FunctionVerb
from steelyard.core.types import JsonObject

if TYPE_CHECKING:
    from steelyard.recipes.demo import Demo, RealDemo


def _demo(
    *,
    out: Annotated[Path | None, typer.Option(help="The folder for everything. Default: demo, or demo-real.")] = None,
    real: Annotated[bool, typer.Option("--real", help="Real Chinese data and a pretrained model.")] = False,
    model: Annotated[
        str | None, typer.Option(help="With --real: another decoder, a folder or hub name. Default: Gemma 3 270M.")
    ] = None,
    data: Annotated[bool, typer.Option("--data", help="Only make the simulated case files.")] = False,
    seed: Annotated[int, typer.Option(help="Another seed is another simulation or split, and another model.")] = 0,
    settings: StageSettings = None,
    redo_from: RedoFrom = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Run the whole pipeline on built-in data, on a CPU, in a minute: from verdicts to a reward model and a report.

    People's verdicts train a reward model, which filters an LLM's verdicts on other prompts (supervise, debias); both
    train the final model. The good answers are written by hand; the worse ones and all verdicts are simulated. Finished
    stages are skipped; an interrupted run resumes. `steelyard run demo --dry-run` lists the stages.

    With --real the data are HalluQA's: people's answers to Chinese questions, and GPT-4's labels of models' answers.
    The model is Gemma 3 270M, inside packages of the extra `backbones` and under the Gemma Terms of Use.

    Example: `steelyard demo --out demo`

    Example: `steelyard demo --real --out demo-real`

    With --data there are only case files to try things on: cases.jsonl with verdicts of simulated people, llm.jsonl of
    a simulated LLM on other prompts, gold.jsonl with the true ranking, test.jsonl with further prompts.

    Example: `steelyard demo --data --out simulated`
    """
    from steelyard.core.config import parse_settings
    from steelyard.core.errors import ConfigError
    from steelyard.recipes.demo import Demo, demo, real_demo

    folder = out or Path("demo-real" if real else "simulated" if data else "demo")
    changes = parse_settings(settings or ())
    if data:
        if real or model is not None or redo_from is not None:
            problem = "--data makes simulated cases alone"
            raise ConfigError(problem, do="leave --real, --model and --from away")
        _simulate(folder, {"seed": seed} | changes, verbose=verbose, as_json=as_json)
        return
    if real:
        done = real_demo(folder, changes, model=model, seed=seed, redo_from=redo_from)
    elif model is None:
        done = demo(folder, changes, seed=seed, redo_from=redo_from)
    else:
        raise ConfigError("--model without --real: the simulated demo makes its own model", do="add --real")
    if as_json:
        echo_record(_record(done))
    elif isinstance(done, Demo):
        print_lines([*_lines(done), *(_detail_lines(done) if verbose else ())])
        print_lines(next_lines(done.page, _commands(folder)))
        print_lines(["Real data  steelyard demo --real  # Chinese questions and people's answers, in minutes"])
    else:
        print_lines([*_real_lines(done), *(_detail_lines(done) if verbose else ())])
        print_lines(next_lines(done.page, _real_commands(folder)))


def _simulate(out: Path, settings: JsonObject, *, verbose: bool, as_json: bool) -> None:
    from steelyard.core.config import resolve_config
    from steelyard.stages.simulate import Config, simulate

    run = simulate(out, resolve_config(Config, settings, where="simulate"))
    if as_json:
        echo_record(run)
    else:
        print_lines(run_answer(run, out, is_verbose=verbose))


def _record(done: "Demo | RealDemo") -> JsonObject:
    from steelyard.recipes.demo import Demo

    record: JsonObject = {
        "simulated": isinstance(done, Demo),
        "summary": {name: run.summary for name, run in done.runs.items()},
        "seconds": {name: run.seconds for name, run in done.runs.items()},
        "page": str(done.page),
    }
    if isinstance(done, Demo):
        shares = done.right_by_key._asdict().items()
        record["right_by_key"] = {name: share._asdict() for name, share in shares}
    return record


def _lines(done: "Demo") -> Iterator[str]:
    """Yield the results in the words of the report, and what the answer key says of them."""
    from steelyard.report.page import page_strings

    right = done.right_by_key
    # First of all, since the numbers look like results: nobody judged anything here.
    yield f"{page_strings().table['simulated_banner']['en']} {_sentences(done, 'simulated')}"
    yield f"result     {_sentences(done, 'by_kind', 2)}"
    yield (
        f"people     {_sentences(done, 'human')} Of {right.ranked.total:,} ordered pairs {right.ranked.share:.1%}"
        " are as in the answer key."
    )
    yield (
        f"LLM        {_sentences(done, 'supervised')} By the answer key {right.llm.share:.1%} are right before,"
        f" {right.supervised.share:.1%} after."
    )
    yield f"           {_sentences(done, 'debiased')}"
    yield f"model      {_sentences(done, 'compared')}"
    yield f"           With pairs of two worse answers: {_sentences(done, 'evaluated', 3)}"


def _real_lines(done: "RealDemo") -> Iterator[str]:
    """Yield the results in the words of the report, and their limits."""
    yield f"result     {_sentences(done, 'evaluated', 3)}"
    yield f"people     {_sentences(done, 'parts')} {_sentences(done, 'human_model')}"
    yield f"GPT-4      {_sentences(done, 'supervised')}"
    yield f"           {_sentences(done, 'debiased')}"
    yield f"model      {_sentences(done, 'compared')}"
    yield f"           {_sentences(done, 'human_evaluated', 3)}"
    yield "One split, and questions of one pattern are on both sides of it: no claim about other questions."


def _sentences(done: "Demo | RealDemo", stage: str, most: int = 1) -> str:
    """Return the first sentences of a stage's result; of an evaluation three have the accuracy and best baseline."""
    from steelyard.views.text import result_sentences

    return " ".join(islice(result_sentences(done.runs[stage], done.page.parent.parent / stage), most))


def _detail_lines(done: "Demo | RealDemo") -> Iterator[str | TerminalTable]:
    """Yield the whole results of the evaluations."""
    for stage in ("evaluated", "by_kind"):
        if stage in done.runs:
            yield from ["", f"{stage}:"]
            yield from run_answer(done.runs[stage], done.page.parent.parent / stage, is_verbose=True)


def _real_commands(out: Path) -> dict[str, str]:
    from steelyard.io.cases import read_cases

    first = next(iter(read_cases(out / "parts" / "test.jsonl")))
    folder, case_id = shlex.quote(str(out)), shlex.quote(first.prompt.id)
    return {
        f"steelyard inspect {folder}/evaluated --id {case_id}": "one question: answers, judgments, scores",
        f"steelyard score {folder}/parts/test.jsonl --model {folder}/model --out {folder}-scored": "score answers",
        "steelyard run demo_real --dry-run": "the stages of this recipe",
    }


def next_lines(page: Path, commands: Mapping[str, str]) -> Iterator[str]:
    """Yield what to open, and the commands to try with what they do."""
    yield f"Open       {page}"
    for number, (command, effect) in enumerate(commands.items()):
        yield f"{'' if number else 'Try next':11}{command}  # {effect}"


def _commands(out: Path) -> dict[str, str]:
    from steelyard.io.cases import read_cases

    cases = list(read_cases(out / "human" / "cases.jsonl"))
    # Preferably one whose verdicts had a cycle: a tier of several answers.
    merged = next((case for case in cases if any(len(tier) > 1 for tier in case.ranking or ())), cases[0])
    folder, case_id = shlex.quote(str(out)), shlex.quote(merged.prompt.id)
    return {
        f"steelyard inspect {folder}/human --id {case_id}": "one case: verdicts, cycle, tiers",
        f"steelyard score {folder}/simulated/test.jsonl --model {folder}/model --out {folder}-scored": "score answers",
        "steelyard run demo --dry-run": "the stages of this recipe",
    }


DEMO = FunctionVerb("demo", _demo)
VERBS = (DEMO,)
