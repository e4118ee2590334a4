import pytest

from reference_measures import as_written, reference_estimate
from steelyard.ranking.annotation_features import TraitCollector
from steelyard.ranking.conflicts import conflict_tables
from steelyard.ranking.judge_quality import AUTHOR_WIDTH, GRAPH_WIDTH, RATER_WIDTH, judge_quality_counts
from steelyard.ranking.judge_summary import (
    MOST_PAIRS,
    QualityDraws,
    add_intervals,
    agreement_summary,
    judge_summary,
)
from steelyard.ranking.judgment_table import judgment_table
from steelyard.ranking.resolution import resolve_table
from steelyard.statistics.agreement import NUM_CELLS
from steelyard.statistics.unit_bootstrap import Tally
from strategies import case, judgment


def judges_of(given_cases):
    return as_written(judge_summary(drawn(given_cases)))


def agreement_of(given_cases):
    return as_written(agreement_summary(drawn(given_cases).agreement))


def conflicts_of(given_cases):
    draws = drawn(given_cases)
    conflicts = conflict_tables(resolve_table(judgment_table(given_cases)).sums)
    return conflicts, add_intervals(conflicts, judge_summary(draws), draws.graphs)


def drawn(given_cases):
    counters = [Tally(width) for width in (RATER_WIDTH, GRAPH_WIDTH, NUM_CELLS, AUTHOR_WIDTH)]
    collector = TraitCollector()
    table = judgment_table(given_cases, visit=collector.add)
    graphs = resolve_table(table).graphs
    for tally, entries in zip(
        counters, judge_quality_counts(table, graphs, collector.traits(table), "none"), strict=True
    ):
        tally.add(entries)
    return QualityDraws(*(tally.draw(seed=0) for tally in counters))


def by(judge, *shorts, kind="human", **fields):
    return [judgment(short, judge=judge, kind=kind, **fields) for short in shorts]


def ten_prompts():
    """In five prompts ann's verdicts are a circle, in five they are not; the model says the reverse of ann's last."""
    cases = []
    for number in range(10):
        own = by("ann", "a>b", "b>c", "c>a" if number % 2 else "a>c", shown=("a", "b", "c"))
        model = by("m", "a>c" if number % 2 else "c>a", kind="llm", shown=("c", "a"))
        language = "zh" if number < 4 else "de"
        cases.append(case(id=f"p{number}", responses="abc", judgments=[*own, *model], language=language))
    return cases


def test_judges_and_kinds_by_hand():
    found = judges_of(ten_prompts())
    ann, model = found["by_judge"]["ann"], found["by_judge"]["m"]
    assert (ann["kinds"], ann["num_judgments"], ann["num_strict"]) == (["human"], 30, 30)
    assert (ann["conflict_ratio"]["value"], ann["conflict_ratio"]["n"]) == (15 / 30, 30)
    assert 0.15 < ann["conflict_ratio"]["low"] < 0.5 < ann["conflict_ratio"]["high"] < 0.85
    assert model["conflict_ratio"]["value"] == 0.0
    # With the model's word both kinds of prompt are one circle: no ranking orders anything, and nothing can agree.
    assert ann["ranking"]["coverage"]["value"] == 0.0
    assert ann["ranking"]["agreement"] == {"value": None, "low": None, "high": None, "n": 0}
    # The model alone speaks of a and c only, and always against ann there; ann's verdicts order a and c for the model
    # where they are no circle, and there the model is against them.
    assert (ann["others"]["agreement"]["value"], ann["others"]["agreement"]["n"]) == (0.0, 10)
    assert (ann["others"]["coverage"]["value"], ann["others"]["coverage"]["n"]) == (10 / 30, 30)
    assert (model["others"]["agreement"]["value"], model["others"]["coverage"]["value"]) == (0.0, 5 / 10)
    assert found["by_kind"]["human"]["others"] == ann["others"]
    assert found["by_kind"]["llm"]["conflict_ratio"]["value"] == 0.0


