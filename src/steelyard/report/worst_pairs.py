"""The most confident errors of an evaluation in a terminal: both answers, margin, and the evidence for the label."""

from collections.abc import Iterator
from typing import NamedTuple

from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.remedies import ID, Advice, Command, Remedy, Wording
from steelyard.core.text import response_text
from steelyard.core.types import Case, JsonObject
from steelyard.evaluation.failures import (
    LENGTHS,
    ErrorGroups,
    ItemPair,
    error_groups,
    item_pairs,
    most_confident_errors,
    pair_columns,
)
from steelyard.evaluation.items import ScoredItem, read_items
from steelyard.evaluation.tables import percent, spread
from steelyard.io.terminal_text import INDENT, Line, Style, heading, joined_lines, text_lines, visible_line
from steelyard.ranking.judgment_table import distinct_judgments
from steelyard.report.case_sources import Target
from steelyard.report.item_list import language_name

_MOST_LINES = 4
_WORDS = {"shorter": "better answer shorter", "equal": "about equally long", "longer": "better answer longer"}


class WorstPair(NamedTuple):
    """One error: its item, its pair with the confidence, and the case if a file of the run has it."""

    item: ScoredItem
    pair: ItemPair
    confidence: float
    case: Case | None


class WorstPairs(NamedTuple):
    """The most confident errors, one of each prompt, among all pairs; ``groups`` are the error rates by group."""

    opened_by: Command
    pairs: tuple[WorstPair, ...]
    num_wrong: int
    groups: ErrorGroups | None


def find_worst_pairs(target: Target, number: int, *, opened_by: Command) -> WorstPairs:
    """Return the most confident errors of an evaluation.

    Raises ConfigError for a number below 1, and EvidenceError for a target that is not a finished evaluation.
    """
    if number < 1:
        raise ConfigError(Advice(Remedy("worst", number)), allowed="1 or more")
    if target.items is None:
        do = Advice("name the folder of a run of `", Command("evaluate"), "`")
        raise EvidenceError(Advice(Remedy("worst"), " needs an evaluation"), where=str(target.name), do=do)
    columns = pair_columns(enumerate(read_items(target.items.parent, ScoredItem)))
    errors = {error.position: error for error in most_confident_errors(columns, number)}
    items = {
        position: item
        for position, item in enumerate(read_items(target.items.parent, ScoredItem))
        if position in errors
    }
    cases = _cases(target, {item.key for item in items.values()})
    pairs = tuple(
        WorstPair(
            items[position], item_pairs(items[position])[error.number], error.confidence, cases.get(items[position].key)
        )
        for position, error in errors.items()
    )
    return WorstPairs(opened_by, pairs, int(columns.is_wrong.sum()), error_groups(columns))


def _cases(target: Target, keys: set[tuple[str, str | None]]) -> dict[tuple[str, str | None], Case]:
    """Return the cases of these keys, each from the first file that has it."""
    cases: dict[tuple[str, str | None], Case] = {}
    for file in (*target.listed, *target.others):
        for case in file.cases() if len(cases) < len(keys) else ():
            if case.key in keys:
                cases.setdefault(case.key, case)
    return cases


def label_evidence(case: Case, better: str, worse: str) -> tuple[str, ...]:
    """Return why one response is the better one: judgments of the pair with their reasons, ratings, or the tiers."""
    lines: list[str] = []
    signs = {"left": ">", "right": "<", "tie": "=", "none": "?"}
    for judgment in distinct_judgments(case.judgments):
        if {judgment.left, judgment.right} == {better, worse}:
            sides = "better {} worse" if judgment.left == better else "worse {} better"
            reason = f": {judgment.reason}" if judgment.reason else ""
            lines.append(f"{sides.format(signs[judgment.verdict])}, {judgment.judge} ({judgment.kind}){reason}")
    for rating in case.ratings:
        if rating.response in (better, worse):
            side = "better" if rating.response == better else "worse"
            lines.append(f"{side} rated {rating.dimension} {rating.value:g}, {rating.rater} ({rating.kind})")
    tier_of = {name: number for number, tier in enumerate(case.ranking or (), 1) for name in tier}
    if not lines and better in tier_of and worse in tier_of:
        source = "not judged directly" if case.judgments else "published ranking, without judgments"
        lines.append(f"tier {tier_of[better]} above tier {tier_of[worse]} ({source})")
    return tuple(lines)


