"""The sections of the report: which figures and tables stand together, and the evidence named beside them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from steelyard.core.types import Counts, Run
from steelyard.evaluation.measures.accuracy import (
    Named,
    bench_table,
    group_figure,
    group_table,
    overview_figure,
    overview_table,
)
from steelyard.evaluation.tables import Figure, Table, count, table, word
from steelyard.report.conflicts import Grouped, conflict_figure, conflict_tables
from steelyard.report.distributions import margin_figure, score_figure, tier_figure
from steelyard.report.judge_contents import Agreement, Authors, Judges
from steelyard.report.judges import agreement_table, author_figure, bias_panels, judge_table
from steelyard.report.rewards import margin_table, rewards_of, tier_spreads, tier_table
from steelyard.report.summary_readers import CurvePoint, Item, Measured, Resolution
from steelyard.report.training_curves import held_out_figure, loss_figure


class Panel(NamedTuple):
    """A figure with its numbers: tables of the same columns, each under its own name. ``note`` is a word."""

    title: str
    figure: Figure | None
    tables: tuple[Grouped, ...] = ()
    note: str = ""


class Section(NamedTuple):
    """A part of the page: its anchor, its title (a word), what it rests on, and its panels."""

    anchor: str
    evidence: tuple[str, ...]
    panels: tuple[Panel, ...]


class Judged(NamedTuple):
    """A run of ``resolve`` under its name."""

    name: str
    resolution: Resolution


class JudgeReport(NamedTuple):
    """What a run of ``resolve`` says of judges and authors, under its name."""

    name: str
    judges: Judges
    agreement: Agreement
    authors: Authors


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
        parts = bench_table(named.evaluation)
        if parts is not None:
            panels.append(Panel(word("bench_parts"), None, (Grouped("", parts),)))
    panels += _group_panels(compared, "category")
    if any(len(named.evaluation.by_language) > 1 for named in compared):
        panels += _group_panels(compared, "language")
    return Section("accuracy", tuple(evidence), tuple(panels))


def rewards_section(items: Mapping[str, Iterable[Item]], evidence: Sequence[str]) -> Section:
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


def conflict_section(judged: Sequence[Judged], evidence: Sequence[str]) -> Section:
    """The conflict report of each run of ``resolve``."""
    panels = tuple(
        Panel(
            own.name if len(judged) > 1 else word("conflict_ratio"),
            conflict_figure(own.resolution.conflicts),
            conflict_tables(own.resolution.conflicts),
            "note_conflicts",
        )
        for own in judged
        if own.resolution.conflicts.overall.ratio is not None
    )
    return Section("conflicts", tuple(evidence), panels)


def judges_section(reports: Sequence[JudgeReport], evidence: Sequence[str]) -> Section:
    """Of each run of ``resolve``: length and position bias by kind, judges beside each other, and authors."""
    panels: list[Panel] = []
    for report in reports:
        prefix = f"{report.name} · " if len(reports) > 1 else ""
        panels += [
            Panel(f"{prefix}{one.name} · {word(f'{one.about}_bias')}", one.figure, (), f"note_{one.about}_bias")
            for one in bias_panels(report.judges.by_kind)
        ]
        if report.judges.by_judge:
            tables = (
                Grouped("kind", judge_table(report.judges.by_kind)),
                Grouped("judge", judge_table(report.judges.by_judge)),
            )
            panels.append(Panel(prefix + word("judges_table"), None, tables))
        if report.agreement.judges or report.agreement.kinds:
            panels.append(Panel(prefix + word("agreement"), None, (Grouped("", agreement_table(report.agreement)),)))
        if report.authors.strengths:
            panels.append(Panel(prefix + word("authors"), author_figure(report.authors), (), "note_authors"))
    return Section("judges", tuple(evidence), tuple(panels))


def training_section(curves: Mapping[str, Sequence[CurvePoint]], evidence: Sequence[str]) -> Section:
    """Loss and held-out accuracy over the steps."""
    loss, held_out = loss_figure(curves), held_out_figure(curves)
    panels = [Panel(word("loss"), loss, (), "note_loss")] if loss else []
    panels += [Panel(word("held_out_accuracy"), held_out, (), "note_held_out")] if held_out else []
    return Section("training", tuple(evidence), tuple(panels))


def counts_line(name: str, counts: Counts) -> str:
    """What went in, was used, was dropped by which rule, and was noted: one line beside the numbers."""
    parts = [f"{count(counts.num_in)} {word('num_in')}", f"{count(counts.num_used)} {word('used')}"]
    for title, rules in (("dropped", counts.dropped), ("noted", counts.noted)):
        if rules:
            listed = ", ".join(f"{rule.replace('_', ' ')} {count(number)}" for rule, number in sorted(rules.items()))
            parts.append(f"{word(title)}: {listed}")
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
    shown = [named for named in compared if _groups(named, group)]
    alike = _alike(shown, group)
    return [_group_panel(own, group, is_only=len(alike) == 1) for own in alike]


def _alike(shown: Sequence[Named], group: str) -> list[list[Named]]:
    """Evaluations that share a group stand in one figure; those of another bench, whose groups differ, in their own."""
    found: list[list[Named]] = []
    for named in shown:
        names = set(_groups(named, group))
        beside = next((own for own in found if any(names & set(_groups(other, group)) for other in own)), None)
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
    own = named.evaluation
    beside = {name: baseline.by_category for name, baseline in own.baselines.items()} if group == "category" else {}
    return group_table(_groups(named, group), beside)


def _groups(named: Named, group: str) -> Mapping[str, Measured]:
    return named.evaluation.by_category if group == "category" else named.evaluation.by_language


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
