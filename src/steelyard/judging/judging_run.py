"""One judging under way: questions go to the judges through a ledger, sent or in batch files."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from steelyard.core.errors import EvidenceError
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Counts
from steelyard.io.ledger import Ledger, open_ledger
from steelyard.io.tempfiles import open_line_store
from steelyard.judging.asking import ask_panel, tokens_used
from steelyard.judging.batches import BatchPlan, ask_panel_in_batches, check_batch_options, release_before_sending
from steelyard.judging.early_abort import RequestCounts, refuse_failed
from steelyard.judging.judging_plan import JudgingPlan
from steelyard.judging.panel import JudgePanel
from steelyard.judging.planning import NO_RESPONSES
from steelyard.judging.prefix_order import store_comparisons, stored_comparisons
from steelyard.judging.token_use import Ceilings, TokenUse


class SendingRules(NamedTuple):
    """Sending of requests, and conditions for an early end.

    ``batches`` writes them to batch files, in place of sending them; ``release_batch`` names a batch whose requests are
    free again. At one of the ``ceilings`` no further request is sent. ``allow_failed`` finishes without the replies of
    requests that failed.
    """

    ceilings: Ceilings
    batches: BatchPlan | None
    release_batch: str | None
    allow_failed: bool

    @contextmanager
    def opened(self, ledger_file: Path, build: Callable[[], JudgePanel]) -> Iterator[tuple[JudgePanel, Ledger]]:
        """Open the ledger of the replies, and then build the judges."""
        with open_ledger(ledger_file) as ledger:
            panel = build()
            if self.batches is None:
                release_before_sending(self.release_batch, ledger)
            yield panel, ledger


def sending_rules(
    out: Path,
    ceilings: Ceilings,
    *,
    batch: Path | None,
    release: str | None,
    any_model: bool,
    allow_failed: bool,
) -> SendingRules:
    """Return the rules of these options. Raises ConfigError as `Ceilings.check` and `check_batch_options` do."""
    ceilings.check()
    most_failed = None if allow_failed else 0
    batches = check_batch_options(batch, out, ceilings, release=release, any_model=any_model, most_failed=most_failed)
    return SendingRules(ceilings, batches, release, allow_failed)


class QuestionOutcome(NamedTuple):
    """Outcome of the questions: cases by the reason for having none (null for those compared), counts, tokens."""

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
    FailuresError where requests failed unless the rules allow it, and as `ask_panel` and `ask_panel_in_batches` do.
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
                allow_failed=rules.allow_failed,
            )
        if not rules.allow_failed:
            refuse_failed(counts, ledger, without="a verdict")
        return QuestionOutcome(reasons, counts, tokens_used(panel, comparisons, ledger))


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
