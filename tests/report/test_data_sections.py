"""Sections of the stages that divide, join, score and simulate data, and of studies of filters."""

import msgspec
import pytest

from report_runs import estimate
from report_sections import only_section, page, panels_of
from steelyard.core.types import Counts, Response
from steelyard.curation.filter_study import (
    AreaUnderCurve,
    FilterPrecision,
    FilterStudySummary,
    PrecisionStudy,
    PreferencePrecision,
)
from steelyard.evaluation.tables import DASH, language_word, word
from steelyard.io.cases import write_cases
from steelyard.io.lineage import record_folder
from steelyard.io.rows import write_rows
from steelyard.io.run_folder import result_folder
from steelyard.stages.convert import Config as ConvertConfig
from steelyard.stages.convert import convert
from steelyard.stages.evaluate import Config as EvaluateConfig
from steelyard.stages.evaluate import evaluate
from steelyard.stages.languages import languages
from steelyard.stages.merge import merge
from steelyard.stages.score import score
from steelyard.stages.simulate import Config as SimulateConfig
from steelyard.stages.simulate import simulate
from steelyard.stages.split import Config as SplitConfig
from steelyard.stages.split import split
from steelyard.statistics.intervals import Estimate
from steelyard.views.filter_study import filter_word
from strategies import case


def test_a_split_shows_every_category_and_language_in_its_parts(tmp_path):
    groups = [("数学", "zh"), ("code", "en")]
    cases = [
        case(f"{category}{n}", "ab", text=f"{category} {n} {n * 7919}", category=(category,), language=language)
        for category, language in groups
        for n in range(10)
    ]
    write_cases(tmp_path / "cases.jsonl", cases)
    parts = {"train": 0.8, "test": 0.2}
    split(tmp_path / "cases.jsonl", tmp_path / "out", SplitConfig(parts=parts, near_duplicates="off"))
    section, sentences = only_section(tmp_path / "out")
    assert sentences[0].values["cases"] == "20"
    assert "train 16 (80.0%)" in sentences[0].values["parts"]
    tables = [panel.tables[0].table for panel in section.panels]
    assert [sorted(table.rows) for table in tables] == [
        [("test", "4", "20.0%"), ("train", "16", "80.0%")],
        [("code", "10", "8 (80.0%)", "2 (20.0%)"), ("数学", "10", "8 (80.0%)", "2 (20.0%)")],
        [(language_word(name), "10", "8 (80.0%)", "2 (20.0%)") for name in ("en", "zh")],
    ]


def test_a_split_of_one_group_has_its_parts_alone(tmp_path):
    write_cases(tmp_path / "cases.jsonl", [case(f"p{n}", "ab", text=f"{n * 7919}") for n in range(10)])
    split(tmp_path / "cases.jsonl", tmp_path / "out", SplitConfig(near_duplicates="off"))
    section, sentences = only_section(tmp_path / "out")
    assert [panel.title for panel in section.panels] == [word("split_parts")]
    assert sorted(section.panels[0].tables[0].table.rows) == [("test", "2", "20.0%"), ("train", "8", "80.0%")]
    assert sentences[0].values["groups"] == "10"


