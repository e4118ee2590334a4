import vl_convert

from steelyard.curation.filter_study import AreaUnderCurve, FilterPrecision, PrecisionStudy
from steelyard.curation.filter_trials import ArmAccuracy, ShareTrial
from steelyard.report.study_figures import filtering_figure
from steelyard.statistics.intervals import Estimate


def share(value):
    return Estimate(value, value - 0.1, value + 0.1, 10)


def precision_row(**fields):
    others = ("gain", "precision_of_dropped", "over_random", "over_length")
    return FilterPrecision(num_kept=1, **dict.fromkeys(others, share(0.1)), **fields)


def arm_row(arm, value):
    differences = dict.fromkeys(("minus_human", "minus_all", "minus_random"), share(0.1))
    return ArmAccuracy(arm=arm, num_pairs=1.0, accuracy=share(value), **differences)


def test_a_panel_for_precision_and_one_for_each_share_of_prompts():
    rows = (precision_row(filter="all", coverage=1.0, precision=share(0.8)),)
    area = AreaUnderCurve(margin=share(0.5), length=share(0.5))
    study = PrecisionStudy(num_verdicts=10, filters=rows, by_preference=(), area_under_curve=area)
    arms = tuple(arm_row(name, value) for name, value in (("human only", 0.6), ("+ 好", 0.7)))
    trials = [
        ShareTrial(human_share=0.1, human_prompts=10.0, arms=arms),
        ShareTrial(human_share=0.5, human_prompts=50.0, arms=arms[::-1]),
    ]
    spec = filtering_figure(study, trials)
    precision, first, second = spec["vconcat"]
    assert precision["data"]["values"] == [{"filter": "all", "coverage": 1.0, **share(0.8).record()}]
    assert first["encoding"]["y"]["sort"] == ["human only", "+ 好"]
    assert second["encoding"]["y"]["sort"] == ["+ 好", "human only"]
    drawn = vl_convert.vegalite_to_svg(spec)
    assert "+ 好" in drawn
    assert "50 prompts" in drawn
    assert len(filtering_figure(None, trials)["vconcat"]) == 2
