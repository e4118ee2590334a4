from steelyard.report.study_figures import ScalingPoint, scaling_figure
from steelyard.statistics.intervals import Estimate


def mark(series, start, share, weights):
    return ScalingPoint(series, start, share, 100 * share, weights, Estimate(0.6, 0.5, 0.7, 10), (0.55, 0.65))


def sizes(figure):
    return [panel["layer"][0]["encoding"]["x"]["field"] for panel in figure["hconcat"]]


def rows(panel):
    return panel["layer"][0]["data"]["values"]


def test_panels_are_those_of_what_differs():
    shares = [mark("小", "pretrained", share, 10) for share in (0.5, 1.0)]
    assert sizes(scaling_figure(shares)) == ["num_pairs"]
    models = [mark("小", "pretrained", 1.0, 10), mark("大", "pretrained", 1.0, 40)]
    assert sizes(scaling_figure(models)) == ["num_weights"]
    assert sizes(scaling_figure([*shares, *models])) == ["num_pairs", "num_weights"]
    assert sizes(scaling_figure([mark("rate=1", "", 1.0, 10), mark("rate=2", "", 1.0, 10)])) == ["series"]


def test_sizes_are_compared_at_the_largest_share_and_every_seed_is_shown():
    figure = scaling_figure([mark("a", "x", 0.5, 10), mark("a", "x", 1.0, 10), mark("b", "x", 1.0, 40)])
    by_pairs, by_weights = figure["hconcat"]
    assert [row["num_pairs"] for row in rows(by_pairs)] == [50, 100, 100]
    assert [row["num_weights"] for row in rows(by_weights)] == [10, 40]
    assert [row["value"] for row in by_weights["layer"][2]["data"]["values"]] == [0.55, 0.65, 0.55, 0.65]
    assert (rows(by_weights)[0]["low"], rows(by_weights)[0]["high"]) == (0.5, 0.7)
