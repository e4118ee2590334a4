"""The verb `demo`: the whole pipeline on built-in data, and what to open and to try next."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.options import AsJson, RedoFrom, StageSettings, Verbose
from steelyard.cli.output import echo_record, interval_text, percent_text, points_text, print_lines, run_answer
from steelyard.cli.verb import FunctionVerb
from steelyard.core.text import number_of
from steelyard.core.types import JsonObject

if TYPE_CHECKING:
    from steelyard.curation.debiasing import Balance
    from steelyard.evaluation.comparison import ComparisonSummary
    from steelyard.evaluation.summary import EvaluationSummary
    from steelyard.recipes.demo import Demo, RealDemo
    from steelyard.statistics.intervals import Estimate


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
        print_lines(_lines(done))
        print_lines(_detail_lines(done) if verbose else ())
        print_lines(next_lines(done.page, _commands(folder)))
        print_lines(["Real data  steelyard demo --real  # Chinese questions and people's answers, in minutes"])
    else:
        print_lines(_real_lines(done))
        print_lines(_accuracy_lines(done.runs["evaluated"].summary) if verbose else ())
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
    simulated, human, by_kind = (done.runs[name].summary for name in ("simulated", "human", "by_kind"))
    # First of all, since the numbers look like results: nobody judged anything here.
    yield f"SIMULATED data, real methods: {_lead(by_kind)}"
    yield "The worse answers are made by code and all verdicts by a noise model: no evidence about people or models."
    right, sizes, conflicts = done.right_by_key, simulated.num_prompts, human.conflicts.overall
    yield (
        f"people     {sizes['human']} prompts; {conflicts.ratio:.1%} of the verdicts conflict; resolved into"
        f" {right.ranked.total:,} ordered pairs, {right.ranked.share:.1%} as in the answer key"
    )
    supervised, sides = done.runs["supervised"].summary, done.runs["debiased"].summary.overall
    yield (
        f"LLM        {sizes['llm']} other prompts; supervise keeps {supervised.num_strict_kept:,} of"
        f" {number_of(supervised.num_strict, 'strict judgment')}: {right.llm.share:.1%} right before, "
        f"{right.supervised.share:.1%} after"
    )
    before, after = _share_longer(sides.before), _share_longer(sides.after)
    yield f"           debias: the better answer is the longer one in {before} of the pairs before, {after} after"
    gain = points_text(llm_gain(done.runs["compared"].summary))
    yield f"model      trained on both, tested on {sizes['test']} prompts; gain over people's verdicts alone: {gain}"
    evaluated = done.runs["evaluated"].summary
    ngram = evaluated.baselines.get("ngram")
    lead = f"; lead over n-grams: {points_text(ngram.difference)}" if ngram else ""
    yield f"           pairs of two worse answers included: {percent_text(evaluated.accuracy)}{lead}"


def _lead(by_kind: "EvaluationSummary") -> str:
    text = f"the reward model scores the good answer above a worse one in {percent_text(by_kind.accuracy)} of pairs"
    ngram = by_kind.baselines.get("ngram")
    if ngram is None or ngram.accuracy.value is None:
        return f"{text}."
    return f"{text}, character n-grams in {ngram.accuracy.value:.1%}: {verdict_on(ngram.difference)}."


def verdict_on(difference: "Estimate") -> str:
    """Return the difference in points, and whether its interval excludes zero."""
    is_clear = difference.low is not None and difference.high is not None and difference.low * difference.high > 0
    return points_text(difference) + ("" if is_clear else ", which may be chance")


def llm_gain(compared: "ComparisonSummary") -> "Estimate":
    """Return the accuracy of the final model minus that of the model trained on people's verdicts alone."""
    from msgspec.structs import replace

    (pair,) = compared.comparisons
    if pair.first == "model":
        return pair.accuracy
    ends = pair.accuracy.value, pair.accuracy.high, pair.accuracy.low
    value, low, high = (None if end is None else -end for end in ends)
    return replace(pair.accuracy, value=value, low=low, high=high)


