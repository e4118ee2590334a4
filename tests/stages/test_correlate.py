"""Benches and outcomes over models: values against scipy, the unit of families, runs beside tables, and bad input."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from each_value import each
from evaluated_languages import evaluated_languages
from steelyard.core.errors import ConfigError, EvidenceError, FileError, RecordError
from steelyard.report.sources import FinishedRun
from steelyard.stages.correlate import Config, correlate
from steelyard.stages.leaderboard import leaderboard
from steelyard.stages.report import report
from steelyard.views.correlate import VIEW
from steelyard.views.view import StageRun

PEERS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
MODELS = [f"m{number}" for number in range(12)]
FEW = Config(num_resamples=40)


def write_table(path, columns, models=MODELS):
    """Write a table: a column of models, and these columns."""
    lines = [
        ",".join(["model", *columns]),
        *(",".join(map(str, row)) for row in zip(models, *columns.values(), strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def values():
    drawn = np.random.default_rng(3).normal(50, 10, (3, 12)).round(1)
    return dict(zip(("bench", "other", "gold"), drawn.tolist(), strict=True))


def test_coefficients_of_a_table_are_those_of_scipy(tmp_path, values):
    table = write_table(tmp_path / "table.csv", values)
    summary = correlate(
        [table], outcomes=[table], out=tmp_path / "out", config=Config(columns=("bench", "other"))
    ).summary
    assert summary.outcomes == ("gold",)
    for correlation in summary.correlations:
        for name, peer in PEERS.items():
            expected = peer(values[correlation.bench], values["gold"]).statistic
            assert getattr(correlation, name).value == pytest.approx(expected, abs=1e-12)
    (contrast,) = summary.contrasts
    by_bench = {each.bench: each.spearman.value for each in summary.correlations}
    assert contrast.difference.value == pytest.approx(by_bench["bench"] - by_bench["other"])
    assert contrast.detectable > 0


def sentences(run):
    stated = VIEW.sentences(StageRun("run", FinishedRun("run", Path("out"), run), run.summary))
    return {each.key: each.values["names"] for each in stated if "names" in each.values}


def test_a_column_of_ranks_is_named_as_one_where_lower_is_better(tmp_path, values):
    table = write_table(tmp_path / "table.csv", {"gold": range(12), "rank": range(12, 0, -1), "other": values["other"]})
    run = correlate([table], outcomes=[table], out=tmp_path / "out", config=Config(columns=("rank", "other")))
    assert sentences(run) == {"say_negative_correlations": "rank · gold"}


def test_models_that_are_spelled_in_two_ways_are_named(tmp_path, values):
    left = write_table(tmp_path / "left.csv", {"bench": values["bench"]}, [*MODELS[:9], "Qwen2.5-72B", "a", "b-1"])
    right = write_table(tmp_path / "right.csv", {"gold": values["gold"]}, [*MODELS[:9], "b-2", "Qwen/qwen2.5_72b", "c"])
    found = sentences(correlate([left], outcomes=[right], out=tmp_path / "out"))
    assert found["say_alike_models"] == "Qwen2.5-72B = Qwen/qwen2.5_72b"


def test_a_benchmark_that_is_the_outcome_is_named(tmp_path, values):
    left = write_table(tmp_path / "left.csv", {"old": values["gold"], "bench": values["bench"]})
    right = write_table(tmp_path / "right.csv", {"gold": values["gold"]})
    assert sentences(correlate([left], outcomes=[right], out=tmp_path / "out")) == {"say_equal_series": "old · gold"}


def test_models_of_one_side_and_missing_values_are_named_and_counted(tmp_path, values):
    left = write_table(tmp_path / "left.csv", {"bench": ["", *values["bench"][1:]]})
    right = write_table(tmp_path / "right.csv", {"gold": [*values["gold"][:11], 7]}, [*MODELS[:10], " M10 ", "new"])
    run = correlate([left], outcomes=[right], out=tmp_path / "out")
    assert run.summary.unmatched_benches == ("m11",)
    # m0 has a row among the benches, and no value.
    assert run.summary.unmatched_outcomes == ("m0", "new")
    assert run.summary.empty == (f"{left}:2 bench",)
    assert run.summary.correlations[0].num_models == 10
    assert (run.counts.num_in, run.counts.num_used) == (13, 10)
    assert run.counts.dropped == {"in benches alone": 1, "in outcomes alone": 2}


@each("number", [3, 7])
def test_few_models_have_a_value_without_interval_or_test(tmp_path, values, number):
    few = {name: column[:number] for name, column in values.items()}
    table = write_table(tmp_path / "table.csv", few, MODELS[:number])
    summary = correlate(
        [table], outcomes=[table], out=tmp_path / f"out{number}", config=Config(outcome_columns=("gold",))
    ).summary
    assert {each.spearman.why for each in summary.correlations} == {"fewer than 8 models"}
    assert [each.p_corrected for each in summary.contrasts] == [None]


def test_a_constant_column_is_named_and_has_no_value(tmp_path, values):
    columns = {"flat": [0.1 + 0.2] * 12, "bench": values["bench"], "gold": values["gold"]}
    table = write_table(tmp_path / "table.csv", columns)
    config = Config(columns=("flat", "bench"), outcome_columns=("gold",))
    summary = correlate([table], outcomes=[table], out=tmp_path / "out", config=config).summary
    assert summary.constant == ("flat",)
    assert (summary.correlations[1].kendall.value, summary.correlations[1].pearson.value) == (None, None)


@each("side", ["bench", "outcome"])
def test_constant_columns_alone_are_refused_with_file_and_column(tmp_path, values, side):
    flat = write_table(tmp_path / "flat.csv", {"same": [3] * 12})
    varied = write_table(tmp_path / "varied.csv", {"gold": values["gold"]})
    left, right = (flat, varied) if side == "bench" else (varied, flat)
    with pytest.raises(EvidenceError, match=r"no correlation is defined: all models .*flat\.csv: same"):
        correlate([left], outcomes=[right], out=tmp_path / side)
    assert not (tmp_path / side / "run.json").exists()


def test_families_are_the_unit_from_a_file_a_column_or_names(tmp_path, values):
    families = [f"f{number // 2}" for number in range(12)]
    table = write_table(tmp_path / "table.csv", values)
    config = Config(columns=("bench",), outcome_columns=("gold",))
    listed = tmp_path / "families.csv"
    listed.write_text(
        "family,model\n" + "".join(f"{f},{m}\n" for f, m in zip(families[:11], MODELS, strict=False)), "utf-8"
    )
    by_file = correlate([table], outcomes=[table], out=tmp_path / "file", families=listed, config=config).summary
    assert (by_file.families_from, by_file.correlations[0].num_families) == ("file", 7)
    assert by_file.without_family == ("m11",)
    assert by_file.correlations[0].spearman.why == "fewer than 8 families of models"
    column = write_table(tmp_path / "column.csv", {"family": families, **values})
    by_column = correlate([column], outcomes=[column], out=tmp_path / "column", config=config).summary
    assert (by_column.families_from, by_column.correlations[0].num_families) == ("records", 6)
    named = write_table(
        tmp_path / "named.csv", values, [f"Qwen2.5-{n}B" for n in range(6)] + [f"x{n}-llama3" for n in range(6)]
    )
    plain = correlate([named], outcomes=[named], out=tmp_path / "plain", config=config).summary
    assert plain.families_from is None
    by_name = Config(columns=("bench",), outcome_columns=("gold",), families_by_name=True)
    summary = correlate([named], outcomes=[named], out=tmp_path / "named", config=by_name).summary
    assert [model.family for model in summary.models] == ["qwen"] * 6 + ["llama"] * 6


def test_a_chinese_table_with_a_byte_order_mark_and_percent_signs_is_read(tmp_path, values):
    gold = [f"{value}%" for value in values["gold"]]
    lines = ["模型,基准,结果", *(f"{m},{b},{g}" for m, b, g in zip(MODELS, values["bench"], gold, strict=True))]
    table = tmp_path / "表.csv"
    table.write_text("\ufeff" + "\n".join(lines), "utf-8")
    summary = correlate([table], outcomes=[table], out=tmp_path / "out", config=Config(columns=("基准",))).summary
    assert summary.outcomes == ("结果",)
    expected = stats.kendalltau(values["bench"], values["gold"]).statistic
    assert summary.correlations[0].kendall.value == pytest.approx(expected, abs=1e-12)
    assert summary.models[0].outcomes["结果"] == pytest.approx(values["gold"][0] / 100)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Evaluations of four models whose shares of right answers differ."""
    folder = tmp_path_factory.mktemp("runs")
    outcomes = {
        name: {"en": "r" * n + "w" * (8 - n), "he": "r" * n + "w" * (8 - n)}
        for n, name in ((1, "a"), (3, "b"), (5, "c"), (7, "d"))
    }
    return [evaluated_languages(folder, name, each) for name, each in outcomes.items()]


