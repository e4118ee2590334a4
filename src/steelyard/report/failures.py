"""Where models fail, for the page: the most confident errors, the groups of pairs with most of them, disagreements."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from steelyard.core.types import JsonObject
from steelyard.evaluation.disagreements import Disagreement, disagreements
from steelyard.evaluation.failures import (
    FEWEST_PROMPTS,
    LENGTHS,
    ErrorGroup,
    ErrorGroups,
    MarginColumns,
    WrongPair,
    error_groups,
    errors_by_prompt,
    item_pairs,
    most_confident_errors,
    pair_columns,
)
from steelyard.evaluation.items import ScoredItem
from steelyard.evaluation.tables import (
    DASH,
    Sentence,
    Table,
    count,
    group_word,
    percent,
    points,
    points_spread,
    spread,
    table,
    word,
)
from steelyard.report.items import ErrorMarks, JoinedItems
from steelyard.report.page import COMMA, DisagreementTable, ErrorCell, ErrorMap, ErrorRow, FailureSection

_MOST_PAIRS = 50
_MOST_DISAGREED = 10
_MOST_ROWS = 24
_MOST_GROUPS = 100
_HOTTEST = 0.6
"""The strongest colour of a cell, which its text must be read on; an error rate of 1 has it."""


class ModelFailures(NamedTuple):
    """One model: its pairs, the most confident error of the worst prompts, and its error rates by group."""

    name: str
    pairs: MarginColumns
    errors: tuple[WrongPair, ...]
    groups: ErrorGroups | None


class Failures(NamedTuple):
    """The failures of all models of a page, and every two models on their shared pairs."""

    models: tuple[ModelFailures, ...]
    disagreements: tuple[Disagreement, ...]

    @property
    def leading(self) -> tuple[int, ...]:
        """The positions of the prompts that the section shows, first those that it shows first."""
        ranks = (
            position
            for rank in range(_MOST_PAIRS)
            for model in self.models
            for position in [error.position for error in model.errors[rank : rank + 1]]
        )
        apart = (pair.position for each in self.disagreements for pair in each.largest)
        return tuple(dict.fromkeys([*ranks, *apart]))

    def marks(self, num_prompts: int) -> ErrorMarks:
        """Return the errors of each prompt for the table of items."""
        errors = tuple(errors_by_prompt(model.pairs, num_prompts) for model in self.models)
        differing: dict[int, list[tuple[int, int]]] = {}
        for each in self.disagreements:
            for right, wrong, prompts in (
                (each.first, each.second, each.only_first_prompts),
                (each.second, each.first, each.only_second_prompts),
            ):
                for position in prompts.tolist():
                    differing.setdefault(position, []).append((right, wrong))
        return ErrorMarks(errors, differing, self.leading)


def find_failures(items: JoinedItems, names: Sequence[str]) -> Failures:
    """Return the failures of the models, in the order of the evaluations of ``items``."""
    columns = [pair_columns(_outcomes_of(items, number)) for number in range(len(names))]
    models = tuple(
        ModelFailures(name, pairs, most_confident_errors(pairs, _MOST_PAIRS), error_groups(pairs))
        for name, pairs in zip(names, columns, strict=True)
    )
    return Failures(models, disagreements(columns, most=_MOST_DISAGREED))


def _outcomes_of(items: JoinedItems, number: int) -> Iterator[tuple[int, ScoredItem]]:
    for position in range(len(items)):
        outcome = items.outcome(position, number)
        if outcome is not None:
            yield position, outcome


def failure_sentences(model: ModelFailures) -> tuple[Sentence, ...]:
    """Return in words where the errors of a model concentrate, or that no group of pairs stands out."""
    groups = model.groups
    if groups is None or not model.errors:
        return ()
    values = {"model": model.name, "overall": percent(groups.overall.value), "tested": count(groups.num_tested)}
    worst = groups.worst
    if worst is None:
        return (Sentence("say_no_group" if groups.num_tested else "say_no_group_tested", values),)
    shown = {"group": group_name(worst), "rate": percent(worst.rate.value), "interval": spread(worst.rate)}
    others = {"n": count(worst.rate.n), "above": count(groups.num_above)}
    return (Sentence("say_fails", {**values, **shown, **others}),)


def group_name(group: ErrorGroup) -> str:
    """Return the group in words: its category, language, and the better answer compared with the worse one."""
    length = None if group.length is None else word(f"group_{group.length}")
    return COMMA.join((*_part_names(group.category, group.language), *([] if length is None else [length])))


def _part_names(category: str | None, language: str | None) -> list[str]:
    """Return a category and a language as the page shows them, without those that are null."""
    names = {"category": category, "language": language}
    return [group_word(group, name) for group, name in names.items() if name is not None]


def failure_section(failures: Failures, items: JoinedItems, evidence: Sequence[str]) -> FailureSection | None:
    """Return the section of the page; null if no model has a scored pair."""
    if all(model.groups is None for model in failures.models):
        return None
    maps = tuple(
        error_map(model.name, number, model.groups)
        for number, model in enumerate(failures.models)
        if model.groups is not None
    )
    compared = disagreement_table(failures) if failures.disagreements else None
    return FailureSection(tuple(evidence), maps, compared, _record(failures, items))


def error_map(name: str, number: int, groups: ErrorGroups) -> ErrorMap:
    """Return the error rates of a model as a map of category and language by length, and as a table, worst first."""
    by_key = {group.key: group for group in groups.groups}
    lengths = [length for length in LENGTHS if any(group.length == length for group in groups.groups)]
    parts = _map_parts([group for group in groups.groups if group.length is None])
    rows = [
        ErrorRow(
            COMMA.join(_part_names(*part)),
            tuple(_cell(by_key.get((part[0], length, part[1]))) for length in (None, *lengths)),
        )
        for part in parts[:_MOST_ROWS]
    ]
    whole = ErrorGroup(None, None, None, 0, 0, groups.overall, None)
    first = ErrorRow(word("all"), (_cell(whole), *(_cell(by_key.get((None, length, None))) for length in lengths)))
    columns = (word("all_lengths"), *(word(f"group_{length}") for length in lengths))
    about = [Sentence("say_groups", {"tested": count(groups.num_tested)})]
    if len(parts) > len(rows):
        about.append(Sentence("say_rows_shown", {"shown": count(len(rows)), "all": count(len(parts))}))
    if groups.num_unscored:
        about.append(Sentence("say_unscored_pairs", {"number": count(groups.num_unscored)}))
    return ErrorMap(name, number, columns, (first, *rows), tuple(about), group_table(groups))


def _map_parts(groups: Sequence[ErrorGroup]) -> list[tuple[str | None, str | None]]:
    """Return the category and language of each row, worst first: with several of both, each category in each language.

    Where none of these has enough prompts for a test, the rows are the categories and the languages.
    """
    by_category = [group for group in groups if group.category is not None and group.language is None]
    by_language = [group for group in groups if group.language is not None and group.category is None]
    crossed = [group for group in groups if group.category is not None and group.language is not None]
    divisions = [division for division in (by_category, by_language) if len(division) > 1]
    if len(divisions) == 2 and any(group.stands_out is not None for group in crossed):
        divisions = [crossed]
    return [(group.category, group.language) for division in divisions for group in division]


def _cell(group: ErrorGroup | None) -> ErrorCell | None:
    """Return one cell of the map; null where it has no pair."""
    if group is None:
        return None
    value = group.rate.value or 0.0
    return ErrorCell(
        percent(group.rate.value),
        spread(group.rate),
        count(group.rate.n),
        round(100 * _HOTTEST * value),
        group.stands_out or 0,
        0 < group.num_prompts < FEWEST_PROMPTS,
        group.category,
        group.length,
        group.language,
    )


def group_table(groups: ErrorGroups) -> Table:
    """Return the groups, worst first, those too small for a test last."""
    words = {1: word("above_all"), -1: word("below_all"), 0: word("not_apart"), None: word("too_small")}
    rows = [
        (
            group_name(group),
            percent(group.rate.value),
            spread(group.rate),
            count(group.num_wrong),
            count(group.rate.n),
            count(group.num_prompts),
            words[group.stands_out],
        )
        for group in groups.groups[:_MOST_GROUPS]
    ]
    return table(("group", "error_rate", "interval", "wrong_count", "pairs", "prompts", "compared_with_all"), rows)


def disagreement_table(failures: Failures) -> DisagreementTable:
    """Return a row for every two models: pairs that both, one or none has right, and the paired difference."""
    names = [model.name for model in failures.models]
    rows = [
        (
            f"{names[each.first]} {DASH} {names[each.second]}",
            count(each.num_both),
            count(each.num_only_first),
            count(each.num_only_second),
            count(each.num_neither),
            points(each.difference.estimate.value),
            points_spread(each.difference.estimate),
        )
        for each in failures.disagreements
    ]
    columns = ("pair_of_models", "both_right", "only_first_right", "only_second_right", "both_wrong")
    links = tuple((each.first, each.second) for each in failures.disagreements)
    return DisagreementTable(table((*columns, "difference", "interval"), rows), links)


def _record(failures: Failures, items: JoinedItems) -> JsonObject:
    """Return what the script shows: for each model its errors, and for every two the pairs that differ most."""
    return {
        "errors": [
            [
                [*_pair(items, number, error.position, error.number), round(error.confidence, 3)]
                for error in model.errors
            ]
            for number, model in enumerate(failures.models)
        ],
        "compared": [
            {
                "models": [each.first, each.second],
                "largest": [
                    [*_pair(items, each.first, pair.position, pair.number), pair.is_first_right, round(pair.gap, 3)]
                    for pair in each.largest
                ],
            }
            for each in failures.disagreements
        ],
    }


def _pair(items: JoinedItems, model: int, position: int, number: int) -> list[object]:
    """Return the position of the prompt, both ids, the margin, and both lengths."""
    outcome = items.outcome(position, model)
    assert outcome is not None, "the pair was read from this item"
    pair = item_pairs(outcome)[number]
    lengths: Mapping[str, int] = dict(zip(outcome.scores, outcome.lengths, strict=False))
    return [position, pair.better, pair.worse, pair.margin, lengths.get(pair.better), lengths.get(pair.worse)]
