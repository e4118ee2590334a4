"""Debiasing: the balance of each group's pairs before and after, and a model's accuracy on length-matched pairs."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from steelyard.core.types import JsonObject
from steelyard.curation.debiasing import Balance, DebiasedAccuracy, DebiasSummary, GroupBalance, Within
from steelyard.evaluation.tables import (
    PERCENT,
    Grouped,
    Panel,
    Sentence,
    Table,
    category_word,
    count,
    language_word,
    percent,
    table,
    word,
)
from steelyard.evaluation.vega import CHANCE
from steelyard.report.bars import ShareChange, before_after
from steelyard.statistics.intervals import Estimate
from steelyard.views.records import flat_row
from steelyard.views.view import PageSources, StageRun, View

_MOST_ROWS = 15


def _sentences(run: StageRun[DebiasSummary]) -> Iterator[Sentence]:
    counts, overall = run.source.run.counts, run.summary.overall
    values = {
        "run": run.name,
        "kept": count(counts.num_used),
        "pairs": count(counts.num_in),
        "more": _more(run.summary),
        "before": percent(overall.before.share_more),
        "after": percent(overall.after.share_more),
    }
    if not sum(counts.dropped.values()):
        yield Sentence("say_balanced_already", values)
    else:
        yield Sentence("say_debiased_no_side" if overall.after.share_more is None else "say_debiased", values)
    matched = None if run.summary.accuracy is None else run.summary.accuracy.length_matched
    if matched is not None and matched.before.value is not None:
        yield Sentence(
            "say_matched",
            {
                "before": percent(matched.before.value),
                "interval_before": PERCENT.cells(matched.before)[1],
                "n_before": count(matched.before.n),
                "after": percent(matched.after.value),
                "interval_after": PERCENT.cells(matched.after)[1],
                "n_after": count(matched.after.n),
            },
        )


def _more(summary: DebiasSummary) -> str:
    return word(f"more_{summary.by}")


def _panels(run: StageRun[DebiasSummary], sources: PageSources) -> Iterator[Panel]:
    summary = run.summary
    groups = sorted(summary.groups, key=lambda group: -_with_side(group.before))
    shown = [group for group in groups if _with_side(group.before)]
    whole = GroupBalance((word("all"),), summary.overall.before, summary.overall.after)
    rows = [whole, *shown] if len(shown) > 1 else [whole]
    names = {row.group: _name(row, summary.within) for row in rows}
    balance = [ShareChange(names[row.group], _share(row.before), _share(row.after)) for row in rows[:_MOST_ROWS]]
    figure = before_after("balance", balance, axis=f"more_{summary.by}", line=CHANCE)
    yield Panel(
        f"{word('balance')} · {_more(summary)}",
        figure,
        (Grouped("", _balance_table(rows, names)),),
        "note_balance",
    )
    if summary.accuracy is not None:
        yield _accuracy_panel(summary.accuracy)
    longer = summary.longer_is_better
    if summary.by != "length" and longer.before.value is not None:
        rows_of_length = [ShareChange(word("all"), longer.before, longer.after)]
        figure = before_after("longer_is_better", rows_of_length, axis="more_length", line=CHANCE)
        yield Panel(
            word("longer_is_better"), figure, (Grouped("", _estimates(rows_of_length)),), "note_longer_is_better"
        )


def _accuracy_panel(accuracy: DebiasedAccuracy) -> Panel:
    parts = {
        "all": accuracy.all,
        "length_matched_pairs": accuracy.length_matched,
        "better_is_longer": accuracy.better_is_longer,
        "better_is_not_longer": accuracy.better_is_not_longer,
    }
    rows = [ShareChange(word(key), part.before, part.after) for key, part in parts.items()]
    figure = before_after("debiased_accuracy", rows, axis="accuracy", line=CHANCE)
    return Panel(word("debiased_accuracy"), figure, (Grouped("", _estimates(rows)),), "note_debiased_accuracy")


def _name(group: GroupBalance, within: Within) -> str:
    """Return the category, the language and the two authors of a group, as far as it has them."""
    words: dict[Within, tuple[Callable[[str], str], ...]] = {
        "overall": (),
        "category": (category_word,),
        "language": (language_word,),
        "both": (category_word, language_word),
    }
    titles = [name_of(name) for name_of, name in zip(words[within], group.group, strict=False)]
    return " · ".join((*titles, *group.group[len(titles) :])) or word("all")


def _with_side(balance: Balance) -> int:
    return balance.num_more + balance.num_less


def _share(balance: Balance) -> Estimate:
    return Estimate(balance.share_more, None, None, _with_side(balance))


def _balance_table(groups: Sequence[GroupBalance], names: Mapping[tuple[str, ...], str]) -> Table:
    rows = [
        (
            names[group.group],
            *(percent(group.before.share_more), *_numbers(group.before)),
            *(percent(group.after.share_more), *_numbers(group.after)),
        )
        for group in groups
    ]
    sides = ("num_more", "num_less", "num_equal")
    return table(("group", "value_before", *sides, "value_after", *sides), rows)


def _numbers(balance: Balance) -> tuple[str, ...]:
    return tuple(map(count, (balance.num_more, balance.num_less, balance.num_equal)))


def _estimates(rows: Sequence[ShareChange]) -> Table:
    cells = [
        (row.row, *PERCENT.cells(row.before), count(row.before.n), *PERCENT.cells(row.after), count(row.after.n))
        for row in rows
    ]
    return table(("group", "value_before", "interval", "n", "value_after", "interval", "n"), cells)


def _records(summary: DebiasSummary) -> Iterator[JsonObject]:
    yield {"group": "all"} | flat_row(summary.overall)
    for group in summary.groups:
        if group.group:
            yield {"group": " · ".join(group.group)} | flat_row(group, skip=("group",))


VIEW = View(110, "debias", DebiasSummary, "debiasing", _sentences, _panels, unit="view_pairs_kept", records=_records)
