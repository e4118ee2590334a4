"""Correlations of benches with outcomes over models, and tests of two benches as predictors of an outcome.

`correlate_series` does the arithmetic on values by model; `evaluation/model_values.py` reads them.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from steelyard.core.errors import EvidenceError, listed
from steelyard.core.numerics import Floats, Integers
from steelyard.core.types import Record
from steelyard.statistics.correlation import (
    Coefficient,
    CorrelationDifference,
    compare_correlations,
    correlate,
    kendall,
    pearson,
    spearman,
)
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.significance import holm

FEWEST_MATCHED = 3
"""Models below which no coefficient is computed."""
CoefficientName = Literal["pearson", "spearman", "kendall"]
COEFFICIENTS: dict[CoefficientName, Coefficient] = {"pearson": pearson, "spearman": spearman, "kendall": kendall}
FamilySource = Literal["file", "records", "names"]
"""Where the families of models come from."""


class Series(NamedTuple):
    """The values of one bench or outcome by the key of a model's name.

    ``draws`` has the values of resampled items, shape (resample, model) in the order of ``values``; null for a table.
    """

    name: str
    values: Mapping[str, float]
    draws: Floats | None = None

    def column(self, keys: Sequence[str]) -> Floats:
        """Return the values of these models, then those of resamples: shape (1 + resample, model)."""
        point = np.array([[self.values[key] for key in keys]], dtype=np.float64)
        if self.draws is None:
            return point
        place = {key: index for index, key in enumerate(self.values)}
        return np.concatenate([point, self.draws[:, [place[key] for key in keys]]])


class Families(NamedTuple):
    """The family of each model by the key of its name, and where they come from. Other models are their own family."""

    by_key: Mapping[str, str]
    source: FamilySource | None

    def numbers(self, keys: Sequence[str]) -> Integers | None:
        """Return the number of each model's family; null for independent models."""
        if self.source is None:
            return None
        names = [self.by_key.get(key) for key in keys]
        known = {name: index for index, name in enumerate(dict.fromkeys(filter(None, names)))}
        alone = iter(range(len(known), len(known) + len(keys)))
        return np.array([next(alone) if name is None else known[name] for name in names], dtype=np.int64)


class CorrelatedModel(Record, frozen=True, kw_only=True):
    """A model with its values on benches and outcomes, and its family, null where it is unknown."""

    name: str
    family: str | None
    benches: dict[str, float]
    outcomes: dict[str, float]


class BenchCorrelation(Record, frozen=True, kw_only=True):
    """The correlation of one bench with one outcome over the models that have both.

    ``num_families`` counts families, and models of none; null without families. ``over_items``: the sides, benches or
    outcomes, whose items were resampled.
    """

    bench: str
    outcome: str
    num_models: int
    num_families: int | None
    pearson: Estimate
    spearman: Estimate
    kendall: Estimate
    over_items: tuple[str, ...]


class BenchContrast(Record, frozen=True, kw_only=True):
    """Two benches that predict one outcome: the correlation of ``first`` minus that of ``second``, over shared models.

    ``between`` is the correlation of the two benches. ``p_corrected`` is Holm's over all contrasts. ``detectable`` is
    the difference that a test of this many models shows with a power of 80% or more.
    """

    outcome: str
    first: str
    second: str
    difference: Estimate
    between: float | None
    p: float | None
    p_corrected: float | None
    detectable: float | None


class CorrelateSummary(Record, frozen=True, kw_only=True):
    """The summary of a run of ``correlate``. Correlations are sorted, the highest of each outcome first.

    ``unmatched_benches`` and ``unmatched_outcomes``: the models of one side alone. ``empty``: cells without a value, as
    file:line column. ``constant``: benches and outcomes whose value is the same for all models. ``text_columns``:
    columns of tables that are left out, as they have no number, or the ranks of rows.
    """

    coefficient: CoefficientName
    benches: tuple[str, ...]
    outcomes: tuple[str, ...]
    models: tuple[CorrelatedModel, ...]
    correlations: tuple[BenchCorrelation, ...]
    contrasts: tuple[BenchContrast, ...]
    families_from: FamilySource | None
    without_family: tuple[str, ...]
    unmatched_benches: tuple[str, ...]
    unmatched_outcomes: tuple[str, ...]
    constant: tuple[str, ...]
    empty: tuple[str, ...] = ()
    text_columns: tuple[str, ...] = ()
    correction: str = "Holm, over all pairs of benches and outcomes"


def value_of(correlation: BenchCorrelation, coefficient: CoefficientName) -> Estimate:
    """Return one of the three coefficients."""
    return {
        "pearson": correlation.pearson,
        "spearman": correlation.spearman,
        "kendall": correlation.kendall,
    }[coefficient]


