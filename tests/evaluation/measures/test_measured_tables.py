import tomllib
from importlib.resources import files
from typing import get_args

from steelyard.evaluation.measures.length import WhyNot
from steelyard.evaluation.measures.measured_tables import (
    calibration_table,
    group_measures,
    measure_table,
    policy_table,
    spread_table,
    weight_table,
)
from steelyard.evaluation.tables import DASH, MINUS, word
from steelyard.report.measured_contents import (
    Calibrated,
    Calibration,
    Ceiling,
    FirstChoice,
    Length,
    Lost,
    Means,
    Measures,
    MoreMeasured,
    People,
    Policy,
    Regret,
    Sides,
    Spread,
    Tau,
)
from steelyard.report.summary_readers import Estimate


def estimate(value, n=10):
    return Estimate(value=value, low=value - 0.1, high=value + 0.1, n=n)


def means(value, **groups):
    own = {name: estimate(other) for name, other in groups.items()}
    return Means(macro=estimate(value), micro=estimate(value + 0.05), by_language=own, by_category=own)


MEASURES = Measures(
    kendall_tau=Tau(macro=estimate(-0.2), micro=estimate(0.3), by_language={"zh": estimate(0.5), "he": estimate(0.1)}),
    top_1=FirstChoice(half=means(0.6, zh=0.7, he=0.5), chance=means(0.25)),
    regret=Regret(
        tiers=Lost(of_all=Sides(model=means(0.4, zh=0.2, he=0.6), chance=means(1.5))),
        ratings={"helpful": Lost(of_all=Sides(model=means(0.3), chance=means(0.9)))},
    ),
    length=Length(
        matched_ratio=1.1, raw=means(0.7), matched=means(0.65), adjusted=Estimate(value=0.62, low=0.52, high=0.72, n=10)
    ),
    human_ceiling=Ceiling(num_annotators=3, resolved=People(human=means(0.9), model=means(0.8))),
)


def by_title(table):
    return {row[0]: row[1:] for row in table.rows}


def test_a_row_a_measure_with_chance_beside_it():
    rows = by_title(measure_table(MEASURES))
    assert rows[word("kendall_tau")] == (
        f"{MINUS}0.200", f"{MINUS}0.300 … {MINUS}0.100", "0.300", "0.200 … 0.400", DASH, "10"
    )  # fmt: skip
    assert rows[word("top_1")][:2] == ("60.0%", f"50.0{DASH}70.0%")
    assert rows[word("top_1")][4] == "25.0%"
    assert rows[word("tiers_lost")][4] == "1.500"
    assert rows[f"{word('lost_of')} helpful"][0] == "0.300"
    assert rows[f"{word('like_length')} (1:1.1)"][0] == "65.0%"
    assert rows[word("no_difference")][:3] == (DASH, DASH, "62.0%")
    assert rows[word("people_resolved")][0] == "90.0%"
    # what was not measured has no row
    assert word("people_majority") not in rows
    assert word("better_longer") not in rows
    assert measure_table(Measures()) is None


def test_groups_stand_in_one_table_where_there_are_several():
    table = group_measures(MEASURES, "language")
    assert [row[0] for row in table.rows] == ["he", "zh"]
    assert table.rows[1][1] == "0.500"
    assert table.rows[1][3] == "70.0%"
    assert table.rows[1][5] == "0.200"
    assert group_measures(Measures(), "language") is None


def test_policies_and_weights():
    found = MoreMeasured(
        policies={
            "wrong": Policy(accuracy=estimate(0.5), exact_match=estimate(0.2)),
            "half": Policy(accuracy=estimate(0.55)),
            "right": Policy(accuracy=estimate(0.6), exact_match=estimate(0.3)),
        },
        weights={"macro": {"a": 0.5, "b": 0.5}, "accuracy_micro": {"a": 0.9, "b": 0.1}},
    )
    rows = by_title(policy_table(found))
    assert [rows[word(f"policy_{name}")][0] for name in ("wrong", "half", "right")] == ["50.0%", "55.0%", "60.0%"]
    assert rows[word("policy_half")][4] == DASH
    assert by_title(weight_table(found)) == {"a": ("50.0%", "90.0%"), "b": ("50.0%", "10.0%")}
    judged = MoreMeasured(policies={"wrong": Policy(overall=estimate(0.4)), "half": Policy(overall=estimate(0.625))})
    rows = by_title(policy_table(judged))
    assert [rows[word(f"policy_{name}")][0] for name in ("wrong", "half")] == ["40.0%", "62.5%"]
    assert policy_table(MoreMeasured()) is weight_table(MoreMeasured()) is None


def test_calibration_before_and_after():
    own = Calibration(
        expected_calibration_error=estimate(0.2),
        temperature=estimate(3.0),
        cross_validated=Calibrated(expected_calibration_error=estimate(0.1)),
    )
    first, second = calibration_table(own).rows
    assert (first[0], first[1]) == (word("rewards_as_they_are"), "0.200")
    assert (second[0], second[1]) == (f"{word('with_temperature')} 3.000 (2.900 … 3.100)", "0.100")


def test_rewards_of_a_group_without_scores_are_dashes():
    empty = Spread(share_unscored=estimate(1.0))
    (row,) = spread_table({"zh": empty}).rows
    assert row[0] == "zh"
    assert row[2] == DASH
    assert row[-1] == "100.0%"


def test_a_measure_that_cannot_be_told_says_why_in_both_languages():
    words = tomllib.loads((files("steelyard.report") / "templates" / "strings.toml").read_text("utf-8"))
    for why in get_args(WhyNot):
        own = Measures(length=Length(matched_ratio=1.1, raw=means(0.7), adjusted=Estimate(n=10, why=why)))
        row = by_title(measure_table(own))[word("no_difference")]
        assert row[:2] == (DASH, DASH)
        assert row[2] == word(f"why_{why.replace(' ', '_')}", why)
        assert set(words[f"why_{why.replace(' ', '_')}"]) == {"en", "zh"}
