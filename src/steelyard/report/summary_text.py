"""The summary in plain words: which sentences can be said of a run, and the numbers that go into them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from steelyard.evaluation.coverage import Coverage
from steelyard.evaluation.measures.accuracy import Baseline, baseline_word
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.evaluation.tables import (
    DASH,
    Sentence,
    count,
    percent,
    points,
    points_spread,
    spread,
    word,
)
from steelyard.statistics.intervals import Estimate


class Card(NamedTuple):
    """One number of the summary: its word, the number, what stands below it, and how it is to be read.

    ``tone`` is ``good``, ``bad`` or empty; it colours nothing but a small mark.
    """

    title: str
    number: str
    below: str
    tone: str = ""
    about: str = ""


class CardGroup(NamedTuple):
    """Cards that belong together, under a title; empty where the page has only one group."""

    title: str
    cards: tuple[Card, ...]


def evaluation_cards(name: str, summary: EvaluationSummary) -> tuple[Card, ...]:
    """The bench's summary headline where it has one, accuracy, exact match, and the lead over the best baseline."""
    cards: list[Card] = []
    if summary.overall is not None:
        below = _interval_and_n(summary.overall, "prompts")
        cards.append(Card(word("bench_overall"), percent(summary.overall.value), below, "", name))
    cards += [
        Card(word("accuracy"), percent(summary.accuracy.value), _interval_and_n(summary.accuracy, "pairs"), "", name),
    ]
    if summary.exact_match is not None:
        below = _interval_and_n(summary.exact_match, "prompts")
        cards.append(Card(word("exact_match"), percent(summary.exact_match.value), below, "", name))
    best = best_baseline(summary.baselines)
    if best is not None and summary.baselines[best].difference.value is not None:
        difference = summary.baselines[best].difference
        below = f"{word('points')}\n{word('interval_95')} {points_spread(difference)}"
        cards.append(
            Card(word("lead_over_best"), points(difference.value), below, tone_of(difference), baseline_word(best))
        )
    return tuple(cards)


_READS_THE_ORDER = "first"


def best_baseline(baselines: Mapping[str, Baseline]) -> str | None:
    """The baseline with the highest accuracy; None where none was measured.

    The baseline ``first`` reads the order in which the file lists the answers, which no model sees: it shows a leak of
    the answer key in the file (`_order_leak`), and is nothing to beat.
    """
    measured = {
        name: own.accuracy.value
        for name, own in baselines.items()
        if own.accuracy.value is not None and name != _READS_THE_ORDER
    }
    return max(measured, key=lambda name: measured[name]) if measured else None


def tone_of(difference: Estimate) -> str:
    """``good`` if the whole interval lies above zero, ``bad`` if below, empty where it includes zero."""
    if difference.low is None or difference.high is None:
        return ""
    return "good" if difference.low > 0 else "bad" if difference.high < 0 else ""


def evaluation_sentences(name: str, summary: EvaluationSummary) -> tuple[Sentence, ...]:
    """What can be said of an evaluation. Without a headline (most pairs unscored) it says just that."""
    if summary.accuracy.value is None:
        return _without_headline(name, summary)
    gaps = {"model": name, "categories": count(len(summary.by_category)), **_gaps(summary.accuracy)}
    said = [] if summary.overall is None else [Sentence("say_overall", {"model": name, **_gaps(summary.overall)})]
    said.append(Sentence("say_accuracy", gaps))
    if summary.exact_match is not None and summary.exact_match.value is not None:
        said.append(Sentence("say_exact_match", _gaps(summary.exact_match)))
    said += _coverage_sentences(summary)
    best = best_baseline(summary.baselines)
    if best is not None:
        said.append(_against(best, summary.baselines[best]))
    said += _order_leak(summary.baselines.get(_READS_THE_ORDER))
    if summary.missing:
        missing = ", ".join(f"{name} ({why})" for name, why in summary.missing.items())
        said.append(Sentence("say_missing", {"missing": missing}))
    if summary.tied.num_pairs:
        said.append(
            Sentence("say_tied", {"pairs": count(summary.tied.num_pairs), "share": percent(summary.tied.share)})
        )
    return tuple(said)


def _coverage_sentences(summary: EvaluationSummary) -> list[Sentence]:
    """What was cut, by language, and what has no score, with what accuracy is if all of it were right."""
    said: list[Sentence] = []
    coverage = summary.coverage
    if coverage is not None and coverage.num_cut:
        by_language = {name: one.num_cut / one.num_responses for name, one in coverage.by_language.items()}
        said.append(Sentence("say_cut", _affected(coverage, coverage.num_cut, by_language)))
    if coverage is not None and coverage.num_unscored:
        by_language = {name: one.num_unscored / one.num_responses for name, one in coverage.by_language.items()}
        said.append(Sentence("say_unscored", _affected(coverage, coverage.num_unscored, by_language)))
    return [*said, *_bounds_sentence(summary)]


def _affected(coverage: Coverage, number: int, by_language: Mapping[str, float]) -> dict[str, str]:
    highest = sorted(by_language.items(), key=lambda pair: -pair[1])
    return {
        "number": count(number),
        "total": count(coverage.num_responses),
        "share": percent(number / coverage.num_responses),
        "languages": ", ".join(f"{name} {percent(share)}" for name, share in highest if share),
    }


def _bounds_sentence(summary: EvaluationSummary) -> Sequence[Sentence]:
    ends = None if summary.bounds is None else summary.bounds.accuracy
    if ends is None or ends.low is None:
        return ()
    return (Sentence("say_bounds", {"low": percent(ends.low), "high": percent(ends.high)}),)


def _order_leak(first: Baseline | None) -> list[Sentence]:
    """A word on files that list the better answers first, where the whole interval lies above chance."""
    if first is None or first.accuracy.value is None or first.accuracy.low is None or first.accuracy.low <= 0.5:
        return []
    return [Sentence("say_order_leak", {"accuracy": percent(first.accuracy.value)})]


def _without_headline(name: str, summary: EvaluationSummary) -> tuple[Sentence, ...]:
    reasons = summary.unscored.by_reason if summary.unscored else {}
    values = {
        "model": name,
        "number": count(summary.unscored.num_responses if summary.unscored else None),
        "reasons": ", ".join(f"{reason} {number:,}" for reason, number in reasons.items()) or DASH,
    }
    return (Sentence("say_no_headline", values), *_bounds_sentence(summary))


def _against(name: str, baseline: Baseline) -> Sentence:
    difference = baseline.difference
    values = {
        "baseline": baseline_word(name),
        "accuracy": percent(baseline.accuracy.value),
        "points": points(difference.value),
        "interval": points_spread(difference),
    }
    if difference.low is None or difference.high is None:
        return Sentence("say_beside", values)
    return Sentence({"good": "say_ahead", "bad": "say_behind", "": "say_undecided"}[tone_of(difference)], values)


def _gaps(estimate: Estimate) -> dict[str, str]:
    return {"value": percent(estimate.value), "interval": spread(estimate), "n": count(estimate.n)}


def _interval_and_n(estimate: Estimate, unit: str) -> str:
    interval = "" if estimate.low is None else f"{word('interval_95')} {spread(estimate)}\n"
    return f"{interval}n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{count(estimate.n)}\N{NO-BREAK SPACE}{word(unit)}"
