"""Judges: verdicts by outcome, position bias, inconsistent orders, tokens and cost, and replies without a verdict."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from steelyard.core.remedies import Command, Remedy
from steelyard.core.types import Run
from steelyard.evaluation.tables import Grouped, Panel, Sentence, count, decimal, percent, spread, table, word
from steelyard.judging.judging_summary import JudgingSummary
from steelyard.judging.token_use import TokenUse
from steelyard.judging.verdicts import VerdictCounts
from steelyard.report.judge_cards import card_panels, card_sentences
from steelyard.report.missing_verdicts import failed_panels
from steelyard.report.page import COMMA
from steelyard.report.run_records import last_part
from steelyard.report.token_tables import token_panel, tokens_and_cost
from steelyard.report.verdict_panels import order_bias_panels, outcome_panels, unparsed_examples
from steelyard.views.forecasts import judging_lines
from steelyard.views.view import HeadlineRule, NextStep, PageSources, RunHeadline, StageRun, View


def _sentences(run: StageRun[JudgingSummary]) -> Iterator[Sentence]:
    judge = run.summary.judges[run.summary.judge]
    outcomes, missing = judge.outcomes, judge.num_missing
    total = sum(outcomes.values())
    values = {
        "run": run.name,
        "judge": run.summary.judge,
        "given": count(judge.num_given),
        "verdicts": count(total),
        "strict": percent((outcomes.get("left", 0) + outcomes.get("right", 0)) / max(total, 1)),
        "ties": percent(outcomes.get("tie", 0) / max(total, 1)),
        "missing": percent(missing / max(total, 1)),
    }
    if judge.ratings:
        number = sum(judge.ratings.values())
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
            yield Sentence(key, {"share": percent(share.value), "interval": spread(share), "n": count(share.n)})
    costs = [use.cost for use in summary.tokens.values() if use.cost is not None]
    if costs:
        yield Sentence("say_judging_cost", {"cost": decimal(sum(costs), 4)})
    if uncounted := sum(use.uncounted for use in summary.tokens.values()):
        yield Sentence("say_uncounted_replies", {"number": count(uncounted)})
    if tries := sum(use.unanswered_tries for use in summary.tokens.values()):
        yield Sentence("say_unanswered_tries", {"number": count(tries)})
    if (marked := summary.marked) is not None:
        values = {"number": marked.num_responses, "missing": marked.num_missing, "judged": marked.num_judged}
        yield Sentence("say_quoted_verdicts", {name: count(value) for name, value in values.items()})


def _panels(run: StageRun[JudgingSummary], sources: PageSources) -> Iterator[Panel]:
    summary = run.summary
    yield from outcome_panels(summary)
    if ratings := {name: judge.ratings for name, judge in summary.judges.items() if judge.ratings}:
        rows = [(name, number, count(times)) for name, numbers in ratings.items() for number, times in numbers.items()]
        yield Panel(word("ratings_given"), None, (Grouped("judge", table(("judge", "rating", "n"), rows)),))
    yield from order_bias_panels(summary)
    if summary.card is not None:
        yield from card_panels(summary.card)
    yield token_panel(summary.tokens, "judge")
    yield from failed_panels(summary.failed)
    if examples := tuple(unparsed_examples(run.source, sources.cases)):
        yield Panel(word("unparsed_examples"), None, (), "note_unparsed_examples", examples)


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


VIEW = View(
    90,
    "judge",
    JudgingSummary,
    "judging",
    _sentences,
    _panels,
    headline=HeadlineRule(_Judged, _judged),
    next_step=_resolution,
    unrecorded=judging_lines,
)
