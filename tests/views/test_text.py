"""Results as plain text: sentences with numbers and their nouns, tables with intervals, in both languages."""

import csv
import io
import re

import pytest
from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.errors import EvidenceError, OutputError
from steelyard.core.types import Counts, Run
from steelyard.evaluation.tables import Sentence
from steelyard.io.cases import write_cases
from steelyard.io.run_folder import read_run
from steelyard.report.page import page_strings
from steelyard.stages.evaluate import Config, evaluate
from steelyard.stages.merge import merge
from steelyard.stages.report import Config as ReportConfig
from steelyard.stages.report import report
from steelyard.stages.resolve import resolve
from steelyard.stages.score import score
from steelyard.stages.split import Config as SplitConfig
from steelyard.stages.split import split
from steelyard.views.text import csv_table, result_sentences, result_tables
from steelyard.views.view import view_of, views
from strategies import case


@pytest.fixture
def evaluated(tmp_path):
    cases = [case(f"p{n}", "ab", category=("=数学",), ranking=(("a",), ("b",))) for n in range(4)]
    write_cases(tmp_path / "bench.jsonl", cases)
    evaluate(
        [tmp_path / "bench.jsonl"], tmp_path / "out", Config(num_resamples=20, baselines=("longer",)), model="first"
    )
    return tmp_path / "out"


def sentences(folder, language="en"):
    return list(result_sentences(read_run(folder), folder, language))


@pytest.mark.parametrize(("judgments", "told"), [(["a>b", "a>b"], "1 judgment repeats an"),
                                                 (["a>b"] * 3, "2 judgments repeat an")])  # fmt: skip
def test_a_number_has_its_noun_and_its_verb(tmp_path, judgments, told):
    write_cases(tmp_path / "cases.jsonl", [case(judgments=judgments)])
    resolve(tmp_path / "cases.jsonl", tmp_path / "out")
    assert any(line.startswith(f"{told} identical judgment") for line in sentences(tmp_path / "out"))


def test_the_noun_follows_the_number_on_the_page_too():
    strings = page_strings()
    shown = [str(strings.sentence(Sentence("say_kept_rankings", {"number": number}))) for number in ("1", "1,200")]
    assert "<b><bdi>1</bdi></b> case has no judgment that counts" in shown[0]
    assert "<b><bdi>1,200</bdi></b> cases have no judgment that counts" in shown[1]


