"""Published tables of several benches: CHEEMS, Tables 2, 3, 4 and 8 to the last digit, slips, and broken files."""

import csv
from pathlib import Path

import pytest

from each_value import each
from steelyard.core.errors import FileError, UserError
from steelyard.evaluation.published_benches import read_published_benches
from steelyard.views.bench_table import VIEW
from steelyard.views.view import NO_SOURCES, StageRun

PUBLISHED = Path(__file__).parents[1] / "golden" / "published"
TABLES = {
    name: PUBLISHED / f"{name}.csv"
    for name in ("cheemsbench_top", "cheems_datasets", "cheems_ablation", "cheemsbench_full")
}
HEADS = {
    "model": "model", "dataset": "dataset", "training_data": "training_data", "type": "model_kind",
    "language": "language", "rewardbench": "bench_rewardbench", "overall": "column_overall",
    "open_accuracy": "column_open_prompt_accuracy", "open_exact_match": "column_open_prompt_exact_match",
    "human_accuracy": "column_human_instruction_accuracy",
    "human_exact_match": "column_human_instruction_exact_match",
}  # fmt: skip
FOUR = "open_accuracy,open_exact_match,human_accuracy,human_exact_match"


def panels(path):
    return list(VIEW.panels(StageRun("table", None, read_published_benches(path)), NO_SOURCES))


def plain(text):
    """Return a cell or heading with the key of its word, and without the mark of the best."""
    return text.split("|")[0].removeprefix("@@").removesuffix("*")


def shown(path):
    """The main table by heading; of two ranks the last stands."""
    table = panels(path)[0].tables[0].table
    return [dict(zip(map(plain, table.columns), row, strict=True)) for row in table.rows]


@each("name", TABLES)
def test_each_cell_is_shown_as_printed(name):
    with TABLES[name].open(encoding="utf-8") as file:
        printed = list(csv.DictReader(file))
    for row, cells in zip(printed, shown(TABLES[name]), strict=True):
        for column, text in row.items():
            cell = cells[HEADS[column]]
            if column == "type":
                assert plain(cell) == "kind_of_model_" + text.replace("discriminative", "classifier")
            else:
                assert cell.removesuffix("*") == (text or "\N{EN DASH}"), (row, column)


def test_the_best_of_each_column_is_marked():
    marked = {(row["training_data"], head) for row in shown(TABLES["cheems_ablation"])
              for head, cell in row.items() if cell.endswith("*")}  # fmt: skip
    assert marked == {("RewardBench@1", "bench_rewardbench")} | {
        ("CheemsPreference", HEADS[column]) for column in (*FOUR.split(","), "overall")
    }


def test_equal_best_values_are_both_marked_and_equal_columns_have_no_best(tmp_path):
    (tmp_path / "t.csv").write_text("model,rewardbench,rmb\na,0.9,0.5\nb,0.9,0.5\nc,0.8,0.5\n")
    rows = shown(tmp_path / "t.csv")
    assert [row["bench_rewardbench"] for row in rows] == ["0.9*", "0.9*", "0.8"]
    assert {row["bench_rmb"] for row in rows} == {"0.5"}
    table = read_published_benches(tmp_path / "t.csv")
    assert [row.ranks["rewardbench"] for row in table.rows] == [(1, 2), (1, 2), (3, 3)]


@each("name", TABLES)
def test_only_the_row_of_gpt4o_in_table_8_does_not_add_up(name):
    """Overall is the mean of four values: for GPT4o (0.727 + 0.300 + 0.667 + 0.203) / 4 = 0.47425, printed 0.457."""
    slips = read_published_benches(TABLES[name]).slips
    assert [(slip.model, slip.column, slip.printed) for slip in slips] == (
        [("GPT4o", "overall", pytest.approx(45.7))] if name == "cheemsbench_full" else []
    )
    assert [slip.computed for slip in slips] == pytest.approx([47.425] * len(slips))


