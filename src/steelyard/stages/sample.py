"""The verb `sample`: the models of a plan answer the prompts of a case file, and their responses join the case.

Requests go through a ledger, as those of `judge`: an interrupted run resumes and sends no request twice. A plan with
``rewrite`` asks for new prompts instead, by the same models, ledger, forecast and batch files: the request to rewrite a
prompt is itself a case that they answer.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from steelyard.core.types import Case, Run
from steelyard.evaluation.prompt_files import bench_texts
from steelyard.io.ledger import LEDGER_FILE, open_ledger, read_ledger
from steelyard.io.lines import check_readable
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import (
    BATCH_OPTIONS,
    CASES,
    CEILINGS,
    BatchFolder,
    CaseFile,
    Option,
    PlanFile,
    SettingOption,
    Verb,
    in_panel,
    refuse_ignored,
)
from steelyard.judging.batches import check_batch_options, opened_requests
from steelyard.judging.sampling import build_models, tokens_used
from steelyard.judging.sampling_forecast import SampledSoFar, SamplingForecast, forecast_sampling
from steelyard.judging.sampling_plans import check_prompts, chosen_plan
from steelyard.judging.sampling_run import Config, answered_cases, write_sampled
from steelyard.judging.sampling_summary import SamplingSummary
from steelyard.judging.token_use import Budget, Ceilings

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
        *in_panel("Cost", *CEILINGS, Option("dry_run", "Forecast requests, tokens and money; send and write nothing.")),
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
    max_cost: float | None = None,
    max_failed: int | None = None,
    max_hours: float | None = None,
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

    Raises ConfigError for a plan that is wrong, WaitingError while requests of batch files wait, CeilingError at a
    ceiling, FailuresError where requests failed unless ``allow_failed``, EvidenceError for a model that answers none
    of the prompts.

    >>> plan = {"models": [{"chat": {"kind": "recorded", "path": "replies.jsonl", "name": "a-model"}}]}
    >>> sampled = sy.sample(cases, plan=plan)
    >>> sampled.summary.models["a-model"].num_responses
    40
    >>> sy.sample(cases, plan=plan, dry_run=True).models["a-model"].num_requests
    40
    """
    path, choice = chosen_plan(plan)
    settings = msgspec.to_builtins(config) | choice.settings()
    # It ends a run early and decides no response: after that the run goes on with a larger share, and its replies.
    del settings["max_truncated"]
    inputs = {"cases": cases, "plan": path, **choice.inputs()}
    rewrite = choice.plan.rewrite
    if rewrite is not None:
        replies = config.changed("refused", "cut_off", "turns")
        refuse_ignored(replies, "on new prompts", "leave out the [rewrite] table of the plan")
    against = () if rewrite is None else rewrite.against
    for place, bench in enumerate(map(Path, against), 1):
        check_readable(bench)
        inputs[f"against.{place}"] = bench
    ceilings = Ceilings(max_cost, max_failed, max_hours)
    is_unpriced = any(model.price is None for model in choice.plan.models)
    ceilings.check("give every model of the plan a price, such as price = [1.0, 2.0]" if is_unpriced else None)
    batches = check_batch_options(
        batch,
        out,
        ceilings,
        release=release_batch,
        any_model=any_batch_model,
        most_failed=None if allow_failed else 0,
    )

    def answered() -> Iterator[Case]:
        return answered_cases(cases, choice.plan, config)

    def write(result: Result) -> None:
        check_prompts(cases, choice.plan)
        with open_ledger(result.path(LEDGER_FILE)) as ledger:
            models = build_models(choice, seed=config.seed)
            budget = Budget(ceilings, lambda: tokens_used(models, answered, ledger).values())
            with opened_requests(batches, release_batch, ledger, budget=budget, allow_failed=allow_failed) as ask:
                benches = (
                    {} if rewrite is None else {path: bench_texts(Path(path), rewrite.overlap) for path in against}
                )
                write_sampled(
                    result, cases, models, ledger, config, benches=benches, ask=ask, allow_failed=allow_failed
                )

    return run_stage(out, "sample", Run[SamplingSummary], write, config=settings, inputs=inputs, force=force)


def forecast(cases: Path, plan: Path, out: Path, config: Config = _DEFAULT) -> SamplingForecast:
    """Return what `sample` would ask, by the replies in ``out`` if there are any, else without loading a model."""
    _, choice = chosen_plan(plan)
    seed = config.seed
    check_prompts(cases, choice.plan)
    with read_ledger(out / LEDGER_FILE) as ledger:
        has_replies = ledger is not None and len(ledger) > 0
        so_far = SampledSoFar(build_models(choice, seed=seed), ledger) if ledger and has_replies else None
        return forecast_sampling(choice, answered_cases(cases, choice.plan, config), seed=seed, so_far=so_far)
