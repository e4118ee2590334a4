"""Reference implementations of the measures as plain loops over Python numbers."""

from itertools import product

import msgspec
import pytest
from scipy.stats import t as student_t

PAIRS, CORRECT, PROMPTS, EXACT = range(4)


def reference_row(pairs, rule="strict"):
    """Return one prompt's (pairs, correct, counted, exact) from its (better score, worse score) pairs."""
    correct = sum(1 for better, worse in pairs if better > worse)
    if rule == "cheems":
        return (len(pairs), correct, 1, int(not any(better < worse for better, worse in pairs)))
    return (len(pairs), correct, int(len(pairs) > 0), int(len(pairs) > 0 and correct == len(pairs)))


def reference_share(rows, above, below):
    total = sum(row[below] for row in rows)
    return sum(row[above] for row in rows) / total if total else None


def reference_macro(labelled_rows, above, below):
    """Return the mean of a share over categories; ``labelled_rows`` are (category, row)."""
    categories = sorted({category for category, _ in labelled_rows})
    shares = [reference_share([row for own, row in labelled_rows if own == name], above, below) for name in categories]
    known = [share for share in shares if share is not None]
    return sum(known) / len(known) if known else None


def every_resample(rows):
    """Yield the sums of all n ** (n - 1) equally likely resamples: n - 1 of n rows, each of weight n / (n - 1)."""
    size = len(rows)
    for drawn in product(rows, repeat=size - 1):
        yield tuple(round(size / (size - 1) * sum(column), 9) for column in zip(*drawn, strict=True))


def reference_score(share, num_units, freedom=None):
    """Return the score interval of a share of prompts, each right or wrong, with Student's t instead of the normal."""
    a = float(student_t.ppf(0.975, freedom or max(1, num_units - 1))) ** 2 / num_units
    middle, half = (share + a / 2) / (1 + a), (a * share * (1 - share) + a * a / 4) ** 0.5 / (1 + a)
    return pytest.approx(middle - half, abs=1e-3), pytest.approx(middle + half, abs=1e-3)


def as_written(value):
    """Return a value as decoded from a file: records as dictionaries, tuples as lists."""
    return msgspec.json.decode(msgspec.json.encode(value))


def reference_estimate(share, num_units, n, freedom=None):
    """Return a share as an encoded estimate."""
    low, high = reference_score(share, num_units, freedom)
    return {"value": share, "low": low, "high": high, "n": n}
