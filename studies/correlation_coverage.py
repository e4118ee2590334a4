"""Coverage and false alarms of correlations over models, by simulation: independent models, families, paired tests.

    python studies/correlation_coverage.py intervals
    python studies/correlation_coverage.py families
    python studies/correlation_coverage.py contrasts
    python studies/correlation_coverage.py family-contrasts
    python studies/correlation_coverage.py power

Values are normal. `intervals` draws independent models; `families` draws models whose values share a part within their
family, and treats them as independent beside it; `contrasts` draws two benches whose correlations with an outcome
differ by 0, 0.2 and 0.4, `family-contrasts` the same over families; `power` draws two whose difference is the
detectable one. Tables are Markdown, shares in percent.
"""

from collections.abc import Sequence

import numpy as np
import typer

from steelyard.core.numerics import Floats, Integers, generator
from steelyard.evaluation.correlation import COEFFICIENTS, CoefficientName
from steelyard.statistics.correlation import compare_correlations, correlate

SIZES = ([1, 2, 3, 1, 2, 3, 1, 2], [4] * 8, [1, 2, 3, 6] * 3, [1, 2, 3, 4] * 5, [1] * 15 + [5] * 5)
"""Models by family."""
PAIRS = ((0.0, 0.0), (0.5, 0.5), (0.5, 0.9), (0.8, 0.9), (0.9, 0.9))
"""The correlation of the better bench with the outcome, and of the benches with each other."""
DIFFERENCES = (0.0, 0.2, 0.4)
APP = typer.Typer(help=__doc__, add_completion=False)


def true_value(name: str, correlation: float) -> float:
    """Return a coefficient of normal values with this correlation of Pearson's."""
    if name == "pearson":
        return correlation
    return 6 / np.pi * np.arcsin(correlation / 2) if name == "spearman" else 2 / np.pi * np.arcsin(correlation)


