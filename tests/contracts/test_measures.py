"""Every measure keeps the contract: found by its file, typed as it is written, shown with words in both languages."""

import ast
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

from evaluation_summaries import evaluation_summary, resampled_bench
from report_figures import accepted
from steelyard.core.types import Rating, Record, Response, Scores
from steelyard.evaluation import measures as package
from steelyard.evaluation.items import MeasuredItem, item_rows
from steelyard.evaluation.measure import item_columns, measures
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.report.evaluation_sections import measures_section
from steelyard.report.page import page_strings
from strategies import case, judgment

NAMES = tuple(measures())
RANKING = (("a",), ("b",), ("c", "d"))
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "measures.md"


def example():
    """Prompts in two categories and languages with people, ratings and scores that are right more often than not."""
    cases, lines = [], []
    for number in range(24):
        said = [judgment("a>b", judge=name) for name in ("ann", "bob")]
        ratings = tuple(
            Rating(response=name, rater="r", kind="human", dimension="d", value=len(RANKING) - place)
            for place, name in enumerate("abcd")
        )
        where = {"language": "zh" if number % 2 else "he", "category": ("chat" if number % 3 else "code",)}
        one = case(f"p{number}", "abcd", said, ranking=RANKING, ratings=ratings, **where)
        responses = tuple(
            Response(id=name, text=name * (3 + (number + place) % 5)) for place, name in enumerate("abcd")
        )
        cases.append(msgspec.structs.replace(one, responses=responses))
        scores = (4.0, 3.0, 1.0, 2.0) if number % 4 else (1.0, 2.5, 3.0, 0.5)
        lines.append(
            Scores(prompt=f"p{number}", language=where["language"], scores=dict(zip("abcd", scores, strict=True)))
        )
    return cases, lines


@pytest.fixture(scope="module")
def resampled():
    return resampled_bench(*example())


@pytest.fixture(scope="module")
def estimated(resampled):
    return {name: measure.estimate(resampled) for name, measure in measures().items()}


def test_every_file_but_the_headline_is_a_measure():
    files = {path.stem for path in Path(package.__file__).parent.glob("*.py")} - {"__init__", "accuracy"}
    assert files == set(NAMES)


def test_nothing_outside_names_a_measure():
    sources = [path for path in Path(package.__file__).parents[2].rglob("*.py") if path.parent.name != "measures"]
    texts = [(path, path.read_text("utf-8")) for path in sources]
    imports = [
        (path.name, node.module)
        for path, text in texts
        if "steelyard.evaluation.measures" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("steelyard.evaluation.measures.")
    ]
    assert {module.rpartition(".")[2] for _, module in imports} == {"accuracy"}


@pytest.mark.parametrize("name", NAMES)
def test_its_summary_is_read_as_it_is_written(name, estimated):
    summary = estimated[name]
    assert isinstance(summary, Record)
    assert type(summary) is measures()[name].summary
    written = msgspec.json.encode(evaluation_summary(measures={name: summary}))
    assert getattr(msgspec.json.decode(written, type=EvaluationSummary).measures, name) == summary


@pytest.mark.parametrize("name", NAMES)
def test_it_is_shown_with_words_in_both_languages(name, estimated):
    section = measures_section({"m": evaluation_summary(measures={name: estimated[name]})}, [])
    assert section.panels
    words = re.findall(r"@@([a-z0-9_]+)\|", msgspec.json.encode(section).decode())
    strings = page_strings().table
    for key in {*words, *measures()[name].text, *(panel.note for panel in section.panels if panel.note)}:
        assert key.startswith("why_") or set(strings[key]) == {"en", "zh"}, key
    for panel in section.panels:
        if panel.figure is not None:
            accepted(panel.figure)


@pytest.mark.parametrize("name", NAMES)
def test_its_columns_are_those_that_models_are_compared_by(name, resampled):
    measure, columns = measures()[name], measures()[name].columns(resampled.bench)
    assert tuple(columns) == measure.column_names
    assert all(len(values) == len(resampled.bench.columns.start) for values in columns.values())
    for column in measure.column_names:
        assert column in MeasuredItem.__struct_fields__
        assert column in item_columns(resampled.bench)


def test_no_two_measures_share_a_word_or_a_column():
    texts = [key for measure in measures().values() for key in measure.text]
    columns = [name for measure in measures().values() for name in measure.column_names]
    assert len(texts) == len(set(texts))
    assert len(columns) == len(set(columns))


@pytest.mark.parametrize("name", NAMES)
def test_every_ratio_that_models_are_compared_by_has_a_title(name):
    measure = measures()[name]
    columns = {column: np.array([1.0, 0.5]) for column in measure.column_names}
    assert dict(measure.paired_titles).keys() == measure.paired(columns).keys()


@pytest.mark.parametrize("name", NAMES)
def test_it_is_documented(name):
    assert f"`measures.{name}`" in DOCUMENTATION.read_text("utf-8")


def test_items_have_the_columns_of_every_measure():
    cases, lines = example()
    bench = resampled_bench(cases, lines).bench
    (row, *_) = item_rows(cases, lines, bench.columns, bench="cases", rule="strict")
    assert set(item_columns(bench)) < set(row)
