from steelyard.cli.verbs.pipelines import arm_table, difference_lines
from steelyard.recipes.experiments import Arm, ArmDifference
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.significance import PairedComparison

NOTHING = Estimate(None, None, None, 0)


def arm(name, estimate):
    return Arm(name, 1000.0, 20.0, 30, estimate, NOTHING, (0.4, 0.6), 0.1414)


def difference(p):
    estimate = Estimate(0.25, 0.125, 0.5, 9)
    return ArmDifference("b", "a", PairedComparison(estimate, estimate, p, p, 1, 0, 0.1), p)


def test_arm_table_has_one_row_per_arm():
    table = arm_table([arm("a", Estimate(0.5, 0.4, 0.6, 9)), arm("a longer name", NOTHING)])
    assert table.heads == ("prompts", "pairs", "accuracy [95%]", "seeds ±", "exact match [95%]")
    assert table.rows == [
        ("a", "1,000", "20", "0.500 [0.400, 0.600]", "0.141", "none"),
        ("a longer name", "1,000", "20", "none", "0.141", "none"),
    ]


def test_star_marks_significance_after_correction():
    assert list(difference_lines([difference(0.04), difference(0.06)])) == [
        "b minus a: +0.250 [+0.125, +0.500] *",
        "b minus a: +0.250 [+0.125, +0.500]",
    ]
