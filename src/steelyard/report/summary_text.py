"""The summary in plain words: which sentences can be said of a run, and the numbers that go into them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from steelyard.evaluation.measures.accuracy import Named, baseline_word
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
from steelyard.report.summary_readers import (
    Baseline,
    Coverage,
    Estimate,
    Evaluation,
)


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


def evaluation_cards(named: Named) -> tuple[Card, ...]:
    """The bench's own headline where it has one, accuracy, exact match, and the lead over the best baseline."""
    own = named.evaluation
    cards: list[Card] = []
    if own.overall is not None:
        below = _interval_and_n(own.overall, "prompts")
        cards.append(Card(word("bench_overall"), percent(own.overall.value), below, "", named.name))
    cards += [
        Card(word("accuracy"), percent(own.accuracy.value), _interval_and_n(own.accuracy, "pairs"), "", named.name),
        Card(
            word("exact_match"),
            percent(own.exact_match.value),
            _interval_and_n(own.exact_match, "prompts"),
            "",
            named.name,
        ),
    ]
    best = best_baseline(own.baselines)
    if best is not None and own.baselines[best].difference.value is not None:
        difference = own.baselines[best].difference
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


def evaluation_sentences(named: Named) -> tuple[Sentence, ...]:
    """What can be said of an evaluation. Without a headline (most pairs unscored) it says just that."""
    own = named.evaluation
    if own.accuracy.value is None:
        return _without_headline(named)
    gaps = {"model": named.name, "categories": count(len(own.by_category)), **_gaps(own.accuracy)}
    said = [] if own.overall is None else [Sentence("say_overall", {"model": named.name, **_gaps(own.overall)})]
    said.append(Sentence("say_accuracy", gaps))
    if own.exact_match.value is not None:
        said.append(Sentence("say_exact_match", _gaps(own.exact_match)))
    said += _coverage_sentences(own)
    best = best_baseline(own.baselines)
    if best is not None:
        said.append(_against(best, own.baselines[best]))
    said += _order_leak(own.baselines.get(_READS_THE_ORDER))
    if own.missing:
        missing = ", ".join(f"{name} ({why})" for name, why in own.missing.items())
        said.append(Sentence("say_missing", {"missing": missing}))
    if own.tied.num_pairs:
        said.append(Sentence("say_tied", {"pairs": count(own.tied.num_pairs), "share": percent(own.tied.share)}))
    return tuple(said)


def _coverage_sentences(own: Evaluation) -> list[Sentence]:
    """What was cut, by language, and what has no score, with what accuracy is if all of it were right."""
    said: list[Sentence] = []
    coverage = own.coverage
    if coverage is not None and coverage.num_cut:
        by_language = {name: one.num_cut / one.num_responses for name, one in coverage.by_language.items()}
        said.append(Sentence("say_cut", _affected(coverage, coverage.num_cut, by_language)))
    if coverage is not None and coverage.num_unscored:
        by_language = {name: one.num_unscored / one.num_responses for name, one in coverage.by_language.items()}
        said.append(Sentence("say_unscored", _affected(coverage, coverage.num_unscored, by_language)))
    return [*said, *_bounds_sentence(own)]


def _affected(coverage: Coverage, number: int, by_language: Mapping[str, float]) -> dict[str, str]:
    highest = sorted(by_language.items(), key=lambda pair: -pair[1])
    return {
        "number": count(number),
        "total": count(coverage.num_responses),
        "share": percent(number / coverage.num_responses),
        "languages": ", ".join(f"{name} {percent(share)}" for name, share in highest if share),
    }


def _bounds_sentence(own: Evaluation) -> Sequence[Sentence]:
    ends = own.bounds.accuracy
    if ends.low is None:
        return ()
    return (Sentence("say_bounds", {"low": percent(ends.low), "high": percent(ends.high)}),)


def _order_leak(first: Baseline | None) -> list[Sentence]:
    """A word on files that list the better answers first, where the whole interval lies above chance."""
    if first is None or first.accuracy.value is None or first.accuracy.low is None or first.accuracy.low <= 0.5:
        return []
    return [Sentence("say_order_leak", {"accuracy": percent(first.accuracy.value)})]


def _without_headline(named: Named) -> tuple[Sentence, ...]:
    own = named.evaluation
    reasons = own.unscored.by_reason if own.unscored else {}
    values = {
        "model": named.name,
        "number": count(own.unscored.num_responses if own.unscored else None),
        "reasons": ", ".join(f"{reason} {number:,}" for reason, number in reasons.items()) or DASH,
    }
    return (Sentence("say_no_headline", values), *_bounds_sentence(own))


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
