"""Tables that other programs save: data frames, leaderboards and spreadsheets, as their authors have them."""

import pytest

from each_value import each
from steelyard.core.errors import UserError
from steelyard.core.languages import language_key
from steelyard.evaluation.model_tables import read_table
from steelyard.evaluation.published_benches import read_published_benches
from steelyard.evaluation.published_languages import read_published
from steelyard.evaluation.tables import isolate
from steelyard.report.page import section_texts
from steelyard.views.language_table import VIEW
from steelyard.views.view import NO_SOURCES, StageRun


@pytest.fixture
def table_of(tmp_path):
    def read(text, **selection):
        (tmp_path / "table.csv").write_text(text, encoding="utf-8")
        return read_published(tmp_path / "table.csv", **selection)

    return read


FRAMES = {
    "the index of a frame": ",de,fr\nm,60.0,70.0\nn,50.0,60.0\n",
    "its name after reading it again": "Unnamed: 0,de,fr\nm,60.0,70.0\nn,50.0,60.0\n",
    "an index of numbers": ",model,de,fr\n0,m,60.0,70.0\n1,n,50.0,60.0\n",
    "links in Markdown": "model,de,fr\n[m](https://example.org/m),60.0,70.0\n**[n](https://example.org/n)**,50.0,60.0\n",
    "links in HTML": 'model,de,fr\n"<a target=""_blank"" href=""https://example.org/m"">m</a>",60.0,70.0\nn,50.0,60.0\n',
    "links in LaTeX": "model,de,fr\n\\href{https://example.org/m}{m},60.0,70.0\nn,50.0,60.0\n",
    "a transposed frame": ",m,n\ndeu_Latn,60.0,50.0\nfra_Latn,70.0,60.0\nAvg,65.0,55.0\nStd,7.1,7.1\n",
    "the usual names in Chinese": "模型,德语,希伯来语\nm,60.0,70.0\nn,50.0,60.0\n",
}


@each("name", FRAMES)
def test_names_of_models_are_found_where_programs_save_them(name, table_of):
    table = table_of(FRAMES[name])
    assert {row.model: row.mean.value for row in table.models} == pytest.approx({"m": 0.65, "n": 0.55})
    assert table.slips == ()


