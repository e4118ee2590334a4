import json

import numpy as np
import pytest

from headline_fixtures import ACCURACY, FIRST, MISSING_OTHERS, OVERALL, translation_runs
from steelyard.core.errors import EvidenceError
from steelyard.io.cases import write_cases
from steelyard.stages.compare import Config, compare
from steelyard.stages.evaluate import Config as EvaluateConfig
from steelyard.stages.evaluate import evaluate
from steelyard.stages.leaderboard import Config as LeaderboardConfig
from steelyard.stages.leaderboard import leaderboard
from strategies import case


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Three score files over 200 pairs: right in 90 %, in 88 % and in 50 % of them."""
    folder = tmp_path_factory.mktemp("compare")
    rng = np.random.default_rng(0)
    cases = [case(f"p{index}", "ab", ranking=(("a",), ("b",))) for index in range(200)]
    write_cases(folder / "bench.jsonl", cases)
    found = []
    for name, share in (("good", 0.9), ("as good", 0.88), ("coin", 0.5)):
        lines = [{"prompt": one.prompt.id, "scores": {"a": float(rng.random() < share), "b": 0.5}} for one in cases]
        scores = folder / f"{name}.jsonl"
        scores.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        config = EvaluateConfig(num_resamples=10, baselines=())
        evaluate([folder / "bench.jsonl"], folder / name, config, scores=scores)
        found.append(folder / name)
    return found


def test_what_is_beyond_doubt_and_what_is_not(folders, tmp_path):
    run = compare(folders, tmp_path / "out", Config(num_resamples=2000))
    models = {row.name: (row.best_rank, row.worst_rank) for row in run.summary.models}
    assert models == {"good": (1, 2), "as good": (1, 2), "coin": (3, 3)}
    by_pair = {(one.first, one.second): one for one in run.summary.comparisons}
    assert by_pair["good", "coin"].p_accuracy_corrected < 0.01
    assert by_pair["good", "as good"].p_accuracy_corrected > 0.05
    assert by_pair["good", "as good"].p_accuracy <= by_pair["good", "as good"].p_accuracy_corrected
    difference = by_pair["good", "coin"].accuracy
    accuracies = {row.name: row.accuracy.value for row in run.summary.models}
    assert difference.value == pytest.approx(accuracies["good"] - accuracies["coin"])
    again = compare(folders, tmp_path / "out", Config(num_resamples=2000))
    assert again == run


def test_a_difference_to_a_baseline_has_the_interval_of_the_comparison_with_it(folders, tmp_path):
    bench = folders[0].parent / "bench.jsonl"
    evaluate([bench], tmp_path / "first", EvaluateConfig(num_resamples=10, baselines=()), model="first")
    scores = folders[0].parent / "good.jsonl"
    config = EvaluateConfig(num_resamples=10, baselines=("first",))
    run = evaluate([bench], tmp_path / "good", config, scores=scores)
    baseline = run.summary.baselines["first"].difference
    for order in ((0, 1), (1, 0)):
        runs = [(tmp_path / "good", tmp_path / "first")[index] for index in order]
        difference = compare(runs, tmp_path / f"out{order[0]}").summary.comparisons[0].accuracy
        ends = (difference.low, difference.high) if order == (0, 1) else (-difference.high, -difference.low)
        assert ends == (baseline.low, baseline.high)


def test_equal_scores_differ_by_nothing_and_equal_verdicts_alone_may_differ_elsewhere(folders, tmp_path):
    bench, config = folders[0].parent / "bench.jsonl", EvaluateConfig(num_resamples=10, baselines=())
    lines = (folders[0] / "scores.jsonl").read_text(encoding="utf-8").splitlines()
    doubled = [json.loads(line) for line in lines]
    for line in doubled:
        line["scores"] = {name: 2 * score for name, score in line["scores"].items()}
    for name, rows in (("copied", map(json.loads, lines)), ("doubled", doubled)):
        scores = tmp_path / f"{name}.jsonl"
        scores.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        evaluate([bench], tmp_path / name, config, scores=scores)
    same, alike = (
        compare([folders[0], tmp_path / name], tmp_path / f"with {name}").summary.comparisons[0]
        for name in ("copied", "doubled")
    )
    assert (same.accuracy.value, same.accuracy.low, same.accuracy.high) == (0.0, 0.0, 0.0)
    assert (same.exact_match.low, same.exact_match.high, same.p_accuracy) == (0.0, 0.0, 1.0)
    assert all(measure.difference.low in (0.0, None) for measure in same.measures.values())
    assert alike.accuracy.value == 0.0
    assert alike.accuracy.low < 0.0 < alike.accuracy.high


def test_one_evaluation_alone_is_refused(folders, tmp_path):
    with pytest.raises(EvidenceError, match="at least two evaluations"):
        compare(folders[:1], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_evaluation_is_compared_with_itself(folders, tmp_path):
    # Differences are corrected for their number, which a model next to itself would raise.
    with pytest.raises(EvidenceError, match="a folder is named twice"):
        compare([*folders, folders[0]], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_other_measures_are_compared_too(folders, tmp_path):
    run = compare(folders, tmp_path / "out", Config(num_resamples=2000))
    by_pair = {(one.first, one.second): one for one in run.summary.comparisons}
    own, accuracy = by_pair["good", "coin"].measures, by_pair["good", "coin"].accuracy.value
    # One pair a prompt, answers of one length: the first choice is right where the pair is, tau and regret follow.
    assert own["top_1"].difference.value == pytest.approx(accuracy)
    assert own["kendall_tau"].difference.value == pytest.approx(2 * accuracy)
    assert own["regret"].difference.value == pytest.approx(-accuracy)
    assert own["accuracy_length_matched"].difference.value == pytest.approx(accuracy)
    for measure in (one for one in own.values() if one.p is not None):
        assert measure.difference.low <= measure.difference.value <= measure.difference.high
        assert measure.p <= measure.p_corrected < 0.01


def test_models_are_ranked_by_the_headline_of_their_bench(tmp_path):
    folders = translation_runs(tmp_path)
    run = compare(list(folders.values()), tmp_path / "out", Config(num_resamples=3000))
    assert run.summary.headline == "overall"
    assert [(row.name, row.value.value) for row in run.summary.models] == [
        ("broad", pytest.approx(OVERALL["broad"])), ("narrow", pytest.approx(OVERALL["narrow"]))
    ]  # fmt: skip
    (one,) = run.summary.comparisons
    assert one.accuracy.value == pytest.approx(ACCURACY["narrow"] - ACCURACY["broad"])
    assert one.headline.value == pytest.approx(OVERALL["narrow"] - OVERALL["broad"])
    # The difference is a mean over eight subsets of 100 prompts: its deviation by hand, from the rows.
    items = {
        name: [json.loads(line) for line in (folder / "items.jsonl").read_text("utf-8").splitlines()]
        for name, folder in folders.items()
    }
    differences = [first["num_correct"] - second["num_correct"] for first, second in zip(*items.values(), strict=True)]
    deviation = np.sqrt(sum(np.var(own) / 100 for own in np.reshape(differences, (8, 100)))) / 8
    width = one.headline.high - one.headline.low
    assert width == pytest.approx(2 * 1.96 * deviation, rel=0.08)
    assert one.headline.p == one.headline.p_corrected < 0.05
    assert {row.name: row.best_rank for row in run.summary.models} == {"broad": 1, "narrow": 2}


def test_a_part_of_a_bench_is_compared_by_accuracy_and_says_what_is_missing(tmp_path):
    folders = translation_runs(tmp_path, subsets=(FIRST,))
    run = compare(list(folders.values()), tmp_path / "out", Config(num_resamples=200))
    assert run.summary.headline is None
    assert run.summary.missing == MISSING_OTHERS
    assert [row.name for row in run.summary.models] == ["narrow", "broad"]
    assert run.summary.comparisons[0].headline is None


def test_accuracy_that_is_the_headline_is_told_once(folders, tmp_path):
    run = compare(folders, tmp_path / "out", Config(num_resamples=200))
    assert run.summary.headline == "accuracy"
    assert all(row.value == row.accuracy for row in run.summary.models)
    assert all(one.headline is None for one in run.summary.comparisons)


def evaluated(folder, name, outcomes):
    """An evaluation of as many pairs as outcomes: right (+), wrong (-) or without a score (0)."""
    cases = [
        case(f"p{index}", "ab", text=f"question {index}", ranking=(("a",), ("b",))) for index in range(len(outcomes))
    ]
    write_cases(folder / "bench.jsonl", cases)
    lines = [
        {"prompt": one.prompt.id, "scores": {"a": {"+": 1.0, "-": 0.0, "0": None}[own], "b": 0.5}}
        | ({"unscored": {"a": "too long"}} if own == "0" else {})
        for one, own in zip(cases, outcomes, strict=True)
    ]
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    config = EvaluateConfig(num_resamples=10, baselines=())
    evaluate([folder / "bench.jsonl"], folder / name, config, scores=folder / f"{name}.jsonl")
    return folder / name


def ranks(rows):
    return {row.name: (row.best_rank, row.worst_rank) for row in rows}


@pytest.mark.parametrize("verb", [compare, leaderboard])
def test_a_lead_that_is_gone_if_unscored_pairs_were_right_is_not_beyond_doubt(verb, tmp_path):
    whole = evaluated(tmp_path, "whole", "+" * 100)
    cut = evaluated(tmp_path, "cut", "+" * 80 + "0" * 20)
    config = (Config if verb is compare else LeaderboardConfig)(num_resamples=500)
    summary = verb([whole, cut], out=tmp_path / "out", config=config).summary
    (one,) = summary.comparisons
    strict = one.p_accuracy_corrected if verb is compare else one.p_corrected
    assert strict < 0.001
    assert one.p_bounded == 1.0
    assert ranks(summary.models if verb is compare else summary.rows) == {"whole": (1, 2), "cut": (1, 2)}


@pytest.mark.parametrize("verb", [compare, leaderboard])
def test_pairs_that_neither_model_scored_leave_the_lead_as_it_is(verb, tmp_path):
    good = evaluated(tmp_path, "good", "+" * 80 + "0" * 20)
    bad = evaluated(tmp_path, "bad", "+" * 40 + "-" * 40 + "0" * 20)
    config = (Config if verb is compare else LeaderboardConfig)(num_resamples=500)
    summary = verb([good, bad], out=tmp_path / "out", config=config).summary
    assert ranks(summary.models if verb is compare else summary.rows) == {"good": (1, 1), "bad": (2, 2)}
