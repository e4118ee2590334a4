import vl_convert

from steelyard.report.filtering import filtering_figure


def share(value):
    return {"value": value, "low": value - 0.1, "high": value + 0.1, "n": 10}


def test_a_panel_for_precision_and_one_for_each_share_of_prompts():
    rows = [{"filter": "all", "coverage": 1.0, "precision": share(0.8)}]
    arms = [{"arm": name, "accuracy": share(value)} for name, value in (("human only", 0.6), ("+ 好", 0.7))]
    records = [{"human_prompts": 10.0, "arms": arms}, {"human_prompts": 50.0, "arms": arms[::-1]}]
    spec = filtering_figure({"filters": rows}, records)
    precision, first, second = spec["vconcat"]
    assert precision["data"]["values"] == [{"filter": "all", "coverage": 1.0, **share(0.8)}]
    assert first["encoding"]["y"]["sort"] == ["human only", "+ 好"]
    assert second["encoding"]["y"]["sort"] == ["+ 好", "human only"]
    drawn = vl_convert.vegalite_to_svg(spec)
    assert "+ 好" in drawn
    assert "50 prompts" in drawn
    assert len(filtering_figure(None, records)["vconcat"]) == 2
