import vl_convert

from steelyard.curation.filter_study import AreaUnderCurve, FilterPrecision, PrecisionStudy
from steelyard.report.study_figures import filtering_figure
from steelyard.statistics.intervals import Estimate


def share(value):
    return Estimate(value, value - 0.1, value + 0.1, 10)


def precision_row(**fields):
    others = ("gain", "precision_of_dropped", "over_random", "over_length")
    return FilterPrecision(num_kept=1, **dict.fromkeys(others, share(0.1)), **fields)


def test_a_figure_of_precision_by_coverage():
    rows = (precision_row(filter="all", coverage=1.0, precision=share(0.8)),)
    area = AreaUnderCurve(margin=share(0.5), length=share(0.5))
    spec = filtering_figure(PrecisionStudy(num_verdicts=10, filters=rows, by_preference=(), area_under_curve=area))
    assert spec["vconcat"][0]["data"]["values"] == [{"filter": "all", "coverage": 1.0, **share(0.8).record()}]
    assert "coverage" in vl_convert.vegalite_to_svg(spec)
    assert vl_convert.vegalite_to_svg(filtering_figure(None)).startswith("<svg")
