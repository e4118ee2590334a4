"""Leaderboards: the models of one bench with the ranks that the data allow, and what each of them read."""

from collections.abc import Iterator

import msgspec

from steelyard.core.types import JsonObject
from steelyard.evaluation.leaderboard import LeaderboardRow, LeaderboardSummary
from steelyard.evaluation.tables import DASH, Grouped, Panel, Sentence, Table, percent, spread, table, word
from steelyard.report.bench_texts import reason_words
from steelyard.report.leaderboard import ceiling_cells, leaderboard_sentences, rank_range
from steelyard.report.page import COMMA
from steelyard.statistics.intervals import Estimate
from steelyard.views.records import RankedModel, flat_row, ranked_headline
from steelyard.views.view import HeadlineRule, PageSources, RunHeadline, StageRun, View


def _sentences(run: StageRun[LeaderboardSummary]) -> tuple[Sentence, ...]:
    """Return the models at the top, what the bench lacks, and the models without a rank."""
    summary = run.summary
    sentences = [*leaderboard_sentences(summary)]
    if summary.missing:
        missing = COMMA.join(f"{name} ({reason_words(why)})" for name, why in summary.missing.items())
        sentences.append(Sentence("say_incomplete_bench", {"missing": missing}))
    if summary.partial:
        models = COMMA.join(f"{name} ({why})" for name, why in unranked_reasons(summary).items())
        sentences.append(Sentence("say_unranked_models", {"models": models}))
    return tuple(sentences)


def unranked_reasons(board: LeaderboardSummary) -> dict[str, str]:
    """Return why a model has no rank, in words, by its name."""
    return {unranked.name: reason_words(unranked.why) for unranked in board.partial}


def _panels(run: StageRun[LeaderboardSummary], sources: PageSources) -> Iterator[Panel]:
    yield from board_panels(run.summary, run.summary.bench)


def board_panels(board: LeaderboardSummary, title: str) -> Iterator[Panel]:
    """Yield the leaderboard of one bench as a table, and what the models read, where that differs.

    Ranks are those that the data allow: a range where they leave it open.
    """
    yield Panel(title, None, (Grouped("", _rank_table(board)),), "note_leaderboard")
    if board.unlike_coverage:
        shares = [
            (row.name, *(percent(row.share_read(name)) for name in ("num_cut", "num_unscored"))) for row in board.rows
        ]
        tables = (Grouped("", table(("scorer", "share_cut", "share_unscored"), shares)),)
        yield Panel(word("not_read_alike"), None, tables, "note_not_read_alike")


def _rank_table(board: LeaderboardSummary) -> Table:
    rows = []
    for row in board.rows:
        number = row.by_column.get(("headline", board.ranked_by))
        interval = DASH if number is None else spread(Estimate(number.value, number.low, number.high, number.n))
        ranks = rank_range(row.best_rank, row.worst_rank)
        rows.append((row.name, ranks, row.group, percent(row.value), interval, percent(row.rank_shares[0])))
    if board.ceiling is not None and board.ranked_by == "accuracy":
        rows.append((word("perfect_model"), DASH, DASH, *ceiling_cells(board.ceiling), DASH))
    return table(("scorer", "rank", "letters", "ranked_value", "interval", "share_first"), rows)


class _LeaderboardHeadline(msgspec.Struct):
    rows: tuple[RankedModel, ...]
    bench: str = ""


def _board(run: _LeaderboardHeadline) -> RunHeadline:
    return ranked_headline(run.rows, run.bench)


def _record(model: LeaderboardRow) -> JsonObject:
    row = flat_row(model, skip=("numbers", "protocol", "coverage"))
    for number in model.numbers:
        row |= flat_row(Estimate(number.value, number.low, number.high, number.n), f"{number.group}: {number.name}")
    return row


VIEW = View(
    30, "leaderboard", LeaderboardSummary, "leaderboard", _sentences, _panels,
    records=lambda summary: map(_record, summary.rows), headline=HeadlineRule(_LeaderboardHeadline, _board), lead=1,
)  # fmt: skip
