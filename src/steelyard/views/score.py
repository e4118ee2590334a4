"""Scores: the distribution of the rewards, and the responses without a score."""

from collections.abc import Iterator

import msgspec
import numpy as np

from steelyard.core.numerics import histogram_edges
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
from steelyard.networks.settings import TargetScale
from steelyard.report.page import COMMA
from steelyard.report.run_records import last_part, rule_word
from steelyard.report.sources import read_records
from steelyard.views.view import HeadlineRule, PageSources, RunHeadline, StageRun, View

_BINS = 40
_SCORES = "scores.jsonl"


def _sentences(run: StageRun[ScoreSummary]) -> Iterator[Sentence]:
    summary = run.summary
    values = {
        "model": last_part(summary.model),
        "scored": count(summary.num_responses - summary.unscored.num_responses),
        "responses": count(summary.num_responses),
        "cases": count(run.source.run.counts.num_used),
        "cut": count(summary.coverage.num_cut),
    }
    if summary.unscored.num_responses:
        reasons = COMMA.join(f"{rule_word(reason)} {number:,}" for reason, number in summary.unscored.by_reason.items())
        yield Sentence("say_scored_in_part", values | {"reasons": reasons})
    else:
        yield Sentence("say_scored", values)
    if (ratings := summary.protocol.get("ratings")) is not None:
        yield _rating_sentence(values["model"], msgspec.convert(ratings, TargetScale))


def _panels(run: StageRun[ScoreSummary], sources: PageSources) -> Iterator[Panel]:
    lines = read_records(run.source, _SCORES, Scores)
    scores = np.array([score for line in lines for score in line.scores.values() if score is not None])
    name = last_part(run.summary.model)
    if len(scores):
        quantiles = np.quantile(scores, [0.05, 0.25, 0.5, 0.75, 0.95])
        cells = (name, *(decimal(float(value)) for value in quantiles), count(len(scores)))
        columns = ("scorer", "quantile_5", "quantile_25", "median", "quantile_75", "quantile_95", "n")
        tables = (Grouped("", table(columns, [cells])),)
        figure = None if scores.min() == scores.max() else _histogram(scores)
        ratings = run.summary.protocol.get("ratings")
        is_absolute = ratings is not None and msgspec.convert(ratings, TargetScale).center == "data"
        note = "note_score_distribution_ratings" if is_absolute else "note_score_distribution"
        yield Panel(f"{isolate(name)} · {word('score_distribution')}", figure, tables, note)
    languages = run.summary.coverage.by_language
    if any(counts.num_cut or counts.num_unscored for counts in languages.values()):
        rows = [
            (language_word(language), count(counts.num_responses), *map(percent, counts.shares))
            for language, counts in sorted(languages.items(), key=lambda item: -max(item[1].shares))
        ]
        numbers = table(("language", "responses", "share_cut", "share_unscored"), rows)
        yield Panel(f"{isolate(name)} · {word('coverage_by_language')}", None, (Grouped("", numbers),))


def _rating_sentence(model: str, scale: TargetScale) -> Sentence:
    """Return the way from a score to a rating, for a model that was trained on ratings."""
    names = COMMA.join(
        isolate(name) if weight == 1 else f"{weight:g} {isolate(name)}"
        for name, weight in sorted(scale.dimensions.items())
    )
    values = {"model": model, "dimensions": names}
    if scale.center == "prompt":
        return Sentence("say_score_in_prompt", values)
    if scale.lowest is None or scale.highest is None or scale.link == "identity":
        return Sentence("say_score_and_mean", {**values, "mean": decimal(scale.mean)})
    ends = {"lowest": f"{scale.lowest:g}", "width": f"{scale.highest - scale.lowest:g}"}
    return Sentence("say_score_and_range", {**values, **ends})


def _histogram(scores: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Figure:
    numbers, edges = np.histogram(scores, histogram_edges(scores, _BINS))
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


class _Scored(msgspec.Struct):
    model: str
    num_responses: int


def _scored(run: _Scored) -> RunHeadline:
    return RunHeadline(count(run.num_responses), word("view_responses"), last_part(run.model))


VIEW = View(75, "score", ScoreSummary, "scores", _sentences, _panels, headline=HeadlineRule(_Scored, _scored))