def test_an_index_names_the_models_of_all_tables(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(",RewardBench\nm,90.0\nn,80.0\n")
    assert [row.name for row in read_published_benches(path).rows] == ["m", "n"]
    assert list(read_table(path, (), ()).names.values()) == ["m", "n"]
    assert [column.bench for column in read_published_benches(path).columns] == ["rewardbench"]


@each(
    ("word", "kind"),
    [
        ("Sequence Classifier", "classifier"), ("Seq. Classifier", "classifier"), ("判别式", "classifier"),
        ("Generative RM", "generative"), ("Generative", "generative"), ("DPO", "implicit"), ("n/a", None),
    ],
)  # fmt: skip
def test_kinds_of_models_are_read_in_the_words_of_leaderboards(word, kind, table_of):
    assert table_of(f"model,Model Type,de,fr\nm,{word},60,70\n").models[0].kind == kind


def test_a_printed_deviation_is_checked_and_not_taken_for_a_language(table_of):
    table = table_of("model,de,fr,Std\nright,60.0,70.0,7.1\nwrong,60.0,70.0,5.0\n")
    assert (table.num_checked, [(slip.model, slip.column) for slip in table.slips]) == (2, [("wrong", "std")])
    assert list(table.columns) == ["de", "fr"]


AVERAGED = {
    "columns": "zho_Hans,zho_Hant,de,en,avg\n60,50,70,80,62.5\n50,60,72,80,63.5\n",
    "languages": "zho_Hans,zho_Hant,de,en,avg\n60,50,70,80,60.0\n50,60,73,80,61.0\n",
    "columns_and_baseline": "zh,ar,de,en,avg\n60,50,70,80,65.0\n50,60,72,80,65.5\n",
    "languages_and_baseline": "zho_Hans,zho_Hant,de,en,avg\n60,50,70,80,65.0\n50,60,74,80,66.0\n",
}


@each("name", AVERAGED)
def test_the_columns_that_printed_means_are_over_are_found_and_stated(name, table_of):
    head, *rows = AVERAGED[name].splitlines()
    table = table_of("\n".join([f"model,{head}", *(f"m{number},{row}" for number, row in enumerate(rows))]) + "\n")
    assert (table.averaged_over, table.slips) == (name, ())
    sentences = [sentence.key for sentence in VIEW.sentences(StageRun("table", None, table))]
    assert ("say_averaged_over" in sentences) == (name != "columns")


def test_one_row_that_adds_up_nowhere_is_a_slip_of_the_usual_columns(table_of):
    table = table_of("model,de,fr,en,avg\na,60,70,80,65\nb,60,70,80,65\nc,60,70,80,99\n")
    assert (table.averaged_over, [slip.model for slip in table.slips]) == ("columns", ["c"])


def test_a_selection_of_languages_keeps_models_that_have_them_and_no_printed_mean(table_of):
    text = "model,en,de,fr,he,avg\na,80,60,,50,60\nb,80,70,71,60,67\n"
    assert [row.model for row in table_of(text).models] == ["b"]
    table = table_of(text, languages=["English", "deu_Latn", "he"])
    assert [(row.model, row.mean.value) for row in table.models] == [
        ("a", pytest.approx(0.55)), ("b", pytest.approx(0.65)),
    ]  # fmt: skip
    assert (table.num_checked, table.incomplete) == (0, {})


def test_another_baseline_than_english_is_left_out_of_the_mean(table_of):
    row = table_of("model,en,de,fr\na,80,60,70\n", baseline="German").models[0]
    assert (row.english.value, row.mean.value) == (0.6, pytest.approx(0.75))
    assert row.drop.absolute.value == pytest.approx(-0.15)


@each("selection", [{"languages": ["ar", "de"]}, {"baseline": "ru"}])
def test_a_language_without_a_column_is_refused(selection, table_of):
    with pytest.raises(UserError, match="no item is in"):
        table_of("model,en,de,fr\na,80,60,70\n", **selection)


def test_a_selection_of_languages_is_refused_for_sections(table_of):
    with pytest.raises(UserError, match="the columns are sections"):
        table_of("model,chat,safety\na,-1,2\n", languages=["en"])


def test_english_and_one_language_are_a_table(table_of):
    row = table_of("model,en,zh\na,80,70\n").models[0]
    assert (row.drop.absolute.value, row.variance) == (pytest.approx(0.1), None)


def test_sections_are_read_with_hyphens_and_beside_the_whole_score(table_of):
    table = table_of(",Overall,Chat,Chat-Hard,Safety\nm,-9.0,-1.5,-3.5,-2.5\nn,-8.0,-2.5,-3.5,-2.5\n")
    assert (list(table.columns), table.slips) == (["Overall", "Chat", "Chat-Hard", "Safety"], ())


def test_numbers_that_a_program_saved_in_full_are_shown_with_few_digits(table_of):
    assert table_of("model,de,fr\nm,0.7028412411486191,0.6\n").decimals == 2
    assert table_of("model,de,fr\nm,70.2841,60.1\n").decimals == 4


def test_a_mean_of_whole_numbers_is_shown_with_a_digit(table_of):
    panels = list(VIEW.panels(StageRun("table", None, table_of("model,en,de,fr\nm,80,70,71\n")), NO_SOURCES))
    assert panels[0].tables[0].table.rows[0][1:3] == ("80", "70.5")


def test_a_correlation_of_equal_values_is_called_undefined(table_of):
    rows = "".join(f"m{number},80,7{number},60\n" for number in range(8))
    sentences = [each.key for each in VIEW.sentences(StageRun("table", None, table_of("model,en,de,fr\n" + rows)))]
    assert "say_no_correlation" in sentences


def test_the_mean_drop_of_published_numbers_promises_no_interval(table_of):
    table = table_of("model,type,en,de,fr\nm,generative,80,70,71\n")
    keys = [sentence.key for sentence in VIEW.sentences(StageRun("table", None, table))]
    assert "say_published_drop_by_kind" in keys
    assert "say_drop_by_kind" not in keys


def test_a_page_of_published_numbers_promises_no_intervals(table_of):
    table = table_of("model,en,de,fr\nm,80,70,71\n")
    panels = list(VIEW.panels(StageRun("table", None, table), NO_SOURCES))
    words = " ".join(
        section_texts()[key]["en"]
        for panel in panels
        for key in (panel.note, panel.figure.about if panel.figure else "")
        if key
    )
    assert "95% interval" not in words
    assert "Intervals" not in words


def test_names_from_right_to_left_keep_their_order_in_sentences(table_of):
    """Marks of columns beside them were drawn with the names that follow."""
    table = table_of("model,de,fr,avg\nنموذج (v2),60,70,99\nדגם 5 B,60,,65\nm,50,60,55\n")
    values = {each.key: each.values for each in VIEW.sentences(StageRun("table", None, table))}
    assert values["say_printed_slips"]["rows"] == f"{isolate('نموذج (v2)')} (avg)"
    assert values["say_incomplete_rows"]["rows"] == f"{isolate('דגם 5 B')} (fr)"


def test_every_name_of_a_language_on_pages_is_read_as_its_language():
    names = {key.removeprefix("name_of_"): text["zh"] for key, text in section_texts().items() if "name_of_" in key}
    assert {code: language_key(name) for code, name in names.items()} == {code: language_key(code) for code in names}
