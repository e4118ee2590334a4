from steelyard.cli.arms import arm_lines, difference_lines, with_interval
from steelyard.recipes.experiments import Arm, ArmDifference
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.significance import Comparison

NOTHING = Estimate(None, None, None, 0)


def arm(name, estimate):
    return Arm(name, 1000.0, 20.0, 30, estimate, NOTHING, (0.4, 0.6), 0.1414)


def difference(p):
    own = Estimate(0.25, 0.125, 0.5, 9)
    return ArmDifference("b", "a", Comparison(own, own, p, p, 1, 0, 0.1), p)


def test_the_columns_of_arms_stand_below_each_other():
    heading, first, second = arm_lines([arm("a", Estimate(0.5, 0.4, 0.6, 9)), arm("a longer name", NOTHING)])
    assert first.split() == ["a", "1,000", "20", "0.500", "[0.400,", "0.600]", "0.141", "none"]
    assert heading.index("prompts") + len("prompts") == first.index("1,000") + 5 == second.index("1,000") + 5


def test_a_star_marks_what_is_beyond_doubt_after_correction():
    assert list(difference_lines([difference(0.04), difference(0.06)])) == [
        "b minus a: +0.250 [+0.125, +0.500] *",
        "b minus a: +0.250 [+0.125, +0.500]",
    ]


def test_a_value_without_an_interval_is_none():
    assert with_interval(Estimate(0.5, None, None, 3)) == "none"