def test_a_merge_shows_what_it_joined(tmp_path):
    write_cases(tmp_path / "a.jsonl", [case("p", "ab", judgments=["a>b"]), case("q", "ab")])
    write_cases(tmp_path / "b.jsonl", [case("p", "ab", judgments=["a=b"])])
    merge([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "out")
    section, sentences = only_section(tmp_path / "out")
    values = sentences[0].values
    assert (values["read"], values["files"], values["cases"], values["joined"]) == ("3", "2", "2", "1")
    assert section.panels[0].tables[0].table.rows == (
        (word("merge_read"), "3"),
        (word("merge_cases"), "2"),
        (word("rule_joined", "joined"), "1"),
    )


def test_scores_have_a_distribution(tmp_path):
    answers = tuple(Response(id=name, text="x" * length) for name, length in (("a", 10), ("b", 20), ("c", 30)))
    write_cases(tmp_path / "cases.jsonl", [msgspec.structs.replace(case("p", "abc"), responses=answers)])
    score(tmp_path / "cases.jsonl", tmp_path / "out", model="longer")
    section, sentences = only_section(tmp_path / "out")
    assert sentences[0].key == "say_scored"
    (panel,) = section.panels
    assert panel.tables[0].table.rows[0][3] == "20.000"  # the median length
    assert sum(row["n"] for row in panel.figure.spec["data"]["values"]) == 3


def test_equal_scores_have_no_figure(tmp_path):
    write_cases(tmp_path / "cases.jsonl", [case("p", "abc")])
    score(tmp_path / "cases.jsonl", tmp_path / "out", model="longer")
    section, _ = only_section(tmp_path / "out")
    assert section.panels[0].figure is None


def test_a_simulation_counts_prompts_and_answers_of_each_part(tmp_path):
    run = simulate(tmp_path / "out", SimulateConfig(num_prompts=16, test_share=0.5))
    made, _ = only_section(tmp_path / "out")
    rows = made.panels[0].tables[0].table.rows
    assert rows[0] == (word("prompts"), *map(str, run.summary.num_prompts.values()))
    good = next(row for row in rows if row[0] == word("answer_good_answer", "good_answer"))
    assert good[1:] == rows[0][1:]  # every prompt has one good answer


def test_languages_show_what_the_limit_cuts(tmp_path):
    cases = [case(f"p{n}", "ab", language=name, ranking=(("a",), ("b",))) for name in ("en", "he") for n in range(20)]
    write_cases(tmp_path / "bench.jsonl", cases)
    config = EvaluateConfig(num_resamples=20, baselines=())
    evaluate([tmp_path / "bench.jsonl"], tmp_path / "run", config, model="first")
    run = languages([tmp_path / "run"], out=tmp_path / "languages")
    record = msgspec.json.decode((tmp_path / "languages" / "run.json").read_bytes())
    assert run.summary.coverage is not None
    record["summary"]["coverage"] = {
        "num_responses": 80, "num_cut": 12, "num_unscored": 2,
        "by_language": {
            "en": {"num_responses": 40, "num_cut": 2, "num_unscored": 0},
            "he": {"num_responses": 40, "num_cut": 10, "num_unscored": 2},
        },
    }  # fmt: skip
    (tmp_path / "languages" / "run.json").write_bytes(msgspec.json.encode(record))
    section, sentences = only_section(tmp_path / "languages")
    hebrew, english = word("name_of_he", "Hebrew"), word("name_of_en", "English")
    assert sentences[-1].values == {"most": hebrew, "share": "25.0%", "least": english, "smallest": "5.0%"}
    assert section.panels[-1].tables[0].table.rows == (
        (hebrew, "40", "25.0%", "5.0%"),
        (english, "40", "5.0%", "0.0%"),
    )


def filter_study_run(folder, *, precision=True):
    """A run of filter-study with three filters."""
    share = msgspec.convert(estimate(0.8, 100), Estimate)
    itself = Estimate(0.0, -0.02, 0.02, 100)
    gain = Estimate(0.05, 0.01, 0.09, 100)
    names = ("all", "agrees", "agrees, margin above 25%")
    rows = tuple(
        FilterPrecision(
            filter=name, num_kept=100 - 30 * place, coverage=1 - 0.3 * place, precision=share,
            gain=gain if place else itself, precision_of_dropped=share, over_random=gain if place else itself,
            over_length=gain if place else itself,
        )
        for place, name in enumerate(names)
    )  # fmt: skip
    by_preference = (PreferencePrecision(group="prefers the longer", all=share, agrees=share, gain=gain),)
    study = PrecisionStudy(
        num_verdicts=100,
        filters=rows,
        by_preference=by_preference,
        area_under_curve=AreaUnderCurve(margin=share, length=share),
    )
    summary = FilterStudySummary(
        judge="gpt", model="ngram", num_prompts=10, num_human_pairs=40, num_human_pairs_trained_on=40,
        precision=study if precision else None,
    )  # fmt: skip
    write_cases(folder.parent / "judged.jsonl", [case("p", "ab")])
    with result_folder(folder, "filter-study", config={}, inputs={"cases": folder.parent / "judged.jsonl"}) as result:
        result.counts = Counts(num_in=100, num_used=100)
        result.summary = summary
    return folder


def test_a_study_of_filters_has_its_table_and_figure(tmp_path):
    section, sentences = only_section(filter_study_run(tmp_path / "out"))
    assert sentences[0].values["gain"] == "+5.0"
    assert sentences[0].values["coverage"] == "70.0%"
    panels = panels_of(section)
    rows = panels[word("filter_precision")].tables[0].table.rows
    assert rows[0][5:7] == ("0.0", DASH)  # nothing is compared with itself
    assert rows[1][5] == "+5.0"


def test_a_study_without_people_on_the_same_pairs_says_so(tmp_path):
    made = page(filter_study_run(tmp_path / "out", precision=False))
    assert made.sentences[0].key == "say_no_filter_precision"
    assert made.sections == (), "nothing stands below a title of its own"


@pytest.mark.parametrize(
    ("name", "shown"),
    [("longer", word("filter_longer", "longer")), ("my filter 2", word("filter_my_filter", "my filter 2"))],
)
def test_filters_have_words(name, shown):
    assert filter_word(name) == shown
    assert "25%" in filter_word("agrees, margin above 25%")


def test_a_conversion_shows_what_was_read_and_what_became_of_it(tmp_path):
    rows = [
        {"prompt": "q", "chosen": "a", "rejected": "b", "license": "mit"},
        {"prompt": "q", "chosen": "a", "rejected": "<b>c</b>", "note": "<i>x</i>"},
        {"prompt": "问题", "chosen": "好", "rejected": "坏"},
    ]
    source, out = tmp_path / "rows.jsonl", tmp_path / "cases.jsonl"
    write_rows(source, rows)
    convert(source, out, ConvertConfig(language="zh", dataset_name="owner/name"))
    section, (sentence,) = only_section(out)  # the file stands for its record
    assert sentence.key == "say_converted"
    assert (sentence.values["run"], sentence.values["rows"], sentence.values["cases"]) == ("cases.jsonl", "3", "2")
    panels = panels_of(section)
    read = dict(panels[word("convert_read")].tables[0].table.rows)
    assert read[word("convert_datasets")] == "owner/name"
    assert read[word("convert_licences")] == "mit"
    assert read["rows.jsonl"].startswith("SHA-256 ")
    columns = panels[word("convert_columns")].tables[0].table.rows
    assert columns == (
        ("chosen", "3", word("convert_use_read")),
        ("prompt", "3", word("convert_use_read")),
        ("rejected", "3", word("convert_use_read")),
        ("license", "1", word("convert_use_kept")),
        ("note", "1", word("convert_use_kept")),
    )
    groups = panels[word("convert_groups")].tables[0].table.rows
    assert [row[1] for row in groups] == ["2"]
    changes = panels[word("convert_changes")].tables[0].table.rows
    assert (word("convert_joined"), word("convert_rows_joined"), "1") in changes
    convert(out, tmp_path / "back.jsonl", ConvertConfig(to_kind="cheems"))
    section, sentences = only_section(record_folder(tmp_path / "back.jsonl"))
    assert [sentence.key for sentence in sentences] == ["say_converted_rows", "say_converted_lost"]
    lost = panels_of(section)[word("convert_changes")].tables[0].table.rows
    assert word("convert_lost") in {row[0] for row in lost}