def correlate_series(
    benches: Sequence[Series],
    outcomes: Sequence[Series],
    names: Mapping[str, str],
    families: Families,
    *,
    coefficient: CoefficientName,
) -> CorrelateSummary:
    """Correlate every bench with every outcome. ``names``: the model of each key, as the first input writes it.

    Raises EvidenceError where fewer than three models are on both sides.
    """
    left, right = (list(dict.fromkeys(key for each in side for key in each.values)) for side in (benches, outcomes))
    common = [key for key in left if key in set(right)]
    only_left = tuple(names[key] for key in left if key not in set(right))
    only_right = tuple(names[key] for key in right if key not in set(left))
    if len(common) < FEWEST_MATCHED:
        raise EvidenceError(
            f"benches and outcomes have {len(common)} of {len({*left, *right})} models in common; "
            f"of benches alone: {listed(only_left) or 'none'}; of outcomes alone: {listed(only_right) or 'none'}",
            allowed=f"at least {FEWEST_MATCHED} models with the same name on both sides",
            do="write the names of models alike on both sides",
        )
    computed = [_correlation(bench, outcome, families) for outcome in outcomes for bench in benches]
    constant = [
        series.name
        for series in (*benches, *outcomes)
        if len({series.values[key] for key in common if key in series.values}) == 1
    ]
    order = {each.name: place for place, each in enumerate(outcomes)}
    return CorrelateSummary(
        coefficient=coefficient,
        benches=tuple(each.name for each in benches),
        outcomes=tuple(each.name for each in outcomes),
        models=tuple(
            CorrelatedModel(
                name=names[key],
                family=families.by_key.get(key),
                benches={each.name: each.values[key] for each in benches if key in each.values},
                outcomes={each.name: each.values[key] for each in outcomes if key in each.values},
            )
            for key in common
        ),
        correlations=tuple(
            sorted(
                computed,
                key=lambda each: (order[each.outcome], -_sorting(value_of(each, coefficient))),
            )
        ),
        contrasts=tuple(_contrasts(benches, outcomes, families, coefficient)),
        families_from=families.source,
        without_family=tuple(
            names[key] for key in common if families.source is not None and key not in families.by_key
        ),
        unmatched_benches=only_left,
        unmatched_outcomes=only_right,
        constant=tuple(dict.fromkeys(constant)),
    )


def _sorting(estimate: Estimate) -> float:
    return -2.0 if estimate.value is None else abs(estimate.value)


def _correlation(bench: Series, outcome: Series, families: Families) -> BenchCorrelation:
    keys = [key for key in bench.values if key in outcome.values]
    groups = families.numbers(keys)
    if len(keys) < FEWEST_MATCHED:
        few = Estimate(None, None, None, len(keys), why=f"fewer than {FEWEST_MATCHED} models")
        estimates = dict.fromkeys(COEFFICIENTS, few)
    else:
        sides = bench.column(keys), outcome.column(keys)
        estimates = {name: correlate(each, *sides, groups) for name, each in COEFFICIENTS.items()}
    drawn = {"benches": bench.draws, "outcomes": outcome.draws}
    return BenchCorrelation(
        bench=bench.name,
        outcome=outcome.name,
        num_models=len(keys),
        num_families=None if groups is None else len(np.unique(groups)),
        over_items=tuple(side for side, draws in drawn.items() if draws is not None),
        **estimates,
    )


def _contrasts(
    benches: Sequence[Series], outcomes: Sequence[Series], families: Families, coefficient: CoefficientName
) -> list[BenchContrast]:
    """Return the contrasts of all pairs of benches for each outcome, corrected together."""
    compute = COEFFICIENTS[coefficient]
    tested: list[tuple[str, str, str, CorrelationDifference, float | None]] = []
    for outcome in outcomes:
        for first, second in combinations(benches, 2):
            keys = [key for key in first.values if key in second.values and key in outcome.values]
            if len(keys) < FEWEST_MATCHED:
                few = Estimate(None, None, None, len(keys), why=f"fewer than {FEWEST_MATCHED} models")
                tested.append((outcome.name, first.name, second.name, CorrelationDifference(few), None))
                continue
            sides = first.column(keys), second.column(keys)
            difference = compare_correlations(compute, *sides, outcome.column(keys), families.numbers(keys))
            between = float(compute(sides[0][0], sides[1][0]))
            shown = None if np.isnan(between) else between
            tested.append((outcome.name, first.name, second.name, difference, shown))
    corrected = iter(holm([each[3].p for each in tested if each[3].p is not None]))
    return [
        BenchContrast(
            outcome=outcome,
            first=first,
            second=second,
            difference=difference.estimate,
            between=between,
            p=difference.p,
            p_corrected=None if difference.p is None else next(corrected),
            detectable=difference.detectable,
        )
        for outcome, first, second, difference, between in tested
    ]
