"""A leaderboard over several benches: values and ranks by hand, gaps by name, and what is refused."""

import json

import pytest

from evaluated_benches import FEW, evaluated_on_single, evaluated_on_two
from steelyard.core.errors import ConfigError, EvidenceError, RecordError
from steelyard.io.run_folder import read_run
from steelyard.report.page import page_strings
from steelyard.stages.leaderboard import Config, leaderboard
from steelyard.views.bench_table import VIEW
from steelyard.views.text import csv_table, result_sentences, result_tables
from steelyard.views.view import NO_SOURCES, StageRun

CONFIG = Config(num_resamples=50)
X = {"open": "rrrrrrrrww", "human": "rrrrrppppp"}
Y = {"open": "wwwwwwwwww", "human": "rwwwwwwwww"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """模型 on both benches, y on the bench of two subsets alone, z on the single one alone."""
    folder = tmp_path_factory.mktemp("benches")
    return {
        "x single": evaluated_on_single(folder, "模型", "rrrrrrrrrw"),
        "z single": evaluated_on_single(folder, "z", "wwwwwwwwww"),
        "x two": evaluated_on_two(folder, "模型", X),
        "y two": evaluated_on_two(folder, "y", Y),
    }


@pytest.fixture(scope="module")
def board(runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("board") / "out"
    return out, leaderboard(list(runs.values()), out=out, config=CONFIG)


def values_of(row):
    return [None if value is None else value.value for value in row.values]


def test_a_row_a_model_and_a_group_of_columns_a_bench_by_hand(board):
    _, run = board
    assert run.stage == "bench_table"
    assert [column.key for column in run.summary.columns] == [
        "single_accuracy", "two_open_accuracy", "two_open_exact_match", "two_human_accuracy", "two_human_exact_match",
        "two_overall",
    ]  # fmt: skip
    x, z, y = run.summary.rows
    # Open: 8 of 10 prompts right. Human: 15 + 10 of 30 pairs, 5 of 10 prompts.
    assert values_of(x) == pytest.approx([0.9, 0.8, 0.8, 25 / 30, 0.5, (0.8 + 0.8 + 25 / 30 + 0.5) / 4])
    assert values_of(y) == pytest.approx([None, 0.0, 0.0, 0.1, 0.1, 0.05])
    assert values_of(z) == [0.0, None, None, None, None, None]
    assert (x.name, y.name, z.name) == ("模型", "y", "z")
    for value in x.values:
        assert value.low <= value.value <= value.high


def test_ranks_are_those_within_a_bench(board):
    _, run = board
    x, z, y = run.summary.rows
    assert x.ranks == {"single": (1, 1), "two": (1, 1)}
    assert (y.ranks, z.ranks) == ({"two": (2, 2)}, {"single": (2, 2)})
    assert set(run.summary.boards) == {"single", "two"}
    assert (run.counts.num_in, run.counts.num_used, run.counts.noted) == (4, 4, {"prompts": 30})


def test_a_model_that_lacks_a_bench_is_named(board):
    out, run = board
    assert run.summary.lacking == {"z": ("two",), "y": ("single",)}
    for language in ("en", "zh"):
        sentences = list(result_sentences(run, out, language))
        assert any("z (two)" in sentence and "y (single)" in sentence for sentence in sentences)
        assert not any("@@" in sentence or "{" in sentence for sentence in sentences)


def test_the_table_for_papers_marks_the_best_and_shows_gaps(board):
    out, run = board
    for language in ("en", "zh"):
        table = next(iter(result_tables(run, out, language)))
        assert table.rows[0][:2] == ("模型", "90.0%*")
        assert table.rows[2][:3] == ("y", "\N{EN DASH}", "\N{EN DASH}")
        assert len(table.heads) == 1 + 6 + 2
        assert "模型,90.0%*,1,80.0%*,80.0%*,83.3%*,50.0%*,73.3%*,1" in csv_table(table)


def test_every_word_of_the_view_is_there_in_both_languages(board):
    import re

    _, run = board
    stage_run = StageRun("board", None, run.summary)
    text = json.dumps([list(VIEW.panels(stage_run, NO_SOURCES)), list(VIEW.sentences(stage_run))], default=str)
    strings = page_strings().table
    for key in set(re.findall(r'"((?:say|note)_[a-z_]+)"', text)) | {VIEW.anchor}:
        assert set(strings[key]) == {"en", "zh"}


def test_python_rows_have_plain_numbers(board):
    _, run = board
    rows = list(VIEW.records(run.summary))
    assert rows[0]["two_overall"] == pytest.approx(0.7333, abs=1e-4)
    assert rows[0]["two_best_rank"] == 1
    assert rows[1]["two_overall"] is None
    assert "two_best_rank" not in rows[1]


def test_the_order_of_the_runs_changes_the_columns_and_no_value(board, runs, tmp_path):
    _, run = board
    other = leaderboard([runs[name] for name in ("y two", "x two", "z single", "x single")], out=tmp_path / "o",
                        config=CONFIG).summary  # fmt: skip
    assert other.benches == ("two", "single")
    by_name = {row.name: dict(zip(other.columns, row.values, strict=True)) for row in other.rows}
    for row in run.summary.rows:
        assert by_name[row.name] == dict(zip(run.summary.columns, row.values, strict=True))


def test_two_evaluations_of_one_model_on_one_bench_are_refused(runs, tmp_path):
    again = evaluated_on_two(tmp_path, "模型", Y)
    with pytest.raises(EvidenceError, match="two evaluations of 模型 on two") as refused:
        leaderboard([*runs.values(), again], out=tmp_path / "out", config=CONFIG)
    assert str(again) in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_different_models_on_different_benches_make_no_table(runs, tmp_path):
    with pytest.raises(EvidenceError, match="no model has two of them: single, two"):
        leaderboard([runs["z single"], runs["y two"]], out=tmp_path / "out", config=CONFIG)
    assert not (tmp_path / "out").exists()


def test_one_bench_under_two_protocols_is_refused(runs, tmp_path):
    import msgspec

    other = evaluated_on_two(tmp_path, "w", Y, msgspec.structs.replace(FEW, pairs="tiers"))
    with pytest.raises(
        EvidenceError, match=r'the evaluations differ in their protocols: pairs: null in .*, "tiers" in w'
    ):
        leaderboard([*runs.values(), other], out=tmp_path / "out", config=CONFIG)
    assert not (tmp_path / "out").exists()


def test_a_model_is_the_same_on_all_benches(runs, tmp_path):
    changed = []
    for number, name in enumerate(("x single", "x two")):
        record = json.loads((runs[name] / "run.json").read_text("utf-8"))
        record["inputs"]["model.path"] = {"path": "weights", "sha256": str(number) * 64}
        folder = tmp_path / name
        folder.mkdir()
        for file in runs[name].iterdir():
            if file.is_file():
                (folder / file.name).write_bytes(file.read_bytes())
        (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
        assert read_run(folder).stage == "evaluate"
        changed.append(folder)
    with pytest.raises(EvidenceError, match="the weights of 模型 on two are not those on single"):
        leaderboard(changed, out=tmp_path / "out", config=CONFIG)


def test_a_bench_that_nobody_has_a_headline_of_is_refused_with_the_reason(runs, tmp_path):
    single = evaluated_on_single(tmp_path, "u", "rrrrrrrrrr")
    record = json.loads((single / "run.json").read_text("utf-8"))
    record["summary"]["accuracy"] = {"value": None, "low": None, "high": None, "n": 10}
    (single / "run.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(EvidenceError, match=r"on each bench, got 0 of 1 \(u: most pairs have no score"):
        leaderboard([single, runs["x two"], evaluated_on_two(tmp_path, "u", Y)], out=tmp_path / "out", config=CONFIG)


def test_runs_and_a_table_together_and_neither_are_refused(runs, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("model,rewardbench\nm,0.5\n")
    with pytest.raises(ConfigError, match="evaluations and a table are given"):
        leaderboard([runs["x two"]], out=tmp_path / "out", table=table)
    with pytest.raises(EvidenceError, match="no evaluation is named"):
        leaderboard(out=tmp_path / "out")
    table.write_text("model,rewardbench\nm,93%\nn,93\n")
    with pytest.raises(RecordError, match="without the sign %"):
        leaderboard(out=tmp_path / "out", table=table)
    assert not (tmp_path / "out").exists()