def worst_lines(worst: WorstPairs, width: int, wording: Wording = str) -> list[Line]:
    """Return the errors in lines of at most ``width`` cells, the most confident one first."""
    lines = text_lines(_concentration(worst), width, style="title")
    for number, error in enumerate(worst.pairs, 1):
        item, pair = error.item, error.pair
        remark = " · ".join(
            (f"{error.confidence:.1f} x the typical margin", item.category, language_name(item.language))
        )
        lines += [*heading(f"{number}. {visible_line(item.prompt)}", width, remark=visible_line(remark))]
        if error.case is not None:
            lines += _short(error.case.prompt.messages[-1].content if error.case.prompt.messages else "", width)
        lines += _answer(error, pair.worse, "worse answer, scored higher" if pair.margin else "worse answer", width)
        lines += _answer(error, pair.better, "better answer", width)
        for evidence in () if error.case is None else label_evidence(error.case, pair.better, pair.worse):
            lines += text_lines(f"label: {evidence}", width, style="quiet", indent=INDENT)
    command = wording(worst.opened_by._replace(changes=(Remedy("id", ID),)))
    return [*lines, *text_lines(f"open one: {command}", width, style="good")] if worst.pairs else lines


def _concentration(worst: WorstPairs) -> str:
    """Return in words where the errors concentrate."""
    groups = worst.groups
    if groups is None or not worst.num_wrong:
        return "no pair with scores is wrong"
    start = f"{worst.num_wrong:,} of {groups.overall.n:,} pairs are wrong ({percent(groups.overall.value)})"
    group = groups.worst
    if group is None:
        none = f"none of {groups.num_tested} tested groups stands out" if groups.num_tested else "too few for groups"
        return f"{start}; {none}"
    parts = [group.category, group.language, None if group.length is None else _WORDS[group.length]]
    name = ", ".join(part for part in parts if part)
    return (
        f"{start}; errors concentrate in {name}: {percent(group.rate.value)} [{spread(group.rate)}] of {group.rate.n:,}"
    )


def _answer(error: WorstPair, response: str, title: str, width: int) -> list[Line]:
    style: Style = "bad" if response == error.pair.worse else "good"
    texts = {} if error.case is None else {known.id: response_text(known) for known in error.case.responses}
    facts = joined_lines([title, *_facts(error.item, response)], width, style=style)
    return [*facts, *_short(texts.get(response, "(the text is not known here)"), width)]


def _facts(item: ScoredItem, response: str) -> Iterator[str]:
    score = item.scores.get(response)
    yield "no score" if score is None else f"score {score:.4g}"
    length = dict(zip(item.scores, item.lengths, strict=False)).get(response)
    if length is not None:
        yield f"{length:,} characters"
    yield f"id {response}"


def _short(text: str, width: int) -> list[Line]:
    """Return the beginning of a text in a few lines."""
    lines = text_lines(text[: _MOST_LINES * width], width, indent=INDENT * 2)
    return lines[:_MOST_LINES]


def worst_record(worst: WorstPairs) -> JsonObject:
    """Return the errors as one record."""
    groups = worst.groups
    return {
        "num_wrong": worst.num_wrong,
        "num_scored": 0 if groups is None else groups.overall.n,
        "concentration": _concentration(worst),
        "pairs": [
            {
                "id": error.item.prompt,
                "language": error.item.language,
                "category": error.item.category,
                "better": error.pair.better,
                "worse": error.pair.worse,
                "margin": error.pair.margin,
                "confidence": error.confidence,
                "lengths": None if error.pair.length < 0 else LENGTHS[error.pair.length],
                "label": []
                if error.case is None
                else list(label_evidence(error.case, error.pair.better, error.pair.worse)),
            }
            for error in worst.pairs
        ],
    }
