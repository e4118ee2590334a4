"""Scores: the distribution of the rewards, and the responses without a score."""

from collections.abc import Iterator, Sequence

import numpy as np

from steelyard.core.types import Scores
from steelyard.evaluation.coverage import ScoreSummary
from steelyard.evaluation.tables import (
    Figure,
    Grouped,
    Panel,
    Sentence,
    count,
    decimal,
    isolate,
    language_word,
    percent,
    table,
    word,
)
from steelyard.evaluation.vega import STRONG, Spec, framed
from steelyard.report.page import COMMA, Section
from steelyard.report.run_records import last_part, rule_word
from steelyard.report.sources import read_records
from steelyard.report.stage_section import PageSources, StageContents, StageRun, StageSection

_BINS = 40
_SCORES = "scores.jsonl"


def _contents(runs: Sequence[StageRun[ScoreSummary]], sources: PageSources) -> StageContents:
    panels = [panel for run in runs for panel in _panels(run)]
    sentences = tuple(_sentence(run) for run in runs)
    return StageContents((Section("scores", tuple(run.evidence for run in runs), tuple(panels), sentences),))


def _sentence(run: StageRun[ScoreSummary]) -> Sentence:
    summary = run.summary
    values = {
        "model": last_part(summary.model),
        "scored": count(summary.num_responses - summary.unscored.num_responses),
        "responses": count(summary.num_responses),
        "cases": count(run.source.run.counts.num_used),
        "cut": count(summary.coverage.num_cut),
    }
    if not summary.unscored.num_responses:
        return Sentence("say_scored", values)
    reasons = COMMA.join(f"{rule_word(reason)} {number:,}" for reason, number in summary.unscored.by_reason.items())
    return Sentence("say_scored_in_part", values | {"reasons": reasons})


def _panels(run: StageRun[ScoreSummary]) -> Iterator[Panel]:
    lines = read_records(run.source, _SCORES, Scores)
    scores = np.array([score for line in lines for score in line.scores.values() if score is not None])
    name = last_part(run.summary.model)
    if len(scores):
        quantiles = np.quantile(scores, [0.05, 0.25, 0.5, 0.75, 0.95])
        cells = (name, *(decimal(float(value)) for value in quantiles), count(len(scores)))
        columns = ("scorer", "quantile_5", "quantile_25", "median", "quantile_75", "quantile_95", "n")
        tables = (Grouped("", table(columns, [cells])),)
        figure = None if scores.min() == scores.max() else _histogram(scores)
        yield Panel(f"{isolate(name)} · {word('score_distribution')}", figure, tables, "note_score_distribution")
    languages = run.summary.coverage.by_language
    if any(counts.num_cut or counts.num_unscored for counts in languages.values()):
        rows = [
            (language_word(language), count(counts.num_responses), *map(percent, counts.shares))
            for language, counts in sorted(languages.items(), key=lambda item: -max(item[1].shares))
        ]
        numbers = table(("language", "responses", "share_cut", "share_unscored"), rows)
        yield Panel(f"{isolate(name)} · {word('coverage_by_language')}", None, (Grouped("", numbers),))


def _histogram(scores: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Figure:
    numbers, edges = np.histogram(scores, bins=_BINS)
    values = [
        {"from": low, "to": high, "n": number}
        for low, high, number in zip(edges[:-1].tolist(), edges[1:].tolist(), numbers.tolist(), strict=True)
    ]
    tips = [
        {"field": "from", "title": word("from"), "format": ".3f"},
        {"field": "to", "title": word("to"), "format": ".3f"},
        {"field": "n", "title": "n", "format": ","},
    ]
    encoding: Spec = {
        "x": {
            "field": "from",
            "type": "quantitative",
            "bin": {"binned": True},
            "axis": {"title": word("reward"), "tickCount": 8},
        },
        "x2": {"field": "to"},
        "y": {"field": "n", "type": "quantitative", "axis": {"title": word("responses"), "tickCount": 5}},
        "tooltip": tips,
    }
    layers: list[Spec] = [{"mark": {"type": "bar", "color": STRONG, "binSpacing": 1}, "encoding": encoding}]
    return Figure("score_distribution", {**framed(layers, 200), "data": {"values": values}})


SECTION = StageSection(75, "score", ScoreSummary, _contents)