def _share_longer(balance: "Balance") -> str:
    return "no pair" if balance.share_more is None else f"{balance.share_more:.1%}"


def _detail_lines(done: "Demo") -> Iterator[str]:
    """Yield accuracy over all pairs of the ranking with every baseline, and the share right by kind of worse answer."""
    llm, evaluated, by_kind = (done.runs[name].summary for name in ("llm", "evaluated", "by_kind"))
    yield f"conflict ratio of the LLM's verdicts: {llm.conflicts.overall.ratio:.1%}"
    yield "all pairs of a good answer and one worse answer of each kind:"
    yield from _accuracy_lines(evaluated)
    ngram = by_kind.baselines.get("ngram")
    yield "the good answer above a worse one that is" + (" (in brackets: by the ngram baseline)" if ngram else "")
    for kind, category in by_kind.by_category.items():
        baseline = f" ({ngram.by_category[kind].accuracy.value:.3f})" if ngram else ""
        yield f"  {kind:31}{interval_text(category.accuracy)}{baseline}"


def _accuracy_lines(evaluated: "EvaluationSummary") -> Iterator[str]:
    """Yield accuracy, exact match, and every baseline."""
    exact_match = "" if evaluated.exact_match is None else f"; exact match {interval_text(evaluated.exact_match)}"
    yield f"accuracy              {interval_text(evaluated.accuracy)}{exact_match}"
    for name, baseline in evaluated.baselines.items():
        difference = interval_text(baseline.difference, "+")
        yield f"  {name:20}{interval_text(baseline.accuracy)}; model minus {name} {difference}"


def _real_lines(done: "RealDemo") -> Iterator[str]:
    halluqa, parts, people, evaluated, alone = (
        done.runs[name].summary for name in ("halluqa", "parts", "human_model", "evaluated", "human_evaluated")
    )
    longer, ngram = (evaluated.baselines[name] for name in ("longer", "ngram"))
    accuracy, of_ngram = percent_text(evaluated.accuracy), percent_text(ngram.accuracy)
    yield (
        f"REAL data: on {parts.parts['test']} unseen questions the reward model scores people's right answer above the"
        f" wrong one in {accuracy} of pairs, character n-grams in {of_ngram}:"
        f" {verdict_on(ngram.difference)}; the longer answer is the right one in {percent_text(longer.accuracy)}."
    )
    sizes = parts.parts
    yield (
        f"people     {sizes['people']} of HalluQA's {halluqa.num_questions} questions, "
        f"{number_of(people.num_pairs, 'pair')}"
    )
    supervised, sides = done.runs["supervised"].summary, done.runs["debiased"].summary.overall
    yield (
        f"GPT-4      labels of models' answers to {parts.parts['gpt4']} other questions; supervise keeps"
        f" {supervised.num_strict_kept:,} of {supervised.num_strict:,} strict judgments"
    )
    before, after = _share_longer(sides.before), _share_longer(sides.after)
    yield f"           debias: the better answer is the longer one in {before} of the pairs before, {after} after"
    gain = llm_gain(done.runs["compared"].summary)
    yield f"model      trained on both; gain over people's answers alone: {points_text(gain)}: {_effect(gain)}"
    if baseline := alone.baselines.get("ngram"):
        difference = verdict_on(baseline.difference)
        yield f"           people's answers alone: {percent_text(alone.accuracy)}; lead over n-grams: {difference}"
    yield "One split, and questions of one pattern are on both sides of it: no claim about other questions."


def _effect(gain: "Estimate") -> str:
    """Say in words what the LLM's judgments did."""
    if gain.low is None or gain.high is None or gain.low * gain.high <= 0:
        return "GPT-4's labels made no measurable difference"
    return "GPT-4's labels helped" if gain.low > 0 else "GPT-4's labels did harm"


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
