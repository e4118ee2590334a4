"""Published tables as CSV: the papers' numbers to the last digit, slips by name, and every broken file refused."""

import csv
from pathlib import Path

import pytest

from each_value import each
from steelyard.core.errors import UserError
from steelyard.evaluation.published_languages import read_published
from steelyard.views.language_table import VIEW
from steelyard.views.view import NO_SOURCES, StageRun

PUBLISHED = Path(__file__).parents[1] / "golden" / "published"
LANGUAGES, TRANSLATION, DROPS = (
    PUBLISHED / f"mrewardbench_{name}.csv" for name in ("languages", "translation", "category_drop")
)


def printed(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shown(path):
    """The tables of the view by title: their rows as dictionaries, the words of headings without their marks."""
    tables = {}
    for panel in VIEW.panels(StageRun("table", None, read_published(path)), NO_SOURCES):
        for grouped in panel.tables:
            heads = [head.split("|")[0].removeprefix("@@") for head in grouped.table.columns]
            tables[panel.title.split("|")[0].removeprefix("@@")] = [
                dict(zip(heads, row, strict=True)) for row in grouped.table.rows
            ]
    return tables


def test_table_9_and_table_2_are_shown_as_printed():
    tables, rows = shown(LANGUAGES), printed(LANGUAGES)
    # Table 2 is the first ten rows of Table 9.
    assert len(rows) == 23
    models, values = tables["language_models"], tables["values_by_language"]
    for row, model, value in zip(rows, models, values, strict=True):
        assert model["scorer"] == value["scorer"] == row["model"]
        assert (model["mean_over_languages"], model["variance_points"]) == (row["avg"], row["var"])
        assert row["type"] in value["model_kind"]
        assert {name: value[name] for name in row if name not in ("model", "type", "avg", "var")} == {
            name: cell for name, cell in row.items() if name not in ("model", "type", "avg", "var")
        }


def test_table_10_is_shown_as_printed():
    tables, rows = shown(TRANSLATION), printed(TRANSLATION)
    for row, model, value in zip(rows, tables["language_models"], tables["values_by_subset_of_bench"], strict=True):
        assert (model["scorer"], model["mean_over_subsets"]) == (row["model"], row["avg"])
        assert [value[name] for name in list(row)[3:]] == list(row.values())[3:]


def test_table_3_is_shown_as_printed():
    for row, change in zip(printed(DROPS), shown(DROPS)["changes_by_section"], strict=True):
        assert change["scorer"] == row["model"]
        for name in ("chat", "chat_hard", "safety", "reasoning"):
            assert change[name].replace("\N{MINUS SIGN}", "-") == row[name]


@each("path", [LANGUAGES, TRANSLATION, DROPS])
def test_the_published_rows_add_up(path):
    assert read_published(path).slips == ()


def test_the_printed_average_of_table_3_is_not_that_of_its_rows(tmp_path):
    """The paper prints the row Average as -6.22, -5.60, -5.96, -2.26; its ten rows have other means in all columns."""
    text = DROPS.read_text("utf-8") + "Average,,-6.22,-5.60,-5.96,-2.26\n"
    (tmp_path / "table.csv").write_text(text, encoding="utf-8")
    table = read_published(tmp_path / "table.csv")
    assert len(table.models) == 10
    columns = {slip.column: slip for slip in table.slips}
    assert all(slip.model == "Average" for slip in table.slips)
    assert set(columns) == {"chat", "chat_hard", "safety", "reasoning"}
    drops = [1.55, 2.76, 0.58, 20.80, 1.82, 1.75, 2.39, 10.25, 0.76, 20.39]
    assert columns["chat"].computed == pytest.approx(-sum(drops) / 10)


def test_a_row_whose_mean_or_variance_does_not_follow_is_named(tmp_path):
    (tmp_path / "table.csv").write_text(
        "model,avg,var,de,fr,he\n"
        "right,70.0,100.0,60.0,70.0,80.0\n"  # 10² + 10² over 2
        "wrong mean,71.0,100.0,60.0,70.0,80.0\n"
        "wrong variance,70.0,66.7,60.0,70.0,80.0\n"  # that of the population
    )
    table = read_published(tmp_path / "table.csv")
    assert [(slip.model, slip.column, slip.printed) for slip in table.slips] == [
        ("wrong mean", "avg", 71.0),
        ("wrong variance", "var", 66.7),
    ]
    assert [slip.computed for slip in table.slips] == pytest.approx([70.0, 100.0])


def test_means_by_kind_family_and_class_follow_from_the_printed_languages():
    table, rows = read_published(LANGUAGES), printed(LANGUAGES)
    classifiers = [float(row["avg"]) for row in rows if row["type"] == "classifier"]
    assert table.kinds["classifier"].mean.value == pytest.approx(sum(classifiers) / 400, abs=0.0005)
    semitic = sum(float(row[code]) for row in rows for code in ("ar", "he")) / 46
    assert table.kin["family"]["Afro-Asiatic"].mean.value == pytest.approx(semitic / 100)
    assert set(table.kin["resource_class"]) == {"3", "4", "5"}
    assert len(table.kin["family"]) == 8
    assert len(table.kin["subgroup"]) == 13
    assert table.kin["family"]["Afro-Asiatic"].mean.low is None
    # The averages of M-RewardBench are over 22 columns.
    assert {row.mean.n for row in table.models} == {22}


def test_english_gives_drops_and_a_correlation(tmp_path):
    rows = "".join(f"m{n},{60 + 2 * n},{50 + 2 * n},{54 + 2 * n}\n" for n in range(8))
    (tmp_path / "table.csv").write_text("model,en,de,fr\n" + rows)
    table = read_published(tmp_path / "table.csv")
    assert table.baseline_language == "en"
    assert table.models[0].drop.absolute.value == pytest.approx(0.08)
    assert table.models[0].drop.relative.value == pytest.approx(0.08 / 0.6)
    assert table.pearson.value == pytest.approx(1.0)
    assert table.pearson.low < 1.0


def test_shares_are_read_as_percentages(tmp_path):
    (tmp_path / "shares.csv").write_text("model,avg,var,de,fr\nm,0.650,0.0050,0.600,0.700\n")
    table = read_published(tmp_path / "shares.csv")
    assert (table.models[0].mean.value, table.models[0].values["de"].value) == (0.65, 0.6)
    assert table.models[0].variance == pytest.approx(50.0)
    assert table.decimals == 1
    assert table.slips == ()


PLAIN = "model,avg,var,de,fr\nm,65.0,50.0,60.0,70.0\nn,55.0,50.0,50.0,60.0\n"
SPELLINGS = {
    "as printed": PLAIN,
    "with percent signs": "model,avg,var,de,fr\nm,65.0%,50.0%,60.0%,70.0%\nn,55.0%,50.0%,50.0%,60.0%\n",
    "with blanks before the percent signs": "model,var,de,fr\nm,50.0,60.0 %,70.0 %\nn,50.0,50.0 %,60.0 %\n",
    "with decimal commas": "model;avg;var;de;fr\nm;65,0;50,0;60,0;70,0\nn;55,0;50,0;50,0;60,0\n",
    "with decimal commas in quotes": 'model,var,de,fr\nm,"50,0","60,0","70,0"\nn,"50,0","50,0","60,0"\n',
    "with capitals and blanks": "Model , AVG, Var,DE, fr \nm , 65.0,50.0,60.0 ,70.0\nn,55.0,50.0,50.0,60.0\n",
    "with names of languages": "Model,Mean,Variance,German,French\nm,65.0,50.0,60.0,70.0\nn,55.0,50.0,50.0,60.0\n",
    "in another order": "fr,de,model,var,avg\n70.0,60.0,m,50.0,65.0\n60.0,50.0,n,50.0,55.0\n",
    "with tabs": PLAIN.replace(",", "\t"),
    "of a French spreadsheet": "\ufeffmodel;de;fr\nm;60,0\u202f%;70,0\u202f%\nn;50,0\xa0%;60,0\xa0%\n",
    "of an Arabic spreadsheet": "model;var;de;fr\nm;٥٠٫٠;٦٠٫٠٪;٧٠٫٠٪\nn;٥٠٫٠;\u200f٥٠٫٠\u061c٪;٦٠٫٠٪\n",
    "of a Turkish spreadsheet": "model;de;fr\nm;%60,0;%70,0\nn;%50,0;%60,0\n",
    "of a Chinese spreadsheet": "模型,平均,方差,de,fr\nm,６５.0,50.0,60.0,70.0\nn,55.0,50.0,50.0,60.0\n",
    "with bold marks": "model,de,fr\n**m**,**60.0**,\\textbf{70.0}\nn,<b>50.0</b>,*60.0*\n",
    "with spreads": "model,de,fr\nm,60.0 ± 1.2,70.0 [68.1–71.9]\nn,$50.0 \\pm 1$,60.0 (2.5)\n",
    "with a row a language": "Language,m,n\nde,60.0,50.0\nfr,70.0,60.0\nAvg,65.0,55.0\nVar,50.0,50.0\n",
    "with a row a language, by code and name": "code,language,m,n\ndeu_Latn,German,60.0,50.0\nfra,French,70.0,60.0\n",
    "with a byte order mark": "\ufeff" + PLAIN,
    "with a row of averages": PLAIN + "Average,60.0,,55.0,65.0\n",
    "with a Chinese row of averages": PLAIN + "平均,60.0,-,55.0,65.0\n",
}


@each("name", SPELLINGS)
def test_a_table_means_the_same_in_every_spelling(name, tmp_path):
    (tmp_path / "table.csv").write_text(SPELLINGS[name], encoding="utf-8")
    table = read_published(tmp_path / "table.csv")
    assert [row.model for row in table.models] == ["m", "n"]
    assert [row.mean.value for row in table.models] == pytest.approx([0.65, 0.55])
    assert [row.variance for row in table.models] == pytest.approx([50.0, 50.0])
    values = {tuple(sorted(value.value for value in row.values.values())) for row in table.models}
    assert values == {(0.6, 0.7), (0.5, 0.6)}
    assert (table.slips, table.decimals, table.incomplete) == ((), 1, {})


def test_one_percent_is_no_share(tmp_path):
    (tmp_path / "table.csv").write_text("model,de,fr\nm,0.5%,1%\n")
    assert read_published(tmp_path / "table.csv").models[0].values["fr"].value == pytest.approx(0.01)


def test_a_model_that_lacks_a_value_is_left_out_and_named(tmp_path):
    rows = "m,65.0,60.0,70.0\nn,,50.0,60.0\no,50.0,,60.0\np,50.0,n/a,—\nAverage,99.0,99.0,99.0\n"
    (tmp_path / "table.csv").write_text("model,avg,de,fr\n" + rows, encoding="utf-8")
    table = read_published(tmp_path / "table.csv")
    assert [row.model for row in table.models] == ["m", "n"]
    assert table.incomplete == {"o": ("de",), "p": ("de", "fr")}
    assert table.models[1].mean.value == pytest.approx(0.55), "a mean that is not printed is computed"
    assert table.slips == (), "the printed averages may be those of all four"


BROKEN = {
    "": "empty",
    "model,de,fr\n": "header and no rows",
    "label,de,fr\nm,1,2\n": r"table.csv:1: no column has the names of the models",
    "training_data,rewardbench,overall\nm,0.5,0.6\n": (
        r"table.csv:1: the column 'rewardbench' is of a benchmark.*\n  do: numbers by benchmark: steelyard leaderboard"
    ),
    "dataset,language,Open_Accuracy\nd,zh,0.5\ne,zh,0.6\n": r"numbers by benchmark: steelyard leaderboard with table=",
    "model,de,rewardbench\nm,50,60\n": r"the column 'rewardbench' is unknown",
    "language,m\nde,50\nKlingon,40\nfr,60\n": r"table.csv:3: 'Klingon' is not a known language",
    "model,language,score\nm,de,50\nm,fr,60\n": r"the column 'language' is unknown\n.*\n  do: write a column for each",
    "language,m\nde,50\nfr,x\n": r"table.csv:3: fr is 'x'",
    "language,m\nde,50\nfr,101\n": r"table.csv:3: fr is 101\n  allowed: 0 to 100",
    "language,m\nde,50\nfr,60%\n": r"table.csv:2: de is '50' without the sign %",
    "language,m\nde,50\nfr,60\nde,50\n": r"table.csv:4: 'de' is there twice",
    "language,m\nzh,50\nfr,60\nChinese (Simplified),50\n": r"'zh' and 'Chinese \(Simplified\)' are one language",
    "model,chat,safety\nm,71,92\n": r"table.csv:1: the columns of sections have scores",
    "no,model,de,fr\n1,m,50,60\n2,n,60,70\n": r"table.csv:1: the column 'no' numbers the rows",
    "model,size,de,fr\nm,7,50,60\n": r"table.csv:1: the column 'size' is unknown",
    "model,de,klingon\nm,50,60\n": r"table.csv:1: the column 'klingon' is unknown",
    "model,de,fr\nm,50,60\nn,50,x\n": r"table.csv:3: fr is 'x'",
    "model,de,fr\nm,50,\n": r"table.csv:2: fr is empty",
    "model,de,fr\nm,50,nan\n": r"table.csv:2: fr is 'nan'\n  allowed: a number in at least one row",
    "model,de,fr\nm,50%,60\n": r"table.csv:2: fr is '60' without the sign %, and others have it",
    "model;de;fr\nm;50,5;60.5\n": r"table.csv:2: de is '50,5'\n  allowed: the same decimal mark",
    'model,de,fr\nm,"1,234,5",60\n': r"table.csv:2: de is '1,234,5'\n  allowed: a number",
    "model,de,fr\nm,100.5%,60%\n": r"table.csv:2: de is 100.5%",
    "model, Model,de,fr\nm,m,50,60\n": r"table.csv:1: 2 columns have the names of the models",
    "model,de,fr\nm,50,1e999\n": r"table.csv:2: fr is '1e999'",
    "model,de,fr\nm,50,100.1\n": r"table.csv:2: fr is 100.1\n  allowed: 0 to 100",
    "model,de,fr\nm,50,-1\n": r"table.csv:2: fr is -1",
    "model,var,de,fr\nm,-1,50,60\n": r"table.csv:2: var is -1\n  allowed: a variance of at least 0",
    "model,chat,safety\nm,-101,2\n": r"table.csv:2: chat is -101\n  allowed: -100 to 100",
    "model,de,fr\nm,50,60\nm,51,61\n": r"table.csv:3: 'm' is there twice",
    "model,de,fr\n,50,60\n": r"table.csv:2: a row without the name of a model",
    "model,type,de,fr\nm,generativ,50,60\n": r"table.csv:2: type is 'generativ'\n  allowed: did you mean 'generative'",
    "model,de\nm,50\n": r"table.csv:1: the only language is de",
    "model,en\nm,60\n": r"table.csv:1: the only language is en",
    "model,avg\nm,50\n": r"table.csv:1: no column has values",
    "model,de,chat\nm,50,60\n": r"table.csv:1: columns of languages and sections in one table",
    "model,ja,jp\nm,50,60\n": r"table.csv:1: 'ja' and 'jp' are one language",
    "model,de,fr\nm,50\n": r"table.csv:2: a row of 2 cells under a header of 3",
    "model,de,fr\nAverage,50,60\n": "no row of a model",
}


@each("text", BROKEN)
def test_a_broken_table_is_refused_with_its_line(text, tmp_path):
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(UserError, match=BROKEN[text]):
        read_published(tmp_path / "table.csv")


def test_names_of_models_in_any_script_go_through(tmp_path):
    names = ["模型", "نموذج", "דגם", "मॉडल", "モデル", "$x^2$ `code`"]
    rows = "".join(f"{name},5{n}.0,6{n}.0\n" for n, name in enumerate(names))
    (tmp_path / "table.csv").write_text("model,de,fr\n" + rows, encoding="utf-8")
    assert [row.model for row in read_published(tmp_path / "table.csv").models] == names


@each("names", [("zho_Hans", "zho_Hant"), ("Chinese (Simplified)", "Chinese (Traditional)"), ("zh", "zh-TW")])
def test_chinese_in_two_scripts_is_averaged_first_in_every_spelling(names, tmp_path):
    (tmp_path / "table.csv").write_text(f"model,de,{','.join(names)}\nm,60,40,50\n", encoding="utf-8")
    row = read_published(tmp_path / "table.csv").models[0]
    assert row.mean.value == pytest.approx((0.6 + 0.45) / 2)
    assert row.variance == pytest.approx(15**2 / 2)
