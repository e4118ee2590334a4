"""Sampled responses: what became of each model's samples, their lengths, tokens and cost, and responses per prompt."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from steelyard.core.remedies import Command, Remedy
from steelyard.core.types import Run
from steelyard.evaluation.tables import (
    Grouped,
    Mark,
    Panel,
    Sentence,
    Table,
    count,
    decimal,
    percent,
    table,
    word,
)
from steelyard.evaluation.vega import ALERT, MODEL_COLOURS, MUTED
from steelyard.judging.sampling_summary import ResponseCounts, SamplingSummary
from steelyard.judging.token_use import TokenUse
from steelyard.report.bars import stacked_bars
from steelyard.report.missing_verdicts import failed_panels
from steelyard.report.page import COMMA
from steelyard.report.token_tables import token_panel, tokens_and_cost
from steelyard.views.forecasts import sampling_forecast_lines
from steelyard.views.view import HeadlineRule, NextStep, PageSources, RunHeadline, StageRun, View

_COLOURS = {
    "whole": MODEL_COLOURS[0],
    "refused": MODEL_COLOURS[3],
    "cut_off": MODEL_COLOURS[2],
    "empty": ALERT,
    "failed": MUTED,
}


def _sentences(run: StageRun[SamplingSummary]) -> Iterator[Sentence]:
    summary = run.summary
    models = summary.models.values()
    planned = sum(counts.num_planned for counts in models)
    costs = [use.cost for use in summary.tokens.values() if use.cost is not None]
    missing = percent((planned - summary.num_responses) / max(planned, 1))
    values = {"run": run.name, "planned": count(planned), "responses": count(summary.num_responses), "missing": missing}
    if summary.new_prompts is not None:
        written = sum(summary.new_prompts.values())
        yield Sentence("say_rewritten", {"run": run.name, "prompts": count(written), "planned": count(planned)})
    elif len(summary.models) == 1:
        yield Sentence("say_sampled_by_one", values)
    else:
        yield Sentence("say_sampled", values | {"models": count(len(summary.models))})
    if num_repeated := sum(counts.num_repeated for counts in models):
        yield Sentence("say_repeated", {"run": run.name, "repeated": count(num_repeated)})
    if costs:
        yield Sentence("say_sampling_cost", {"run": run.name, "cost": decimal(sum(costs), 4)})
    if uncounted := sum(use.uncounted for use in summary.tokens.values()):
        yield Sentence("say_uncounted_replies", {"number": count(uncounted)})
    if (meetings := summary.meetings) is not None:
        key = "say_equal_meetings" if meetings.fewest == meetings.most else "say_meetings"
        fewest = {} if meetings.fewest == meetings.most else {"fewest": count(meetings.fewest)}
        yield Sentence(key, {"run": run.name, **fewest, "most": count(meetings.most)})


def _panels(run: StageRun[SamplingSummary], sources: PageSources) -> Iterator[Panel]:
    summary = run.summary
    rows = {name: _by_outcome(counts) for name, counts in summary.models.items() if counts.num_planned}
    if rows:
        present = [key for key in _COLOURS if any(_outcome(key) in numbers for numbers in rows.values())]
        marks = [Mark(_outcome(key), _COLOURS[key], "square") for key in present]
        outcomes = Grouped("author", _outcome_table(summary))
        yield Panel(
            word("samples_by_model"), stacked_bars("samples_by_model", rows, marks), (outcomes,), "note_samples"
        )
    yield Panel(word("lengths_by_model"), None, (Grouped("author", _length_table(summary)),), "note_lengths_by_model")
    yield token_panel(summary.tokens, "author")
    if summary.new_prompts is not None:
        ways = [(word(f"rewrite_{way}"), count(number)) for way, number in summary.new_prompts.items()]
        yield Panel(word("new_prompts_by_way"), None, (Grouped("", table(("rewrite_way", "prompts"), ways)),))
    else:
        numbers = [(name, count(number)) for name, number in summary.responses_per_prompt.items()]
        yield Panel(word("responses_per_prompt"), None, (Grouped("", table(("responses", "prompts"), numbers)),))
    yield from failed_panels(summary.failed)


def _outcome(key: str) -> str:
    return word(f"sample_{key}")


def _by_outcome(counts: ResponseCounts) -> dict[str, int]:
    """Return the samples by outcome; a kept refusal is still a refusal."""
    others = {"refused": counts.refused, "cut_off": counts.cut_off, "empty": counts.empty, "failed": counts.failed}
    numbers = {"whole": counts.num_planned - sum(others.values()), **others}
    return {_outcome(key): number for key, number in numbers.items() if number}


def _outcome_table(summary: SamplingSummary) -> Table:
    rows = [
        (
            name,
            count(counts.num_prompts),
            count(counts.num_planned),
            count(counts.num_responses),
            count(counts.num_repeated),
            *(count(number) for number in (counts.refused, counts.cut_off, counts.empty, counts.failed)),
        )
        for name, counts in summary.models.items()
    ]
    outcomes = ("sample_refused", "sample_cut_off", "sample_empty", "sample_failed")
    return table(("author", "prompts", "planned_samples", "responses", "repeated_texts", *outcomes), rows)


def _length_table(summary: SamplingSummary) -> Table:
    rows = [
        (name, count(lengths.n), count(lengths.low), count(lengths.median), count(lengths.high))
        for name, lengths in ((name, counts.characters) for name, counts in summary.models.items())
    ]
    return table(("author", "n", "length_low", "median", "length_high"), rows)


class _Written(msgspec.Struct):
    num_responses: int


class _Sampled(msgspec.Struct):
    models: dict[str, _Written]
    tokens: dict[str, TokenUse]


def _sampled(run: _Sampled) -> RunHeadline:
    number = sum(model.num_responses for model in run.models.values())
    return RunHeadline(count(number), COMMA.join([word("view_written"), *tokens_and_cost(run.tokens)]))


def _next_step(run: Run[SamplingSummary], out: Path) -> NextStep:
    if run.summary.new_prompts is not None:
        return NextStep(Command("prompts", (str(out / "cases.jsonl"),), (Remedy("out", "prepared"),)))
    return NextStep(Command("judge", (str(out / "cases.jsonl"),), (Remedy("out", "judged"),)))


VIEW = View(
    85,
    "sample",
    SamplingSummary,
    "sampling",
    _sentences,
    _panels,
    headline=HeadlineRule(_Sampled, _sampled),
    next_step=_next_step,
    unrecorded=lambda forecast, out: sampling_forecast_lines(forecast),
)
