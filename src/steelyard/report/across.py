"""Runs of `leaderboard` and of `languages` on the page: many models in one table, and one model in many languages."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from steelyard.evaluation.tables import (
    DASH,
    Sentence,
    Table,
    count,
    decimal,
    percent,
    points,
    points_spread,
    spread,
    table,
    word,
)
from steelyard.report.conflicts import Grouped
from steelyard.report.sections import Panel, Section
from steelyard.report.summary_readers import Coverage, Estimate, Seen


class Number(Estimate, frozen=True, kw_only=True):
    """One column of a model's row."""

    group: str
    name: str


class Row(Seen, frozen=True, kw_only=True):
    """One model; ``rank_shares`` begins with the share of resamples in which it is first."""

    name: str
    value: float | None = None
    best_rank: int | None = None
    worst_rank: int | None = None
    group: str = ""
    rank_shares: tuple[float, ...] = ()
    numbers: tuple[Number, ...] = ()
    coverage: Coverage | None = None


class Leaderboard(Seen, frozen=True, kw_only=True):
    """The summary of a run of ``leaderboard``. ``unlike_coverage``: what each model read, where they differ."""

    bench: str = ""
    num_prompts: int | None = None
    ranked_by: str = "accuracy"
    rows: tuple[Row, ...] = ()
    unlike_coverage: tuple[str, ...] = ()


class Drop(Seen, frozen=True, kw_only=True):
    """How far a language lies below English."""

    absolute: Estimate = Estimate()
    relative: Estimate = Estimate()


class Spoken(Seen, frozen=True, kw_only=True):
    """One language; English has neither drop nor kappa."""

    overall: Estimate = Estimate()
    drop: Drop = Drop()
    kappa: Estimate = Estimate()


class Languages(Seen, frozen=True, kw_only=True):
    """The summary of a run of ``languages``."""

    model: str = ""
    bench: str = ""
    english: str = ""
    num_shared: int | None = None
    languages: dict[str, Spoken] = msgspec.field(default_factory=dict)
    mean: Estimate = Estimate()
    drop: Drop = Drop()
    are_read_alike: bool = True


class NamedLeaderboard(NamedTuple):
    """A run of ``leaderboard`` under its name."""

    name: str
    leaderboard: Leaderboard


class NamedLanguages(NamedTuple):
    """A run of ``languages`` under its name."""

    name: str
    languages: Languages


def leaderboard_section(runs: Sequence[NamedLeaderboard], evidence: Sequence[str]) -> Section:
    """Each leaderboard as a table; below it what the models read, where that differs."""
    panels: list[Panel] = []
    for _, own in runs:
        panels.append(Panel(own.bench, None, (Grouped("", _standings(own)),), "note_leaderboard"))
        if own.unlike_coverage:
            shares = [(one.name, *_read(one.coverage)) for one in own.rows]
            told = Grouped("", table(("scorer", "share_cut", "share_unscored"), shares))
            panels.append(Panel(word("not_read_alike"), None, (told,), "note_not_read_alike"))
    return Section("leaderboard", tuple(evidence), tuple(panels))


def languages_section(runs: Sequence[NamedLanguages], evidence: Sequence[str]) -> Section:
    """Each evaluation by language: values, drops from English, and agreement with it."""
    panels = [
        Panel(
            f"{own.model} · {own.bench}",
            None,
            (Grouped("", _by_language(own)),),
            "note_languages" if own.are_read_alike else "note_languages_not_alike",
        )
        for _, own in runs
    ]
    return Section("languages", tuple(evidence), tuple(panels))


def language_sentences(own: Languages) -> tuple[Sentence, ...]:
    """The mean over languages, and how far it lies below English."""
    values = {
        "model": own.model,
        "languages": count(len(own.languages)),
        "items": count(own.num_shared),
        "mean": percent(own.mean.value),
        "drop": points(own.drop.absolute.value),
        "spread": points_spread(own.drop.absolute),
    }
    return (Sentence("say_languages", values),)


def _standings(own: Leaderboard) -> Table:
    rows = []
    for one in own.rows:
        ranked = next((n for n in one.numbers if (n.group, n.name) == ("headline", own.ranked_by)), Estimate())
        first = percent(one.rank_shares[0]) if one.rank_shares else DASH
        rows.append((one.name, _ranks(one), one.group, percent(one.value), spread(ranked), first))
    return table(("scorer", "rank", "letters", "ranked_value", "interval", "share_first"), rows)


def _by_language(own: Languages) -> Table:
    ordered = sorted(own.languages.items(), key=lambda item: -(item[1].overall.value or 0.0))
    rows = [
        (
            name,
            percent(one.overall.value),
            spread(one.overall),
            points(one.drop.absolute.value),
            DASH if one.drop.absolute.value is None else points_spread(one.drop.absolute),
            percent(one.drop.relative.value),
            decimal(one.kappa.value),
        )
        for name, one in ordered
    ]
    return table(("language", "ranked_value", "interval", "drop", "interval", "relative_drop", "kappa"), rows)


def _read(own: Coverage | None) -> tuple[str, str]:
    """The shares of responses that were cut, and that have no score."""
    if own is None or not own.num_responses:
        return DASH, DASH
    return percent(own.num_cut / own.num_responses), percent(own.num_unscored / own.num_responses)


def _ranks(one: Row) -> str:
    is_sure = one.best_rank == one.worst_rank
    return str(one.best_rank) if is_sure else f"{one.best_rank}{DASH}{one.worst_rank}"
