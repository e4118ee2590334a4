import vl_convert

from steelyard.report.study_figures import ablation_figure
from steelyard.statistics.intervals import Estimate


def test_every_arm_has_its_interval_its_seeds_and_its_place():
    rows = [("human 人", Estimate(0.8, 0.7, 0.9, 10), (0.79, 0.81)), ("llm", Estimate(0.6, 0.5, 0.7, 10), (0.6,))]
    spec = ablation_figure(rows)
    intervals, seeds, _ = (layer["data"]["values"] for layer in spec["layer"])
    assert [(row["arm"], row["low"], row["high"]) for row in intervals] == [("human 人", 0.7, 0.9), ("llm", 0.5, 0.7)]
    assert [row["value"] for row in seeds] == [0.79, 0.81, 0.6]
    assert spec["encoding"]["y"]["sort"] == ["human 人", "llm"]
    drawn = vl_convert.vegalite_to_svg(spec)
    assert "human 人" in drawn
    assert drawn.count("<path") >= 7
