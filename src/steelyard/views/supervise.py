"""Distant supervision: what each rule dropped, coverage and precision by threshold, and dropped judgments as texts."""

from collections.abc import Iterator

import msgspec

from steelyard.core.types import Case
from steelyard.curation.supervised import DroppedJudgment
from steelyard.evaluation.supervisor import SupervisionSummary
from steelyard.evaluation.tables import (
    DASH,
    PERCENT,
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
from steelyard.evaluation.vega import ALERT, MODEL_COLOURS, STRONG
from steelyard.report.bars import CountBar, SharePoint, count_bars, share_curves
from steelyard.report.items import cases_by_key, example_texts
from steelyard.report.page import COMMA
from steelyard.report.run_records import rule_word
from steelyard.report.sources import read_records
from steelyard.statistics.intervals import Estimate
from steelyard.views.records import flat_row
from steelyard.views.view import HeadlineRule, PageSources, RunHeadline, StageRun, View

_MANIFEST = "manifest.jsonl"
_EXAMPLES_PER_RULE = 3


def _sentences(run: StageRun[SupervisionSummary]) -> Iterator[Sentence]:
    summary = run.summary
    yield Sentence(
        "say_supervised",
        {
            "run": run.name,
            "supervisor": summary.supervisor.name,
            "kept": count(summary.num_strict_kept),
            "judgments": count(summary.num_strict),
            "share": percent(summary.coverage.strict),
            "used": count(run.source.run.counts.num_used),
            "all": count(run.source.run.counts.num_in),
            "prompts": percent(summary.coverage.prompts),
        },
    )
    if summary.max_difference is not None:
        yield Sentence("say_closest_kept", {"difference": decimal(summary.max_difference)})
    if precision := _precision_kept(summary):
        value, interval = PERCENT.cells(precision)
        yield Sentence("say_precision_kept", {"precision": value, "interval": interval, "n": count(precision.n)})
    elif summary.policy == "agree" and summary.precision_from is None:
        yield Sentence("say_no_precision")
    if (certificate := summary.calibration) is not None:
        values = {"precision": percent(certificate.precision), "confidence": percent(certificate.confidence)}
        yield Sentence("say_certified", values)


def _precision_kept(summary: SupervisionSummary) -> Estimate | None:
    """Return the precision at the chosen threshold; null if nobody judged the same pairs."""
    rows = [
        row for row in summary.by_threshold if row.threshold == summary.min_margin and row.precision.value is not None
    ]
    return rows[0].precision if rows else None


def _panels(run: StageRun[SupervisionSummary], sources: PageSources) -> Iterator[Panel]:
    counts, summary = run.source.run.counts, run.summary
    bars = [CountBar(word("kept"), counts.num_used, STRONG)]
    bars += [
        CountBar(rule_word(rule), number, ALERT) for rule, number in sorted(counts.dropped.items(), key=lambda x: -x[1])
    ]
    figure = count_bars("dropped_by_rule", bars, total=counts.num_in)
    rows = [(rule, count(number), percent(number / max(counts.num_in, 1))) for rule, number, _ in bars]
    tables = (Grouped("", table(("rule", "n", "share"), rows)),)
    yield Panel(word("dropped_by_rule"), figure, tables, "note_dropped_by_rule")
    if summary.calibration is not None:
        yield Panel(word("certificate"), None, (Grouped("", _certificate(summary)),), "note_certificate")
    if len(summary.by_threshold) > 1:
        yield _curve(summary)
    if examples := tuple(_examples(run, sources)):
        yield Panel(word("dropped_examples"), None, (), "note_dropped_examples", examples)


def _curve(summary: SupervisionSummary) -> Panel:
    marks = (
        Mark(word("threshold_coverage"), MODEL_COLOURS[1], "circle"),
        Mark(word("threshold_precision"), MODEL_COLOURS[0], "circle"),
    )
    points = []
    for row in summary.by_threshold:
        points.append(SharePoint(marks[0].name, row.threshold, Estimate(row.coverage, None, None, summary.num_strict)))
        points.append(SharePoint(marks[1].name, row.threshold, row.precision))
    has_precision = any(row.precision.value is not None for row in summary.by_threshold)
    figure = share_curves(
        "by_threshold", points, marks if has_precision else marks[:1], x="margin_threshold", line=summary.min_margin
    )
    rows = [
        (
            decimal(row.threshold),
            count(row.num_kept),
            percent(row.coverage),
            *PERCENT.cells(row.precision),
            count(row.precision.n),
        )
        for row in summary.by_threshold
    ]
    numbers = table(("margin_threshold", "kept", "threshold_coverage", "threshold_precision", "interval", "n"), rows)
    return Panel(
        word("by_threshold"),
        figure,
        (Grouped("", numbers),),
        "note_by_threshold" if has_precision else "note_by_threshold_coverage",
    )


def _certificate(summary: SupervisionSummary) -> Table:
    certificate = summary.calibration
    assert certificate is not None
    chosen = next((point for point in certificate.points if point.threshold == summary.min_margin), None)
    rows = [
        (word("target_precision"), percent(certificate.precision)),
        (word("confidence_level"), percent(certificate.confidence)),
        (word("margin_threshold"), decimal(summary.min_margin)),
        (word("calibration_judgments"), count(certificate.num_judgments)),
        (word("calibration_prompts"), count(certificate.num_prompts)),
        (word("precision_by_prompt"), percent(None if chosen is None else chosen.precision_by_prompt)),
        (word("p_value"), DASH if chosen is None else f"{chosen.p_value:.2g}"),
    ]
    return table(("setting", "value"), rows)


def _examples(run: StageRun[SupervisionSummary], sources: PageSources) -> Iterator[ShownItem]:
    """Yield the judgments of largest margin that each rule dropped, with their texts; ties have no margin."""
    by_rule: dict[str, list[DroppedJudgment]] = {}
    for judgment in read_records(run.source, _MANIFEST, DroppedJudgment):
        if judgment.margin is not None:
            largest = [*by_rule.get(judgment.rule, []), judgment]
            by_rule[judgment.rule] = sorted(largest, key=lambda other: -abs(other.margin or 0.0))[:_EXAMPLES_PER_RULE]
    chosen = [judgment for _, judgments in sorted(by_rule.items()) for judgment in judgments]
    cases = cases_by_key(sources.cases, {(judgment.prompt, judgment.language) for judgment in chosen})
    for judgment in chosen:
        if (case := cases.get((judgment.prompt, judgment.language))) is not None:
            yield _example(judgment, case)


def _example(judgment: DroppedJudgment, case: Case) -> ShownItem:
    sides = (judgment.left, judgment.right) if judgment.verdict == "left" else (judgment.right, judgment.left)
    scores = {judgment.left: judgment.left_score, judgment.right: judgment.right_score}
    about = {"judge": judgment.judge, "rule": rule_word(judgment.rule), "margin": decimal(judgment.margin)}
    prompt, texts = example_texts(case, sides)
    titles = [
        f"{word(key)} · {word('score')} {decimal(scores[side])}"
        for key, side in zip(("judge_prefers", "other_answer"), sides, strict=True)
    ]
    answers = tuple(zip(titles, texts, strict=True))
    return ShownItem(judgment.prompt, judgment.language, Sentence("say_dropped", about), prompt, answers)


class _Supervised(msgspec.Struct):
    num_strict: int
    num_strict_kept: int


def _supervised(run: _Supervised) -> RunHeadline:
    share = run.num_strict_kept / run.num_strict if run.num_strict else None
    about = f"{word('view_strict_kept')}{COMMA}{count(run.num_strict_kept)} / {count(run.num_strict)}"
    return RunHeadline(percent(share), about)


VIEW = View(
    100,
    "supervise",
    SupervisionSummary,
    "supervision",
    _sentences,
    _panels,
    headline=HeadlineRule(_Supervised, _supervised),
    records=lambda summary: map(flat_row, summary.by_threshold),
)
