"""The measures once more, as plain loops over Python numbers: slow, obvious, and the reference of the tests."""

from itertools import product

PAIRS, CORRECT, PROMPTS, EXACT = range(4)


def plain_row(pairs, rule="strict"):
    """One prompt's (pairs, correct, counted, exact) from its (better score, worse score) pairs."""
    correct = sum(1 for better, worse in pairs if better > worse)
    if rule == "cheems":
        return (len(pairs), correct, 1, int(not any(better < worse for better, worse in pairs)))
    return (len(pairs), correct, int(len(pairs) > 0), int(len(pairs) > 0 and correct == len(pairs)))


def plain_share(rows, above, below):
    total = sum(row[below] for row in rows)
    return sum(row[above] for row in rows) / total if total else None


def plain_macro(labelled_rows, above, below):
    """The mean over categories of a share; ``labelled_rows`` are (category, row)."""
    categories = sorted({category for category, _ in labelled_rows})
    shares = [plain_share([row for own, row in labelled_rows if own == name], above, below) for name in categories]
    known = [share for share in shares if share is not None]
    return sum(known) / len(known) if known else None


def every_resample(rows):
    """The sums of all n**n equally likely resamples of n rows, one by one."""
    for drawn in product(rows, repeat=len(rows)):
        yield tuple(sum(column) for column in zip(*drawn, strict=True))
