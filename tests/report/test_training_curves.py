import pytest

from report_figures import accepted, rows
from steelyard.evaluation.tables import word
from steelyard.report.summary_readers import CurvePoint, HeldOut, Training
from steelyard.report.training_curves import (
    LossPoint,
    held_out_figure,
    loss_figure,
    losses,
    thinned,
    training_section,
    training_sentences,
)

CURVE = [
    CurvePoint(step=1, loss=1.0),
    CurvePoint(step=2, loss=0.0),
    CurvePoint(step=2, held_out=HeldOut(accuracy=0.6, num_pairs=50)),
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


def test_the_section_has_the_curves_that_there_are():
    curve = [CurvePoint(step=1, loss=0.5)]
    assert [panel.title for panel in training_section({"t": curve}, []).panels] == [word("loss")]
    assert training_section({"t": []}, []).panels == ()


def test_trainings_in_words():
    held_out = HeldOut(accuracy=0.6, num_pairs=7)
    for training, keys in (
        (Training(num_steps=4), ["say_training"]),
        (Training(held_out=held_out), ["say_training", "say_held_out"]),
    ):
        assert [sentence.key for sentence in training_sentences(training)] == keys
