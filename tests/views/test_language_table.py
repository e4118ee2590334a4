"""The page of models by language: words in both languages, figures, tables for papers, and its size for many models."""

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest

from evaluated_languages import evaluated_languages
from page_words import page_text
from steelyard.core.languages import LANGUAGE_NAMES, english_name
from steelyard.core.types import Run
from steelyard.evaluation.language_groups import kin_of
from steelyard.evaluation.language_table import LanguageTable, ModelDraws, TableSample, language_table
from steelyard.evaluation.languages import LanguagesSummary
from steelyard.evaluation.tables import isolate
from steelyard.io.run_folder import read_run, run_stage
from steelyard.plugins.benches.rewardbench import LANGUAGES, SECTIONS
from steelyard.report.page import page_strings
from steelyard.stages.languages import Config, languages
from steelyard.statistics.intervals import one_sample
from steelyard.views.language_table import VIEW
from steelyard.views.languages import VIEW as LANGUAGES_VIEW
from steelyard.views.text import csv_table, result_sentences, result_tables
from steelyard.views.view import NO_SOURCES, StageRun

PUBLISHED = Path(__file__).parents[1] / "golden" / "published"
OUTCOMES = {"en": "rrrrrrrw", "he": "rwrwrrww", "ar": "rrrrwwww"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of two models, one of which lacks Arabic and an item, with another translation of one of them."""
    root = tmp_path_factory.mktemp("table")
    runs = [
        evaluated_languages(root / "google", "模型", OUTCOMES),
        evaluated_languages(root / "google", "דגם", {"en": "rrrrrwr.", "he": "rwwrwrrr"}),
    ]
    evaluated_languages(root / "nllb", "模型", OUTCOMES, better="another text")
    languages(runs, out=root / "out", config=Config(num_resamples=20), other_translation=[root / "nllb"])
    return root / "out"


def values_of(num_models, num_resamples=200):
    """Return values of many models in 23 languages and English, with four sections."""
    rng = np.random.default_rng(1)
    shape = (1 + num_resamples, num_models, len(LANGUAGES))
    skill = np.linspace(0.5, 0.9, num_models)[:, None]
    return np.clip(skill + rng.normal(0, 0.03, shape), 0, 1)


def many_models(num_models):
    values, sample = values_of(num_models), TableSample(LANGUAGES, kin_of(LANGUAGES), 2869, one_sample(2869))
    kinds = ("classifier", "generative", "implicit")
    models = [
        ModelDraws(
            f"model-{number}", kinds[number % 3], values[:, number], values[:, number].mean(axis=-1) + 0.03,
            {name: (values[:, number].mean(axis=-1), values[:, number]) for name in SECTIONS},
        )
        for number in range(num_models)
    ]  # fmt: skip
    return language_table(models, sample, bench="mrewardbench", baseline="eng_Latn")


def write_table(out, table):
    def write(result):
        result.summary = table

    return run_stage(out, "language_table", Run[LanguageTable], write, config={}, inputs={})


def test_every_word_is_there_in_both_languages(folder, tmp_path):
    strings = page_strings().table
    write_table(tmp_path / "many", many_models(9))
    published = tmp_path / "table.csv"
    published.write_text("model,type,avg,en,de,fr\nm,generative,55.0,70.0,50.0,70.0\n")
    languages(out=tmp_path / "published", table=published)
    for name in ("translation", "category_drop"):
        languages(out=tmp_path / name, table=PUBLISHED / f"mrewardbench_{name}.csv")
    for each in (folder, *(tmp_path / name for name in ("many", "published", "translation", "category_drop"))):
        run = json.loads((each / "run.json").read_text("utf-8"))
        text = json.dumps([panel_words(each), sentence_keys(each)])
        keys = set(re.findall(r"@@([a-z0-9_]+)\|", text)) | set(re.findall(r'"((?:say|note|figure)_[a-z_]+)"', text))
        assert run["stage"] == "language_table"
        assert VIEW.anchor in strings
        for key in keys:
            assert set(strings[key]) == {"en", "zh"}, key
        for language in ("en", "zh"):
            sentences = list(result_sentences(read(each), each, language))
            assert sentences
            assert not any("{" in sentence or "@@" in sentence for sentence in sentences)


def read(folder):
    return read_run(folder, Run[LanguageTable])


def panels_of(folder):
    return list(VIEW.panels(StageRun("table", None, read(folder).summary), NO_SOURCES))


def panel_words(folder):
    return [
        (panel.title, panel.note, panel.figure and panel.figure.about, [grouped.table for grouped in panel.tables])
        for panel in panels_of(folder)
    ]


def sentence_keys(folder):
    return [(each.key, dict(each.values)) for each in VIEW.sentences(StageRun("table", None, read(folder).summary))]


def test_the_result_is_told_in_words(folder):
    english = " ".join(result_sentences(read(folder), folder))
    assert "2 models in 1 language beside English, on the 7 items" in english
    assert "Over 1 model, the mean on google minus that on nllb is 0.0 points" in english
    assert "A correlation over 2 models is no evidence: it needs 8." in english
    assert f"are left out of all values: {isolate('דגם')}" in english


def test_tables_for_papers_have_a_row_a_model_and_a_row_a_language(folder):
    tables = {table.label: table for table in result_tables(read(folder), folder, name="t")}
    first = tables["t-1"]
    # One language has no variance.
    assert first.heads == ("Scorer", "English", "mean over languages", "drop, points")
    assert [row[0] for row in first.rows] == ["דגם", "模型"]
    # 模型 has 4/4 and 2/3 right of the first seven items in English, and 3/4 and 1/3 in Hebrew.
    assert first.rows[1][1] == "100.0%"
    assert first.rows[1][2].startswith("54.2% [")
    assert csv_table(first).splitlines()[1].startswith("Scorer,English,")


def test_a_baseline_other_than_english_has_its_name(tmp_path):
    run = evaluated_languages(tmp_path, "m", {"it": "rrrw", "he": "rrww", "ar": "rrww"})
    other = evaluated_languages(tmp_path, "n", {"it": "rrrw", "he": "wrww", "ar": "rrww"})
    languages([run, other], out=tmp_path / "out", config=Config(num_resamples=20))
    languages([run], out=tmp_path / "one", config=Config(num_resamples=20, baseline_language="it"))
    text = " ".join(result_sentences(read(tmp_path / "out"), tmp_path / "out"))
    assert "2 models in 2 languages beside Italian" in text
    assert "the baseline is Arabic" not in text
    assert "the mean without Italian is 50.0%" in " ".join(
        result_sentences(read_run(tmp_path / "one", Run[LanguagesSummary]), tmp_path / "one")
    )
    one = StageRun("one", None, read_run(tmp_path / "one", Run[LanguagesSummary]).summary)
    figure = next(iter(LANGUAGES_VIEW.panels(one, NO_SOURCES))).figure
    assert {value["row"] for value in figure.spec["data"]["values"]} == {
        "@@name_of_it|Italian@@", "@@name_of_he|Hebrew@@", "@@name_of_ar|Arabic@@",
    }  # fmt: skip
    tables = list(result_tables(read(tmp_path / "out"), tmp_path / "out", "zh"))
    assert tables[0].heads[1] == "意大利语"
    assert "English" not in str(tables)
    assert {row[0] for row in tables[3].rows} == {"希伯来语", "阿拉伯语"}


def test_languages_of_one_value_share_the_best_and_all_equal_ones_have_none(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("model,de,fr,it\nm,60,60,50\nn,60,60,60\no,60,60,60\n")
    languages(out=tmp_path / "out", table=table)
    rows = {row.model: row for row in read(tmp_path / "out").summary.models}
    assert (rows["m"].best, rows["m"].worst) == (("de", "fr"), ("it",))
    assert (rows["n"].best, rows["n"].worst) == ((), ())
    values = list(result_tables(read(tmp_path / "out"), tmp_path / "out"))[1]
    assert [row[1:3] for row in values.rows] == [("de, fr", "it"), ("–", "–"), ("–", "–")]
    assert "the highest mean is that of n, o, 60.0%" in " ".join(
        result_sentences(read(tmp_path / "out"), tmp_path / "out")
    )


def test_every_named_language_has_its_name_on_pages_in_both_languages():
    strings = page_strings().table
    for code, name in LANGUAGE_NAMES.items():
        words = strings[f"name_of_{code.replace('-', '_').lower()}"]
        assert words["en"] == (english_name(code) if "-" in code else name)
        assert words["zh"] != words["en"]


def test_a_page_of_one_run_is_titled_by_its_section(tmp_path):
    write_table(tmp_path / "many", many_models(9))
    assert "<title>各模型的语言表现 · many</title>" in page_text([tmp_path / "many"], "zh")
    assert "<title>Models by language · many</title>" in page_text([tmp_path / "many"], "en")


def test_figures_have_a_cell_for_each_model_and_column(tmp_path):
    write_table(tmp_path / "many", many_models(9))
    figures = {panel.figure.about: panel.figure.spec for panel in panels_of(tmp_path / "many") if panel.figure}
    assert len(figures["figure_values_by_language"]["data"]["values"]) == 9 * 23
    assert figures["figure_values_by_language"]["layer"][0]["encoding"]["opacity"]["legend"]["format"] == ".1%"
    assert len(figures["figure_drops_by_section"]["data"]["values"]) == 9 * 4
    assert len(figures["figure_english_and_mean"]["data"]["values"]) == 9
    groups = {value["row"].split(":")[0] for value in figures["figure_language_groups"]["data"]["values"]}
    assert len(groups) == 5


def test_fifty_models_in_24_languages_are_one_page(tmp_path):
    write_table(tmp_path / "many", many_models(50))
    page_text([tmp_path / "many"], "en")  # the first page imports what every page needs
    start = time.process_time()
    text = page_text([tmp_path / "many"], "en")
    assert time.process_time() - start < 4, "half a second on an idle machine"
    assert len(text.encode()) < 15e6
    assert text.count("model-49") > 4


def test_a_row_of_python_has_plain_numbers(tmp_path):
    write_table(tmp_path / "many", many_models(9))
    rows = list(VIEW.records(read(tmp_path / "many").summary))
    assert len(rows) == 9
    assert rows[0]["model"] == "model-8"
    assert {"kind", "english", "mean", "mean_low", "variance", "drop_absolute", "values_heb_Hebr"} <= set(rows[0])


def test_means_by_kind_are_over_the_models_of_that_kind():
    table = many_models(9)
    assert {kind: len(means.models) for kind, means in table.kinds.items()} == {
        "classifier": 3, "generative": 3, "implicit": 3,
    }  # fmt: skip
    means = table.kinds["generative"]
    rows = [row for row in table.models if row.kind == "generative"]
    assert means.mean.value == pytest.approx(np.mean([row.mean.value for row in rows]))
    assert means.largest_drop == max(row.drop.absolute.value for row in rows)
