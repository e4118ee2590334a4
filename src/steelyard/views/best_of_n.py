"""Best-of-N: the gold value by N with its peak, the win rate against a baseline, and what was selected."""

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from steelyard.core.remedies import Command, Placeholder, Remedy
from steelyard.core.types import JsonObject, Run
from steelyard.evaluation.best_of_n import BestOfNCurve, BestOfNPeak, BestOfNProxy, BestOfNSummary, budgets_from_one
from steelyard.evaluation.tables import (
    DECIMAL,
    PERCENT,
    Figure,
    Form,
    Grouped,
    Mark,
    Panel,
    Sentence,
    Table,
    count,
    decimal,
    isolate,
    p_relation,
    p_value,
    percent,
    table,
    word,
)
from steelyard.evaluation.vega import (
    BASELINE_COLOUR,
    MODEL_COLOURS,
    Spec,
    colour_of,
    framed,
    value_tips,
    vertical_line,
)
from steelyard.views.view import NextStep, PageSources, StageRun, View

_SHARES = ("tiers", "judgments")
_MOST_ROWS = 24
_DRAWN = 32
"""The N up to which a figure shows every one."""


def _form(summary: BestOfNSummary) -> Form:
    return PERCENT if summary.gold in _SHARES else DECIMAL


def _sentences(run: StageRun[BestOfNSummary]) -> Iterator[Sentence]:
    summary = run.summary
    if (curve := summary.curve) is not None:
        form, last = _form(summary), curve.points[-1]
        value, interval = form.cells(last.chosen)
        gold = word(f"gold_{summary.gold}")
        values = {
            "run": run.name,
            "prompts": count(curve.num_covered),
            "n": count(last.n),
            "gold": gold if summary.dimension is None else f"{gold} ({isolate(summary.dimension)})",
            "chosen": value,
            "interval": interval,
            "random": form.value(curve.random.value),
            "oracle": form.value(last.oracle.value),
        }
        yield Sentence("say_best_of_n", values)
        if curve.proxy is not None:
            yield from _proxy_sentences(summary, curve, curve.proxy)
        yield _peak_sentence(curve.peak, last.n)
        smallest = curve.peak.smallest_equal
        if curve.peak.rises and smallest is not None and smallest < curve.peak.n:
            yield Sentence("say_smaller_n", {"smallest": count(smallest)})
    if summary.baseline is not None and summary.gold != "none":
        about = {"baseline": isolate(summary.baseline)}
        if summary.wins:
            rate, interval = PERCENT.cells(summary.wins[-1].win_rate)
            about |= {"n": count(summary.wins[-1].n), "rate": rate, "interval": interval}
            about |= {"prompts": count(summary.num_wins), "random": percent(summary.wins[0].win_rate.value)}
            yield Sentence("say_best_of_n_wins", about)
        else:
            yield Sentence("say_no_win_rate", about)
    used = run.source.run.counts.num_used
    among = word("among_all") if summary.n is None else f"{count(summary.n)} {word('among_n')}"
    yield Sentence(
        "say_selected", {"run": run.name, "used": count(used), "n": among, "pairs": count(summary.num_pairs)}
    )
    if summary.num_next_turns:
        yield Sentence("say_next_turns", {"turns": count(summary.num_next_turns)})


def _proxy_sentences(summary: BestOfNSummary, curve: BestOfNCurve, proxy: BestOfNProxy) -> Iterator[Sentence]:
    form, alone = _form(summary), curve.points[-1].gold_only
    value, interval = form.cells(alone)
    by = summary.proxy_by or "scores"
    values = {
        "labelled": count(curve.num_prompts),
        "prompts": count(proxy.num_prompts),
        "proxy": word(f"proxy_{by}"),
        "alone": value,
        "interval": interval,
        "correlation": decimal(proxy.correlation, 2),
        "level_correlation": decimal(proxy.level_correlation, 2),
        "effective_labels": decimal(proxy.effective_labels, 2),
    }
    yield Sentence("say_proxy" if proxy.is_used else "say_proxy_unused", values)
    if proxy.categories_without_gold:
        names = ", ".join(isolate(name) for name in proxy.categories_without_gold[:3])
        more = len(proxy.categories_without_gold) - 3
        numbers = {"categories": names if more <= 0 else f"{names} + {count(more)}"}
        yield Sentence("say_categories_without_gold", numbers)
    elif proxy.population.differs:
        yield Sentence("say_gold_of_other_population", {"p": p_relation(proxy.population.smallest_p)})


def _peak_sentence(peak: BestOfNPeak, last: int) -> Sentence:
    if peak.falls is None:
        return Sentence("say_peak_untested", {"peak": count(peak.n)})
    values = {
        "peak": count(peak.n),
        "low": count(peak.low),
        "high": count(peak.high),
        "largest": count(peak.largest_equal),
    }
    if peak.falls:
        return Sentence("say_peak_falls" if peak.rises else "say_no_gain_falls", values)
    if not peak.rises:
        return Sentence("say_no_gain", values)
    return Sentence("say_peak_at_end" if peak.n == last else "say_peak_no_fall", values)


def _panels(run: StageRun[BestOfNSummary], sources: PageSources) -> Iterator[Panel]:
    summary = run.summary
    if (curve := summary.curve) is not None:
        tables = (Grouped("", _curve_table(summary, curve)),)
        note = "note_curve_of_n" if curve.proxy is None else "note_powered_curve"
        yield Panel(word("curve_of_n"), _figure(summary, curve), tables, note)
    if summary.wins:
        shown = _shown([point.n for point in summary.wins], ())
        rows = [
            (count(point.n), *PERCENT.cells(point.win_rate), count(point.win_rate.n))
            for point in summary.wins
            if point.n in shown
        ]
        numbers = table(("number_n", "win_rate_over_baseline", "interval", "n"), rows)
        yield Panel(word("wins_by_n"), None, (Grouped("", numbers),), "note_wins_by_n")


