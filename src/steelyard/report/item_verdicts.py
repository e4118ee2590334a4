"""What was said of the answers of one opened case, as lines: the graph, its cycles, the tiers, the scores of models."""

from itertools import chain, zip_longest
from typing import NamedTuple

from steelyard.core.types import Judgment, Ranking, Scores
from steelyard.io.terminal_text import (
    INDENT,
    Line,
    Span,
    hanging,
    heading,
    joined_lines,
    number_of,
    text_lines,
    visible_line,
)
from steelyard.report.opened import Cycle, Opened
from steelyard.report.summary_readers import Item
from steelyard.report.text_graph import draw_graph, legend

MOST_JUDGMENTS = 60
_MOST_BAR = 24
_NOT_SCORED = "no score"


class Scored(NamedTuple):
    """What one file of scores says of the case, and what an evaluation counted of it where there is one."""

    name: str
    scores: Scores
    outcome: Item | None = None


def judgment_lines(opened: Opened, width: int) -> list[Line]:
    """The graph of the judgments, what its signs mean, and what could not be read."""
    judgments = opened.case.judgments
    if not judgments:
        return [*heading("JUDGMENTS", width), *text_lines("none", width, style="quiet", indent=INDENT)]
    lines = [*heading("JUDGMENTS", width, remark="who beats whom"), *legend(opened, width), *draw_graph(opened, width)]
    left_out = len(judgments) - sum(opened.admitted)
    if left_out:
        lines += text_lines(f"{number_of(left_out, 'other judgment')} not counted by this rule", width, style="quiet")
    for one in judgments:
        if one.verdict == "none":
            pair = f"{opened.labels[one.left]} ? {opened.labels[one.right]}{INDENT}"
            lines += hanging([Span(pair, "quiet")], f"{_judge(one)}: {one.reason or 'no reason given'}", width)
    return lines


def cycle_lines(opened: Opened, width: int) -> list[Line]:
    """Each cycle: its responses, a shortest way around it, and the judgments that lie in it."""
    lines: list[Line] = []
    for number, cycle in enumerate(opened.cycles, 1):
        title = "CYCLE" if len(opened.cycles) == 1 else f"CYCLE {number}"
        members = " ".join(opened.labels[one] for one in cycle.responses)
        lines += heading(title, width, remark=f"{members}: they share a tier")
        lines += text_lines(f"shortest: {_circle(opened, cycle)}", width, indent=INDENT)
        lines += text_lines(f"in it: {number_of(len(cycle.judgments), 'judgment')}", width, indent=INDENT)
        for position in cycle.judgments[:MOST_JUDGMENTS]:
            lines += _judgment(opened, opened.case.judgments[position], width)
        if len(cycle.judgments) > MOST_JUDGMENTS:
            more = len(cycle.judgments) - MOST_JUDGMENTS
            lines += text_lines(f"… {more} more: --json has them all", width, style="quiet", indent=INDENT)
    outvoted = opened.num_conflicting - sum(len(cycle.judgments) for cycle in opened.cycles)
    if outvoted:
        lines += text_lines(
            f"{number_of(outvoted, 'judgment')} in conflict without a cycle: outvoted, or tied by the vote", width
        )
    return lines


def tier_lines(opened: Opened, width: int, *, rule: str) -> list[Line]:
    """The tiers that the judgments give by ``rule``, and the case's own ranking where it is another."""
    own = opened.case.ranking
    if opened.tiers is None:
        if own is None:
            return [
                *heading("TIERS", width),
                *text_lines("none: no judgment, no ranking", width, style="quiet", indent=INDENT),
            ]
        return [*heading("TIERS", width, remark="the ranking given by the file"), *_tiers(opened, own, width)]
    lines = [*heading("TIERS", width, remark=f"from the judgments, {rule}"), *_tiers(opened, opened.tiers, width)]
    if own is None:
        return [
            *lines,
            *text_lines("the file has no ranking: see steelyard resolve", width, style="quiet", indent=INDENT),
        ]
    if [set(tier) for tier in own] == [set(tier) for tier in opened.tiers]:
        return [*lines, *text_lines("the file's ranking is the same", width, style="quiet", indent=INDENT)]
    lines += text_lines("the file's ranking is another:", width, style="bad", indent=INDENT)
    return [*lines, *_tiers(opened, own, width)]


