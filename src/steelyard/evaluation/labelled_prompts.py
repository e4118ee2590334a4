"""Few prompts with human labels among many with a judge's: their tables of statistics, and how they are resampled.

The units with a human label and the others are drawn apart. The table of the former has the columns by human labels, by
the judge's labels of the same prompts, and by those of parallel items without a human label.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.numerics import Booleans, Floats, Integers, derived_seed
from steelyard.statistics.aggregation import Formula, Groups
from steelyard.statistics.bootstrap import Blocks, Items, Sums, Terms, Totals, add_up, draw_layout, resample
from steelyard.statistics.groups import Cell, Label, Layout, layout_of
from steelyard.statistics.prediction_powered import Drawn, LabelSources


class Resampling(NamedTuple):
    """The resampling of values, and the wanted width of an interval."""

    num_resamples: int
    seed: int
    width: float | None = None


class Side(NamedTuple):
    """Prompts that are resampled together: their positions among all, their layout and the names of their units."""

    rows: Integers
    layout: Layout
    names: list[str]


class SplitPrompts(NamedTuple):
    """All judged prompts, divided by whether their resampling unit has a human label. ``layout`` is that of all.

    ``is_labelled``: whether the prompt itself has one; shape (prompt,).
    """

    is_labelled: Booleans
    layout: Layout
    labelled: Side
    rest: Side

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of all prompts."""
        return self.layout.cells


def split_prompts(cells: Sequence[Cell], units: Sequence[str], is_labelled: Booleans) -> SplitPrompts:
    """Divide the judged prompts, in order; ``units`` are the names of their resampling units."""
    layout = layout_of([Label(unit, cell) for unit, cell in zip(units, cells, strict=True)])
    labelled_units = {units[row] for row in np.flatnonzero(is_labelled).tolist()}
    has_label = np.array([unit in labelled_units for unit in units], bool)

    def side(mask: Booleans) -> Side:
        rows = np.flatnonzero(mask)
        names = [units[row] for row in rows.tolist()]
        labels = [Label(name, cells[row]) for name, row in zip(names, rows.tolist(), strict=True)]
        return Side(rows, layout_of(labels).within(layout.cells), names)

    return SplitPrompts(is_labelled, layout, side(has_label), side(~has_label))


class UnitTables(NamedTuple):
    """The tables to resample: of the units with a human label, and of the others; a row for each prompt."""

    labelled: NDArray[Any]
    rest: NDArray[Any]


def table_of_units(prompts: SplitPrompts, human: NDArray[Any], judged: NDArray[Any]) -> UnitTables:
    """Return the tables of both kinds of units; ``human`` is of the human-labelled prompts, ``judged`` of all.

    The first has the human columns, the judge's of the human-labelled prompts, and the judge's of the others, with
    zeros for prompts of the other kind.
    """
    by_people = np.zeros_like(judged)
    by_people[prompts.is_labelled] = human
    is_labelled = prompts.is_labelled[:, None]
    table = np.concatenate([by_people, np.where(is_labelled, judged, 0), np.where(is_labelled, 0, judged)], axis=1)
    return UnitTables(table[prompts.labelled.rows], judged[prompts.rest.rows])


class LabelledTotals(NamedTuple):
    """Totals by human labels, by the judge's labels of the same prompts, and by those of the other prompts."""

    human: Totals
    same: Totals
    rest: Totals

    def sources(self, formula: Formula, judged: Formula | None = None) -> LabelSources:
        """Return a value by each kind of labels; ``judged`` is the formula of the judge's where it is another one."""
        formulas = formula, judged or formula, judged or formula
        with np.errstate(invalid="ignore", divide="ignore"):
            return LabelSources(
                *(
                    Drawn(float(of_part(totals.point)), np.asarray(of_part(totals.resampled), np.float64))
                    for totals, of_part in zip(self, formulas, strict=True)
                )
            )

    def missing(self, groups: Groups, column: int) -> list[str]:
        """Return the groups without a human label that have other prompts; ``column`` has the denominators."""
        human, rest = (groups.members @ part.point[:, column] > 0 for part in (self.human, self.rest))
        return list(groups.chosen(~human & rest).names)

    def shared(self, groups: Groups, column: int) -> Groups:
        """Return the groups in which the judge labelled both prompts with a human label and others.

        The two differ there by chance alone. A mean over more groups for one of them would differ by the groups too.
        """
        same, rest = (groups.members @ part.point[:, column] > 0 for part in (self.same, self.rest))
        return groups.chosen(same & rest)


def draw_labelled(prompts: SplitPrompts, human: Integers, judged: Integers, how: Resampling) -> LabelledTotals:
    """Resample tables, ``human`` of the human-labelled prompts and ``judged`` of all."""
    width = judged.shape[1]
    table, others = table_of_units(prompts, human, judged)
    labelled = resample(Items(prompts.labelled.layout, table, how.num_resamples), seed=how.seed)
    # Other draws: equal seeds would make the two samples dependent.
    other_seed = derived_seed(how.seed, "other prompts")
    rest = resample(Items(prompts.rest.layout, others, how.num_resamples), seed=other_seed)
    within = labelled.of_columns(slice(2 * width, None))
    return LabelledTotals(
        labelled.of_columns(slice(None, width)),
        labelled.of_columns(slice(width, 2 * width)),
        rest._replace(point=rest.point + within.point, resampled=rest.resampled + within.resampled),
    )


class LabelledSums(NamedTuple):
    """Sums by group of numbers that need not be whole, by the same three kinds of labels.

    ``blocks`` is the drawing of the units with a human label; ``group`` the groups of their prompts.
    """

    human: Sums
    same: Sums
    rest: Sums
    blocks: Blocks
    group: Integers


def add_up_labelled(
    prompts: SplitPrompts, human: Floats, judged: Floats, how: Resampling, group_of_cell: Integers
) -> LabelledSums:
    """Resample tables by group, ``human`` of the human-labelled prompts and ``judged`` of all, both (prompt, column).

    ``group_of_cell`` has the group of each cell; shape (cell,).
    """
    width, num_groups = judged.shape[1], int(group_of_cell.max(initial=0)) + 1
    table, others = table_of_units(prompts, human, judged)

    def added(side: Side, columns: NDArray[Any], seed: int) -> tuple[Sums, Blocks, Integers]:
        group = group_of_cell[side.layout.cell]
        blocks = draw_layout(side.layout, side.names, num_resamples=how.num_resamples, seed=seed)
        return add_up(blocks, Terms(np.arange(len(group)), group, list(columns.T)), num_groups), blocks, group

    sums, blocks, group = added(prompts.labelled, table, how.seed)
    by_people, same, rest = (
        Sums(sums.point[:, at : at + width], sums.resampled[..., at : at + width]) for at in range(0, 3 * width, width)
    )
    if len(others):
        # Other draws: equal seeds would make the two samples dependent.
        more, _, _ = added(prompts.rest, others, derived_seed(how.seed, "other prompts"))
        rest = Sums(rest.point + more.point, rest.resampled + more.resampled)
    return LabelledSums(by_people, same, rest, blocks, group)
