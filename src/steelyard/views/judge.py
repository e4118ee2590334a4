"""Judges: verdicts by outcome, position bias, inconsistent orders, tokens and cost, and replies without a verdict."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from steelyard.core.comparison import VERDICTS
from steelyard.core.remedies import Command, Remedy
from steelyard.core.types import Run
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
    decimal,
    percent,
    table,
    word,
)
from steelyard.evaluation.vega import ALERT, CHANCE, FAINT, MODEL_COLOURS, MUTED, Dot, interval_rows, share_axis
from steelyard.judging.forecast import JudgeForecast
from steelyard.judging.judging_summary import JudgingSummary
from steelyard.judging.run_status import JudgeStatus
from steelyard.judging.token_use import TokenUse
from steelyard.judging.unparsed import UNPARSED_FILE, UnparsedReply
from steelyard.judging.verdicts import VerdictCounts
from steelyard.report.bars import stacked_bars
from steelyard.report.items import cases_by_key, example_texts
from steelyard.report.judge_cards import card_panels, card_sentences
from steelyard.report.page import COMMA
from steelyard.report.run_records import detail_word, failure_word, last_part
from steelyard.report.sources import read_records
from steelyard.report.token_tables import token_panel, tokens_and_cost
from steelyard.views.forecasts import forecast_lines, status_lines
from steelyard.views.view import HeadlineRule, NextStep, PageSources, RunHeadline, StageRun, View

_COLOURS = {
    "left": MODEL_COLOURS[0],
    "right": MODEL_COLOURS[1],
    "tie": FAINT,
    "unparsed": ALERT,
    "refused": MODEL_COLOURS[3],
    "cut off": MODEL_COLOURS[2],
    "failed": MUTED,
}


def _sentences(run: StageRun[JudgingSummary]) -> Iterator[Sentence]:
    outcomes = run.summary.judges[run.summary.judge].outcomes
    total = sum(outcomes.values())
    missing = sum(number for outcome, number in outcomes.items() if outcome not in VERDICTS)
    values = {
        "run": run.name,
        "judge": run.summary.judge,
        "verdicts": count(total),
        "strict": percent((outcomes.get("left", 0) + outcomes.get("right", 0)) / max(total, 1)),
        "ties": percent(outcomes.get("tie", 0) / max(total, 1)),
        "missing": percent(missing / max(total, 1)),
    }
    ratings = run.summary.judges[run.summary.judge].ratings
    if ratings:
        number = sum(ratings.values())
        yield Sentence("say_rated", values | {"ratings": count(number), "none": count(missing)})
    else:
        yield Sentence("say_judged", values)
    if run.summary.card is not None:
        yield from card_sentences(run.summary.card)
    yield from _consistency_sentences(run.summary)


def _consistency_sentences(summary: JudgingSummary) -> Iterator[Sentence]:
    """Yield how the judge contradicts itself, which place it prefers, what its replies cost, and quoted verdicts."""
    judge = summary.judges[summary.judge]
    shares = {
        "say_order_changes": judge.inconsistent,
        "say_first_preferred": judge.first_preferred,
        "say_repeats_change": judge.flip_rate,
    }
    for key, share in shares.items():
        if share is not None and share.value is not None:
            yield Sentence(key, {"share": percent(share.value), "n": count(share.n)})
    costs = [use.cost for use in summary.tokens.values() if use.cost is not None]
    if costs:
        yield Sentence("say_judging_cost", {"cost": decimal(sum(costs), 4)})
    if tries := sum(use.unanswered_tries for use in summary.tokens.values()):
        yield Sentence("say_unanswered_tries", {"number": count(tries)})
    if (marked := summary.marked) is not None:
        values = {"number": marked.num_responses, "missing": marked.num_missing, "judged": marked.num_judged}
        yield Sentence("say_quoted_verdicts", {name: count(value) for name, value in values.items()})


def _panels(run: StageRun[JudgingSummary], sources: PageSources) -> Iterator[Panel]:
    summary = run.summary
    outcomes = {name: judge.outcomes for name, judge in summary.judges.items() if judge.outcomes}
    if outcomes:
        present = [outcome for outcome in _COLOURS if any(outcome in numbers for numbers in outcomes.values())]
        marks = [Mark(_outcome(outcome), _COLOURS[outcome], "square") for outcome in present]
        rows = {name: {_outcome(key): number for key, number in numbers.items()} for name, numbers in outcomes.items()}
        tables = (Grouped("judge", _outcome_table(rows, present)),)
        yield Panel(word("verdicts"), stacked_bars("verdicts", rows, marks), tables, "note_verdicts")
    if ratings := {name: judge.ratings for name, judge in summary.judges.items() if judge.ratings}:
        rows = [(name, number, count(times)) for name, numbers in ratings.items() for number, times in numbers.items()]
        yield Panel(word("ratings_given"), None, (Grouped("judge", table(("judge", "rating", "n"), rows)),))
    yield from _bias_panels(summary)
    if summary.card is not None:
        yield from card_panels(summary.card)
    yield token_panel(summary.tokens, "judge")
    if summary.failed:
        failed = table(
            ("reason", "n"), [(failure_word(name), count(number)) for name, number in summary.failed.items()]
        )
        yield Panel(word("failed_requests"), None, (Grouped("", failed),))
    if examples := tuple(_examples(run, sources)):
        yield Panel(word("unparsed_examples"), None, (), "note_unparsed_examples", examples)


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


def _bias_panels(summary: JudgingSummary) -> Iterator[Panel]:
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


def _examples(run: StageRun[JudgingSummary], sources: PageSources) -> Iterator[ShownItem]:
    """Yield the first reply of each judge and outcome that has no verdict, with the prompt and the answers shown."""
    first: dict[tuple[str, str], UnparsedReply] = {}
    for reply in read_records(run.source, UNPARSED_FILE, UnparsedReply):
        first.setdefault((reply.judge, reply.outcome), reply)
    cases = cases_by_key(sources.cases, {(reply.prompt, reply.language) for reply in first.values()})
    for _, reply in sorted(first.items()):
        case = cases.get((reply.prompt, reply.language))
        prompt, texts = ("", []) if case is None else example_texts(case, reply.shown)
        about = {"judge": reply.judge, "outcome": _outcome(reply.outcome), "detail": detail_word(reply.detail or DASH)}
        answers = [(f"{word('answer')} {place}", text) for place, text in enumerate(texts, 1)]
        shown = ((word("reply"), reply.text or DASH), *answers)
        yield ShownItem(reply.prompt, reply.language, Sentence("say_unparsed", about), prompt, shown)


class _Outcomes(VerdictCounts, frozen=True, forbid_unknown_fields=False):
    pass


class _Judged(msgspec.Struct):
    judge: str
    judges: dict[str, _Outcomes]
    tokens: dict[str, TokenUse]


def _judged(run: _Judged) -> RunHeadline:
    judge = run.judges[run.judge]
    noun = word("view_ratings" if judge.ratings else "view_verdicts")
    about = COMMA.join([noun, *tokens_and_cost(run.tokens)])
    return RunHeadline(count(judge.num_given), about, last_part(run.judge))


def _resolution(run: Run[JudgingSummary], out: Path) -> NextStep:
    return NextStep(Command("resolve", (str(out / "cases.jsonl"),), (Remedy("out", "resolved"),)))


def _unfinished(result: JudgeForecast | JudgeStatus, out: Path) -> Iterator[str]:
    """Yield the forecast of a run, or how far it has come."""
    yield from forecast_lines(result) if result.kind == "forecast" else status_lines(result.status, out)


VIEW = View(
    90,
    "judge",
    JudgingSummary,
    "judging",
    _sentences,
    _panels,
    headline=HeadlineRule(_Judged, _judged),
    next_step=_resolution,
    unrecorded=_unfinished,
)