def test_a_slip_is_found_by_arithmetic_and_not_by_name(tmp_path):
    rows = "right,80,40,70,30,55\nrounded,80,40,70,31,55\nwrong,80,40,70,30,57\n"
    (tmp_path / "t.csv").write_text(f"model,{FOUR},overall\n{rows}")
    # 55.25 may be printed as 55 where the four values are rounded to whole numbers.
    (slip,) = read_published_benches(tmp_path / "t.csv").slips
    assert (slip.model, slip.printed, slip.computed) == ("wrong", 57.0, 55.0)


def test_models_without_a_bench_are_named_and_have_no_rank_there():
    table = read_published_benches(TABLES["cheemsbench_full"])
    assert table.lacking == dict.fromkeys(
        ("Qwen2.5-72B-Instruct", "Doubao-pro-128k", "Qwen2.5-7B-Instruct"), ("rewardbench",)
    )
    (qwen,) = (row for row in table.rows if row.name == "Qwen2.5-72B-Instruct")
    assert set(qwen.ranks) == {"cheemsbench"}
    assert {row.kind for row in table.rows} == {"classifier", "generative"}


@each("name", ["model", "模型", "Name", "Scorer", "Reward Model"])
def test_models_are_in_a_column_of_any_usual_name(name, tmp_path):
    (tmp_path / "t.csv").write_text(f"{name};rewardbench\nm;93,5 ± 0,4\nn;٩٠٫٥\n", encoding="utf-8")
    table = read_published_benches(tmp_path / "t.csv")
    assert (table.rows_are, [row.name for row in table.rows]) == ("model", ["m", "n"])
    assert [row.values[0].value for row in table.rows] == [0.935, 0.905]


def test_a_row_of_python_has_plain_numbers():
    first = next(iter(VIEW.records(read_published_benches(TABLES["cheemsbench_full"]))))
    assert (first["name"], first["kind"]) == ("Skywork-Reward-Gemma-2-27B", "classifier")
    assert first["cheemsbench_overall"] == pytest.approx(0.535)
    assert first["cheemsbench_open_prompt_exact_match"] == pytest.approx(0.329)
    assert (first["cheemsbench_best_rank"], first["rewardbench_worst_rank"]) == (1, 3)


BROKEN = {
    "": "empty",
    "model,rewardbench\n": "header and no rows",
    "label,rewardbench\nm,0.5\n": "t.csv:1: no column has the names of the rows",
    "model,dataset,rewardbench\nm,d,0.5\n": "t.csv:1: two columns of names",
    "model,rewardbensh\nm,0.5\n": "t.csv:1: the column 'rewardbensh' is unknown\n  allowed: did you mean 'rewardbench'",
    "model,de,fr\nm,50,60\n": (
        "the column 'de' is unknown\n.*\n  do: numbers by language: steelyard languages with table=FILE"
    ),
    "model,type,avg,easy_de_en\nm,generative,50,60\n": "\n  do: numbers by language: steelyard languages",
    "model,chat,chat_hard\nm,-1,-2\n": "\n  do: numbers by language: steelyard languages",
    "model,type\nm,generative\n": "t.csv:1: no column has values",
    "model,rewardbench\nm,good\n": "t.csv:2: rewardbench is 'good'\n  allowed: a number",
    "model,rewardbench\nm,93.8%\nn,93.8\n": "t.csv:3: rewardbench is '93.8' without the sign %",
    "model,rewardbench\nm,1e999\n": "t.csv:2: rewardbench is '1e999'",
    "model,rewardbench\nm,nan\n": "'m' has no number",
    "model,rewardbench\nm,100.1\n": r"t.csv:2: rewardbench is 100.1\n  allowed: 0 to 100",
    "model,rewardbench\nm,-0.1\n": r"t.csv:2: rewardbench is -0.1",
    "model,rewardbench\nm,0.5\nm,0.6\n": "t.csv:3: 'm' is there twice",
    "model,rewardbench\n,0.5\n": "t.csv:2: a row without the name",
    "model,rewardbench\nm,\n": "'m' has no number",
    "model,type,rewardbench\nm,generativ,0.5\n": "t.csv:2: type is 'generativ'\n  allowed: did you mean 'generative'",
    "model,open_accuracy,open_exact_match,human_accuracy,overall\nm,0.7,0.3,0.7,0.5\n": (
        "t.csv:1: the column 'human_exact_match' is missing beside 'open_accuracy'"
    ),
    "model,rewardbench\nm,0.5,0.6\n": "t.csv:2: a row of 3 cells under a header of 2",
    "model,rewardbench\nm,0.5\nM ,0.6\n": "t.csv:3: 'M' is there twice, first in .*t.csv:2",
    "model,rewardbench\nm,0.9_41\n": "t.csv:2: rewardbench is '0.9_41'",
    "model,rewardbench\nm,0.5\nAverage,0.5\n": "t.csv:3: 'Average' sums up the other rows\n.*\n  do: leave it out",
    "model,rewardbench\nm,0.5\n合计,0.5\n": "t.csv:3: '合计' sums up the other rows",
    "model,rewardbench,rmb\nm,0.9,0.7\nn,93.8,0.6\n": "t.csv:3: rewardbench is 93.8, and rmb has shares",
    "model,rewardbench,rmb\nm,94.1,0.7\nn,93.8,0.6\n": "t.csv:2: rewardbench is 94.1, and rmb has shares",
    "model,rewardbench,rmb\nm,0.9,0.7\nNote: own runs.,,\n": "t.csv:3: 'Note: own runs.' has no number",
    "model,rewardbench,rmb\nm,0.9,0.7\nNote: own runs.\n": "t.csv:3: a row of 1 cell .*\n.*\n  do: leave out this line",
    "Table 3\nmodel,rewardbench\nm,0.9\n": "t.csv:2: a row of 2 cells .*\n.*\n  do: begin with the line of names",
    ",Bench,\nmodel,rewardbench,rmb\n": "t.csv:1: the header has '' twice\n.*\n  do: give each column a name",
    "| model | rewardbench |\n|---|---|\n| m | 0.9 |\n": "t.csv:1: the first line is not one of CSV\n  do: write it",
    "model & rewardbench \\\\\nm & 0.9 \\\\\n": "t.csv:1: the first line is not one of CSV",
}
MARKED = (
    "**93.8**",
    "__93.8__",
    r"\textbf{93.8}",
    r"\underline{\textbf{93.8}}",
    "$93.8$",
    r"$\mathbf{93.8}$",
    r"93.8 \\",
)