def line(cells: Sequence[object]) -> None:
    """Print a row of a table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def percent(values: Sequence[bool]) -> str:
    """Return a share in percent."""
    return f"{100 * np.mean(values):.1f}"


@APP.command()
def intervals(samples: int = 2000, seed: int = 0) -> None:
    """Print the coverage of intervals over independent models."""
    line(("models", "correlation", *COEFFICIENTS))
    for number in (8, 12, 20, 50):
        for true in (0.0, 0.5, 0.8, 0.9, 0.95):
            rng = generator(seed, f"{number} {true}")
            drawn = rng.multivariate_normal([0, 0], [[1, true], [true, 1]], (samples, number))
            line((number, true, *(percent(covered(name, drawn, true)) for name in COEFFICIENTS)))


def covered(name: CoefficientName, drawn: Floats, true: float, families: Integers | None = None) -> list[bool]:
    """Return for each sample whether the interval has the true value."""
    target, compute = true_value(name, true), COEFFICIENTS[name]
    estimates = [correlate(compute, sample[None, :, 0], sample[None, :, 1], families) for sample in drawn]
    return [each.low is not None and each.low <= target <= (each.high or 0.0) for each in estimates]


@APP.command()
def families(samples: int = 1000, seed: int = 0) -> None:
    """Print the coverage with families as the unit, and in brackets that with independent models."""
    line(("families", "models", "shared", "correlation", *COEFFICIENTS))
    for sizes in SIZES:
        groups: Integers = np.repeat(np.arange(len(sizes)), sizes)
        for shared in (0.0, 0.5, 0.9):
            for true in (0.3, 0.7, 0.9):
                rng = generator(seed, f"{sizes} {shared} {true}")
                covariance = [[1, true], [true, 1]]
                common = rng.multivariate_normal([0, 0], covariance, (samples, len(sizes)))[:, groups]
                alone = rng.multivariate_normal([0, 0], covariance, (samples, len(groups)))
                drawn = common * shared**0.5 + alone * (1 - shared) ** 0.5
                cells = [
                    f"{percent(covered(name, drawn, true, groups))} ({percent(covered(name, drawn, true))})"
                    for name in COEFFICIENTS
                ]
                line((len(sizes), len(groups), shared, true, *cells))


@APP.command()
def contrasts(samples: int = 1500, seed: int = 0) -> None:
    """Print the coverage of differences of 0, 0.2 and 0.4 between two benches, over independent models."""
    line(("models", "with the outcome", "of the benches", *COEFFICIENTS))
    for number in (8, 12, 20, 50):
        for true, between in PAIRS:
            line((number, true, between, *contrast_cells((true, between), [1] * number, 0.0, samples, seed)))


@APP.command()
def family_contrasts(samples: int = 600, seed: int = 0) -> None:
    """Print the coverage of the same differences with families as the unit."""
    line(("families", "models", "shared", "with the outcome", "of the benches", *COEFFICIENTS))
    for sizes in SIZES:
        for shared in (0.0, 0.5, 0.9):
            for true, between in ((0.5, 0.5), (0.8, 0.9)):
                cells = contrast_cells((true, between), sizes, shared, samples, seed)
                line((len(sizes), sum(sizes), shared, true, between, *cells))


def contrast_cells(
    correlations: tuple[float, float], sizes: Sequence[int], shared: float, samples: int, seed: int
) -> list[str]:
    """Return by coefficient the coverage of the differences, with a dash where no correlations have one.

    ``correlations``: that of the better bench with the outcome, and that of the benches.
    """
    true, between = correlations
    by_name: dict[str, list[str]] = {name: [] for name in COEFFICIENTS}
    groups: Integers = np.repeat(np.arange(len(sizes)), sizes)
    for difference in DIFFERENCES:
        other = true - difference
        for name, compute in COEFFICIENTS.items():
            if other < true * between - ((1 - true**2) * (1 - between**2)) ** 0.5:
                by_name[name].append("–")
                continue
            rng = generator(seed, f"{sizes} {shared} {true} {between} {difference}")
            drawn = draw_benches(rng, (true, other, between), groups, shared, samples)
            target = true_value(name, true) - true_value(name, other)
            units = groups if len(sizes) < len(groups) else None
            tested = [compare_correlations(compute, *sample.T[:, None], families=units) for sample in drawn]
            ends = [(each.estimate.low, each.estimate.high) for each in tested]
            by_name[name].append(percent([low is not None and low <= target <= (high or 0.0) for low, high in ends]))
    return [" / ".join(cells) for cells in by_name.values()]


def draw_benches(
    rng: np.random.Generator, shares: tuple[float, float, float], groups: Integers, shared: float, samples: int
) -> Floats:
    """Return values on two benches and an outcome, shape (sample, model, 3).

    ``shares``: the correlation of each bench with the outcome, and that of the two. ``shared``: the share of the
    variance that models of one family have in common.
    """
    first, second, between = shares
    covariance = [[1, between, first], [between, 1, second], [first, second, 1]]
    common, alone = (
        rng.multivariate_normal([0, 0, 0], covariance, (samples, size)) for size in (groups.max() + 1, len(groups))
    )
    return common[:, groups] * shared**0.5 + alone * (1 - shared) ** 0.5


@APP.command()
def power(samples: int = 500, seed: int = 0) -> None:
    """Print how often the test finds a difference that is as large as the detectable one, and that difference."""
    line(("models", "with the outcome", "of the benches", *(f"{name}: power at" for name in COEFFICIENTS)))
    for number in (12, 20, 50):
        for true, between in PAIRS:
            cells = [found_at_detectable(name, number, (true, between), samples, seed) for name in COEFFICIENTS]
            line((number, true, between, *cells))


def found_at_detectable(
    name: CoefficientName, number: int, correlations: tuple[float, float], samples: int, seed: int
) -> str:
    """Return the power at the difference that is the median of the printed ones, by bisection over differences."""
    true, between = correlations
    low, high = 0.0, 2.0
    for _ in range(9):
        step = (low + high) / 2
        first, second = true + step / 2, true - step / 2
        if first >= 1 or second < first * between - ((1 - first**2) * (1 - between**2)) ** 0.5:
            # No correlations with such benches differ as much.
            high = step
            continue
        rng = generator(seed, f"{name} {number} {true} {between}")
        drawn = draw_benches(rng, (first, second, between), np.arange(number), 0.0, samples)
        tested = [compare_correlations(COEFFICIENTS[name], *sample.T[:, None]) for sample in drawn]
        difference = true_value(name, first) - true_value(name, second)
        printed = float(np.median([each.detectable or 0.0 for each in tested]))
        if abs(printed - difference) < 0.02 * printed:
            return f"{percent([each.p is not None and each.p < 0.05 for each in tested])} at {difference:.2f}"
        low, high = (step, high) if printed > difference else (low, step)
    return "–"


if __name__ == "__main__":
    APP()
