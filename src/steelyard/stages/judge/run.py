"""One judging from a case file to a case file: ask through the ledger, read every reply, write the new evidence."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from steelyard.core.asking import Comparison
from steelyard.core.errors import EvidenceError, ModelError
from steelyard.core.types import Case, Counts, Run
from steelyard.files.cases import read_cases, write_cases
from steelyard.files.ledger import LEDGER_FILE, Ledger, open_ledger
from steelyard.files.results import Result, read_run, result_folder
from steelyard.files.talk import say
from steelyard.methods.annotation.comparisons import comparisons_of, signed, why_not
from steelyard.methods.annotation.judge_report import JudgeReport
from steelyard.plugins.asking import Asked, answers_of, ask_jury
from steelyard.plugins.judging import Jury, build_jury, choose_jury
from steelyard.stages.judge.settings import Config
from steelyard.stages.judge.tokens import tokens_used

_DEFAULT = Config()


def judge(cases: Path, out: Path, config: Config = _DEFAULT, *, allow_failed: bool = False, force: bool = False) -> Run:
    """Write ``cases.jsonl`` with the new judgments or ratings; every reply stays in ``replies.sqlite``.

    After a kill, or where requests failed, the same call goes on: what was answered is not asked again. Raises
    ModelError where requests failed and ``allow_failed`` is not set (then they are judgments of no verdict, with the
    reason ``failed``), and where a chat cannot be asked at all; EvidenceError where no case has a comparison.
    """
    choice = choose_jury(
        config.compare,
        chat=config.chat,
        judge=config.judge,
        price=config.price,
        members=config.members,
        allow_even=config.allow_even,
    )
    asked = msgspec.to_builtins(config) | {"jury": choice.settings()}
    inputs = {"cases": cases, **choice.inputs()}
    with result_folder(out, "judge", config=asked, inputs=inputs, seed=config.seed, force=force) as result:
        if result.is_finished:
            say(f"{out} is finished already: equal input and settings")
            return read_run(out)
        if force:
            (out / LEDGER_FILE).unlink(missing_ok=True)
        with open_ledger(result.path(LEDGER_FILE)) as ledger:
            _run(result, cases, config, build_jury(choice, name=config.name), ledger, allow_failed=allow_failed)
    return read_run(out)


def _run(result: Result, cases: Path, config: Config, jury: Jury, ledger: Ledger, *, allow_failed: bool) -> None:
    left_out = Counter(why for case in read_cases(cases) if (why := why_not(case, config.compare)))
    num_cases = sum(1 for _ in read_cases(cases))
    if left_out.total() == num_cases:
        found = f"none of {num_cases} cases can be compared ({', '.join(left_out)})"
        raise EvidenceError(found, where=str(cases), do="choose another design: --set compare=pairs")
    planned = _planned(cases, config)
    asked = ask_jury(
        jury, lambda: (one for _, own in planned() for one in own), ledger, most_cut_off=config.most_cut_off
    )
    _refuse_failed(asked, ledger, allow_failed=allow_failed)
    report = JudgeReport()
    write_cases(result.path("cases.jsonl"), _judged(planned(), jury, config, ledger, report))
    judges = report.records(seed=config.seed, num_resamples=config.num_resamples)
    noted = {"questions": sum(one.num_questions for one in asked.values())}
    noted |= {f"verdict: {name}": number for name, number in judges[jury.name]["outcomes"].items()}
    result.counts = Counts(
        num_in=num_cases, num_used=num_cases - left_out.total(), dropped=dict(sorted(left_out.items())), noted=noted
    )
    used = tokens_used(jury, lambda: (one for _, own in planned() for one in own), ledger)
    result.summary = {"judge": jury.name, "compare": config.compare, "judges": judges, "tokens": used} | {
        "failed": ledger.failures(),
        "protocol": jury.protocol(),
    }


def _planned(cases: Path, config: Config) -> Callable[[], Iterator[tuple[Case, tuple[Comparison, ...]]]]:
    """The cases with their comparisons, each time anew from the file: a case file may be larger than memory."""
    return lambda: ((case, comparisons_of(case, config.compare, seed=config.seed)) for case in read_cases(cases))


def _judged(
    planned: Iterable[tuple[Case, tuple[Comparison, ...]]],
    jury: Jury,
    config: Config,
    ledger: Ledger,
    report: JudgeReport,
) -> Iterator[Case]:
    for case, comparisons in planned:
        answers = [answers_of(jury, comparison, ledger) for comparison in comparisons]
        for one in answers:
            report.add(case.prompt, one)
        yield signed(case, answers, by=jury.name, each=config.write == "replies")


def _refuse_failed(asked: dict[str, Asked], ledger: Ledger, *, allow_failed: bool) -> None:
    num_failed = sum(one.num_failed for one in asked.values())
    if num_failed and not allow_failed:
        num_asked = sum(one.num_questions for one in asked.values())
        reasons: dict[str, Any] = ledger.failures()
        said = ", ".join(f"{reason} {number}" for reason, number in reasons.items())
        raise ModelError(
            f"{num_failed} of {num_asked} requests failed ({said}); what was answered is kept",
            do="run the same command again, or say --allow-failed to leave them without a verdict",
        )
