"""One judging under way: questions go to the judges through a ledger, sent or in batch files; verdicts are written."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from steelyard.core.errors import EvidenceError
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Case, Counts
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import write_cases
from steelyard.io.ledger import Ledger
from steelyard.io.tempfiles import open_line_store
from steelyard.judging.asking import JudgingSummary, answers_of, ask_panel, tokens_used
from steelyard.judging.batches import BatchPlan, ask_panel_in_batches
from steelyard.judging.early_abort import RequestCounts, refuse_failed
from steelyard.judging.judging_plan import JudgingPlan
from steelyard.judging.marked_responses import MarkedCounter
from steelyard.judging.panel import JudgePanel
from steelyard.judging.planning import NO_RESPONSES, add_verdicts
from steelyard.judging.prefix_order import store_comparisons, stored_comparisons
from steelyard.judging.token_use import Ceilings, TokenUse
from steelyard.judging.unparsed import unparsed_replies
from steelyard.judging.verdicts import VerdictCounter


class SendingRules(NamedTuple):
    """How requests leave, and when they end early.

    ``batches`` writes them to batch files, in place of sending them; ``release_batch`` names a batch whose requests are
    free again. At one of the ``ceilings`` no further request is sent. ``allow_failed`` finishes without the replies of
    requests that failed.
    """

    ceilings: Ceilings
    batches: BatchPlan | None
    release_batch: str | None
    allow_failed: bool


class QuestionOutcome(NamedTuple):
    """What became of the questions: cases by the reason for having none (null for those compared), counts, tokens."""

    reasons: Counter[str | None]
    counts: dict[str, RequestCounts]
    tokens: dict[str, TokenUse]

    def case_counts(self, outcomes: dict[str, int]) -> Counts:
        """Return the counts of the run; ``outcomes``: the panel's verdicts by outcome."""
        noted = {"questions": sum(count.num_questions for count in self.counts.values())}
        noted |= {f"verdict: {name}": number for name, number in outcomes.items()}
        dropped = sorted((reason, number) for reason, number in self.reasons.items() if reason is not None)
        return Counts(num_in=self.reasons.total(), num_used=self.reasons[None], dropped=dict(dropped), noted=noted)


def ask_all(plan: JudgingPlan, panel: JudgePanel, ledger: Ledger, rules: SendingRules, folder: Path) -> QuestionOutcome:
    """Ask every judge about every comparison of the plan, prompts with equal beginnings together.

    The comparisons lie in a temporary file of ``folder`` meanwhile. Raises EvidenceError where no case has one,
    ModelError where requests failed unless the rules allow it, and as `ask_panel` and `ask_panel_in_batches` do.
    """
    with open_line_store(folder) as store:
        # Cases without a comparison are counted by reason.
        reasons = Counter[str | None]()
        for case in plan.planned():
            reasons[case.reason] += 1
            store_comparisons(store, panel, case.comparisons)
        store.index()
        _check_compared(reasons, plan.cases)
        comparisons = partial(stored_comparisons, store)
        config = plan.config
        if rules.batches is not None:
            counts = ask_panel_in_batches(panel, comparisons, ledger, rules.batches, max_truncated=config.max_truncated)
        else:
            counts = ask_panel(
                panel,
                comparisons,
                ledger,
                max_truncated=config.max_truncated,
                prefix_distance=config.prefix_distance,
                prime=config.prime,
                ceilings=rules.ceilings,
            )
        if not rules.allow_failed:
            refuse_failed(counts, ledger, without="a verdict")
        return QuestionOutcome(reasons, counts, tokens_used(panel, comparisons, ledger))


def write_judged(
    plan: JudgingPlan, panel: JudgePanel, ledger: Ledger, outcome: QuestionOutcome, *, cases: Path, unparsed: Path
) -> JudgingSummary:
    """Write the cases with the verdicts of the stored replies, and the replies without one. Returns the summary."""
    config, counter, marked = plan.config, VerdictCounter(), MarkedCounter()
    with atomic_write(unparsed) as lines:
        write_cases(cases, _judged(plan, panel, ledger, counter=counter, marked=marked, unparsed=lines))
    return JudgingSummary(
        judge=panel.name,
        task=config.task,
        judges=counter.summaries(seed=config.seed, num_resamples=config.num_resamples),
        tokens=outcome.tokens,
        failed=ledger.failures(),
        protocol=panel.protocol(),
        marked=marked.summary(),
        prices={member.name: member.price for member in panel.members if member.price is not None},
    )


def _check_compared(reasons: Counter[str | None], cases: Path) -> None:
    """Raise EvidenceError where no case has a comparison."""
    if reasons[None]:
        return
    left_out = {reason: number for reason, number in reasons.items() if reason is not None}
    problem = f"none of {reasons.total()} cases can be compared ({', '.join(left_out)})"
    do = Advice("choose another task or other pairs: ", Remedy("task", "pairs", (Remedy("pairs", "all"),)))
    if set(left_out) == {NO_RESPONSES}:
        do = "let models answer the prompts first: steelyard sample"
    raise EvidenceError(problem, where=str(cases), do=do)


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
