import json

import numpy as np
import pytest
from msgspec.structs import asdict, replace

from evaluated_cases import select_pairs
from steelyard.core.plugins import build
from steelyard.core.types import Scores
from steelyard.evaluation.bench_pairs import count_pairs, items_of, values_of
from steelyard.evaluation.columns import score_columns
from steelyard.evaluation.config import Config
from steelyard.evaluation.tables import DASH, word
from steelyard.evaluation.tie_policies import category_weights, policy, policy_table, tie_policies, weight_table
from steelyard.io.cases import write_cases
from steelyard.plugins.benches.subset_benches import TRANSLATION_SUBSETS
from steelyard.stages.evaluate import Config as EvaluateConfig
from steelyard.stages.evaluate import evaluate
from steelyard.statistics.aggregation import means
from steelyard.statistics.bootstrap import resample
from steelyard.statistics.intervals import Estimate
from strategies import case

RANKING = (("a",), ("b",), ("c",))
CASES = [
    case("p", "abc", category=("code",), ranking=RANKING),
    case("q", "abc", category=("code",), ranking=RANKING),
    case("r", "ab", category=("chat",), ranking=(("a",), ("b",))),
]


def counted(bench_pairs, lines):
    return count_pairs(bench_pairs.columns, values_of(bench_pairs.columns, score_columns(lines).score))


def policies(*scores):
    lines = [
        Scores(prompt=one.prompt.id, scores=dict(zip("abc", own, strict=False)))
        for one, own in zip(CASES, scores, strict=True)
    ]
    bench_pairs = select_pairs(CASES, None, "strict")
    found = counted(bench_pairs, lines)
    measured = means(resample(items_of(bench_pairs, found, num_resamples=50), seed=0))
    bench = build("benches", "cases", {})
    return tie_policies(bench_pairs, found, measured, Config(num_resamples=50), bench), measured


def values(own):
    return {name: value.value for name, value in asdict(own).items() if isinstance(value, Estimate)}


def test_by_hand():
    # p: all right; q: one of three tied, two right; r: its one pair tied
    found, measured = policies((3, 2, 1), (2, 2, 1), (1, 1))
    assert values(found["wrong"]) == {
        "accuracy": pytest.approx((5 / 6 + 0) / 2),
        "accuracy_micro": pytest.approx(5 / 7),
        "exact_match": pytest.approx((1 / 2 + 0) / 2),
        "exact_match_micro": pytest.approx(1 / 3),
    }
    assert values(found["half"]) == {
        "accuracy": pytest.approx((5.5 / 6 + 0.5) / 2),
        "accuracy_micro": pytest.approx(6 / 7),
    }
    assert values(found["right"]) == {
        "accuracy": 1.0, "accuracy_micro": 1.0, "exact_match": 1.0, "exact_match_micro": 1.0
    }  # fmt: skip
    assert found["wrong"].accuracy == policy(measured).accuracy
    assert found["half"].by_category["chat"].accuracy.value == 0.5


def test_without_a_tie_all_are_the_headline():
    found, measured = policies((3, 2, 1), (2, 3, 1), (1, 2))
    for own in found.values():
        assert own.accuracy == policy(measured).accuracy
        assert own.by_category["code"].accuracy == policy(measured).by_category["code"].accuracy
    assert found["half"].exact_match is None


def test_weights_are_alike_or_by_pairs_or_by_prompts():
    cases = [*CASES, case("s", "ab", category=("math",))]
    bench_pairs = select_pairs(cases, None, "strict")
    lines = [Scores(prompt=one.prompt.id, scores=dict.fromkeys("abc", 0.0)) for one in cases]
    assert category_weights(bench_pairs, counted(bench_pairs, lines)) == {
        "macro": {"chat": 0.5, "code": 0.5},
        "accuracy_micro": {"chat": pytest.approx(1 / 7), "code": pytest.approx(6 / 7)},
        "exact_match_micro": {"chat": pytest.approx(1 / 3), "code": pytest.approx(2 / 3)},
    }
    assert np.isclose(sum(category_weights(bench_pairs, counted(bench_pairs, lines))["macro"].values()), 1)


def tied_translations(folder, *, score_of_loser):
    """The translation task: in each subset 60 pairs right, 30 tied and 10 wrong, or without a score for the worse."""
    cases = [
        case(f"{subset}/{index}", "ab", subset=subset, text=f"{subset} {index}", ranking=(("a",), ("b",)))
        for subset in TRANSLATION_SUBSETS
        for index in range(100)
    ]  # fmt: skip
    write_cases(folder / "bench.jsonl", cases)
    worse = [0.0] * 60 + [1.0] * 30 + [score_of_loser] * 10
    reasons = {"unscored": {"b": "refused"}} if score_of_loser is None else {}
    lines = [
        {"prompt": one.prompt.id, "scores": {"a": 1.0, "b": own}} | (reasons if own is None else {})
        for one, own in zip(cases, worse * len(TRANSLATION_SUBSETS), strict=True)
    ]
    (folder / "scores.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    config = EvaluateConfig(bench_kind="mrewardbench_translation", num_resamples=20, baselines=(), allow_unscored=True)
    return evaluate([folder / "bench.jsonl"], folder / "out", config, scores=folder / "scores.jsonl").summary


def test_external_scores_have_a_headline_with_half_a_point_for_ties(tmp_path):
    found = tied_translations(tmp_path, score_of_loser=2.0)
    assert found.overall.value == pytest.approx(0.6)
    policies = {name: own.overall.value for name, own in found.policies.items()}
    assert policies == {"wrong": pytest.approx(0.6), "half": pytest.approx(0.75), "right": pytest.approx(0.9)}
    assert found.policies["half"].sections["easy_de_en"].value == pytest.approx(0.75)


def test_what_has_no_score_is_half_a_point_beside_the_strict_headline(tmp_path):
    found = tied_translations(tmp_path, score_of_loser=None)
    assert found.overall.value == pytest.approx(0.6)
    assert found.policies["half"].overall.value == pytest.approx(0.6 + 0.4 / 2)


def by_title(table):
    return {row[0]: row[1:] for row in table.rows}


def test_policies_and_weights_as_tables():
    found, _ = policies((3, 2, 1), (2, 2, 1), (1, 1))
    rows = by_title(policy_table(found))
    assert [rows[word(f"policy_{name}")][0] for name in ("wrong", "half", "right")] == ["41.7%", "70.8%", "100.0%"]
    assert rows[word("policy_half")][4] == DASH
    weights = {"macro": {"a": 0.5, "b": 0.5}, "accuracy_micro": {"a": 0.9, "b": 0.1}}
    assert by_title(weight_table(weights)) == {"a": ("50.0%", "90.0%"), "b": ("50.0%", "10.0%")}
    assert policy_table({}) is weight_table({}) is None


def test_the_bench_s_own_value_stands_first():
    plain = policies((3, 2, 1), (2, 2, 1), (1, 1))[0]["half"]
    own = {"wrong": plain, "half": replace(plain, overall=Estimate(0.625, 0.6, 0.65, 9))}
    rows = by_title(policy_table(own))
    assert [rows[word(f"policy_{name}")][0] for name in ("wrong", "half")] == [DASH, "62.5%"]
