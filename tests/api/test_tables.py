"""Tables of polars, pandas, DuckDB and datasets: cases from them and to them without a change."""

import datasets
import duckdb
import pandas
import polars

import steelyard as sy
from parallel_cases import parallel_cases

ROWS = [
    {"prompt": "为什么？", "chosen": "因为。", "rejected": "不。"},
    {"prompt": "为什么？", "chosen": "因为。", "rejected": "不知道。"},
    {"prompt": "לָמָּה?", "chosen": "כי.", "rejected": "$x^2$"},
]


def test_polars():
    assert sy.Cases(polars.DataFrame(parallel_cases())) == parallel_cases()
    assert sy.Cases(polars.DataFrame(ROWS)).to_pairs(texts=True) == ROWS
    evaluation = sy.evaluate("longer", polars.DataFrame(parallel_cases()))
    assert polars.DataFrame(evaluation.items)["num_correct"].sum() == 40
    assert polars.DataFrame(evaluation).filter(polars.col("by") == "model")["accuracy"].to_list() == [1.0]


def test_pandas():
    assert sy.Cases(parallel_cases().to_arrow().to_pandas()) == parallel_cases()
    assert sy.Cases(pandas.DataFrame(ROWS)).to_pairs(texts=True) == ROWS
    items = sy.evaluate("longer", parallel_cases()).items.to_arrow().to_pandas()
    assert items["exact_match"].all()


def test_duckdb():
    cases = parallel_cases()
    found = duckdb.sql("select prompt.language as language, count(*) from cases group by language order by language")
    assert found.fetchall() == [("en", 20), ("zh", 20)]
    assert sy.Cases(duckdb.sql("select * from cases where prompt.language = 'zh'").to_arrow_table()) == cases.filter(
        lambda case: case.prompt.language == "zh"
    )


def test_datasets():
    dataset = parallel_cases().to_datasets()
    assert dataset.num_rows == 40
    assert sy.Cases(dataset) == parallel_cases()
    assert sy.Cases(dataset.select([3, 1])) == sy.Cases([parallel_cases()[3], parallel_cases()[1]])
    assert sy.Cases(dataset.filter(lambda row: row["prompt"]["language"] == "zh"))[0].key == ("p1", "zh")
    assert sy.Cases(datasets.Dataset.from_list(ROWS)).to_pairs(texts=True) == ROWS
    names = datasets.Dataset.from_list(parallel_cases().to_pairs()).column_names
    assert names == ["prompt", "chosen", "rejected", "language"]