def test_evaluations_of_one_bench_are_a_series_with_resampled_prompts(tmp_path, runs):
    gold = write_table(tmp_path / "gold.csv", {"gold": [1, 2, 4, 3]}, list("abcd"))
    run = correlate(runs, outcomes=[gold], out=tmp_path / "out", config=FEW)
    (correlation,) = run.summary.correlations
    assert correlation.over_items == ("benches",)
    assert correlation.spearman.value == pytest.approx(0.8)
    assert [model.benches[correlation.bench] for model in run.summary.models] == [0.125, 0.375, 0.625, 0.875]
    assert correlate(runs, outcomes=[gold], out=tmp_path / "out", config=FEW) == run


def test_the_backbone_that_records_name_is_the_family(tmp_path, runs):
    changed = []
    for number, run in enumerate(runs):
        folder = tmp_path / run.name
        shutil.copytree(run, folder)
        record = json.loads((folder / "run.json").read_text("utf-8"))
        record["summary"]["protocol"] = {"backbone": f"{number // 2}" * 64}
        (folder / "run.json").write_text(json.dumps(record), "utf-8")
        changed.append(folder)
    gold = write_table(tmp_path / "gold.csv", {"gold": [1, 2, 4, 3]}, list("abcd"))
    summary = correlate(changed, outcomes=[gold], out=tmp_path / "out", config=FEW).summary
    assert (summary.families_from, summary.correlations[0].num_families) == ("records", 2)
    assert [model.family for model in summary.models] == ["0" * 12, "0" * 12, "1" * 12, "1" * 12]