def _shown(budgets: list[int], always: tuple[int | None, ...]) -> set[int]:
    """Return the rows of a table: all N, or of many the first ones, the doublings, and those that matter."""
    if len(budgets) <= _MOST_ROWS:
        return set(budgets)
    wanted = [*range(1, 9), *(2**power for power in range(4, 31)), budgets[-1]]
    return {min(budgets, key=lambda budget: abs(budget - each)) for each in wanted} | {each for each in always if each}


def _curve_table(summary: BestOfNSummary, curve: BestOfNCurve) -> Table:
    form, peak, has_proxy = _form(summary), curve.peak, curve.proxy is not None
    shown = _shown([point.n for point in curve.points], (peak.n, peak.smallest_equal, peak.largest_equal))
    rows = [
        (
            f"{count(point.n)} ★" if point.n == peak.n else count(point.n),
            *form.cells(point.chosen),
            *(form.cells(point.gold_only) if has_proxy else ()),
            form.value(point.oracle.value),
            *form.cells(point.loss),
            p_value(point.p),
            decimal(point.kl_bound, 2),
        )
        for point in curve.points
        if point.n in shown
    ]
    alone = ("gold_alone", "interval") if has_proxy else ()
    columns = ("best_answer", "loss_from_peak", "interval", "corrected_p", "kl_bound")
    return table(("number_n", "chosen_answer", "interval", *alone, *columns), rows)


def _figure(summary: BestOfNSummary, curve: BestOfNCurve) -> Figure | None:
    """Draw chosen and best answer with bands, and the random one; null with a single N."""
    if len(curve.points) < 2:
        return None
    # Of many N a figure shows no more than these.
    drawn = {*budgets_from_one(curve.points[-1].n, every=_DRAWN), curve.peak.n}
    curve = replace(curve, points=tuple(point for point in curve.points if point.n in drawn))
    names = {key: word(key) for key in ("chosen_answer", "best_answer", "random_answer")}
    colours = (MODEL_COLOURS[0], MODEL_COLOURS[1], BASELINE_COLOUR)
    marks = tuple(Mark(name, colour, "circle") for name, colour in zip(names.values(), colours, strict=True))
    series = {
        "chosen_answer": [(point.n, point.chosen) for point in curve.points],
        "best_answer": [(point.n, point.oracle) for point in curve.points],
        "random_answer": [(point.n, curve.random) for point in curve.points],
    }
    values: list[Spec] = [
        {"series": names[key], "n": n, "value": each.value, "low": each.low, "high": each.high}
        for key, points in series.items()
        for n, each in points
    ]
    budgets = sorted(_shown([point.n for point in curve.points], ()))
    form = ".1%" if summary.gold in _SHARES else ".3f"
    axis: Spec = {"title": word("gold_value"), "tickCount": 5, **({"format": ".0%"} if summary.gold in _SHARES else {})}
    across: Spec = {
        "field": "n",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "nice": False},
        "axis": {"title": word("number_n"), "values": budgets, "format": "d", "labelOverlap": True},
    }
    up: Spec = {"type": "quantitative", "axis": axis, "scale": {"zero": False}}
    peak = vertical_line(curve.peak.n)
    peak["encoding"]["x"] = {**across, "field": "at"}
    band: Spec = {
        "transform": [{"filter": "datum.low !== null && datum.high !== null"}],
        "mark": {"type": "area", "opacity": 0.14, "aria": False},
        "encoding": {
            "x": across,
            "y": {**up, "field": "low"},
            "y2": {"field": "high"},
            "color": colour_of(marks),
        },
    }
    line: Spec = {
        "mark": {"type": "line", "strokeWidth": 2.2, "point": len(curve.points) <= _MOST_ROWS},
        "encoding": {
            "x": across,
            "y": {**up, "field": "value"},
            "color": colour_of(marks),
            "tooltip": value_tips("n", "number_n", "d", form),
        },
    }
    return Figure("figure_best_of_n", {**framed([band, peak, line], 260), "data": {"values": values}}, marks)


def _rows(summary: BestOfNSummary) -> Iterator[JsonObject]:
    curve = summary.curve
    wins = {point.n: point.win_rate for point in summary.wins}
    for point in () if curve is None else curve.points:
        win = wins.get(point.n)
        yield {
            "n": point.n,
            "chosen": point.chosen.value,
            "low": point.chosen.low,
            "high": point.chosen.high,
            "gold_only": None if point.gold_only is None else point.gold_only.value,
            "random": None if curve is None else curve.random.value,
            "oracle": point.oracle.value,
            "loss": None if point.loss is None else point.loss.value,
            "p": point.p,
            "kl_bound": point.kl_bound,
            "win_rate": None if win is None else win.value,
        }


def _next(run: Run[BestOfNSummary], out: Path) -> NextStep:
    if run.summary.baseline is not None:
        changes = (Remedy("chat", Placeholder("KIND")), Remedy("out", "judged"))
        return NextStep(Command("judge", (str(out / "cases.jsonl"),), changes), "compares with the baseline")
    shows = "shows every prompt" if run.summary.curve is None else "shows the curve"
    return NextStep(Command("report", (str(out),), (Remedy("out", "report.html"),)), shows)


VIEW = View(
    72,
    "best-of-n",
    BestOfNSummary,
    "best_of_n_selection",
    _sentences,
    _panels,
    _rows,
    unit="view_cases_used",
    lead=1,
    next_step=_next,
)
