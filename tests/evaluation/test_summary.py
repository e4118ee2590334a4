import msgspec
import pytest
from msgspec import UNSET

from evaluated_cases import evaluation_of
from steelyard.core.plugins import build
from steelyard.core.types import Scores
from steelyard.evaluation.columns import bench_columns, score_columns
from steelyard.evaluation.config import Config
from steelyard.evaluation.evaluated_bench import MissingScores, unscored_report
from steelyard.evaluation.headline import summarise
from steelyard.evaluation.measure import measures
from steelyard.evaluation.measures.accuracy import Range
from steelyard.evaluation.pair_verdicts import Judged
from steelyard.evaluation.summary import TiedPairs
from steelyard.plugins.benches.rewardbench import WEIGHT_SETS
from steelyard.plugins.benches.subset_benches import TRANSLATION_PUBLISHED
from strategies import case

RANKING = (("a",), ("b",), ("c",))
CASES = [
    case("p", "abc", category=("code",), language="zh", ranking=RANKING),
    case("q", "abc", category=("code",), language="he", ranking=RANKING),
    case("r", "abc", category=("chat",), language="he", ranking=RANKING),
]


def lines(*scores):
    return [
        Scores(
            prompt=one.prompt.id,
            scores=dict(zip("abc", own, strict=True)),
            unscored={name: "cut" for name, score in zip("abc", own, strict=True) if score is None},
        )
        for one, own in zip(CASES, scores, strict=True)
    ]


def summary(scores, baselines=None, bench="cases", cases=CASES, **settings):
    config = Config(num_resamples=50, **settings)
    return summarise(evaluation_of(cases, lines(*scores), build("benches", bench), config, baselines=baselines))


def whole_bench(kind, counts, *, scores=None, outcomes=None):
    """A pair a prompt, so many of each subset; right but for the first ones' ``scores`` of a, or ``outcomes``."""
    bench, config = build("benches", kind), Config(num_resamples=5)
    cases = [
        case(f"{name}/{index}", "ab", text=f"{name} {index}", subset=name, ranking=(("a",), ("b",)))
        for name, number in counts.items()
        for index in range(number)
    ]
    own = [one for name, number in counts.items() for one in padded((scores or {}).get(name, ()), number, 1.0)]
    given = [
        Scores(
            prompt=one.prompt.id, scores={"a": value, "b": 0.0}, unscored={} if value is not None else {"a": "refused"}
        )
        for one, value in zip(cases, own, strict=True)
    ]
    if outcomes is None:
        return summarise(evaluation_of(cases, given, bench, config))
    said = tuple(one for name, number in counts.items() for one in padded(outcomes.get(name, ()), number, "left"))
    return summarise(evaluation_of(cases, given, bench, config, judged=Judged(said, {})))


def padded(first, number, rest):
    return [*first, *[rest] * (number - len(first))]


def keys_of(tree):
    for name, inner in tree.items():
        yield name
        if isinstance(inner, dict):
            yield from keys_of(inner)


def test_by_hand():
    # p: 3 of 3 right; q: 1 of 3 (one tied); r: 0 of 3. code 4/6, chat 0: mean 1/3; micro 4/9
    found = summary([(3, 2, 1), (2, 2, 1), (1, 2, 3)])
    found_q = 2 / 3  # q: a > c and b > c right, a > b tied: 2 of 3
    assert found.by_category["code"].accuracy.value == pytest.approx((1 + found_q) / 2)
    assert found.by_category["chat"].accuracy.value == 0
    assert found.accuracy.value == pytest.approx((1 + found_q) / 4)
    assert found.accuracy_micro.value == pytest.approx(5 / 9)
    assert found.exact_match.value == pytest.approx((1 / 2 + 0) / 2)
    assert found.exact_match_micro.value == pytest.approx(1 / 3)
    assert (found.accuracy.n, found.exact_match.n) == (9, 3)
    assert found.tied == TiedPairs(num_pairs=1, share=pytest.approx(1 / 9))
    assert found.by_language["he"].accuracy.value == pytest.approx(2 / 6)
    assert found.bounds is found.unscored is None


@pytest.mark.parametrize(("compat", "exact"), [(None, 0.0), ("cheems", 1.0)])
def test_a_constant_model(compat, exact):
    found = summary([(1, 1, 1)] * 3, metric_compat=compat)
    assert found.accuracy.value == found.accuracy_micro.value == 0.0
    assert found.exact_match.value == found.exact_match_micro.value == exact
    assert found.tied == TiedPairs(num_pairs=9, share=1.0)


def test_a_baseline_stands_beside_the_model_with_the_paired_difference():
    found = summary([(3, 2, 1)] * 3, {"worst": lines(*[(1, 2, 3)] * 3), "same": lines(*[(3, 2, 1)] * 3)})
    assert found.baselines["worst"].accuracy.value == 0.0
    for name, value in (("worst", 1.0), ("same", 0.0)):
        assert (found.baselines[name].difference.value, found.baselines[name].difference.n) == (value, 9)
    worst, same = found.baselines["worst"].difference, found.baselines["same"].difference
    assert worst.low < worst.high  # three prompts tell little
    assert (same.low, same.high) == (0.0, 0.0)  # no prompt can tell equal scores apart
    assert set(msgspec.to_builtins(found.baselines["worst"])) == {
        "accuracy", "exact_match", "accuracy_micro", "exact_match_micro", "by_category", "difference"
    }  # fmt: skip