def test_an_evaluation_that_is_named_twice_is_refused(tmp_path, runs):
    again = tmp_path / "copy" / runs[0].name
    shutil.copytree(runs[0], again)
    with pytest.raises(EvidenceError, match="is also that of"):
        correlate([*runs, again], outcomes=runs, out=tmp_path / "out")
    assert not (tmp_path / "out" / "run.json").exists()


TABLES_OF_OTHERS = {
    "columns of bounds": "name,kind,acc,acc.low,acc.high\na,x,0.5,0.4,0.6\nb,y,0.25,0.2,0.3\nc,z,0.75,0.7,0.8\n",
    "cells with an interval": "Scorer,acc\na,50.0% [40.1–59.9%]\nb,25% [20–30%]\nc,75.0 % [70–80%]\n",
    "semicolons and spreads": "\ufeffModel;acc\na;50 ± 3\nb;25.0 (1.2)\nc;+75 (s.e. 2)\n",
    "a Chinese header": "评分器,acc,家族\na,−50,x\nb,-75,y\nc,-25,z\n",
    "names beside models": "model,name,acc\na,x,50\nb,y,25\nc,z,75\n",
}


@each("what", TABLES_OF_OTHERS)
def test_tables_of_others_are_read(tmp_path, what):
    (tmp_path / "t.csv").write_text(TABLES_OF_OTHERS[what], "utf-8")
    gold = write_table(tmp_path / "gold.csv", {"gold": [2, 1, 3]}, list("abc"))
    summary = correlate([tmp_path / "t.csv"], outcomes=[gold], out=tmp_path / f"out {what}", config=FEW).summary
    (correlation,) = summary.correlations
    assert (correlation.bench, correlation.num_models) == ("acc", 3)
    assert correlation.pearson.value == pytest.approx(1.0, abs=1e-9)


def test_the_table_that_a_leaderboard_writes_is_read(tmp_path, runs):
    leaderboard(runs, out=tmp_path / "board")
    gold = write_table(tmp_path / "gold.csv", {"gold": [1, 2, 4, 3]}, list("abcd"))
    csv, board, paper = tmp_path / "board" / "leaderboard.csv", tmp_path / "board", tmp_path / "paper.csv"
    report([board], paper)
    table = correlate([csv], outcomes=[gold], out=tmp_path / "t", config=Config(columns=("accuracy",))).summary
    folder = correlate([board], outcomes=[gold], out=tmp_path / "f").summary
    printed = correlate([paper], outcomes=[gold], out=tmp_path / "p", config=Config(columns=("value",))).summary
    assert table.correlations[0].pearson == folder.correlations[0].pearson
    assert table.correlations[0].num_models == printed.correlations[0].num_models == 4
    # The table of a paper is rounded to a tenth of a percent.
    assert printed.correlations[0].pearson.value == pytest.approx(table.correlations[0].pearson.value, abs=1e-3)


