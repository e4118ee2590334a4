"""Read and write rows of a format in one call; shared by the tests of single formats."""

from collections import Counter

from steelyard.core.errors import Place
from steelyard.core.plugins import build
from steelyard.core.protocols import Row


def read(kind, *rows):
    warnings = Counter()
    placed = [Row(Place("f.jsonl", number), row) for number, row in enumerate(rows, 1)]
    return list(build("formats", kind).read(placed, warnings)), +warnings


def write(kind, *cases):
    dropped = Counter()
    return list(build("formats", kind).write(cases, dropped)), +dropped