UNSCORED = [(3, 2, 1), (2, None, 1), (None, None, None)]


def test_unscored_responses_leave_bounds_and_no_headline():
    # code: p 3 of 3, q a > c right and two pairs open: 4/6 to 6/6; chat: three pairs open: 0 to 1
    found = summary(UNSCORED, {"worst": lines(*[(1, 2, 3)] * 3)})
    for own in (found.accuracy, found.exact_match, found.accuracy_micro, found.exact_match_micro):
        assert own.value is own.low is own.high is None
    assert found.accuracy.n == 9
    bounds = found.bounds
    assert bounds.accuracy == Range(low=pytest.approx((4 / 6 + 0) / 2), high=1.0)
    assert bounds.accuracy_micro == Range(low=pytest.approx(4 / 9), high=1.0)
    assert bounds.exact_match == Range(low=0.25, high=1.0)
    assert bounds.exact_match_micro == Range(low=pytest.approx(1 / 3), high=1.0)
    assert bounds.by_category["code"].accuracy == Range(low=pytest.approx(4 / 6), high=1.0)
    # 5 of 9 pairs are unscored: a headline would tell of their number.
    assert found.by_category["code"].accuracy.value is None
    assert found.over_scored_pairs.accuracy_micro.value == 1.0
    assert found.over_scored_pairs.accuracy_micro.n == 4
    assert found.baselines["worst"].accuracy.value == 0.0
    assert found.baselines["worst"].difference.value is None


def test_unscored_responses_are_counted_by_reason_and_language():
    report = unscored_report(bench_columns(CASES, None, "strict"), score_columns(lines(*UNSCORED)))
    assert report == MissingScores(
        num_responses=4, by_reason={"cut": 4}, by_language={"he": 4}, num_pairs=5, num_prompts=2
    )


def test_the_benchs_own_headline_has_bounds_too():
    found = whole_bench("mrewardbench_translation", TRANSLATION_PUBLISHED, scores={"easy_de_en": [None] * 4})
    assert found.overall.value == found.bounds.overall.low
    # 96 to 100 of the first subset are right, and all of the seven others.
    assert found.bounds.overall == Range(low=pytest.approx((0.96 + 7) / 8), high=1.0)
    assert whole_bench("mrewardbench_translation", TRANSLATION_PUBLISHED).overall.value == 1.0


def test_half_a_point_for_a_tie_or_a_failure_goes_through_the_sections_of_the_translation_task():
    outcomes = {"easy_de_en": ["tie"] + ["right"] * 37, "hard_en_zh": ["unparsed"] * 3}
    found = whole_bench("mrewardbench_translation", TRANSLATION_PUBLISHED, outcomes=outcomes)
    strict, half = found, found.policies["half"]
    # 62 of 100 and a tie are printed as 62.5; 97 and three failures as 98.5.
    for name, wrong, credited in (("easy_de_en", 0.62, 0.625), ("hard_en_zh", 0.97, 0.985), ("easy_en_de", 1.0, 1.0)):
        assert strict.sections[name].value == pytest.approx(wrong)
        assert half.sections[name].value == pytest.approx(credited)
    assert strict.overall.value == found.policies["wrong"].overall.value == pytest.approx(7.59 / 8)
    assert half.overall.value == pytest.approx((0.625 + 0.985 + 6) / 8)
    assert not any("exact_match" in name for name in keys_of(msgspec.to_builtins(half)))


def test_half_points_weigh_as_rewardbench_s_subsets_do():
    counts = {one.name: one.num_prompts for one in WEIGHT_SETS["rewardbench"]}
    found = whole_bench("rewardbench", counts, outcomes={"math-prm": ["tie"] * 447})
    # math-prm weighs 984 of 1,968 in Reasoning: ties there cost half of the section, or a quarter by half points.
    assert found.sections["Reasoning"].value == pytest.approx(0.5)
    assert found.policies["half"].sections["Reasoning"].value == pytest.approx(0.75)
    assert found.overall.value == pytest.approx(3.5 / 4)
    assert found.policies["half"].overall.value == pytest.approx(3.75 / 4)
    assert found.policies["half"].weights == "rewardbench"


def test_a_bench_that_does_not_count_halves_has_no_headline_by_them():
    found = whole_bench("cases", {"x": 4}, outcomes={"x": ["tie"]})
    assert found.policies["half"].headline is UNSET
    assert found.policies["half"].accuracy.value == pytest.approx(3.5 / 4)


def test_policies_weights_and_more_measures_stand_in_the_summary():
    found = summary([(3, 2, 1), (2, 2, 1), (1, 2, 3)])
    assert found.policies["wrong"].accuracy == found.accuracy
    assert found.policies["right"].accuracy_micro.value == pytest.approx(6 / 9)
    assert found.weights["macro"] == {"chat": 0.5, "code": 0.5}
    assert found.measures.top_1.wrong.micro.value == pytest.approx(1 / 3)
    assert found.measures.length.raw.micro == found.accuracy_micro
    assert found.measures.length.raw.by_category["code"] == found.by_category["code"].accuracy
    assert summary(UNSCORED).policies is None
    assert [name for name in measures() if getattr(summary(UNSCORED).measures, name)] == ["rewards"]
