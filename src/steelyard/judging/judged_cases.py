"""The cases of a judging with their verdicts, the replies without one, and what the judge is worth beside people."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from steelyard.core.types import Case
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.ledger import Ledger
from steelyard.io.run_folder import Result
from steelyard.judging.asking import answers_of
from steelyard.judging.judge_card import judge_cards
from steelyard.judging.judging_plan import JudgingPlan
from steelyard.judging.judging_summary import JudgingSummary
from steelyard.judging.marked_responses import MarkedCounter
from steelyard.judging.panel import JudgePanel
from steelyard.judging.planning import add_verdicts
from steelyard.judging.token_use import TokenUse
from steelyard.judging.unparsed import UNPARSED_FILE, unparsed_replies
from steelyard.judging.verdicts import VerdictCounter

CASES_FILE = "cases.jsonl"


def write_judged(
    plan: JudgingPlan, panel: JudgePanel, ledger: Ledger, tokens: dict[str, TokenUse], result: Result
) -> JudgingSummary:
    """Write the cases with the verdicts of the stored replies, and the replies without one. Returns the summary."""
    config, counter, marked = plan.config, VerdictCounter(), MarkedCounter()
    with atomic_write(result.path(UNPARSED_FILE)) as lines:
        write_cases(
            result.path(CASES_FILE), _judged(plan, panel, ledger, counter=counter, marked=marked, unparsed=lines)
        )
    return JudgingSummary(
        judge=panel.name,
        task=config.task,
        judges=counter.summaries(seed=config.seed, num_resamples=config.num_resamples),
        tokens=tokens,
        failed=ledger.failures(),
        protocol=panel.protocol(),
        marked=marked.summary(),
        prices={member.name: member.price for member in panel.members if member.price is not None},
    )


def _judged(
    plan: JudgingPlan,
    panel: JudgePanel,
    ledger: Ledger,
    *,
    counter: VerdictCounter,
    marked: MarkedCounter,
    unparsed: IO[bytes],
) -> Iterator[Case]:
    """Yield the cases with their verdicts, count these, and write the replies that have none."""
    for case, comparisons, _ in plan.planned():
        answers = [answers_of(panel, comparison, ledger) for comparison in comparisons]
        for comparison, answer in zip(comparisons, answers, strict=True):
            counter.add(case.prompt, answer)
            marked.add(panel, comparison, answer)
            for reply in unparsed_replies(panel, comparison, answer, ledger):
                unparsed.write(msgspec.json.encode(reply) + b"\n")
        yield add_verdicts(case, answers, by=panel.name, each=plan.config.write == "replies")


def with_card(summary: JudgingSummary, plan: JudgingPlan, result: Result, calibrate: Path) -> JudgingSummary:
    """Return the summary with the comparison of the judges with people's labels."""
    seed, num_resamples = plan.config.seed, plan.config.num_resamples
    judged = read_cases(result.path(CASES_FILE))
    card = judge_cards(judged, read_cases(calibrate), seed=seed, num_resamples=num_resamples)
    return msgspec.structs.replace(summary, card=card)
