import re

import msgspec
import numpy as np
import pytest

from steelyard.core.types import Run
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.evaluation.tables import points
from steelyard.io.cases import write_cases
from steelyard.io.run_folder import read_run
from steelyard.report.evaluation_sections import best_baseline, evaluation_cards
from steelyard.report.few_labels import few_labels_section
from steelyard.report.page import page_strings
from steelyard.stages.compare import Config as CompareConfig
from steelyard.stages.compare import compare
from steelyard.stages.evaluate import Config, evaluate
from steelyard.stages.report import report
from steelyard.viewing.runs import RunOverview, headline_of
from strategies import case


@pytest.fixture
def folders(tmp_path):
    random = np.random.default_rng(0)
    human, judged = [], []
    for index in range(200):
        order = [("a", "b"), ("b", "a")][int(random.random() < 0.3)]
        same = random.random() < 0.9
        for cases, names in ((human, order), (judged, order if same else order[::-1])):
            each = case(f"q{index}", "ab", text=f"问题 {index}", ranking=tuple((name,) for name in names))
            cases.append(each)
    write_cases(tmp_path / "few.jsonl", human[:60])
    write_cases(tmp_path / "many.jsonl", judged)
    files = {"human": tmp_path / "few.jsonl", "judged": tmp_path / "many.jsonl"}
    for model in ("first", "random"):
        evaluate([], tmp_path / model, Config(num_resamples=100, width=0.1), model=model, **files)
    compare([tmp_path / "first", tmp_path / "random"], tmp_path / "compared", CompareConfig(num_resamples=100))
    return tmp_path


def test_a_page_has_the_values_in_both_languages(folders):
    runs = [folders / name for name in ("first", "random", "compared")]
    report(runs, folders / "page.html")
    page = (folders / "page.html").read_text(encoding="utf-8")
    for words in (
        "Few human and many judge labels",
        "少量人工标注与大量评判者标注",
        "More labels needed",
        "还需标注",
        "Differences in accuracy from human and judge labels",
        "结合人工与评判者标注的准确率差值",
    ):
        assert words in page, words


def test_the_table_has_a_row_for_each_value_and_the_labels_that_are_missing(folders):
    summary = read_run(folders / "first", Run[EvaluationSummary]).summary
    section = few_labels_section({"first": summary}, ["evidence"])
    (rows,) = (grouped.table.rows for grouped in section.panels[0].tables)
    accuracy = next(row for row in rows if "accuracy" in row[0])
    powered = summary.prediction_powered.accuracy
    assert accuracy[1] == f"{100 * powered.estimate.value:.1f}%"
    assert accuracy[-2:] == (f"{powered.effective_labels:.2f}", f"{powered.needed.more:,}")
    assert {len(row) for row in rows} == {len(accuracy)}
    names = [sentence.key for sentence in section.sentences]
    # 200 judged prompts are too few for an interval of a tenth, whatever the number of human labels.
    assert names == ["say_few_labels", "say_labels_needed_alone"]
    assert powered.needed.with_judge is None


def test_every_measure_has_a_chinese_name(folders):
    summary = read_run(folders / "first", Run[EvaluationSummary]).summary
    section = few_labels_section({"first": summary}, ["evidence"])
    (rows,) = (grouped.table.rows for grouped in section.panels[0].tables)
    titles = [page_strings().translate(row[0], "zh") for row in rows]
    assert len(titles) > 8
    assert [title for title in titles if re.search("[a-z]{3}", title) and "Kendall" not in title] == []
    assert section.sentences[0].values["labelled"] == "60"


def test_one_kind_of_labels_has_no_section(folders):
    evaluate([folders / "few.jsonl"], folders / "plain", Config(num_resamples=50), model="first")
    plain = read_run(folders / "plain", Run[EvaluationSummary]).summary
    assert few_labels_section({"first": plain}, ["evidence"]) is None


def test_the_combined_value_heads_cards_leads_and_the_list_of_runs(folders):
    run = read_run(folders / "first", Run[EvaluationSummary])
    summary, powered = run.summary, run.summary.prediction_powered
    first, alone, *_, lead = evaluation_cards("first", summary)
    both, by_people = powered.accuracy.estimate.value, summary.accuracy.value
    assert (first.number, alone.number) == (f"{100 * both:.1f}%", f"{100 * by_people:.1f}%")
    assert first.number != alone.number, "the labels of the judge change the value"
    titles = [page_strings().translate(card.title, "en") for card in (first, alone, lead)]
    assert titles[:2] == ["Accuracy, human and judge labels", "Accuracy, human labels alone"]
    assert titles[2].endswith("human and judge labels")
    best = best_baseline(summary.model, summary.baselines)
    assert lead.number == points(powered.baselines[best].estimate.value)
    overview = msgspec.json.decode((folders / "first" / "run.json").read_bytes(), type=RunOverview)
    number, about, *_ = headline_of(overview)
    assert number == first.number
    assert page_strings().translate(about, "en").split(" · ")[0].endswith(f"human labels alone {alone.number}")
