"""Correlations of the papers' printed tables: RewardBench and CheemsBench against scipy, English and the mean."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from steelyard.io.rows import read_rows
from steelyard.stages.correlate import Config, correlate
from steelyard.stages.languages import languages

PUBLISHED = Path(__file__).parents[2].parent / "shared" / "published"
PEERS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
pytestmark = [
    pytest.mark.field,
    pytest.mark.skipif(not PUBLISHED.exists(), reason="the published tables are not beside the project"),
]


def test_rewardbench_and_cheemsbench_correlate_as_by_scipy(tmp_path):
    table = PUBLISHED / "cheemsbench_full.csv"
    run = correlate([table], outcomes=[table], out=tmp_path / "out", config=Config(columns=("rewardbench",)))
    rows = [row.value for row in read_rows(table) if row.value["rewardbench"]]
    assert len(run.summary.correlations) == 5
    for correlation in run.summary.correlations:
        sides = [[float(row[name]) for row in rows] for name in ("rewardbench", correlation.outcome)]
        assert correlation.num_models == 33
        for name, peer in PEERS.items():
            assert getattr(correlation, name).value == pytest.approx(peer(*sides).statistic, abs=1e-12)
    assert run.summary.text_columns == (f"{table}: type",)
    assert len(run.summary.empty) == 3


def test_two_columns_of_mrewardbench_correlate_as_in_the_table_of_languages(tmp_path):
    """The table has no English: its Chinese column and the mean of the others stand for it."""
    rows = [row.value for row in read_rows(PUBLISHED / "mrewardbench_languages.csv")]
    others = [name for name in rows[0] if name not in ("model", "type", "avg", "var", "zh")]
    printed = [["model", "en", *others], *([row["model"], row["zh"], *(row[name] for name in others)] for row in rows)]
    means = [float(np.mean([float(row[name]) for name in others])) for row in rows]
    both = [
        ["model", "en", "mean"],
        *([row["model"], row["zh"], str(mean)] for row, mean in zip(rows, means, strict=True)),
    ]
    for name, lines in (("printed", printed), ("both", both)):
        (tmp_path / f"{name}.csv").write_text("\n".join(map(",".join, lines)), "utf-8")
    table = languages(out=tmp_path / "languages", table=tmp_path / "printed.csv").summary
    path = tmp_path / "both.csv"
    run = correlate([path], outcomes=[path], out=tmp_path / "out", config=Config(columns=("en",)))
    (correlation,) = run.summary.correlations
    assert correlation.pearson.value == pytest.approx(table.pearson.value, abs=1e-12)
    ends = table.pearson.low, table.pearson.high
    assert (correlation.pearson.low, correlation.pearson.high) == pytest.approx(ends, abs=1e-12)
