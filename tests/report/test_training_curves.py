import pytest
from msgspec.structs import replace

from report_figures import accepted, rows
from report_sections import run_with
from steelyard.evaluation.tables import word
from steelyard.report.training_curves import (
    CurvePoint,
    LossPoint,
    held_out_figure,
    loss_figure,
    losses,
    thinned,
)
from steelyard.training.config import HeldOutAccuracy, LengthSummary, TrainingSummary
from steelyard.views.train import VIEW
from steelyard.views.view import NO_SOURCES


def held_out_accuracy(accuracy, number):
    return HeldOutAccuracy(
        accuracy=accuracy, exact_match=0.0, num_pairs=number, num_prompts=number, by_category={}, by_language={}
    )


CURVE = [
    CurvePoint(step=1, loss=1.0),
    CurvePoint(step=2, loss=0.0),
    CurvePoint(step=2, held_out=held_out_accuracy(0.6, 50)),
    CurvePoint(step=3, loss=0.0),
]


def test_smoothing_by_hand():
    smoothed = [point.smoothed for point in losses(CURVE)]
    assert smoothed == pytest.approx([1.0, 0.09 / 0.19, 0.081 / 0.271])


def test_thinning_keeps_the_ends_and_the_order():
    points = [LossPoint(step, 0.0, 0.0) for step in range(1000)]
    kept = [point.step for point in thinned(points, 7)]
    assert kept == sorted(kept)
    assert (len(kept), kept[0], kept[-1]) == (7, 0, 999)
    assert thinned(points[:7], 7) == tuple(points[:7])


def test_the_figures_have_every_step_and_every_evaluation():
    loss, held_out = loss_figure({"a": CURVE}), held_out_figure({"a": CURVE, "b": CURVE})
    assert [row["step"] for row in rows(accepted(loss))] == [1, 2, 3]
    assert [row["value"] for row in rows(accepted(held_out)) if "value" in row] == [0.6, 0.6]
    assert loss.legend == ()
    assert [mark.name for mark in held_out.legend] == ["a", "b"]


def test_no_curve_is_no_figure():
    assert loss_figure({}) is None
    assert held_out_figure({"a": CURVE[:2]}) is None


def test_the_section_has_the_curves_that_there_are(tmp_path):
    (section,) = VIEW.page_contents([run_with(training())], NO_SOURCES).sections
    assert [panel.title for panel in section.panels] == [word("training_numbers")]
    assert section.panels[0].tables[0].table.rows == (("run", "4", "4", "8", "0.500"),)
    (tmp_path / "curve.jsonl").write_text('{"step": 1, "loss": 0.5}\n')
    run = run_with(training())
    source = run.source._replace(folder=tmp_path)
    source = source._replace(run=replace(source.run, outputs={"curve.jsonl": ""}))
    (section,) = VIEW.page_contents([run._replace(source=source)], NO_SOURCES).sections
    assert [panel.title for panel in section.panels] == [word("loss"), word("training_numbers")]


def training(held_out=None, **length):
    counts = {"num_responses": 10, "num_too_long": 0, "num_pairs": 8, "num_pairs_over": 0, "num_prompts": 4}
    counts |= {"num_prompts_over": 0, "is_cut": False, "max_length": 20, "longest": 30} | length
    return TrainingSummary(
        kernel="packed",
        num_steps=4,
        learning_rate=None,
        prompts_per_step=None,
        regulariser=0.1,
        num_prompts=4,
        num_responses=10,
        num_weights=1,
        num_pairs=8,
        share_of_pairs_kept=1.0,
        length=LengthSummary(over_length="unscored", by_language={}, **counts),
        final_loss=0.5,
        held_out=held_out,
        last_step=4,
    )


def test_trainings_in_words():
    for summary, keys in (
        (training(), ["say_training"]),
        (training(num_too_long=2), ["say_training", "say_length_lost"]),
        (training(num_too_long=2, is_cut=True), ["say_training", "say_length_cut"]),
        (training(held_out=held_out_accuracy(0.6, 7)), ["say_training", "say_held_out"]),
    ):
        assert [sentence.key for sentence in VIEW.sentences(run_with(summary))] == keys
