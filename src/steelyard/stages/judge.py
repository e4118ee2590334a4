"""The verb `judge`: language models compare the responses of a case file, and their verdicts join the evidence.

Requests go through a ledger; then every stored reply is parsed and the new evidence is written.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Literal

import msgspec

from steelyard.core.comparison import Comparison
from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import EvidenceError, ModelError
from steelyard.core.types import Case, Counts, Meta, Run
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.ledger import LEDGER_FILE, Ledger, open_ledger
from steelyard.io.run_folder import Result, run_stage
from steelyard.judging.asking import (
    UNREADABLE_FILE,
    JudgingSummary,
    RequestCounts,
    answers_of,
    ask_panel,
    tokens_used,
    unreadable_replies,
)
from steelyard.judging.panel import JudgePanel, PanelMember, build_panel, choose_panel
from steelyard.judging.planning import JudgeTask, add_verdicts, plan_comparisons, refusal_reason
from steelyard.judging.verdicts import VerdictCounter


class Config(BaseConfig, frozen=True):
    """The questions, and the judges that answer them. A combined judgment has the single replies in its meta."""

    task: JudgeTask = "pairs"
    """What a request compares: pairs, the circular triples of CHEEMS, the best of up to four, or ratings."""
    chat: Meta = msgspec.field(default_factory=dict)
    """The chat: its kind and the settings of the kind (docs/settings.md, under chats)."""
    judge: Meta = msgspec.field(default_factory=dict)
    """The style of the questions and its settings: docs/settings.md, under judges."""
    price: tuple[float, float] | None = None
    """The price of a million tokens, of prompts and of replies, in any currency."""
    members: tuple[PanelMember, ...] = ()
    """The members of a panel, each with its chat and judge."""
    allow_even: bool = False
    """Accept a panel with an even number of members, whose votes can be even."""
    name: str = "panel"
    """The name of the panel in the judgments."""
    write: Literal["combined", "replies"] = "combined"
    """Write one judgment for all replies about a pair, or one for every reply with the order it had."""
    max_truncated: float = 0.2
    """The largest share of replies that may be cut off."""
    num_resamples: Positive = 1000
    """The number of bootstrap resamples of prompts."""
    seed: int = 0
    """The seed of drawn orders and of the resamples."""


_DEFAULT = Config()
_PlannedCases = Callable[[], Iterator[tuple[Case, tuple[Comparison, ...]]]]


def judge(
    cases: Path, out: Path, config: Config = _DEFAULT, *, allow_failed: bool = False, force: bool = False
) -> Run[JudgingSummary]:
    """Write ``cases.jsonl`` with the new judgments or ratings; every reply stays in ``replies.sqlite``.

    ``unreadable.jsonl`` has the replies without a verdict.

    After a kill, or where requests failed, the same call continues: answered requests are not repeated. Raises
    ModelError where requests failed and ``allow_failed`` is not set (with it they are judgments without a verdict, for
    the reason ``failed``), and where a chat cannot be reached; EvidenceError where no case has a comparison.
    """
    choice = choose_panel(
        config.task,
        chat=config.chat,
        judge=config.judge,
        price=config.price,
        members=config.members,
        allow_even=config.allow_even,
    )
    settings = msgspec.to_builtins(config) | {"jury": choice.settings()}
    inputs = {"cases": cases, **choice.inputs()}

    def write(result: Result) -> None:
        with open_ledger(result.path(LEDGER_FILE)) as ledger:
            _run(result, cases, config, build_panel(choice, name=config.name), ledger, allow_failed=allow_failed)

    return run_stage(out, "judge", Run[JudgingSummary], write, config=settings, inputs=inputs, force=force)


def _run(result: Result, cases: Path, config: Config, panel: JudgePanel, ledger: Ledger, *, allow_failed: bool) -> None:
    left_out = Counter(reason for case in read_cases(cases) if (reason := refusal_reason(case, config.task)))
    num_cases = sum(1 for _ in read_cases(cases))
    if left_out.total() == num_cases:
        problem = f"none of {num_cases} cases can be compared ({', '.join(left_out)})"
        raise EvidenceError(problem, where=str(cases), do="choose another task: --task pairs")
    planned = _planned(cases, config)

    def comparisons() -> Iterator[Comparison]:
        return (comparison for _, of_case in planned() for comparison in of_case)

    counts = ask_panel(panel, comparisons, ledger, max_truncated=config.max_truncated)
    _refuse_failed(counts, ledger, allow_failed=allow_failed)
    counter = VerdictCounter()
    with atomic_write(result.path(UNREADABLE_FILE)) as unreadable:
        judged = _judged(planned(), panel, config, ledger, counter=counter, unreadable=unreadable)
        write_cases(result.path("cases.jsonl"), judged)
    judges = counter.summaries(seed=config.seed, num_resamples=config.num_resamples)
    noted = {"questions": sum(count.num_questions for count in counts.values())}
    noted |= {f"verdict: {name}": number for name, number in judges[panel.name].outcomes.items()}
    result.counts = Counts(
        num_in=num_cases, num_used=num_cases - left_out.total(), dropped=dict(sorted(left_out.items())), noted=noted
    )
    result.summary = JudgingSummary(
        judge=panel.name,
        task=config.task,
        judges=judges,
        tokens=tokens_used(panel, comparisons, ledger),
        failed=ledger.failures(),
        protocol=panel.protocol(),
    )


def _planned(cases: Path, config: Config) -> _PlannedCases:
    """Return a reader of the cases with their comparisons. It reads the file each time, which may exceed memory."""
    return lambda: ((case, plan_comparisons(case, config.task, seed=config.seed)) for case in read_cases(cases))


def _judged(
    planned: Iterable[tuple[Case, tuple[Comparison, ...]]],
    panel: JudgePanel,
    config: Config,
    ledger: Ledger,
    *,
    counter: VerdictCounter,
    unreadable: IO[bytes],
) -> Iterator[Case]:
    """Yield the cases with their verdicts, count these, and write the replies that have none."""
    for case, comparisons in planned:
        answers = [answers_of(panel, comparison, ledger) for comparison in comparisons]
        for comparison, answer in zip(comparisons, answers, strict=True):
            counter.add(case.prompt, answer)
            for reply in unreadable_replies(panel, comparison, answer, ledger):
                unreadable.write(msgspec.json.encode(reply) + b"\n")
        yield add_verdicts(case, answers, by=panel.name, each=config.write == "replies")


def _refuse_failed(counts: dict[str, RequestCounts], ledger: Ledger, *, allow_failed: bool) -> None:
    num_failed = sum(count.num_failed for count in counts.values())
    num_questions = sum(count.num_questions for count in counts.values())
    if num_failed and not allow_failed:
        reasons = ", ".join(f"{reason} {number}" for reason, number in ledger.failures().items())
        raise ModelError(
            f"{num_failed} of {num_questions} requests failed ({reasons}); what was answered is kept",
            do="run the same command again, or say --allow-failed to leave them without a verdict",
        )