def pair_lines(opened: Opened, width: int) -> list[Line]:
    """The pairs that the case lists."""
    lines: list[Line] = []
    for pair in opened.case.pairs or ():
        given = (("weight", pair.weight), ("margin", pair.margin))
        extras = [f"{name} {value:g}" for name, value in given if value is not None]
        lines += joined_lines(
            [f"{opened.labels[pair.better]} > {opened.labels[pair.worse]}", *extras], width, indent=INDENT
        )
    return [*heading("PAIRS", width, remark="as the file lists them"), *lines] if lines else []


def score_lines(opened: Opened, scored: Scored, width: int) -> list[Line]:
    """One model's scores, the highest first, beside the tiers; ``!``: it stands above one of a better tier."""
    found = scored.scores.scores
    known = {name: score for name, score in found.items() if score is not None}
    order = sorted(known, key=lambda name: -known[name])
    low, high = min(known.values(), default=0.0), max(known.values(), default=0.0)
    lines = heading("SCORES", width, remark=scored.name)
    num_above = 0
    for name in order:
        is_above = _reaches_a_better_one(opened, name, known)
        head = f"{INDENT}{opened.labels.get(name, '?')}  {_tier(opened, name)}  {known[name]:>10.4f}"
        bar = round((known[name] - low) / (high - low) * min(_MOST_BAR, width - len(head) - 5)) if high > low else 0
        style = "bad" if is_above else "plain"
        drawn = "█" * max(bar, 0)
        num_above += is_above
        lines.append((Span(head, style), Span(f"  {drawn}", "special"), Span(" !" if is_above else "", "bad")))
    for name in found.keys() - known.keys():
        reason = scored.scores.unscored.get(name, "no reason given")
        start = f"{INDENT}{opened.labels.get(name, '?')}  {_tier(opened, name)}  "
        lines += hanging([Span(start)], f"{_NOT_SCORED}: {reason}", width, style="bad")
    if num_above:
        lines += text_lines("! not below an answer of a better tier", width, style="quiet", indent=INDENT)
    return [*lines, *_outcome(scored.outcome, width)]


def _reaches_a_better_one(opened: Opened, response: str, scores: dict[str, float]) -> bool:
    """Whether an answer of a better tier has no higher score: a tie is as wrong as the other order."""
    own = opened.tier_of(response)
    tiers = [opened.tier_of(name) for name, score in scores.items() if score <= scores[response]]
    return own is not None and any(tier is not None and tier < own for tier in tiers)


def _outcome(outcome: Item | None, width: int) -> list[Line]:
    if outcome is None:
        return []
    exact = {True: "exact match", False: "no exact match", None: "exact match not counted"}[outcome.exact_match]
    tied = f"{outcome.num_tied} tied" if outcome.num_tied else ""
    parts = [f"{outcome.num_correct} of {outcome.num_pairs} pairs right", tied, exact]
    return joined_lines(parts, width, indent=INDENT)


def _tier(opened: Opened, name: str) -> str:
    return f"tier {opened.tier_of(name) or '-'}"


def _tiers(opened: Opened, ranking: Ranking, width: int) -> list[Line]:
    lines: list[Line] = []
    size = len(str(len(ranking)))
    for number, tier in enumerate(ranking, 1):
        names = " ".join(opened.labels[name] for name in tier) + ("  (not ordered)" if len(tier) > 1 else "")
        lines += hanging([Span(f"{INDENT}{number:>{size}}  ", "title")], names, width)
    ranked = set(chain.from_iterable(ranking))
    if rest := " ".join(label for name, label in opened.labels.items() if name not in ranked):
        lines += hanging([Span(f"{INDENT}{'-':>{size}}  ", "quiet")], f"{rest}  (not ranked)", width)
    return lines


def _circle(opened: Opened, cycle: Cycle) -> str:
    names = [opened.labels[one] for one in cycle.circle]
    return " ".join(chain.from_iterable(zip_longest(names, cycle.signs, fillvalue=""))).rstrip()


def _judgment(opened: Opened, one: Judgment, width: int) -> list[Line]:
    better, worse = (one.left, one.right) if one.verdict == "left" else (one.right, one.left)
    start = f"{INDENT * 2}{opened.labels[better]} > {opened.labels[worse]}{INDENT}"
    return hanging([Span(start, "bad")], _judge(one), width)


def _judge(one: Judgment) -> str:
    return visible_line(f"{one.judge} ({one.kind})" + (f", judgment {one.id}" if one.id is not None else ""))
