"""Cases and scores as the statistics of a bench, without the stage: what the tests of single benches share."""

import numpy as np

from steelyard.core.plugins import build
from steelyard.methods.measures.resampling import Items
from steelyard.methods.measures.strata import Cell, Label, layout_of


def bench_summary(kind, cases, lines, num_resamples=20, **settings):
    """What the bench says of the scores; its own columns follow zeros, as no accuracy is asked of it."""
    bench = build("benches", kind, settings)
    prepared = [bench.prepared(one, "f.jsonl") for one in cases]
    labels = [
        Label(bench.unit_of(one), Cell("uncategorised", one.prompt.subset, one.prompt.language)) for one in prepared
    ]
    own = bench.columns(prepared, lines, unscored_is_right=False)
    base = np.zeros((len(cases), 4), dtype=np.int64)
    return bench.summarise(Items(layout_of(labels), np.concatenate([base, own], axis=1), num_resamples), seed=0)
