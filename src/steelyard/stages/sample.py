"""The verb `sample`: the models of a plan answer the prompts of a case file, and their responses join the case.

Requests go through a ledger, as those of `judge`: an interrupted run resumes and sends no request twice. A plan with
``rewrite`` asks for new prompts instead, by the same models, ledger, forecast and batch files: the request to rewrite a
prompt is itself a case that they answer.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError, FileError, Place, choices, listed
from steelyard.core.text import number_of
from steelyard.core.types import Case, Counts, JsonObject, Run
from steelyard.curation.splits import root_text
from steelyard.evaluation.recognition import known_cases
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.json_text import decode_json
from steelyard.io.ledger import LEDGER_FILE, Ledger, open_ledger, read_ledger
from steelyard.io.lines import check_readable, check_text, read_toml, read_whole
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import (
    BATCH_OPTIONS,
    CASES,
    BatchFolder,
    CaseFile,
    Option,
    PlanFile,
    SettingOption,
    Verb,
    in_panel,
)
from steelyard.judging.asking import token_use
from steelyard.judging.batches import BatchPlan, check_batch_options, open_batches, release_before_sending
from steelyard.judging.early_abort import RequestCounts, refuse_failed
from steelyard.judging.rewritten_prompts import NewPrompts
from steelyard.judging.sampling import (
    KeepRules,
    ModelChoices,
    ResponseModels,
    ask_models,
    build_models,
    choose_models,
    request_ids,
    with_responses,
)
from steelyard.judging.sampling_forecast import SampledSoFar, SamplingForecast, forecast_sampling
from steelyard.judging.sampling_summary import ResponseCounter, SamplingSummary
from steelyard.judging.token_use import Ceilings, TokenUse
from steelyard.prompts.near_duplicates import ReferenceTexts
from steelyard.responses.plan import SamplingPlan, later_turns, parse_plan
from steelyard.responses.rewriting import RewritePlan, rewrite_requests

MANIFEST_FILE = "manifest.jsonl"
_SHIPPED = (Path(__file__).parents[1] / "recipes" / "plans", Path(__file__).parents[3] / "recipes" / "plans")


class Config(BaseConfig, frozen=True):
    """How replies become responses. The models, their number and their settings are the plan's."""

    refused: Literal["keep", "drop"] = "keep"
    """Keep refusals as responses, marked in their meta, or drop them; both are counted. None becomes a prompt."""
    cut_off: Literal["keep", "drop"] = "drop"
    """Keep texts that reached the token limit, marked in their meta, or drop them; both are counted. None becomes a
    prompt."""
    max_truncated: float = 0.2
    """The largest share of a model's replies that may be cut off."""
    turns: Literal["all", "first"] = "all"
    """Answer all turns of a prompt of several, or the first alone: best-of-n chooses among its answers."""
    seed: int = 0
    """The seed of the models drawn and of the requests."""


_DEFAULT = Config()


VERB = Verb(
    "Prompts and responses",
    31,
    (
        CASES,
        Option("plan", "The plan: a TOML file, or the name of a shipped plan."),
        Option("out", "The folder for cases.jsonl and run.json."),
        SettingOption("refused"),
        SettingOption("cut_off"),
        SettingOption("turns"),
        SettingOption("seed"),
        Option("allow_failed", "Finish although requests failed: no responses from those."),
        Option("dry_run", "Forecast requests, tokens and money; send and write nothing."),
        *in_panel("Batch files", *BATCH_OPTIONS),
    ),
    instead=(("dry_run", "forecast"),),
)


