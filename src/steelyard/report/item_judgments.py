"""The judgments, cycles, tiers, pairs and scores of one case as lines of a terminal.

The graph of judgments has a column for each response, best tier first, and an arrow for each outcome of a pair:

    A   B   C
    ├──>│   │   2 human, 1 llm
    │   ╞═══╡   1 human
    │<──┼───┤   1 llm !

An arrow that points left contradicts the tiers; ``!`` marks judgments in conflict.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest

from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Judgment, Ranking
from steelyard.evaluation.items import ScoredItem
from steelyard.io.terminal_text import (
    INDENT,
    Line,
    Span,
    hanging,
    heading,
    joined_lines,
    text_lines,
    visible_line,
)
from steelyard.report.case_analysis import Arrow, CaseAnalysis, Cycle
from steelyard.report.case_scores import CaseScores

MOST_JUDGMENTS = 60
_MOST_BAR = 24
_NOT_SCORED = "no score"
MOST_ARROWS = 120
_SPACINGS = (5, 4, 3)
_GUTTER = 5
_GAP = "  "
_MEANINGS = {
    ">": ("├──>", "beats"),
    "=": ("╞══╡", "tie"),
    "?": ("├╌╌┤", "unparsed"),
}
# The left end, the line, the crossing of another column, and the right end, by outcome.
_STROKES = {">": "├─┼>", "<": "<─┼┤", "=": "╞═╪╡", "?": "├╌┼┤"}


def judgment_lines(analysis: CaseAnalysis, width: int) -> list[Line]:
    """Return the graph of the judgments, what its signs mean, and the judgments that could not be read."""
    judgments = analysis.case.judgments
    if not judgments:
        return [*heading("JUDGMENTS", width), *_note("none", width)]
    lines = [
        *heading("JUDGMENTS", width, remark="who beats whom"),
        *legend(analysis, width),
        *draw_graph(analysis, width),
    ]
    if repeated := analysis.num_repeated:
        counted = f"{number_of(repeated, 'judgment')} {verb_for(repeated, 'repeats', 'repeat')} an identical one"
        lines += text_lines(f"{counted}: each counts once", width, style="quiet")
    left_out = len(judgments) - sum(analysis.admitted) - repeated
    if left_out:
        lines += text_lines(f"{number_of(left_out, 'other judgment')} not counted by this rule", width, style="quiet")
    for judgment in judgments:
        if judgment.verdict == "none":
            pair = f"{analysis.labels[judgment.left]} ? {analysis.labels[judgment.right]}{INDENT}"
            reason = f"{_judge(judgment)}: {judgment.reason or 'no reason given'}"
            lines += hanging([Span(pair, "quiet")], reason, width)
    return lines


def draw_graph(analysis: CaseAnalysis, width: int) -> list[Line]:
    """Return the graph in lines of at most ``width`` cells; a list of arrows where the columns do not fit."""
    if not analysis.arrows:
        return []
    columns = _columns(analysis)
    arrows = sorted(analysis.arrows, key=lambda arrow: _place(arrow, columns))
    shown = arrows[:MOST_ARROWS]
    longest = max(len(_counted(arrow)) for arrow in shown)
    room = width - _GUTTER - len(_GAP) - longest - len(analysis.labels[columns[-1]])
    spacing = next((size for size in _SPACINGS if (len(columns) - 1) * size <= room), None)
    if spacing is None:
        lines = [line for arrow in shown for line in _listed(analysis, arrow, width)]
    else:
        lines = [*_head(analysis, columns, spacing), *(_drawn(arrow, columns, spacing) for arrow in shown)]
    if len(arrows) > len(shown):
        lines += joined_lines(
            [f"… {len(arrows) - len(shown)} more, all of them in the JSON record"], width, style="quiet"
        )
    return lines


def legend(analysis: CaseAnalysis, width: int) -> list[Line]:
    """Return the meaning of the signs that are in this graph."""
    outcomes = {arrow.outcome for arrow in analysis.arrows}
    parts = [f"{sign} {meaning}" for outcome, (sign, meaning) in _MEANINGS.items() if outcome in outcomes]
    if analysis.num_conflicting:
        parts.append("! in conflict: the tiers do not keep it")
    return joined_lines(parts, width, style="quiet")


def _columns(analysis: CaseAnalysis) -> tuple[str, ...]:
    """Return the judged responses, best tier first, within a tier by the order of the case."""
    judged = {name for arrow in analysis.arrows for name in (arrow.first, arrow.second)}
    ranked = [name for tier in analysis.ranking or () for name in tier]
    order = dict.fromkeys([*ranked, *analysis.labels])
    return tuple(name for name in order if name in judged)


def _place(arrow: Arrow, columns: Sequence[str]) -> tuple[int, int, bool]:
    ends = (columns.index(arrow.first), columns.index(arrow.second))
    return (min(ends), max(ends), ends[0] > ends[1])


def _counted(arrow: Arrow) -> str:
    counted = ", ".join(f"{number} {kind}" for kind, number in arrow.by_kind.items())
    return counted + (" !" if arrow.is_conflicting else "")


def _remark(arrow: Arrow) -> Span:
    return Span(_counted(arrow), "bad" if arrow.is_conflicting else "plain")


def _head(analysis: CaseAnalysis, columns: Sequence[str], spacing: int) -> list[Line]:
    names = [analysis.labels[name] for name in columns]
    tiers = [str(analysis.tier_of(name) or "-") for name in columns]
    return [
        (Span("tier ", "quiet"), Span("".join(tier.ljust(spacing) for tier in tiers).rstrip(), "quiet")),
        (Span(" " * _GUTTER), Span("".join(name.ljust(spacing) for name in names).rstrip(), "title")),
    ]


def _drawn(arrow: Arrow, columns: Sequence[str], spacing: int) -> Line:
    start, end = columns.index(arrow.first), columns.index(arrow.second)
    outcome = "<" if arrow.outcome == ">" and start > end else arrow.outcome
    low, high = min(start, end), max(start, end)
    left, stroke, crossing, right = _STROKES[outcome]
    drawn = ""
    for column in range(len(columns)):
        at = {low: left, high: right}.get(column, crossing if low < column < high else "│")
        drawn += at + (stroke if low <= column < high else " ") * (spacing - 1)
    # An arrowhead is drawn before the column that it points at, whose vertical line continues.
    if outcome == ">":
        drawn = f"{drawn[: high * spacing - 1]}>│{drawn[high * spacing + 1 :]}"
    elif outcome == "<":
        drawn = f"{drawn[: low * spacing]}│<{drawn[low * spacing + 2 :]}"
    style = "bad" if arrow.is_conflicting else "plain"
    return (Span(" " * _GUTTER), Span(drawn.rstrip(), style), Span(_GAP), _remark(arrow))


def _listed(analysis: CaseAnalysis, arrow: Arrow, width: int) -> list[Line]:
    ends = f"{analysis.labels[arrow.first]} {arrow.outcome} {analysis.labels[arrow.second]}"
    remark = _remark(arrow)
    return hanging([Span(ends + _GAP, remark.style)], remark.text, width, style=remark.style)


def cycle_lines(analysis: CaseAnalysis, width: int) -> list[Line]:
    """Return each cycle: its responses, a shortest way around it, and the judgments that lie in it."""
    lines: list[Line] = []
    for number, cycle in enumerate(analysis.cycles, 1):
        title = "CYCLE" if len(analysis.cycles) == 1 else f"CYCLE {number}"
        members = " ".join(analysis.labels[response] for response in cycle.responses)
        lines += heading(title, width, remark=f"{members}: they share a tier")
        lines += text_lines(f"shortest: {_circle(analysis, cycle)}", width, indent=INDENT)
        lines += text_lines(f"in it: {number_of(len(cycle.judgments), 'judgment')}", width, indent=INDENT)
        for position in cycle.judgments[:MOST_JUDGMENTS]:
            lines += _judgment(analysis, analysis.case.judgments[position], width)
        if len(cycle.judgments) > MOST_JUDGMENTS:
            more = len(cycle.judgments) - MOST_JUDGMENTS
            lines += _note(f"… {more} more, all of them in the JSON record", width)
    outvoted = analysis.num_conflicting - sum(len(cycle.judgments) for cycle in analysis.cycles)
    if outvoted:
        lines += text_lines(
            f"{number_of(outvoted, 'judgment')} in conflict without a cycle: outvoted, or tied by the vote", width
        )
    return lines


def tier_lines(analysis: CaseAnalysis, width: int, *, rule: str) -> list[Line]:
    """Return the tiers of the judgments by ``rule``, and the ranking of the file where it differs."""
    if analysis.ranking is None:
        return [*heading("TIERS", width), *_note("none: no judgment, no ranking", width)]
    if analysis.tiers is None:
        return [
            *heading("TIERS", width, remark="the ranking given by the file"),
            *_tiers(analysis, analysis.ranking, width),
        ]
    lines = [*heading("TIERS", width, remark=f"from the judgments, {rule}"), *_tiers(analysis, analysis.tiers, width)]
    ranking = analysis.case.ranking
    if ranking is None:
        return [*lines, *_note("the file has no ranking: see steelyard resolve", width)]
    if [set(tier) for tier in ranking] == [set(tier) for tier in analysis.tiers]:
        return [*lines, *_note("the file's ranking is the same", width)]
    lines += text_lines("the file has a different ranking:", width, style="bad", indent=INDENT)
    return [*lines, *_tiers(analysis, ranking, width)]


def pair_lines(analysis: CaseAnalysis, width: int) -> list[Line]:
    """Return the pairs that the case lists."""
    lines: list[Line] = []
    for pair in analysis.case.pairs or ():
        values = (("weight", pair.weight), ("margin", pair.margin))
        extras = [f"{name} {value:g}" for name, value in values if value is not None]
        lines += joined_lines(
            [f"{analysis.labels[pair.better]} > {analysis.labels[pair.worse]}", *extras], width, indent=INDENT
        )
    return [*heading("PAIRS", width, remark="as the file lists them"), *lines] if lines else []


def score_lines(analysis: CaseAnalysis, scored: CaseScores, width: int) -> list[Line]:
    """Return one model's scores with the tiers, the highest first; ``!``: no response of a better tier is below."""
    scores = scored.scores.scores
    known = {name: score for name, score in scores.items() if score is not None}
    order = sorted(known, key=lambda name: -known[name])
    low, high = min(known.values(), default=0.0), max(known.values(), default=0.0)
    lines = heading("SCORES", width, remark=scored.name)
    num_above = 0
    for name in order:
        is_above = _reaches_better_tier(analysis, name, known)
        head = f"{INDENT}{analysis.labels.get(name, '?')}  {_tier(analysis, name)}  {known[name]:>10.4f}"
        bar = round((known[name] - low) / (high - low) * min(_MOST_BAR, width - len(head) - 5)) if high > low else 0
        style = "bad" if is_above else "plain"
        drawn = "█" * max(bar, 0)
        num_above += is_above
        lines.append((Span(head, style), Span(f"  {drawn}", "special"), Span(" !" if is_above else "", "bad")))
    for name in scores.keys() - known.keys():
        reason = scored.scores.unscored.get(name, "no reason given")
        start = f"{INDENT}{analysis.labels.get(name, '?')}  {_tier(analysis, name)}  "
        lines += hanging([Span(start)], f"{_NOT_SCORED}: {reason}", width, style="bad")
    if num_above:
        lines += _note("! not below an answer of a better tier", width)
    return [*lines, *_outcome(scored.outcome, width)]