BROKEN = {
    "model,b\na,1\nb,x\nc,3\n": (RecordError, r"t\.csv:3: b is 'x'"),
    "model,b\na,1\nb,inf\nc,3\n": (RecordError, r"t\.csv:3: b is 'inf'"),
    "model,b\na,1\nA ,2\nc,3\n": (RecordError, r"t\.csv:3: 'A' is there twice, first in .*t\.csv:2"),
    "model,b\na,1\n,2\nc,3\n": (RecordError, r"t\.csv:3: a row without the name"),
    "model,b\na,0.71\nb,0.8\nc,65.3\n": (RecordError, r"t\.csv:4: b is 65\.3, and others are shares"),
    "model,b\na,71\nb,0.8\nc,65.3\n": (RecordError, r"t\.csv:3: b is 0\.8, and others are percentages"),
    "model,b\na,71%\nb,80\nc,65%\n": (RecordError, r"t\.csv:3: b is '80' without the sign %"),
    "model,b,b\na,1,1\n": (FileError, "the header has 'b' twice"),
    "model,b,B\na,1,1\n": (RecordError, "the column 'b' is there twice"),
    "label,b\na,1\n": (RecordError, r"t\.csv:1: no column has the names of the models"),
    "name,scorer,b\na,a,1\n": (RecordError, r"t\.csv:1: 2 columns have the names of the models"),
    'model,b\na,"0,7"\nb,1.5\nc,2\n': (RecordError, r"t\.csv:2: b is '0,7'\n.*the same decimal mark"),
    "model,b\na,1 [\nb,1\nc,2\n": (RecordError, r"t\.csv:2: b is '1 \['"),
    "model,模型,b\na,a,1\n": (RecordError, r"t\.csv:1: 2 columns have the names of the models"),
    "model,b\na,1,2\n": (RecordError, "a row of 3 cells under a header of 2"),
    "model,b\n": (FileError, "a header and no rows"),
    "model,b\nx,1\ny,2\nz,3\n": (EvidenceError, "0 of 6 models in common; of benches alone: x, y, z"),
    "model,b\na,\nb,-\nc,n/a\n": (EvidenceError, "no column of numbers"),
    "": (FileError, "the file is empty"),
    'model,b\na,"1,234"\nb,2\nc,3\n': (RecordError, r"t\.csv:2: b is '1,234'\n.*and nothing between thousands"),
    "model,b\na,1\nb,2\nc,3\nTotal,6\n": (RecordError, r"t\.csv:5: 'Total' sums up the other rows"),
    "rank,model\n1,a\n2,b\n3,c\n": (EvidenceError, "no column of numbers"),
}


def test_ranks_of_rows_are_no_bench_unless_they_are_asked_for(tmp_path):
    (tmp_path / "t.csv").write_text("Rank, bench ,model\n1,**3**,a\n2,2,b\n3,1,c\n4,n/a,d\n", "utf-8")
    gold = write_table(tmp_path / "gold.csv", {"gold": [3, 2, 1, 0]}, list("abcd"))
    run = correlate([tmp_path / "t.csv"], outcomes=[gold], out=tmp_path / "out").summary
    assert run.benches == ("bench",)
    assert run.text_columns == (f"{tmp_path / 't.csv'}: Rank",)
    # 3, 2, 1 beside 3, 2, 1.
    assert run.correlations[0].pearson.value == pytest.approx(1.0)
    wanted = Config(columns=("Rank",))
    ranks = correlate([tmp_path / "t.csv"], outcomes=[gold], out=tmp_path / "ranks", config=wanted).summary
    assert ranks.benches == ("Rank",)


@each("text", BROKEN)
def test_broken_tables_are_refused_with_file_and_line(tmp_path, text):
    (tmp_path / "t.csv").write_text(text, "utf-8")
    gold = write_table(tmp_path / "gold.csv", {"gold": [1, 2, 3]}, list("abc"))
    error, message = BROKEN[text]
    with pytest.raises(error, match=message):
        correlate([tmp_path / "t.csv"], outcomes=[gold], out=tmp_path / "out")
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").iterdir())


def test_columns_that_are_unknown_or_on_both_sides_are_refused(tmp_path, values):
    table = write_table(tmp_path / "table.csv", values)
    for config, message in (
        (Config(columns=("bensh",)), "no table has the column 'bensh'"),
        (Config(columns=("bench",), outcome_columns=("bench",)), "is a bench and an outcome"),
        (Config(), "the same table"),
    ):
        with pytest.raises(ConfigError, match=message):
            correlate([table], outcomes=[table], out=tmp_path / "out", config=config)


def test_broken_families_are_refused_with_the_line(tmp_path, values):
    table = write_table(tmp_path / "table.csv", values)
    listed, config = tmp_path / "families.csv", Config(columns=("bench",))
    for text, error, message in (
        ("model,family\nm0,a\nM0,b\n", RecordError, r"families\.csv:3: 'M0' is there twice"),
        ("model,family\nm0,\n", RecordError, r"families\.csv:2: family is empty"),
        ("model,kin\nm0,a\n", RecordError, r"families\.csv:1: no column has the families"),
        ("model,family\nzz,a\n", EvidenceError, "no model of this file"),
    ):
        listed.write_text(text, "utf-8")
        with pytest.raises(error, match=message):
            correlate([table], outcomes=[table], out=tmp_path / "out", families=listed, config=config)