@each("mark", MARKED)
def test_marks_of_the_best_values_are_not_read(mark, tmp_path):
    (tmp_path / "t.csv").write_text(f"model,rewardbench\n**m**,{mark}\nn,41.5\n", encoding="utf-8")
    (best, _) = read_published_benches(tmp_path / "t.csv").rows
    assert (best.name, best.values[0].value) == ("m", pytest.approx(0.938))


@each("name", ("t.md", "t.tex", "t.html", "t.xlsx"))
def test_a_table_of_another_form_is_refused_with_what_to_write(name, tmp_path):
    (tmp_path / name).write_text("model", encoding="utf-8")
    with pytest.raises(FileError, match="do: write it as CSV"):
        read_published_benches(tmp_path / name)


def test_a_name_with_two_marked_words_is_kept_whole(tmp_path):
    (tmp_path / "t.csv").write_text("model,rewardbench\n**A** or **B**,90\n", encoding="utf-8")
    assert read_published_benches(tmp_path / "t.csv").rows[0].name == "**A** or **B**"


@each("text", BROKEN)
def test_a_broken_table_is_refused_with_its_line(text, tmp_path):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=BROKEN[text]):
        read_published_benches(tmp_path / "t.csv")


def test_names_in_any_script_go_through_and_percentages_keep_their_digits(tmp_path):
    names = ["模型", "نموذج", "דגם", "मॉडल", "モデル", "$x^2$ `code`"]
    rows = "".join(f"{name},9{number}.25,6{number}.5\n" for number, name in enumerate(names))
    (tmp_path / "t.csv").write_text("model,rewardbench,rmb\n" + rows, encoding="utf-8")
    cells = shown(tmp_path / "t.csv")
    assert [row["model"] for row in cells] == names
    assert [row["bench_rewardbench"].removesuffix("*") for row in cells] == [f"9{n}.25" for n in range(6)]
    assert [row["bench_rmb"].removesuffix("*") for row in cells] == [f"6{n}.5" for n in range(6)]
