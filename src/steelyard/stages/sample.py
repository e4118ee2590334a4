"""The verb `sample`: the models of a plan answer the prompts of a case file, and their responses join the case.

Requests go through a ledger, as those of `judge`: an interrupted run resumes and sends no request twice.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError, FileError, Place, choices, listed
from steelyard.core.types import Case, Counts, JsonObject, Run
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.json_text import decode_json
from steelyard.io.ledger import LEDGER_FILE, Ledger, open_ledger, read_ledger
from steelyard.io.lines import check_text, read_toml, read_whole
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
from steelyard.responses.plan import SamplingPlan, later_turns, parse_plan

_SHIPPED = (Path(__file__).parents[1] / "recipes" / "plans", Path(__file__).parents[3] / "recipes" / "plans")


class Config(BaseConfig, frozen=True):
    """How replies become responses. The models, their number and their settings are the plan's."""

    refused: Literal["keep", "drop"] = "keep"
    """Keep refusals as responses, marked in their meta, or drop them; both are counted."""
    cut_off: Literal["keep", "drop"] = "drop"
    """Keep texts that reached the token limit, marked in their meta, or drop them; both are counted."""
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
    no request twice. OUT/cases.jsonl has the cases with the responses added; those that a case had stay.

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

    batches = check_batch_options(
        batch, out, Ceilings(), release=release_batch, any_model=any_batch_model, allow_failed=allow_failed
    )

    def write(result: Result) -> None:
        _check_prompts(cases, choice.plan)
        with open_ledger(result.path(LEDGER_FILE)) as ledger:
            models = build_models(choice, seed=config.seed)
            if batches is None:
                release_before_sending(release_batch, ledger)
            counts = _ask(models, lambda: _asked(cases, config), ledger, config, batches)
            if not allow_failed:
                refuse_failed(counts, ledger, without="responses")
            _run(result, cases, config, models, ledger)

    return run_stage(out, "sample", Run[SamplingSummary], write, config=settings, inputs=inputs, force=force)


def forecast(cases: Path, plan: Path, out: Path, config: Config = _DEFAULT) -> SamplingForecast:
    """Return what `sample` would ask, by the replies in ``out`` if there are any, else without loading a model."""
    _, choice = _chosen(plan)
    seed = config.seed
    _check_prompts(cases, choice.plan)
    with read_ledger(out / LEDGER_FILE) as ledger:
        has_replies = ledger is not None and len(ledger) > 0
        so_far = SampledSoFar(build_models(choice, seed=seed), ledger) if ledger and has_replies else None
        return forecast_sampling(choice, _asked(cases, config), seed=seed, so_far=so_far)


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
        if not case.prompt.messages or case.prompt.messages[-1].role == "assistant":
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


def _run(result: Result, cases: Path, config: Config, models: ResponseModels, ledger: Ledger) -> None:
    def read() -> Iterator[Case]:
        return _asked(cases, config)

    counter = ResponseCounter(tuple(models.chats))
    noted: Counter[str] = Counter()
    keep = KeepRules(refused=config.refused == "keep", cut_off=config.cut_off == "keep")
    answered = _answered(read(), models, ledger, keep, counter=counter, noted=noted)
    # The later turns stay in the prompts, for the rounds after this one.
    whole = (replace(each, prompt=case.prompt) for each, case in zip(answered, read_cases(cases), strict=True))
    write_cases(result.path("cases.jsonl"), whole)
    unanswered = noted.pop("unanswered")
    num_cases = noted.pop("cases")
    dropped = {"no new response": unanswered} if unanswered else {}
    result.counts = Counts(
        num_in=num_cases, num_used=num_cases - unanswered, dropped=dropped, noted=dict(sorted(noted.items()))
    )
    result.summary = SamplingSummary(
        models=counter.models(),
        tokens=_tokens(models, read, ledger),
        responses_per_prompt=counter.responses_per_prompt(),
        meetings=counter.meetings(),
        failed=ledger.failures(),
        protocol=models.protocol(),
    )


def _asked(cases: Path, config: Config) -> Iterator[Case]:
    """Yield the cases with the turns that are answered."""
    for case in read_cases(cases):
        if config.turns == "first" and later_turns(case.prompt):
            yield replace(case, prompt=replace(case.prompt, meta={**(case.prompt.meta or {}), "turns": []}))
        else:
            yield case


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
