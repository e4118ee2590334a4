"""Coverage and false alarms of correlations over models, by simulation: independent models, families, paired tests.

    python studies/correlation_coverage.py intervals
    python studies/correlation_coverage.py families
    python studies/correlation_coverage.py contrasts

Values are normal. `intervals` draws independent models; `families` draws models whose values share a part within their
family, and treats them as independent beside it; `contrasts` draws two benches with equal correlations with an outcome.
Tables are Markdown, shares in percent.
"""

from collections.abc import Sequence

import numpy as np
import typer

from steelyard.core.numerics import Floats, Integers, generator
from steelyard.evaluation.correlation import COEFFICIENTS, CoefficientName
from steelyard.statistics.correlation import compare_correlations, correlate

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
    for sizes in ([1, 2, 3, 1, 2, 3, 1, 2], [4] * 8, [1, 2, 3, 6] * 3, [1, 2, 3, 4] * 5, [1] * 15 + [5] * 5):
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
    """Print false alarms at 5% of two benches that predict equally well, and the coverage of a difference of 0.2."""
    line(
        ("models", "with the outcome", "of the benches", *COEFFICIENTS, *(f"coverage {name}" for name in COEFFICIENTS))
    )
    for number in (8, 12, 20, 50):
        for true, between in ((0.0, 0.0), (0.5, 0.5), (0.5, 0.9), (0.8, 0.9), (0.9, 0.9)):
            rng = generator(seed, f"{number} {true} {between}")
            cells: list[str] = []
            for other in (true, true - 0.2):
                if other < true * between - ((1 - true**2) * (1 - between**2)) ** 0.5:
                    cells += ["–"] * len(COEFFICIENTS)
                    continue
                shares = [[1, between, true], [between, 1, other], [true, other, 1]]
                drawn = rng.multivariate_normal([0, 0, 0], shares, (samples, number))
                for name in COEFFICIENTS:
                    difference = true_value(name, true) - true_value(name, other)
                    tested = [compare_correlations(COEFFICIENTS[name], *sample.T[:, None]) for sample in drawn]
                    alarms = [each.p is not None and each.p < 0.05 for each in tested]
                    ends = [(each.estimate.low or 0.0, each.estimate.high or 0.0) for each in tested]
                    inside = [low <= difference <= high for low, high in ends]
                    cells.append(percent(alarms if other == true else inside))
            line((number, true, between, *cells))


if __name__ == "__main__":
    APP()
