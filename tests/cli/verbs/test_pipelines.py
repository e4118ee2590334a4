from steelyard.cli.verbs.pipelines import _ablation_answer, _sweep_answer, arm_table, difference_lines
from steelyard.recipes.ablate import AblationResult
from steelyard.recipes.experiments import Arm, ArmDifference
from steelyard.recipes.sweep import Growth, SweepResult
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.significance import PairedComparison, Trend

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


ARMS = (
    *(arm(f"arm {number}", Estimate(number / 100, 0.0, 1.0, 9)) for number in range(30)),
    arm("none", NOTHING),
)
BEST = "arm 29 is the most accurate of 31 arms: 0.290 [0.000, 1.000], trained on 20 pairs of 1,000 prompts."


def test_an_ablation_is_answered_in_a_sentence_and_a_few_lines():
    lines = list(_ablation_answer(AblationResult(ARMS, (difference(0.01),) * 40 + (difference(0.06),) * 5)))
    assert lines[:3] == [
        BEST, "40 of 45 differences are significant (Holm)", "  b minus a: +0.250 [+0.125, +0.500]"
    ]  # fmt: skip
    assert (len(lines), lines[-1]) == (9, "  … 34 more")


def test_a_sweep_is_answered_in_a_sentence_and_a_few_lines():
    growth = tuple(
        Growth(f"line {number}", "pairs", Trend(Estimate(0.02, 0.01, 0.03, 9), p, (10.0, 20.0)))
        for number, p in enumerate((0.01, 0.2, *([0.2] * 8)))
    )
    lines = list(_sweep_answer(SweepResult((), ARMS, growth, ())))
    assert lines[:3] == [
        BEST,
        "  line 0: +0.020 [+0.010, +0.030] a doubling of pairs, significant",
        "  line 1: +0.020 [+0.010, +0.030] a doubling of pairs, not significant",
    ]
    assert (len(lines), lines[-1]) == (8, "  … 4 more")
