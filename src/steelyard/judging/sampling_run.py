"""The work of `sample`: the prompts are answered by the models of a plan, and responses or new prompts are written."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError
from steelyard.core.text import number_of
from steelyard.core.types import Case, Counts
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.ledger import Ledger
from steelyard.io.rows import write_rows
from steelyard.io.run_folder import Result
from steelyard.judging.early_abort import RequestCounts, refuse_failed
from steelyard.judging.rewritten_prompts import NewPrompts
from steelyard.judging.sampling import KeepRules, ResponseModels, ask_models, tokens_used, with_responses
from steelyard.judging.sampling_summary import ResponseCounter, SamplingSummary
from steelyard.prompts.near_duplicates import ReferenceTexts
from steelyard.responses.plan import SamplingPlan, later_turns
from steelyard.responses.rewriting import RewritePlan, rewrite_requests

MANIFEST_FILE = "manifest.jsonl"


class Config(BaseConfig, frozen=True):
    """Settings by which replies become responses. The models, their number and their settings are the plan's."""

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


def write_sampled(
    result: Result,
    cases: Path,
    models: ResponseModels,
    ledger: Ledger,
    config: Config,
    *,
    benches: Mapping[str, ReferenceTexts],
    ask: Callable[..., RequestCounts],
    allow_failed: bool,
) -> None:
    """Ask every model of a plan, and write what they answered. Raises FailuresError where requests failed.

    ``benches``: what no new prompt may overlap with, by file.
    """
    rewrite = models.plan.rewrite

    def answered() -> Iterator[Case]:
        return answered_cases(cases, models.plan, config)

    counts = ask_models(models, answered, ledger, max_truncated=config.max_truncated, ask=ask)
    if not allow_failed:
        refuse_failed(counts, ledger, without="responses" if rewrite is None else "new prompts")
    counter = ResponseCounter(tuple(models.chats))
    new_prompts: dict[str, int] | None = None
    if rewrite is None:
        _write_responses(result, cases, config, models, ledger, counter=counter)
    else:
        new_prompts = _write_prompts(result, cases, rewrite, models, ledger, benches=benches, counter=counter)
    result.summary = SamplingSummary(
        models=counter.models(),
        tokens=tokens_used(models, answered, ledger),
        responses_per_prompt=counter.responses_per_prompt(),
        meetings=counter.meetings(),
        failed=ledger.failures(),
        protocol=models.protocol(),
        new_prompts=new_prompts,
    )


def answered_cases(cases: Path, plan: SamplingPlan, config: Config) -> Iterator[Case]:
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
    answered = _answered(answered_cases(cases, models.plan, config), models, ledger, keep, counter=counter, noted=noted)
    # The later turns stay in the prompts, for the rounds after this one.
    whole = (replace(each, prompt=case.prompt) for each, case in zip(answered, read_cases(cases), strict=True))
    write_cases(result.path("cases.jsonl"), whole)
    unanswered = noted.pop("unanswered")
    num_cases = noted.pop("cases")
    dropped = {"no new response": unanswered} if unanswered else {}
    result.counts = Counts(
        num_in=num_cases, num_used=num_cases - unanswered, dropped=dropped, noted=dict(sorted(noted.items()))
    )


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


def _write_prompts(
    result: Result,
    cases: Path,
    plan: RewritePlan,
    models: ResponseModels,
    ledger: Ledger,
    *,
    benches: Mapping[str, ReferenceTexts],
    counter: ResponseCounter,
) -> dict[str, int]:
    """Write the new prompts and the manifest of those refused, and return their number by way.

    Raises EvidenceError where none is left.
    """
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
    write_rows(result.path(MANIFEST_FILE), map(msgspec.to_builtins, prompts.rows))
    result.counts = Counts(
        num_in=prompts.num_replies,
        num_used=prompts.num_prompts,
        dropped=dict(prompts.dropped),
    )
    return dict(sorted(prompts.ways.items()))