def sample(
    cases: CaseFile,
    plan: PlanFile,
    out: Path,
    config: Config = _DEFAULT,
    *,
    allow_failed: bool = False,
    batch: BatchFolder | None = None,
    release_batch: str | None = None,
    any_batch_model: bool = False,
    force: bool = False,
) -> Run[SamplingSummary]:
    """Let the models of a plan answer the prompts of a case file.

    A plan is a TOML file with a [[models]] table for each model: its chat, as `judge` takes it, how many responses it
    writes, temperature, seed and system prompt. Replies are stored as they come: an interrupted run resumes, and sends
    no request twice. OUT/cases.jsonl has the cases with the responses added; those that a case had stay. With a
    [rewrite] table the models write new prompts instead: OUT/cases.jsonl has these, OUT/manifest.jsonl those refused.

    Example: `steelyard sample cases.jsonl --plan plan.toml --out sampled`

    Example: `steelyard sample cases.jsonl --plan plan.toml --dry-run --out sampled`

    Shipped plans: `cheems` (the twelve models of CheemsBench) and `local` (one model in a folder), in recipes/plans.

    Raises ConfigError for a plan that is wrong, WaitingError while requests of batch files wait, ModelError where
    requests failed unless ``allow_failed``, EvidenceError for a model that answers none of the prompts.

    >>> plan = {"models": [{"chat": {"kind": "recorded", "path": "replies.jsonl", "name": "a-model"}}]}
    >>> sampled = sy.sample(cases, plan=plan)
    >>> sampled.summary.models["a-model"].num_responses
    40
    >>> sy.sample(cases, plan=plan, dry_run=True).models["a-model"].num_requests
    40
    """
    path, choice = _chosen(plan)
    settings = msgspec.to_builtins(config) | choice.settings()
    # It ends a run early and decides no response: after that the run goes on with a larger share, and its replies.
    del settings["max_truncated"]
    inputs = {"cases": cases, "plan": path, **choice.inputs()}
    rewrite = choice.plan.rewrite
    benches = () if rewrite is None else tuple(map(Path, rewrite.against))
    for bench in benches:
        check_readable(bench)
    inputs |= {f"against.{place}": bench for place, bench in enumerate(benches, 1)}

    batches = check_batch_options(
        batch, out, Ceilings(), release=release_batch, any_model=any_batch_model, allow_failed=allow_failed
    )

    def write(result: Result) -> None:
        _check_prompts(cases, choice.plan)
        with open_ledger(result.path(LEDGER_FILE)) as ledger:
            models = build_models(choice, seed=config.seed)
            if batches is None:
                release_before_sending(release_batch, ledger)
            counts = _ask(models, lambda: _answered_cases(cases, choice.plan, config), ledger, config, batches)
            if not allow_failed:
                refuse_failed(counts, ledger, without="responses" if rewrite is None else "new prompts")
            counter = ResponseCounter(tuple(models.chats))
            new_prompts: dict[str, int] | None = None
            if rewrite is None:
                _write_responses(result, cases, config, models, ledger, counter=counter)
            else:
                new_prompts = _write_prompts(result, cases, rewrite, models, ledger, counter=counter)
            result.summary = SamplingSummary(
                models=counter.models(),
                tokens=_tokens(models, lambda: _answered_cases(cases, choice.plan, config), ledger),
                responses_per_prompt=counter.responses_per_prompt(),
                meetings=counter.meetings(),
                failed=ledger.failures(),
                protocol=models.protocol(),
                new_prompts=new_prompts,
            )

    return run_stage(out, "sample", Run[SamplingSummary], write, config=settings, inputs=inputs, force=force)


def forecast(cases: Path, plan: Path, out: Path, config: Config = _DEFAULT) -> SamplingForecast:
    """Return what `sample` would ask, by the replies in ``out`` if there are any, else without loading a model."""
    _, choice = _chosen(plan)
    seed = config.seed
    _check_prompts(cases, choice.plan)
    with read_ledger(out / LEDGER_FILE) as ledger:
        has_replies = ledger is not None and len(ledger) > 0
        so_far = SampledSoFar(build_models(choice, seed=seed), ledger) if ledger and has_replies else None
        return forecast_sampling(choice, _answered_cases(cases, choice.plan, config), seed=seed, so_far=so_far)


def _chosen(plan: Path) -> tuple[Path, ModelChoices]:
    path = find_plan(plan)
    return path, choose_models(parse_plan(_read(path), where=str(path)), where=str(path))


def _read(path: Path) -> JsonObject:
    """Return the tables of a plan: TOML, or JSON under a name that ends in .json."""
    if path.suffix != ".json":
        return read_toml(path)
    check_text(path)
    try:
        return decode_json(read_whole(path), Place(str(path)), JsonObject)
    except msgspec.ValidationError as error:
        raise FileError(
            f"not a plan in JSON ({error})", where=str(path), allowed='{"models": [{"chat": {…}}]}'
        ) from error


def find_plan(plan: Path) -> Path:
    """Return the file of this path, or the shipped plan of this name. Raises FileError naming those plans."""
    if plan.is_file() or plan.suffix == ".toml":
        return plan
    shipped = shipped_plans()
    if str(plan) not in shipped:
        allowed = f"a .toml file, or {choices(str(plan), shipped)}"
        raise FileError("there is no such plan", where=str(plan), allowed=allowed)
    return shipped[str(plan)]


def shipped_plans() -> dict[str, Path]:
    """Return the plans that come with Steelyard, by name."""
    return {path.stem: path for folder in _SHIPPED for path in sorted(folder.glob("*.toml"))}


def _check_prompts(cases: Path, plan: SamplingPlan) -> None:
    """Raise EvidenceError for a model that answers none of the prompts, and for a prompt that cannot be answered."""
    unused = {model.name: model for model in plan.models}
    languages: Counter[str] = Counter()
    for case in read_cases(cases):
        languages[case.prompt.language or "none"] += 1
        last = case.prompt.messages[-1].role if case.prompt.messages else "assistant"
        if last == "assistant" or (plan.rewrite is not None and last != "user"):
            problem = f"the prompt {case.prompt.id!r} does not end with a turn to answer"
            raise EvidenceError(problem, where=str(cases), do="end it with a message of the user")
        for name in [name for name, model in unused.items() if model.answers(case.prompt)]:
            del unused[name]
    if unused:
        problem = f"{listed(sorted(unused))} answers none of {languages.total():,} prompts"
        raise EvidenceError(
            problem,
            where=str(cases),
            allowed=f"languages {listed(sorted(languages))}",
            do="correct languages and categories of the model, or take it out of the plan",
        )