def test_a_result_alone_does_not_name_its_run(tmp_path):
    for name in ("a", "b"):
        write_cases(tmp_path / f"{name}.jsonl", [case()])
    merge([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "merged")
    (english,), (chinese,) = sentences(tmp_path / "merged"), sentences(tmp_path / "merged", "zh")
    assert english.startswith("2 cases of 2 files become 1")
    assert "merged" not in english + chinese
    assert "@@" not in english + chinese


def test_an_interval_stands_behind_its_value(evaluated):
    tables = {table.caption: table for table in result_tables(read_run(evaluated), evaluated)}
    overview = tables["first"]
    assert overview.heads[:3] == ("Scorer", "Accuracy", "Exact match")
    row = dict(zip(overview.heads, overview.rows[0], strict=True))
    # Four pairs of four are right: a Wilson interval reaches 100 %, and the model has no lead over itself.
    assert row["Accuracy"].startswith("100.0% [")
    assert row["Accuracy"].endswith("–100.0%]")
    assert row["Model ahead by (points)"] == ""


def test_every_table_is_wholly_in_one_language(evaluated):
    for language in ("en", "zh"):
        for table in result_tables(read_run(evaluated), evaluated, language):
            assert "@@" not in str(table)
            assert all(len(row) == len(table.heads) for row in table.rows)


def test_tables_of_a_paper_are_written_by_the_suffix(evaluated, tmp_path):
    for suffix, start in ((".tex", r"\begin{table*}"), (".md", "**first**"), (".csv", "first\n")):
        run = report([evaluated], tmp_path / f"tables{suffix}")
        text = (tmp_path / f"tables{suffix}").read_text(encoding="utf-8")
        assert text.startswith(start)
        assert run.summary.num_tables >= 3
        with pytest.raises(OutputError, match="this file exists"):
            report([evaluated], tmp_path / f"tables{suffix}")
    report([evaluated], tmp_path / "zh.md", ReportConfig(language="zh"))
    assert "准确率" in (tmp_path / "zh.md").read_text(encoding="utf-8")


def test_a_cell_that_a_spreadsheet_would_run_is_quoted(evaluated):
    tables = [table for table in result_tables(read_run(evaluated), evaluated) if "=数学" in str(table.rows)]
    for table in tables:
        cells = [cell for row in csv.reader(io.StringIO(csv_table(table))) for cell in row]
        assert "'=数学" in cells
        assert not any(cell.startswith("=") for cell in cells)
    assert tables


@pytest.mark.parametrize("names", [("b/out",), ("Größe", "Grüße"), ("模型甲", "モデル_乙", "نموذج")])
def test_the_labels_of_several_runs_differ(evaluated, names, tmp_path):
    config = Config(num_resamples=20, baselines=())
    for name in names:
        evaluate([tmp_path / "bench.jsonl"], tmp_path / name, config, model="longer")
    report([evaluated, *(tmp_path / name for name in names)], tmp_path / "two.tex")
    labels = re.findall(r"\\label\{(.*?)\}", (tmp_path / "two.tex").read_text(encoding="utf-8"))
    assert len(labels) == len(set(labels)) > 6


def test_simulated_tables_say_so_at_their_top(tmp_path):
    CliRunner().invoke(build_app(), ["demo", "--data", "--out", str(tmp_path / "simulated")], catch_exceptions=False)
    report([tmp_path / "simulated"], tmp_path / "tables.tex")
    assert (tmp_path / "tables.tex").read_text(encoding="utf-8").startswith("% Simulated data.")


def test_a_run_without_a_table_in_its_view_has_one_of_its_counts(tmp_path):
    write_cases(tmp_path / "a.jsonl", [case(responses="ab")])
    score(tmp_path / "a.jsonl", tmp_path / "scored", model="first")
    (tmp_path / "scored" / "scores.jsonl").write_text('{"prompt": "p", "scores": {"a": null, "b": null}}\n')
    report([tmp_path / "scored"], tmp_path / "tables.csv")
    assert (tmp_path / "tables.csv").read_text(encoding="utf-8").splitlines()[:3] == ["Name,Value", "in,1", "used,1"]


def test_a_merge_of_files_without_a_common_prompt_has_a_table(tmp_path):
    for name in "ab":
        write_cases(tmp_path / f"{name}.jsonl", [case(name)])
    merge([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "merged")
    (table,) = result_tables(read_run(tmp_path / "merged"), tmp_path / "merged")
    assert table.rows == (("cases read", "2"), ("cases after the merge", "2"))


def test_a_split_without_groups_has_the_sizes_of_its_parts(tmp_path):
    write_cases(tmp_path / "cases.jsonl", [case(f"p{n}") for n in range(4)])
    split(
        tmp_path / "cases.jsonl",
        tmp_path / "parts",
        SplitConfig(parts={"train": 0.75, "test": 0.25}, near_duplicates="off"),
    )
    (table,) = result_tables(read_run(tmp_path / "parts"), tmp_path / "parts")
    assert table.heads == ("Part", "n", "Share")
    assert set(table.rows) == {("train", "3", "75.0%"), ("test", "1", "25.0%")}


def test_a_stage_without_a_view_has_its_counts_and_numbers(tmp_path):
    run = Run(stage="backbone", config={}, counts=Counts(num_in=3, num_used=3), summary={"num_weights": 1200})
    counts, numbers = result_tables(run, tmp_path / "start")
    assert counts.rows == (("in", "3"), ("used", "3"))
    assert numbers.rows == (("weights", "1,200"),)
    assert counts.label != numbers.label


def test_reports_have_no_table_and_are_counted_beside_runs_that_have_one(evaluated, tmp_path):
    report([evaluated], tmp_path / "page")
    with pytest.raises(EvidenceError, match="no numbers of its own"):
        report([tmp_path / "page"], tmp_path / "tables.md")
    assert not (tmp_path / "tables.md").exists()
    run = report([evaluated, tmp_path / "page"], tmp_path / "tables.md")
    assert run.counts.dropped == {"reports without numbers of their own": 1}
    assert list(run.summary.runs.values()) == ["evaluate"]


def test_a_view_is_found_by_its_stage():
    assert {view.stage for view in views()} >= {"resolve", "train", "evaluate", "compare"}
    assert all(view_of(view.stage) is view for view in views())
    assert view_of("backbone") is view_of("view") is view_of("no such stage") is None
