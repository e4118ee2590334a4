from evaluation_summaries import around, baseline, estimate, evaluation_summary, group
from report_figures import accepted, rows
from steelyard.evaluation.measures.accuracy import (
    Named,
    SubsetAccuracy,
    bench_table,
    group_figure,
    group_table,
    overview_figure,
    overview_table,
)
from steelyard.evaluation.tables import word


def measured(value, n=10):
    return group(around(value, n), around(value / 2, n))


BASELINES = {
    "random": baseline(around(0.5), estimate(0.2, 0.1, 0.3), by_category={"数学": measured(0.5)}),
    "mine": baseline(
        around(0.6), exact_match=around(0.25), by_category={"数学": measured(0.62), "other": measured(0.1)}
    ),
}
EVALUATION = evaluation_summary(
    accuracy=around(0.7),
    exact_match=around(0.4),
    by_category={"code": measured(0.65, 4), "数学": measured(0.75, 1234)},
    by_language={"zh": measured(0.7), "en": measured(0.6)},
    baselines=BASELINES,
)
NAMED = Named("model", EVALUATION)


def test_the_overview_names_model_then_baselines_from_best_to_worst():
    shown = overview_table(NAMED).rows
    assert [row[0] for row in shown] == ["model", word("baseline_mine", "mine"), word("baseline_random", "random")]
    assert shown[0] == ("model", "70.0%", "60.0–80.0%", "40.0%", "30.0–50.0%", "", "")
    assert shown[2][5:] == ("+20.0", "+10.0 … +30.0")
    assert shown[1][5:] == ("–", "–")


def test_the_overview_figure_has_every_value_with_its_interval_and_the_chance_level():
    drawn = rows(accepted(overview_figure([NAMED])))
    assert {(row["value"], row["low"], row["high"]) for row in drawn if "value" in row} == {
        (0.7, 0.6, 0.7999999999999999),
        (0.6, 0.5, 0.7),
        (0.5, 0.4, 0.6),
    }
    assert {"at": 0.5} in drawn


def test_a_group_stands_beside_what_the_baselines_do_there():
    table = group_table("category", EVALUATION.by_category, {name: own.by_category for name, own in BASELINES.items()})
    assert table.columns[4:6] == (word("baseline_random", "random"), word("baseline_mine", "mine"))
    assert table.rows[0] == ("code", "4", "65.0%", "55.0–75.0%", "–", "–", "4", "32.5%", "22.5–42.5%")
    assert table.rows[1][1:6] == ("1,234", "75.0%", "65.0–85.0%", "50.0%", "62.0%")


def test_the_group_figure_puts_the_best_group_first_and_says_n():
    figure = group_figure([NAMED], "category")
    spec = accepted(figure)
    assert spec["layer"][-1]["encoding"]["y"]["sort"] == ["数学\nn = 1,234", "code\nn = 4"]
    quiet = spec["layer"][0]["data"]["values"]
    assert [row["value"] for row in quiet] == [0.5, 0.62]
    assert [mark.name for mark in figure.legend] == [
        "model",
        word("baseline_random", "random"),
        word("baseline_mine", "mine"),
    ]


def test_two_models_stand_side_by_side_in_each_group():
    other = Named("other", evaluation_summary(by_category={"code": measured(0.3)}))
    spec = accepted(group_figure([NAMED, other], "category"))
    assert "yOffset" in spec["layer"][-1]["encoding"]
    assert len([row for row in spec["layer"][-1]["data"]["values"] if row["row"] == "code\nn = 4"]) == 2


def test_languages_have_no_baselines():
    figure = group_figure([NAMED], "language")
    accepted(figure)
    assert [mark.name for mark in figure.legend] == ["model"]


def test_a_bench_shows_its_sections_and_subsets_where_it_has_some():
    assert bench_table(EVALUATION) is None
    subset = SubsetAccuracy(
        accuracy=around(0.6, 30), exact_match=around(0.3, 30), by_category={"code": measured(0.5, 9)}
    )
    parts = bench_table(evaluation_summary(sections={"Chat": around(0.9, 358)}, subsets={"open": subset}))
    assert parts is not None
    assert parts.rows[0] == ("Chat", word("section"), "358", "90.0%", "80.0–100.0%", "", "")
    assert parts.rows[1][:5] == ("open", word("subset"), "30", "60.0%", "50.0–70.0%")
    assert parts.rows[2][:4] == ("open · code", word("category"), "9", "50.0%")


def test_a_group_that_only_the_second_model_has_is_drawn_too():
    other = Named("other", evaluation_summary(by_category={"new": measured(0.9)}))
    spec = accepted(group_figure([NAMED, other], "category"))
    assert spec["layer"][-1]["encoding"]["y"]["sort"][0] == "new\nn = 10"
