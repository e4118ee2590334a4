"""Arms of an experiment, measured on the prompts of one bench: values over seeds, and paired differences.

Statistics are summed over the seeds of an arm before prompts are redrawn, so that a value is that of a seed drawn at
random. Every column of the bench has a value and a difference by the bench's own arithmetic.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.numerics import Integers
from steelyard.evaluation.bench_table import SHARES, ColumnFormula
from steelyard.evaluation.evaluations import Evaluated
from steelyard.evaluation.experiments import Arm, ArmDifference, ArmValue, ColumnDifference
from steelyard.statistics.aggregation import ACCURACY, EXACT_MATCH, by_category, estimate, estimate_macro
from steelyard.statistics.bootstrap import Items, Totals, cell_sums, resample
from steelyard.statistics.groups import Layout
from steelyard.statistics.significance import (
    NUM_RESAMPLES,
    HeadlineBootstrap,
    PairedComparison,
    compare,
    holm,
)
from steelyard.training.config import TrainingSummary


class MeasuredArms(NamedTuple):
    """All arms, their statistics summed over seeds, the layout of the prompts, and the columns of the bench.

    The statistics of an arm have shape (prompt, 4 + the bench's own columns).
    """

    arms: tuple[Arm, ...]
    statistics: Mapping[str, Integers]
    layout: Layout
    columns: tuple[ColumnFormula, ...] = ()


class MeasuredArm(NamedTuple):
    """An arm with its statistics summed over seeds, of shape (prompt, 4 + the bench's own columns)."""

    arm: Arm
    statistics: Integers


def measure_arm(
    name: str,
    layout: Layout,
    columns: Sequence[ColumnFormula],
    *,
    trained: Sequence[TrainingSummary],
    evaluated: Sequence[Evaluated],
) -> MeasuredArm:
    """Return an arm over its seeds: ``trained`` and ``evaluated`` have an entry a seed."""
    table = np.sum([evaluation.statistics for evaluation in evaluated], axis=0)
    totals = resample(Items(layout, table, NUM_RESAMPLES), seed=0)
    categories = by_category(totals.cells)
    # A share is the same of sums over seeds; only n counts each prompt once per seed.
    accuracy, exact = (estimate_macro(totals, categories, share) for share in (ACCURACY, EXACT_MATCH))
    by_seed = tuple(float(each.run.summary.accuracy) for each in evaluated)
    arm = Arm(
        name=name,
        num_prompts=float(np.mean([training.num_prompts for training in trained])),
        num_pairs=float(np.mean([training.num_pairs for training in trained])),
        num_weights=trained[0].num_weights,
        accuracy=replace(accuracy, n=accuracy.n // len(evaluated)),
        exact_match=replace(exact, n=exact.n // len(evaluated)),
        accuracy_by_seed=by_seed,
        spread=float(np.std(by_seed, ddof=1)),
    )
    sums = [cell_sums(layout, each.statistics) for each in evaluated]
    values = tuple(_value(arm, totals, column, [float(column.formula(each)) for each in sums]) for column in columns)
    return MeasuredArm(replace(arm, values=values), table)


def _value(arm: Arm, totals: Totals, column: ColumnFormula, by_seed: Sequence[float]) -> ArmValue:
    """Return the arm's value in one column; whole accuracy and exact match are those of the arm."""
    key = column.column
    is_whole = not key.subset and key.measure in SHARES
    value = getattr(arm, key.measure) if is_whole else estimate(totals, column.formula, column.n)
    return ArmValue(column=key, value=value, by_seed=tuple(by_seed), spread=float(np.std(by_seed, ddof=1)))


def compare_arms(measured: MeasuredArms, pairs: Sequence[tuple[str, str]]) -> tuple[ArmDifference, ...]:
    """Return the first arm minus the second of each pair, corrected for the number of pairs (Holm)."""
    num_seeds = len(measured.arms[0].accuracy_by_seed)
    differences: list[ArmDifference] = []
    for first, second in pairs:
        tables = measured.statistics[first], measured.statistics[second]
        summed = compare(measured.layout, *tables, num_resamples=NUM_RESAMPLES, seed=0)
        # Only n counts each prompt once per seed.
        accuracy, exact = (replace(each, n=each.n // num_seeds) for each in (summed.accuracy, summed.exact_match))
        comparison = summed._replace(accuracy=accuracy, exact_match=exact)
        columns = tuple(_column_difference(measured.layout, tables, comparison, each) for each in measured.columns)
        differences.append(
            ArmDifference(
                first=first,
                second=second,
                **comparison._asdict(),
                p_accuracy_corrected=1.0,
                p_exact_match_corrected=1.0,
                columns=columns,
            )
        )
    return corrected(differences)


def _column_difference(
    layout: Layout, tables: tuple[Integers, Integers], comparison: PairedComparison, column: ColumnFormula
) -> ColumnDifference:
    """Return the difference in one column; that of the whole accuracy or exact match is the comparison's."""
    key = column.column
    if not key.subset and key.measure in SHARES:
        value, p = getattr(comparison, key.measure), getattr(comparison, f"p_{key.measure}")
    else:
        drawn = HeadlineBootstrap(layout, column.formula, NUM_RESAMPLES, seed=0).draw(tables)
        value, p, _ = drawn.minus(0, 1, column.n)
    return ColumnDifference(column=key, difference=value, p=p, p_corrected=1.0)


def corrected(differences: Iterable[ArmDifference]) -> tuple[ArmDifference, ...]:
    """Return the differences with p-values corrected for their number, in columns for all columns too (Holm).

    Accuracy and exact match are a family of tests each.
    """
    listed = tuple(differences)
    accuracy = holm([difference.p_accuracy for difference in listed])
    exact_match = holm([difference.p_exact_match for difference in listed])
    of_columns = iter(holm([column.p for difference in listed for column in difference.columns]))
    return tuple(
        replace(
            difference,
            p_accuracy_corrected=p_accuracy,
            p_exact_match_corrected=p_exact_match,
            columns=tuple(replace(column, p_corrected=next(of_columns)) for column in difference.columns),
        )
        for difference, p_accuracy, p_exact_match in zip(listed, accuracy, exact_match, strict=True)
    )


def on_bench(differences: Iterable[ArmDifference], bench: str) -> Iterator[ArmDifference]:
    """Yield the differences under the names of the arms on one of several kinds of bench."""
    for difference in differences:
        yield replace(difference, first=_on(bench, difference.first), second=_on(bench, difference.second))


def arms_on_bench(arms: Iterable[Arm], bench: str) -> Iterator[Arm]:
    """Yield the arms under their names on one of several kinds of bench."""
    return (replace(arm, name=_on(bench, arm.name), bench=bench) for arm in arms)


def _on(bench: str, name: str) -> str:
    return f"{bench}: {name}"
