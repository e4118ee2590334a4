from typing import get_args

from steelyard.cli.measured import measure_lines
from steelyard.core.plugins import build
from steelyard.core.types import Scores
from steelyard.evaluation.config import Config
from steelyard.evaluation.measures.length import WhyNot
from steelyard.evaluation.summary import evaluation_of, summarise
from strategies import case, judgment

RANKING = (("a",), ("b",), ("c",))


def printed(*scores, judgments=()):
    cases = [case(f"p{index}", "abc", judgments, ranking=RANKING) for index in range(len(scores))]
    lines = [
        Scores(
            prompt=one.prompt.id,
            scores=dict(zip("abc", own, strict=True)),
            unscored={name: "cut" for name, score in zip("abc", own, strict=True) if score is None},
        )
        for one, own in zip(cases, scores, strict=True)
    ]
    config = Config(num_resamples=0)
    return list(measure_lines(summarise(evaluation_of(cases, lines, build("benches", "cases"), config))))


def test_a_line_for_each_measure():
    both = [judgment("a>b", judge=name) for name in ("ann", "bob")]
    # First prompt in order, second turned: tau 1 and -1, the best and the last taken
    assert printed((3, 2, 1), (1, 2, 3), judgments=both) == [
        "Kendall's tau-b            0.000",
        "first choice in best tier  0.500; at random 0.333",
        "tiers lost by first choice 1.000; at random 1.000",
        "accuracy, lengths 1:1.1    0.500  n=6",
        "  at no length difference  not told: all pairs have one ratio of lengths",
        "people with the others     1.000 [an interval needs 6 prompts]; the model on the same pairs 0.500",
        # four pairs at sigmoid(1) and two at sigmoid(2), half of each right: (4 x 0.231 + 2 x 0.381) / 6
        "calibration error          0.281 [an interval needs 60 prompts]; temperature none",
    ]


def test_tied_scores_show_the_other_policies():
    # one pair of three is tied
    assert printed((2, 2, 1))[0] == "  counted half, and right  0.833; 1.000"
    assert printed((1, 1, 1))[1] == "Kendall's tau-b            none; 1 prompts have equal scores alone"


def test_with_a_score_missing_there_is_nothing_to_say():
    assert printed((3, None, 1)) == []
    assert list(measure_lines({})) == []


def test_every_reason_of_the_regression_has_its_words():
    length = {"matched_ratio": 1.1, "matched": {"macro": {"value": None}}, "raw": {}}
    for why in get_args(WhyNot):
        adjusted = {"value": None, "low": None, "high": None, "n": 4, "why": why}
        (line,) = measure_lines({"measures": {"length": length | {"adjusted": adjusted}}})
        assert line.startswith("  at no length difference  not told: ")
