"""The summary of a bench from cases and scores, without the stage; shared by the tests of single benches."""

import numpy as np

from steelyard.core.plugins import build
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of, units_of


def bench_summary(kind, cases, lines, num_resamples=20, **settings):
    """Return the bench's part of the summary."""
    bench = build("benches", kind, settings)
    prepared = [bench.normalize(one, "f.jsonl") for one in cases]
    units = units_of([bench.resample_ids(one) for one in prepared])
    labels = [
        Label(unit, Cell("uncategorised", one.prompt.subset, one.prompt.language))
        for unit, one in zip(units, prepared, strict=True)
    ]
    own = bench.columns(prepared, lines, unscored_is_right=False)
    base = np.tile([0, 0, 1, 0], (len(cases), 1))
    items = Items(layout_of(labels), np.concatenate([base, own], axis=1), num_resamples)
    return bench.summarise(resample(items, seed=0))
