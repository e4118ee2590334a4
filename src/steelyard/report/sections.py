"""The sections of the report: which figures and tables stand together, and the evidence named beside them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from steelyard.core.types import Counts, Run
from steelyard.evaluation.items import ScoredItem
from steelyard.evaluation.measures.accuracy import (
    Named,
    bench_table,
    group_figure,
    group_table,
    groups_of,
    overview_figure,
    overview_table,
)
from steelyard.evaluation.tables import Grouped, Panel, Table, count, table, word
from steelyard.io.terminal_text import rule_counts
from steelyard.report.distributions import margin_figure, score_figure, tier_figure
from steelyard.report.rewards import margin_table, rewards_of, tier_spreads, tier_table


class Section(NamedTuple):
    """A part of the page: its anchor, its title (a word), what it rests on, and its panels."""

    anchor: str
    evidence: tuple[str, ...]
    panels: tuple[Panel, ...]


class Protocol(NamedTuple):
    """All that one run says of how it was done."""

    name: str
    stage: str
    tables: tuple[Grouped, ...]


def accuracy_section(compared: Sequence[Named], evidence: Sequence[str]) -> Section:
    """Each model beside its baselines, the bench's own parts, categories, and languages where there are several."""
    panels: list[Panel] = []
    for named in compared:
        whole = (Grouped("", overview_table(named)),)
        panels.append(Panel(named.name, overview_figure(named), whole, "note_overview"))
        parts = bench_table(named.headline)
        if parts is not None:
            panels.append(Panel(word("bench_parts"), None, (Grouped("", parts),)))
    panels += _group_panels(compared, "category")
    if any(len(named.headline.by_language or {}) > 1 for named in compared):
        panels += _group_panels(compared, "language")
    return Section("accuracy", tuple(evidence), tuple(panels))


def rewards_section(items: Mapping[str, Iterable[ScoredItem]], evidence: Sequence[str]) -> Section:
    """The distributions of each model's rewards; a model without scored and ranked responses has none."""
    panels: list[Panel] = []
    for name, own in items.items():
        rewards = rewards_of(own)
        if not rewards.scores.size:
            continue
        title = f"{name} · " if len(items) > 1 else ""
        spreads = tier_spreads(rewards)
        panels += [
            Panel(title + word("by_tier"), tier_figure(spreads), (Grouped("", tier_table(spreads)),), "note_tiers"),
            Panel(title + word("raw_rewards"), score_figure(rewards), (), "note_scores"),
        ]
        if rewards.margins.size:
            numbers = (Grouped("", margin_table(rewards.margins)),)
            panels.append(Panel(title + word("margins"), margin_figure(rewards.margins), numbers, "note_margins"))
    return Section("rewards", tuple(evidence), tuple(panels))


def counts_line(name: str, counts: Counts) -> str:
    """Return what went in, was used, was dropped by which rule, and was noted, in one line."""
    parts = [f"{count(counts.num_in)} {word('num_in')}", f"{count(counts.num_used)} {word('used')}"]
    for title, rules in (("dropped", counts.dropped), ("noted", counts.noted)):
        if rules:
            numbers = rule_counts({rule.replace("_", " "): number for rule, number in rules.items()})
            parts.append(f"{word(title)}: {numbers}")
    return f"{name}: " + " · ".join(parts)


def protocol(name: str, run: Run) -> Protocol:
    """The run's settings, seed, inputs, versions, counts and time. Of a path only the last part is shown."""
    files = [(role, _last_part(given.path), given.sha256) for role, given in run.inputs.items()]
    written = [(word("output"), output, sha256) for output, sha256 in run.outputs.items()]
    settings = [(key, value) for key, value in _flat(run.config) if key != "seed"]
    whole = [(word("seed"), str(run.seed) if run.seed is not None else word("no_seed"))]
    whole.append((word("seconds"), f"{run.seconds:,.1f}"))
    counts = [(word("num_in"), count(run.counts.num_in)), (word("used"), count(run.counts.num_used))]
    for title, rules in (("dropped", run.counts.dropped), ("noted", run.counts.noted)):
        counts += [(f"{word(title)}: {rule}", count(number)) for rule, number in sorted(rules.items())]
    return Protocol(
        name,
        run.stage,
        (
            Grouped("counts", _pairs(counts)),
            Grouped("settings", _pairs([*whole, *settings])),
            Grouped("files", table(("role", "file", "sha256"), [*files, *written])),
            Grouped("versions", _pairs(sorted(run.versions.items()))),
        ),
    )


def _group_panels(compared: Sequence[Named], group: str) -> list[Panel]:
    shown = [named for named in compared if groups_of(named.headline, group)]
    alike = _alike(shown, group)
    return [_group_panel(own, group, is_only=len(alike) == 1) for own in alike]


def _alike(shown: Sequence[Named], group: str) -> list[list[Named]]:
    """Evaluations that share a group stand in one figure; those of another bench, whose groups differ, in their own."""
    found: list[list[Named]] = []
    for named in shown:
        names = set(groups_of(named.headline, group))
        beside = next(
            (own for own in found if any(names & set(groups_of(other.headline, group)) for other in own)), None
        )
        if beside is None:
            found.append([named])
        else:
            beside.append(named)
    return found


def _group_panel(shown: Sequence[Named], group: str, *, is_only: bool) -> Panel:
    tables = tuple(Grouped(named.name if len(shown) > 1 else "", _group_table(named, group)) for named in shown)
    title = word(f"by_{group}") if is_only else f"{word(f'by_{group}')} · {', '.join(named.name for named in shown)}"
    return Panel(title, group_figure(shown, group), tables, "note_groups")


def _group_table(named: Named, group: str) -> Table:
    baselines = named.headline.baselines.items() if group == "category" else ()
    return group_table(groups_of(named.headline, group), {name: own.by_category for name, own in baselines})


def _pairs(rows: Sequence[tuple[str, str]]) -> Table:
    return table(("setting", "value"), rows)


def _flat(settings: Mapping[str, object], prefix: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            found += _flat(value, f"{prefix}{key}.")
        else:
            found.append((prefix + key, _last_part(value) if isinstance(value, str) else str(value)))
    return found


def _last_part(path: str) -> str:
    is_absolute = path.startswith(("/", "\\")) or path[1:3] == ":\\"
    return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1] if is_absolute else path
