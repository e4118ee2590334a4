"""Verdicts of language models on a page: outcomes, biases by place and order, and replies without a verdict."""

from collections.abc import Iterator, Mapping, Sequence

from steelyard.core.types import Case
from steelyard.evaluation.tables import (
    DASH,
    PERCENT,
    Figure,
    Grouped,
    Mark,
    Panel,
    Sentence,
    ShownItem,
    Table,
    count,
    table,
    word,
)
from steelyard.evaluation.vega import ALERT, CHANCE, FAINT, MODEL_COLOURS, MUTED, Dot, interval_rows, share_axis
from steelyard.judging.judging_summary import JudgingSummary
from steelyard.judging.unparsed import UNPARSED_FILE, UnparsedReply
from steelyard.report.bars import stacked_bars
from steelyard.report.items import cases_by_key, example_texts
from steelyard.report.missing_verdicts import detail_word
from steelyard.report.sources import FinishedRun, read_records

_COLOURS = {
    "left": MODEL_COLOURS[0],
    "right": MODEL_COLOURS[1],
    "tie": FAINT,
    "unparsed": ALERT,
    "refused": MODEL_COLOURS[3],
    "cut off": MODEL_COLOURS[2],
    "failed": MUTED,
}


def _outcome(outcome: str) -> str:
    return word(f"outcome_{outcome.replace(' ', '_')}", outcome)


def _outcome_table(rows: dict[str, dict[str, int]], present: Sequence[str]) -> Table:
    titles = [_outcome(outcome) for outcome in present]
    cells = [
        (name, count(sum(numbers.values())), *(count(numbers.get(title, 0)) for title in titles))
        for name, numbers in rows.items()
    ]
    columns = ("judge", "n", *(f"outcome_{outcome.replace(' ', '_')}" for outcome in present))
    return table(columns, cells)


def order_bias_panels(summary: JudgingSummary) -> Iterator[Panel]:
    """Yield the preference for the first place, and the pairs on which the orders disagree, where they are known."""
    for title, attribute, line in (
        ("first_preferred", "first_preferred", CHANCE),
        ("inconsistent", "inconsistent", None),
        ("flip_rate", "flip_rate", None),
    ):
        estimates = {name: getattr(judge, attribute) for name, judge in summary.judges.items()}
        known = {name: each for name, each in estimates.items() if each is not None and each.value is not None}
        if not known:
            continue
        dots = [Dot(name, name, estimate) for name, estimate in known.items()]
        channel = {"axis": share_axis(title), "scale": {"zero": False}}
        figure = Figure(title, interval_rows(dots, channel, row="judge", form=".1%", line=line))
        rows = [(name, *PERCENT.cells(estimate), count(estimate.n)) for name, estimate in known.items()]
        numbers = table(("judge", title, "interval", "n"), rows)
        yield Panel(word(title), figure, (Grouped("", numbers),), f"note_{title}")


def unparsed_examples(source: FinishedRun, case_files: Mapping[str, Sequence[Case]]) -> Iterator[ShownItem]:
    """Yield the first reply of each judge and outcome that has no verdict, with the prompt and the answers shown."""
    first: dict[tuple[str, str], UnparsedReply] = {}
    for reply in read_records(source, UNPARSED_FILE, UnparsedReply):
        first.setdefault((reply.judge, reply.outcome), reply)
    cases = cases_by_key(case_files, {(reply.prompt, reply.language) for reply in first.values()})
    for _, reply in sorted(first.items()):
        case = cases.get((reply.prompt, reply.language))
        prompt, texts = ("", []) if case is None else example_texts(case, reply.shown)
        about = {"judge": reply.judge, "outcome": _outcome(reply.outcome), "detail": detail_word(reply.detail or DASH)}
        answers = [(f"{word('answer')} {place}", text) for place, text in enumerate(texts, 1)]
        shown = ((word("reply"), reply.text or DASH), *answers)
        yield ShownItem(reply.prompt, reply.language, Sentence("say_unparsed", about), prompt, shown)


def outcome_panels(summary: JudgingSummary) -> Iterator[Panel]:
    """Yield the verdicts of each judge by outcome, where there are any."""
    outcomes = {name: judge.outcomes for name, judge in summary.judges.items() if judge.outcomes}
    if outcomes:
        present = [outcome for outcome in _COLOURS if any(outcome in numbers for numbers in outcomes.values())]
        marks = [Mark(_outcome(outcome), _COLOURS[outcome], "square") for outcome in present]
        rows = {name: {_outcome(key): number for key, number in numbers.items()} for name, numbers in outcomes.items()}
        tables = (Grouped("judge", _outcome_table(rows, present)),)
        yield Panel(word("verdicts"), stacked_bars("verdicts", rows, marks), tables, "note_verdicts")
