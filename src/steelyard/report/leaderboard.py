"""A leaderboard's summary as a table of text: CSV for machines, Markdown for a page."""

import csv
import re
from collections.abc import Mapping, Sequence
from typing import Any

_FIXED = (
    "name", "kind", "best_rank", "worst_rank", "share_first", "group", "self_test", "share_cut", "share_unscored",
)  # fmt: skip
_MARKS = re.compile(r"([\\`*_\[\]|~])")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_BOUNDED = (
    "Unscored pairs count as wrong; ranks and letters hold with the pairs right, too, that the worse model alone has "
    "no score for."
)


class _Lines:
    """What the CSV writer writes to, in memory."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, text: str) -> None:
        """Keep one line."""
        self.lines.append(text)


def numbers_of(row: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """The estimates of a row by (group, name)."""
    return {(one["group"], one["name"]): one for one in row["numbers"]}


def rank_of(row: Mapping[str, Any]) -> str:
    """``2``, or ``1–3`` where the data leave it open."""
    best, worst = row["best_rank"], row["worst_rank"]
    return str(best) if best == worst else f"{best}–{worst}"


def shown(estimate: Mapping[str, Any] | None) -> str:
    """``0.812 [0.790, 0.833]``; empty where there is no value."""
    if estimate is None or estimate["value"] is None:
        return ""
    if estimate["low"] is None:
        return f"{estimate['value']:.3f}"
    return f"{estimate['value']:.3f} [{estimate['low']:.3f}, {estimate['high']:.3f}]"


def as_csv(summary: Mapping[str, Any]) -> str:
    """A line a model, the best first; three columns a number. A name that a spreadsheet would run is quoted.

    Evaluations without a headline have no line.
    """
    columns = [(one["group"], one["name"]) for one in summary["columns"]]
    made = _Lines()
    writer = csv.writer(made, lineterminator="\n")
    titles = [name if group == "headline" else f"{group}.{name}" for group, name in columns]
    writer.writerow([*_FIXED, *(f"{title}{end}" for title in titles for end in ("", ".low", ".high"))])
    for row in summary["rows"]:
        own = numbers_of(row)
        cells = [own.get(column, {}).get(end) for column in columns for end in ("value", "low", "high")]
        writer.writerow(
            [
                *("" if one is None else _plain(one) for one in _fixed(row)),
                *("" if one is None else one for one in cells),
            ]
        )
    return "".join(made.lines)


def _fixed(row: Mapping[str, Any]) -> list[Any]:
    ranks = (row["best_rank"], row["worst_rank"])
    shares = [share_read(row, name) for name in ("num_cut", "num_unscored")]
    return [row["name"], row["kind"], *ranks, row["rank_shares"][0], row["group"], row["self_test"], *shares]


def share_read(row: Mapping[str, Any], name: str) -> float | None:
    """The share of a row's responses that were cut (``num_cut``) or got no score; null where it is not told."""
    coverage = row["coverage"]
    return None if coverage is None else coverage[name] / max(coverage["num_responses"], 1)


def shown_share(row: Mapping[str, Any], name: str) -> str:
    """``27.9%``; empty where nothing is told."""
    share = share_read(row, name)
    return "" if share is None else f"{share:.1%}"


def _plain(cell: Any) -> Any:
    is_formula = isinstance(cell, str) and cell.startswith(_FORMULA_STARTS)
    return f"'{cell}" if is_formula else cell


def as_markdown(summary: Mapping[str, Any]) -> str:
    """The headline and the sections, or subsets where there are none, as a Markdown table; below it what is apart."""
    every = [(one["group"], one["name"]) for one in summary["columns"]]
    has_sections = any(group == "sections" for group, _ in every)
    parts = ("sections",) if has_sections else ("subsets", "subsets_exact_match")
    columns = [(group, name) for group, name in every if group in ("headline", "half_points", *parts)]
    head = [
        "rank",
        "model",
        "first in",
        "group",
        "cut",
        "unscored",
        *(_escaped(_title(group, name)) for group, name in columns),
    ]
    lines = [_line(head), _line(["---"] * len(head))]
    for row in summary["rows"]:
        own = numbers_of(row)
        read = [shown_share(row, name) for name in ("num_cut", "num_unscored")]
        fixed = [rank_of(row), _escaped(row["name"]), f"{row['rank_shares'][0]:.0%}", row["group"], *read]
        lines.append(_line([*fixed, *(shown(own.get(column)) for column in columns)]))
    ranked_by = f"{summary['ranked_by'].replace('_', ' ')} ({summary['about']})"
    if summary["missing"]:
        ranked_by += f"; a part of the bench, which has no headline for want of {', '.join(summary['missing'])}"
    about = f"{summary['bench']}, {summary['num_prompts']:,} prompts; 95 % intervals; ranked by {ranked_by}."
    lines += ["", _escaped(about)]
    lines += [f"Models that share a letter cannot be told apart ({summary['correction']})."]
    lines += [f"Without a headline: {_escaped(one['name'])}: {_escaped(one['why'])}." for one in summary["partial"]]
    if summary["unlike_coverage"]:
        told = ". ".join(summary["unlike_coverage"])
        lines.append(_escaped(f"Not read alike: {told}. {_BOUNDED}"))
    for title, values in summary["differing"].items():
        lines.append(
            _escaped(f"Differs by leave: {title}: " + ", ".join(f"{v} in {', '.join(n)}" for v, n in values.items()))
        )
    return "\n".join(lines) + "\n"


def _title(group: str, name: str) -> str:
    """A column's name, with what sets it apart from one of the same name."""
    more = {"subsets_exact_match": ", exact match", "half_points": ", ties and failures half"}.get(group, "")
    return name.replace("_", " ") + more


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """A name as plain Markdown text on one line: no column, no mark, no HTML, no link, nothing that acts unseen."""
    line = "".join(sign if sign.isprintable() else " " for sign in text).replace("&", "&amp;").replace("<", "&lt;")
    return _MARKS.sub(r"\\\1", line).replace("://", "&#58;//")
