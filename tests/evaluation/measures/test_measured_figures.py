import pytest

from report_figures import accepted, rows
from steelyard.evaluation.measures.measured_figures import regret_figure, reliability_figure
from steelyard.evaluation.tables import word
from steelyard.report.measured_contents import Bin, Calibrated, Calibration, Lost, Means, Sides
from steelyard.report.summary_readers import Estimate


def lost(*values):
    return Lost(
        curve=tuple(
            Sides(
                budget=budget,
                model=Means(macro=Estimate(value=value, low=value - 0.1, high=value + 0.1, n=9)),
                chance=Means(macro=Estimate(value=2 * value)),
            )
            for budget, value in enumerate(values, 2)
        )
    )


def test_every_model_has_its_curve_and_chance_stands_beside_them():
    figure = regret_figure({"m": lost(0.2, 0.3), "other": lost(0.4, 0.6, 0.7), "short": lost(0.1)}, "tiers_lost")
    assert [mark.name for mark in figure.legend] == ["m", "other", word("at_random")]
    drawn = rows(accepted(figure))
    assert {(row["n"], row["value"]) for row in drawn if row["series"] == "other"} == {(2, 0.4), (3, 0.6), (4, 0.7)}
    assert [row["value"] for row in drawn if row["series"] == word("at_random")] == [0.4, 0.6]


@pytest.mark.parametrize("curve", [(), (0.1,)])
def test_one_n_is_no_curve(curve):
    assert regret_figure({"m": lost(*curve)}, "tiers_lost") is None


def test_confidence_is_drawn_before_and_after():
    def bins(*pairs):
        return tuple(Bin(confidence=one, accuracy=Estimate(value=two, low=two, high=two, n=5)) for one, two in pairs)

    figure = reliability_figure(
        Calibration(curve=bins((0.6, 0.5), (0.9, 0.7)), cross_validated=Calibrated(curve=bins((0.55, 0.5))))
    )
    drawn = [row for row in rows(accepted(figure)) if row.get("series") == word("rewards_as_they_are")]
    assert (drawn[0]["confidence"], drawn[0]["value"]) == (0.6, 0.5)
    assert {row["confidence"] for row in rows(figure.spec) if row.get("series") == word("with_temperature")} == {0.55}
    assert reliability_figure(Calibration()) is None