def test_positions_and_lengths_by_hand():
    found = judges_of(ten_prompts())["by_kind"]["human"]
    # a over b and b over c: the earlier; a over c or c over a: half.
    assert found["position"]["earlier"]["value"] == 25 / 30
    pairs = {(one["num_shown"], one["earlier"], one["later"]): one["value"] for one in found["position"]["pairs"]}
    assert pairs == {(3, 1, 2): 1.0, (3, 2, 3): 1.0, (3, 1, 3): 0.5}
    places = {(one["num_shown"], one["place"]): one["value"] for one in found["position"]["places"]}
    assert places == {(3, 1): 15 / 20, (3, 2): 10 / 20, (3, 3): 5 / 20}
    assert found["length"]["num_equal"] == 30  # the builder's answers are of one length
    assert found["length"]["longer"]["value"] is None
    assert found["length"]["bins"] == []


def test_conflicts_by_group_have_intervals():
    _, found = conflicts_of(ten_prompts())
    # On the full graphs all 40 judgments are in circles.
    expected = reference_estimate(1.0, 10, 40)
    assert (found.overall.ratio_low, found.overall.ratio_high) == (expected["low"], expected["high"])
    assert {name: one.num_judgments for name, one in found.by_language.items()} == {"zh": 16, "de": 24}
    assert all(one.ratio_low <= one.ratio <= one.ratio_high for one in found.by_language.values())
    assert set(found.by_category) == {"uncategorised"}
    assert found.by_subset == {}


def test_agreement_by_hand():
    judgments = [
        [*by("ann", "a>b"), *by("bob", "a>b"), *by("m", "a>b", kind="llm")],
        [*by("ann", "a>b"), *by("bob", "b<a"), *by("m", "a>b", kind="llm")],
        [*by("ann", "b>a"), *by("bob", "b>a")],
        [*by("ann", "b>a"), *by("bob", "a=b")],
    ]
    cases = [case(id=str(number), responses="ab", judgments=own) for number, own in enumerate(judgments)]
    found = agreement_of(cases)
    first = found["judges"][0]
    assert first["judges"] == ["ann", "bob"]
    assert (first["agreement"]["value"], first["agreement"]["n"]) == (3 / 4, 4)
    assert (first["agreement_of_strict"]["value"], first["agreement_of_strict"]["n"]) == (1.0, 3)
    # By chance: ann 2, 2, 0; bob 2, 1, 1 of 4: (2 * 2 + 2 * 1) / 16.
    assert first["kappa"]["value"] == pytest.approx((3 / 4 - 6 / 16) / (1 - 6 / 16))
    assert [one["judges"] for one in found["judges"][1:]] == [["ann", "m"], ["bob", "m"]]
    assert found["judges"][1]["kappa"]["value"] is None  # both always said the same one thing
    assert [one["kinds"] for one in found["kinds"]] == [["human", "llm"]]
    assert found["kinds"][0]["agreement"] == reference_estimate(1.0, 2, 2)
    # Humans: labels a 4, b 3, tie 1 of 8; one pair of labels differs, counted in both orders: 2.
    disagreeing, expected = 2 / 8, 1 - (4 * 3 + 3 * 2 + 1 * 0) / (8 * 7)
    assert found["alpha"]["by_kind"]["human"]["value"] == pytest.approx(1 - disagreeing / expected)
    assert found["alpha"]["by_kind"]["human"]["n"] == 8
    assert "llm" not in found["alpha"]["by_kind"]
    assert found["num_pairs_of_judges_not_listed"] == 0


def test_pairs_of_judges_beyond_the_bound_are_counted():
    judgments = [one for number in range(16) for one in by(f"j{number:02}", "a>b")]
    found = agreement_of([case(responses="ab", judgments=judgments)])
    assert len(found["judges"]) == MOST_PAIRS
    assert found["num_pairs_of_judges_not_listed"] == 16 * 15 // 2 - MOST_PAIRS


def test_a_file_without_judgments_has_nothing_to_report():
    assert judges_of([case()]) == {"by_judge": {}, "by_kind": {}, "num_entries_of_judges_not_listed": 0}
    assert agreement_of([case()])["alpha"]["all"]["value"] is None
    without, with_intervals = conflicts_of([case()])
    assert with_intervals == without


def test_who_was_never_read_has_null_ratios():
    found = judges_of([case(responses="ab", judgments=by("m", "a?b", kind="llm"))])["by_judge"]["m"]
    assert found["num_judgments"] == 0
    assert found["conflict_ratio"]["value"] is None