def _reaches_better_tier(analysis: CaseAnalysis, response: str, scores: Mapping[str, float]) -> bool:
    """Return whether a response of a better tier has no higher score: a tie is as wrong as the other order."""
    tier = analysis.tier_of(response)
    tiers = [analysis.tier_of(name) for name, score in scores.items() if score <= scores[response]]
    return tier is not None and any(other is not None and other < tier for other in tiers)


def _outcome(outcome: ScoredItem | None, width: int) -> list[Line]:
    if outcome is None:
        return []
    exact = {True: "exact match", False: "no exact match", None: "exact match not counted"}[outcome.exact_match]
    tied = f"{outcome.num_tied} tied" if outcome.num_tied else ""
    parts = [f"{outcome.num_correct} of {outcome.num_pairs} pairs right", tied, exact]
    return joined_lines(parts, width, indent=INDENT)


def _note(text: str, width: int) -> list[Line]:
    return text_lines(text, width, style="quiet", indent=INDENT)


def _tier(analysis: CaseAnalysis, name: str) -> str:
    return f"tier {analysis.tier_of(name) or '-'}"


def _tiers(analysis: CaseAnalysis, ranking: Ranking, width: int) -> list[Line]:
    lines: list[Line] = []
    size = len(str(len(ranking)))
    for number, tier in enumerate(ranking, 1):
        names = " ".join(analysis.labels[name] for name in tier) + ("  (not ordered)" if len(tier) > 1 else "")
        lines += hanging([Span(f"{INDENT}{number:>{size}}  ", "title")], names, width)
    ranked = set(chain.from_iterable(ranking))
    if rest := " ".join(label for name, label in analysis.labels.items() if name not in ranked):
        lines += hanging([Span(f"{INDENT}{'-':>{size}}  ", "quiet")], f"{rest}  (not ranked)", width)
    return lines


def _circle(analysis: CaseAnalysis, cycle: Cycle) -> str:
    names = [analysis.labels[response] for response in cycle.circle]
    return " ".join(chain.from_iterable(zip_longest(names, cycle.signs, fillvalue=""))).rstrip()


def _judgment(analysis: CaseAnalysis, judgment: Judgment, width: int) -> list[Line]:
    better, worse = (judgment.left, judgment.right) if judgment.verdict == "left" else (judgment.right, judgment.left)
    start = f"{INDENT * 2}{analysis.labels[better]} > {analysis.labels[worse]}{INDENT}"
    return hanging([Span(start, "bad")], _judge(judgment), width)


def _judge(judgment: Judgment) -> str:
    return visible_line(
        f"{judgment.judge} ({judgment.kind})" + (f", judgment {judgment.id}" if judgment.id is not None else "")
    )
