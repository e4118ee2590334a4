"""The section "more measures": of each evaluation the measures beside accuracy, whichever there are."""

from collections.abc import Mapping, Sequence

from steelyard.evaluation.measure import GroupColumn, MeasureRow, measures
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.evaluation.tables import DASH, Grouped, Panel, Table, count, reason, table, word
from steelyard.evaluation.tie_policies import policy_table, weight_table
from steelyard.report.sections import Section
from steelyard.statistics.intervals import Estimate


def measures_section(evaluations: Mapping[str, EvaluationSummary], evidence: Sequence[str]) -> Section:
    """Return each model's tables and figures, and the panels that all models share."""
    panels: list[Panel] = []
    for name, summary in evaluations.items():
        prefix = f"{name} · " if len(evaluations) > 1 else ""
        panels += [panel._replace(title=prefix + panel.title) for panel in _panels(summary)]
    for name, measure in measures().items():
        summaries = {model: getattr(summary.measures, name) for model, summary in evaluations.items()}
        shared = measure.shared_panel({model: value for model, value in summaries.items() if value is not None})
        panels += [] if shared is None else [shared]
    return Section("more_measures", tuple(evidence), tuple(panels))


def _panels(summary: EvaluationSummary) -> list[Panel]:
    rows = [row for measure, value in summary.measured() for row in measure.rows(value)]
    columns = [column for measure, value in summary.measured() if (column := measure.group_column(value)) is not None]
    policies = None if summary.policies is None else policy_table(summary.policies)
    tables = {
        "beside_accuracy": {"": measure_table(rows)},
        "choices_by_group": {
            "category": group_table(columns, [column.means.by_category for column in columns]),
            "language": group_table(columns, [column.means.by_language for column in columns]),
        },
        "tie_policies": {"": policies},
        "weights": {"": weight_table(summary.weights)},
    }
    panels = [
        Panel(word(title), None, grouped)
        for title, group in tables.items()
        if (grouped := tuple(Grouped(by, part) for by, part in group.items() if part is not None))
    ]
    return [*panels, *(panel for measure, value in summary.measured() for panel in measure.panels(value))]


def measure_table(rows: Sequence[MeasureRow]) -> Table | None:
    """Return a row a measure: the mean over categories and over everything, with intervals; null if all are empty."""
    cells = [_cells(row) for row in rows]
    filled = [row for row in cells if row[1] != DASH or row[3] != DASH]
    columns = ("measure", "mean_of_categories", "interval", "mean_of_all", "interval", "at_random", "n")
    return table(columns, filled) if filled else None


def _cells(row: MeasureRow) -> tuple[str, ...]:
    value, interval = row.form.cells(row.micro)
    if row.micro is not None and row.micro.value is None:
        value = reason(row.micro)
    chance = DASH if row.chance is None else row.form.value(row.chance.value)
    n = count(None if row.micro is None else row.micro.n)
    return (row.title, *row.form.cells(row.macro), value, interval, chance, n)


def group_table(columns: Sequence[GroupColumn], groups: Sequence[Mapping[str, Estimate]]) -> Table | None:
    """Return the means of each category or language, with the number of prompts. Null below two groups.

    ``groups`` has the means of each column by the group's name.
    """
    names = sorted({name for group in groups for name in group})
    rows = [
        (
            name,
            *(
                cell
                for column, group in zip(columns, groups, strict=True)
                for cell in column.form.cells(group.get(name))
            ),
            count(max(group[name].n for group in groups if name in group)),
        )
        for name in names
    ]
    titles = [title for column in columns for title in (column.title, "interval")]
    return table(("group", *titles, "prompts"), rows) if len(rows) > 1 else None