def _ask(
    models: ResponseModels,
    cases: Callable[[], Iterator[Case]],
    ledger: Ledger,
    config: Config,
    batches: BatchPlan | None,
) -> dict[str, RequestCounts]:
    if batches is None:
        return ask_models(models, cases, ledger, max_truncated=config.max_truncated)
    with open_batches(batches, ledger) as opened:
        return ask_models(models, cases, ledger, max_truncated=config.max_truncated, ask=opened.ask)


def _answered_cases(cases: Path, plan: SamplingPlan, config: Config) -> Iterator[Case]:
    """Yield the cases with the turns that models answer: those of the file, or requests to rewrite their prompts."""
    if plan.rewrite is not None:
        yield from (task.request for task in rewrite_requests(read_cases(cases), plan.rewrite, seed=config.seed))
        return
    for case in read_cases(cases):
        if config.turns == "first" and later_turns(case.prompt):
            yield replace(case, prompt=replace(case.prompt, meta={**(case.prompt.meta or {}), "turns": []}))
        else:
            yield case


def _write_responses(
    result: Result, cases: Path, config: Config, models: ResponseModels, ledger: Ledger, *, counter: ResponseCounter
) -> None:
    noted: Counter[str] = Counter()
    keep = KeepRules(refused=config.refused == "keep", cut_off=config.cut_off == "keep")
    answered = _answered(
        _answered_cases(cases, models.plan, config), models, ledger, keep, counter=counter, noted=noted
    )
    # The later turns stay in the prompts, for the rounds after this one.
    whole = (replace(each, prompt=case.prompt) for each, case in zip(answered, read_cases(cases), strict=True))
    write_cases(result.path("cases.jsonl"), whole)
    unanswered = noted.pop("unanswered")
    num_cases = noted.pop("cases")
    dropped = {"no new response": unanswered} if unanswered else {}
    result.counts = Counts(
        num_in=num_cases, num_used=num_cases - unanswered, dropped=dropped, noted=dict(sorted(noted.items()))
    )


def _write_prompts(
    result: Result, cases: Path, plan: RewritePlan, models: ResponseModels, ledger: Ledger, *, counter: ResponseCounter
) -> dict[str, int]:
    """Write the new prompts and the manifest of those refused, and return their number by way.

    Raises EvidenceError where none is left.
    """
    benches = {path: ReferenceTexts(map(root_text, known_cases(Path(path))), plan.overlap) for path in plan.against}
    prompts = NewPrompts(read_cases(cases), plan, benches)

    def new_cases() -> Iterator[Case]:
        for task in rewrite_requests(read_cases(cases), plan, seed=models.seed):
            answered, results = with_responses(task.request, models, ledger, KeepRules(refused=False, cut_off=False))
            counter.add(results, num_responses=len(answered.responses))
            yield from prompts.add(task, answered.responses, results)
        if not prompts.num_prompts:
            problem = f"none of {number_of(prompts.num_replies, 'reply', 'replies')} is a new prompt"
            reasons = ", ".join(f"{rule} {number:,}" for rule, number in prompts.dropped.items())
            do = "read the replies with inspect, and choose other ways or models"
            raise EvidenceError(f"{problem} ({reasons})", where=str(cases), do=do)

    write_cases(result.path("cases.jsonl"), new_cases())
    with atomic_write(result.path(MANIFEST_FILE)) as manifest:
        for row in prompts.rows:
            manifest.write(msgspec.json.encode(row) + b"\n")
    result.counts = Counts(
        num_in=prompts.num_replies,
        num_used=prompts.num_prompts,
        dropped=dict(prompts.dropped),
    )
    return dict(sorted(prompts.ways.items()))


def _answered(
    cases: Iterator[Case],
    models: ResponseModels,
    ledger: Ledger,
    keep: KeepRules,
    *,
    counter: ResponseCounter,
    noted: Counter[str],
) -> Iterator[Case]:
    """Yield the cases with their new responses, and count what became of each sample."""
    for case in cases:
        answered, results = with_responses(case, models, ledger, keep)
        counter.add(results, num_responses=len(answered.responses))
        noted["cases"] += 1
        noted["unanswered"] += not any(result.num_characters for result in results)
        noted["responses"] += sum(result.num_characters > 0 for result in results)
        noted["identical to another response"] += sum(result.is_repeated for result in results)
        noted["prompts of several turns"] += bool(later_turns(case.prompt))
        noted.update(f"samples {result.outcome}" for result in results if result.outcome != "response")
        yield answered


def _tokens(models: ResponseModels, cases: Callable[[], Iterator[Case]], ledger: Ledger) -> dict[str, TokenUse]:
    return {
        name: token_use(
            chat,
            (request for case in cases() for request in request_ids(models, case, ledger, name)),
            ledger,
        )
        for name, chat in models.chats.items()
    }
